// Options of a step that make no sense, alone or together, each with one error.
// RUN: not zero-opt %s -train-step='clip-norm=-1.0' 2>&1 | FileCheck %s --check-prefix=NORM
// RUN: not zero-opt %s -train-step='clip-value=inf' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not zero-opt %s -train-step='clip-norm=1 clip-value=0.5' 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not zero-opt %s -train-step='loss-scale=0' 2>&1 | FileCheck %s --check-prefix=FIXED
// RUN: not zero-opt %s -train-step='loss-scale=big' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not zero-opt %s -train-step='loss-scale=dynamic initial-scale=0' 2>&1 | FileCheck %s --check-prefix=INITIAL
// RUN: not zero-opt %s -train-step='loss-scale=dynamic initial-scale=8 min-scale=16' 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not zero-opt %s -train-step='loss-scale=dynamic loss-scale-window=0' 2>&1 | FileCheck %s --check-prefix=WINDOW
// RUN: not zero-opt %s -train-step='groups=w:lr-factor=-1' 2>&1 | FileCheck %s --check-prefix=FACTOR
// RUN: not zero-opt %s -train-step='groups=w:weight-decay=-1' 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: not zero-opt %s -train-step='groups=:weight-decay=0' 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not zero-opt %s -train-step='groups=w:lr=0' 2>&1 | FileCheck %s --check-prefix=SETTING
// RUN: not zero-opt %s -train-step='optimizer=none clip-norm=1' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s -train-step='micro-batches=0' 2>&1 | FileCheck %s --check-prefix=MICRO
// RUN: not zero-opt %s -train-step='optimizer=sgd momentum-schedule=OneCycleMomentum' 2>&1 | FileCheck %s --check-prefix=MOMENTUM
// RUN: not zero-opt %s -train-step='schedule=cosin:lr=1' 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not zero-opt %s -train-step='schedule=linear:lr=1' 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not zero-opt %s -train-step='optimizer=adam momentum-schedule=OneCycle:cycle_min_mom=1' 2>&1 | FileCheck %s --check-prefix=MOMENTUM-KIND
// RUN: not zero-opt %s -train-step='precision=fp8' 2>&1 | FileCheck %s --check-prefix=PRECISION
// RUN: not zero-opt %s -train-step='reduce-type=int8' 2>&1 | FileCheck %s --check-prefix=REDUCE
// RUN: not zero-opt %s -train-step='loss-scale=1e39' 2>&1 | FileCheck %s --check-prefix=FIXED-RANGE
// RUN: not zero-opt %s -train-step='weight-decay=1e39' 2>&1 | FileCheck %s --check-prefix=DECAY-RANGE
// RUN: not zero-opt %s -train-step='clip-value=1e39' 2>&1 | FileCheck %s --check-prefix=VALUE-RANGE
// RUN: not zero-opt %s -train-step='groups=w:lr-factor=1e39' 2>&1 | FileCheck %s --check-prefix=FACTOR-RANGE
// RUN: not zero-opt %s -train-step='schedule=constant:lr=1e39' 2>&1 | FileCheck %s --check-prefix=SCHEDULE-RANGE

// FIXED-RANGE: error: loss scale 1.000000e+39 is no positive number of f32, from 1.175494e-38 to 3.402823e+38
// DECAY-RANGE: error: weight decay 1.000000e+39 is outside the range of f32, which ends at 3.402823e+38
// VALUE-RANGE: error: gradient clipping by value 1.000000e+39 is outside the range of f32
// FACTOR-RANGE: error: learning-rate factor of a group 1.000000e+39 is outside the range of f32
// SCHEDULE-RANGE: error: schedule constant: lr 1.000000e+39 is outside the range of f32
// NORM: error: gradients cannot be clipped to norm -1.000000e+00, expected a positive number
// VALUE: error: gradients cannot be clipped to value {{.*}}, expected a positive number
// BOTH: error: gradients are clipped either to norm 1.000000e+00 or to value 5.000000e-01, not both
// FIXED: error: loss scale 0.000000e+00 is no positive number
// NUMBER: error: "big" is not a number
// INITIAL: error: initial and least loss scale are 0.000000e+00 and 1.000000e+00, expected positive numbers of f32, from 1.175494e-38
// LEAST: error: least loss scale 1.600000e+01 is greater than the initial one, 8.000000e+00
// WINDOW: error: window and hysteresis of the loss scale are 0 and 2, expected at least 1
// FACTOR: error: group w has learning-rate factor -1.000000e+00, expected a number that is not negative
// DECAY: error: group w has weight decay -1.000000e+00, expected a number that is not negative
// PATTERN: error: a group of parameters has no pattern
// SETTING: error: groups: unknown setting lr, expected weight-decay or lr-factor
// NONE: error: optimizer none gives gradients as they are; it takes no clipping, loss scale, schedule or groups
// MICRO: error: a step has 0 micro-batches, expected at least 1
// MOMENTUM: error: a momentum schedule needs a momentum other than 0
// KIND: error: unknown schedule cosin, expected one of WarmupLR, {{.*}}cosine
// MISSING: error: schedule linear needs the number total
// MOMENTUM-KIND: error: schedule OneCycle has no number cycle_min_mom, expected one of
// PRECISION: error: unknown precision fp8, expected f32, bf16 or f16
// REDUCE: error: unknown reduce-type int8, expected f32, bf16 or f16
zero.param @w : tensor<6x4xf32>
func.func @forward() -> (tensor<6x4xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<6x4xf32>
  return %w : tensor<6x4xf32>
}
