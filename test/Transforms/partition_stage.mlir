// Stages that do not exist.
// RUN: not zero-opt %s --zero-partition=stage=4 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: not zero-opt %s --zero-partition=stage=-1 2>&1 | FileCheck %s --check-prefix=MINUS
// FOUR: error: stage 4 does not exist; ZeRO stages are 0, 1, 2, 3
// MINUS: error: stage -1 does not exist; ZeRO stages are 0, 1, 2, 3
zero.param @w : tensor<4xf32>
