//===- ScheduleFormulas.h - Values of schedules -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of #train.schedule, written once for any arithmetic: doubles in
// evaluateSchedule, f64 operations in the lowering of train.schedule. Order of
// operations is that of the sources (deepspeed/runtime/lr_schedules.py,
// torch/optim/lr_scheduler.py, transformers/optimization.py,
// torchtitan/components/lr_scheduler.py), so that results are equal to theirs.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_SCHEDULEFORMULAS_H
#define ZERO_DIALECTS_TRAIN_SCHEDULEFORMULAS_H

#include "dialects/Train/Train.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace mlir::train {

/// Builds the value of a schedule. `Math` has the types `Value` (a number) and
/// `Truth`, and: `number(double)`, `add`, `sub`, `mul`, `div`, `min`, `max`,
/// `floor`, `log`, `cos`, `sqrt`, `pow(Value, double)`, `less(Value, Value)`,
/// `select(Truth, Value, Value)`. Both values of a select are computed; the one
/// that is not taken may be no number.
template <typename Math>
class ScheduleFormula {
public:
  using Value = typename Math::Value;
  using Truth = typename Math::Truth;

  ScheduleFormula(Math math, ScheduleAttr schedule)
      : m(math), schedule(schedule) {}

  /// The value that update `k`, counted from 0, uses.
  Value build(Value k) {
    using Build = Value (ScheduleFormula::*)(Value);
    auto build = llvm::StringSwitch<Build>(schedule.getKind())
                     .Case("WarmupLR", &ScheduleFormula::warmupLR)
                     .Case("WarmupDecayLR", &ScheduleFormula::warmupLR)
                     .Case("WarmupCosineLR", &ScheduleFormula::warmupCosineLR)
                     .Case("LRRangeTest", &ScheduleFormula::lrRangeTest)
                     .Case("OneCycle", &ScheduleFormula::oneCycle)
                     .Case("OneCycleMomentum", &ScheduleFormula::oneCycle)
                     .Case("ConstantLR", &ScheduleFormula::afterWarmup)
                     .Case("LinearLR", &ScheduleFormula::afterWarmup)
                     .Case("CosineAnnealingLR", &ScheduleFormula::afterWarmup)
                     .Case("PolynomialLR", &ScheduleFormula::afterWarmup)
                     .Case("warmup_stable_decay", &ScheduleFormula::stableDecay)
                     .Default(&ScheduleFormula::huggingFace);
    return (this->*build)(k);
  }

private:
  double get(StringRef name) const { return getScheduleNumber(schedule, name); }
  Value number(double value) { return m.number(value); }
  /// Whether `x` < `bound`.
  Truth less(Value x, double bound) { return m.less(x, number(bound)); }

  //===--------------------------------------------------------------------===//
  // DeepSpeed
  //===--------------------------------------------------------------------===//

  /// The rising part of a warm-up at iteration k - 1 of `steps`, from 0 to 1.
  Value rise(Value k, double steps) {
    if (get("warmup_type") == 0.0)
      return m.mul(number(1.0 / std::log(steps)), m.log(k));
    return m.div(m.sub(k, number(1.0)), number(steps));
  }

  Value warmupLR(Value k) {
    double steps = std::max(2.0, get("warmup_num_steps"));
    double low = get("warmup_min_lr"), high = get("warmup_max_lr");
    Value i = m.sub(k, number(1.0)), later = number(1.0);
    if (schedule.getKind() == "WarmupDecayLR") {
      double total = get("total_num_steps");
      later = m.max(number(0.0), m.div(m.sub(number(total), i),
                                       number(std::max(1.0, total - steps))));
    }
    Value gamma = m.select(less(i, steps), rise(k, steps), later);
    Value rate = m.add(number(low), m.mul(number(high - low), gamma));
    return m.select(less(k, 1.0), number(low), rate);
  }

  Value warmupCosineLR(Value k) {
    double steps = std::max(2.0, get("warmup_num_steps"));
    double low = get("warmup_min_ratio"), end = get("cos_min_ratio");
    Value i = m.sub(k, number(1.0));
    Value first = m.add(number(low), m.mul(rise(k, steps), number(1.0 - low)));
    Value done = m.add(m.sub(i, number(steps)), number(1.0));
    double total = std::max(1.0, get("total_num_steps") - steps);
    Value progress = m.min(number(1.0), m.div(done, number(total)));
    Value ratio =
        m.max(number(0.0),
              m.add(number(end), m.mul(number(1.0 - end), half(progress))));
    Value rate =
        m.mul(number(get("lr")), m.select(less(i, steps), first, ratio));
    return m.select(less(k, 1.0), number(0.0), rate);
  }

  /// (1 + cos(pi * progress)) / 2.
  Value half(Value progress) {
    Value cosine = m.cos(m.mul(number(llvm::numbers::pi), progress));
    return m.div(m.add(number(1.0), cosine), number(2.0));
  }

  Value lrRangeTest(Value k) {
    Value interval = m.div(k, number(get("lr_range_test_step_size")));
    if (get("lr_range_test_staircase") != 0.0)
      interval = m.floor(interval);
    Value increase = m.add(
        number(1.0), m.mul(number(get("lr_range_test_step_rate")), interval));
    return m.mul(number(get("lr_range_test_min_lr")), increase);
  }

  /// Where update `k` is in the cycle: 0 at its ends, 1 at its middle.
  Value cycleScale(Value k, double first, double second) {
    double total = first + second, ratio = first / total;
    Value turns = m.div(k, number(total));
    Value cycle = m.floor(m.add(number(1.0), turns));
    Value x = m.sub(m.add(number(1.0), turns), cycle);
    // The value `turns` takes in the cycle, counted in updates.
    Value within = m.sub(k, m.mul(m.floor(turns), number(total)));
    Value up = stairs(m.div(x, number(ratio)), within, first, second,
                      get("cycle_first_stair_count"));
    if (second == 0.0)
      return up;
    Value down = stairs(m.div(m.sub(x, number(1.0)), number(ratio - 1.0)),
                        within, first, second, get("cycle_second_stair_count"));
    return m.select(m.less(number(ratio), x), down, up);
  }

  /// `scale`, or its value at the start of its stair where there are stairs.
  Value stairs(Value scale, Value within, double first, double second,
               double count) {
    if (count <= 0.0)
      return scale;
    Value position = m.div(m.mul(within, number(count)), number(first));
    if (second != 0.0) {
      Value back = m.sub(number(first + second), within);
      Value falling = m.div(m.mul(back, number(count)), number(second));
      position = m.select(m.less(number(first), within), falling, position);
    }
    return m.div(m.floor(position), number(count));
  }

  /// Learning rate or momentum: in the cycle, then decaying.
  Value oneCycle(Value k) {
    bool momentum = schedule.getKind() == "OneCycleMomentum";
    double first = get("cycle_first_step_size");
    double second = get("cycle_second_step_size");
    double low = get(momentum ? "cycle_min_mom" : "cycle_min_lr");
    double high = get(momentum ? "cycle_max_mom" : "cycle_max_lr");
    Value height = m.mul(number(high - low), cycleScale(k, first, second));
    Value cycle =
        momentum ? m.sub(number(high), height) : m.add(number(low), height);
    Value later = number(momentum ? high : low);
    double rate = get(momentum ? "decay_mom_rate" : "decay_lr_rate");
    if (double size = get("decay_step_size"); size != 0.0 && rate != 0.0) {
      Value interval = m.div(m.sub(k, number(first + second)), number(size));
      Value factor = m.add(number(1.0), m.mul(number(rate), interval));
      later = momentum ? m.mul(later, factor) : m.div(later, factor);
    }
    Value i = m.sub(k, number(1.0));
    Value value = m.select(less(i, first + second), cycle, later);
    return m.select(less(k, 1.0), number(low), value);
  }

  //===--------------------------------------------------------------------===//
  // PyTorch
  //===--------------------------------------------------------------------===//

  /// lr * (start + (end - start) * min(k, total) / total).
  Value linear(Value k, double start, double end, double total) {
    Value done = m.div(m.mul(number(end - start), m.min(number(total), k)),
                       number(total));
    return m.mul(number(get("lr")), m.add(number(start), done));
  }

  Value afterWarmup(Value k) {
    double warmup = get("warmup");
    if (warmup == 0.0)
      return pytorch(k);
    Value first = linear(k, get("warmup_start_factor"), 1.0, warmup);
    return m.select(less(k, warmup), first, pytorch(m.sub(k, number(warmup))));
  }

  Value pytorch(Value k) {
    StringRef kind = schedule.getKind();
    double lr = get("lr");
    if (kind == "CosineAnnealingLR") {
      double low = get("eta_min");
      Value angle =
          m.div(m.mul(number(llvm::numbers::pi), k), number(get("T_max")));
      Value wave = m.add(number(1.0), m.cos(angle));
      return m.add(number(low),
                   m.div(m.mul(number(lr - low), wave), number(2.0)));
    }
    double total = get("total_iters");
    if (kind == "LinearLR")
      return linear(k, get("start_factor"), get("end_factor"), total);
    if (kind == "ConstantLR")
      return m.select(less(k, total), number(lr * get("factor")), number(lr));
    Value left =
        m.sub(number(1.0), m.div(m.min(number(total), k), number(total)));
    return m.mul(number(lr), m.pow(left, get("power")));
  }

  //===--------------------------------------------------------------------===//
  // Hugging Face and TorchTitan
  //===--------------------------------------------------------------------===//

  Value huggingFace(Value k) {
    if (schedule.getKind() == "constant")
      return number(get("lr"));
    double warmup = get("warmup");
    Value rise = m.div(k, number(std::max(1.0, warmup)));
    Value ratio = m.select(less(k, warmup), rise, fall(k, warmup));
    return m.mul(number(get("lr")), ratio);
  }

  /// What Hugging Face's schedules are after the warm-up, over `lr`.
  Value fall(Value k, double warmup) {
    StringRef kind = schedule.getKind();
    if (kind == "constant_with_warmup")
      return number(1.0);
    double total = get("total"), steps = std::max(1.0, total - warmup);
    if (kind == "linear")
      return m.max(number(0.0), m.div(m.sub(number(total), k), number(steps)));
    Value progress = m.div(m.sub(k, number(warmup)), number(steps));
    if (kind == "cosine") {
      double turns = llvm::numbers::pi * get("num_cycles") * 2.0;
      Value wave = m.add(number(1.0), m.cos(m.mul(number(turns), progress)));
      return m.max(number(0.0), m.mul(number(0.5), wave));
    }
    double lr = get("lr"), end = get("lr_end");
    Value left = m.pow(m.sub(number(1.0), progress), get("power"));
    Value value = m.add(m.mul(number(lr - end), left), number(end));
    return m.div(m.select(m.less(number(total), k), number(end), value),
                 number(lr));
  }

  Value stableDecay(Value k) {
    double warmup = get("warmup"), stable = get("stable"),
           low = get("min_factor");
    Value next = m.add(k, number(1.0));
    Value progress =
        m.div(m.sub(next, number(warmup + stable)), number(get("decay")));
    double type = get("decay_type");
    Value decay = type == 2.0   ? half(progress)
                  : type == 1.0 ? m.sub(number(1.0), m.sqrt(progress))
                                : m.sub(number(1.0), progress);
    Value last = m.add(number(low), m.mul(number(1.0 - low), decay));
    Value ratio = m.select(less(k, warmup + stable), number(1.0), last);
    if (warmup > 0.0)
      ratio = m.select(less(k, warmup), m.div(next, number(warmup)), ratio);
    return m.mul(number(get("lr")), ratio);
  }

  Math m;
  ScheduleAttr schedule;
};

} // namespace mlir::train

#endif // ZERO_DIALECTS_TRAIN_SCHEDULEFORMULAS_H
