//===- TrainSchedules.cpp - Hyperparameters that change -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kinds of #train.schedule, their numbers and their values.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ScheduleFormulas.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::train;

//===----------------------------------------------------------------------===//
// Kinds and numbers
//===----------------------------------------------------------------------===//

namespace {
/// Which values a number may have.
enum class Range { Any, NotNegative, Positive, AtLeastOne, Truth, DecayType };

/// A number of a schedule. Without a default value it has to be given; with
/// `like` its default is the value of that number.
struct Number {
  StringRef name;
  std::optional<double> defaultValue;
  Range range = Range::Any;
  StringRef like = {};
};

struct Kind {
  StringRef name;
  std::vector<Number> numbers;
};
} // namespace

static std::vector<Number> join(std::vector<Number> first,
                                const std::vector<Number> &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

static std::vector<Kind> makeKinds() {
  const Number lr{"lr", std::nullopt, Range::NotNegative};
  const Number total{"total", std::nullopt, Range::NotNegative};
  const Number warmup{"warmup", 0.0, Range::NotNegative};
  const Number iterations{"total_iters", 5.0, Range::AtLeastOne};
  const Number deepSpeedTotal{"total_num_steps", std::nullopt,
                              Range::NotNegative};
  const std::vector<Number> deepSpeedWarmup = {
      {"warmup_num_steps", 1000.0, Range::NotNegative},
      {"warmup_type", 0.0, Range::Truth}};
  const std::vector<Number> cycle = {
      {"cycle_first_step_size", 2000.0, Range::Positive},
      {"cycle_second_step_size", 0.0, Range::NotNegative,
       "cycle_first_step_size"},
      {"cycle_first_stair_count", 0.0, Range::NotNegative},
      {"cycle_second_stair_count", 0.0, Range::NotNegative,
       "cycle_first_stair_count"},
      {"decay_step_size", 0.0, Range::NotNegative}};
  const std::vector<Number> sequential = {
      lr, warmup, {"warmup_start_factor", 1.0 / 3, Range::NotNegative}};
  return {
      {"WarmupLR", join({lr,
                         {"warmup_min_lr", 0.0, Range::NotNegative},
                         {"warmup_max_lr", 0.0, Range::NotNegative, "lr"}},
                        deepSpeedWarmup)},
      {"WarmupDecayLR", join({lr,
                              {"warmup_min_lr", 0.0, Range::NotNegative},
                              {"warmup_max_lr", 0.001, Range::NotNegative},
                              deepSpeedTotal},
                             deepSpeedWarmup)},
      {"WarmupCosineLR", join({lr,
                               {"warmup_min_ratio", 0.0},
                               {"cos_min_ratio", 0.0001},
                               deepSpeedTotal},
                              deepSpeedWarmup)},
      {"LRRangeTest",
       {{"lr", 0.0, Range::NotNegative},
        {"lr_range_test_min_lr", 0.001, Range::NotNegative},
        {"lr_range_test_step_size", 2000.0, Range::Positive},
        {"lr_range_test_step_rate", 1.0},
        {"lr_range_test_staircase", 0.0, Range::Truth}}},
      {"OneCycle", join({{"lr", 0.0, Range::NotNegative},
                         {"cycle_min_lr", std::nullopt, Range::NotNegative},
                         {"cycle_max_lr", std::nullopt, Range::NotNegative},
                         {"decay_lr_rate", 0.0}},
                        cycle)},
      {"OneCycleMomentum", join({{"cycle_min_mom", 0.8, Range::NotNegative},
                                 {"cycle_max_mom", 0.9, Range::NotNegative},
                                 {"decay_mom_rate", 0.0}},
                                cycle)},
      {"ConstantLR", join({{"factor", 1.0 / 3, Range::NotNegative},
                           {"total_iters", 5.0, Range::NotNegative}},
                          sequential)},
      {"LinearLR", join({{"start_factor", 1.0 / 3, Range::NotNegative},
                         {"end_factor", 1.0, Range::NotNegative},
                         iterations},
                        sequential)},
      {"CosineAnnealingLR", join({{"T_max", std::nullopt, Range::AtLeastOne},
                                  {"eta_min", 0.0, Range::NotNegative}},
                                 sequential)},
      {"PolynomialLR",
       join({iterations, {"power", 1.0, Range::NotNegative}}, sequential)},
      {"constant", {lr}},
      {"constant_with_warmup",
       {lr, {"warmup", std::nullopt, Range::NotNegative}}},
      {"linear", {lr, warmup, total}},
      {"cosine", {lr, warmup, total, {"num_cycles", 0.5, Range::NotNegative}}},
      {"polynomial",
       {{"lr", std::nullopt, Range::Positive},
        warmup,
        total,
        {"lr_end", 1e-7, Range::NotNegative},
        {"power", 1.0, Range::NotNegative}}},
      {"warmup_stable_decay",
       {lr,
        warmup,
        {"stable", 0.0, Range::NotNegative},
        {"decay", std::nullopt, Range::AtLeastOne},
        {"min_factor", 0.0, Range::NotNegative},
        {"decay_type", 0.0, Range::DecayType}}}};
}

static ArrayRef<Kind> getKinds() {
  static const std::vector<Kind> kinds = makeKinds();
  return kinds;
}

static const Kind *findKind(StringRef name) {
  const Kind *kind = llvm::find_if(
      getKinds(), [&](const Kind &kind) { return kind.name == name; });
  return kind == getKinds().end() ? nullptr : kind;
}

static const Number *findNumber(const Kind &kind, StringRef name) {
  for (const Number &number : kind.numbers)
    if (number.name == name)
      return &number;
  return nullptr;
}

/// The names of kinds or numbers, for messages.
template <typename T>
static std::string joinNames(ArrayRef<T> entries) {
  std::string text;
  for (const T &entry : entries)
    text += (text.empty() ? "" : ", ") + entry.name.str();
  return text;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static bool isIn(Range range, double value) {
  switch (range) {
  case Range::Any:
    return true;
  case Range::NotNegative:
    return value >= 0.0;
  case Range::Positive:
    return value > 0.0;
  case Range::AtLeastOne:
    return value >= 1.0;
  case Range::Truth:
    return value == 0.0 || value == 1.0;
  case Range::DecayType:
    return value == 0.0 || value == 1.0 || value == 2.0;
  }
  llvm_unreachable("unknown range");
}

static StringRef describe(Range range) {
  switch (range) {
  case Range::Any:
    return "a finite number";
  case Range::NotNegative:
    return "a number that is not negative";
  case Range::Positive:
    return "a positive number";
  case Range::AtLeastOne:
    return "at least 1";
  case Range::Truth:
    return "0 or 1";
  case Range::DecayType:
    return "0, 1 or 2";
  }
  llvm_unreachable("unknown range");
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StringRef name, DictionaryAttr numbers) {
  const Kind *kind = findKind(name);
  if (!kind)
    return emitError() << "unknown schedule " << name << ", expected one of "
                       << joinNames(getKinds());
  for (NamedAttribute given : numbers) {
    StringRef key = given.getName();
    const Number *number = findNumber(*kind, key);
    if (!number)
      return emitError() << "schedule " << name << " has no number " << key
                         << ", expected one of "
                         << joinNames<Number>(kind->numbers);
    auto value = dyn_cast<FloatAttr>(given.getValue());
    if (!value || !value.getType().isF64())
      return emitError() << "number " << key << " of schedule " << name
                         << " is " << given.getValue() << ", expected an f64";
    double v = value.getValueAsDouble();
    if (!std::isfinite(v) || !isIn(number->range, v))
      return emitError() << "number " << key << " of schedule " << name
                         << " is " << v << ", expected "
                         << describe(number->range);
  }
  for (const Number &number : kind->numbers)
    if (!number.defaultValue && !numbers.contains(number.name))
      return emitError() << "schedule " << name << " needs the number "
                         << number.name;
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

double mlir::train::getScheduleNumber(ScheduleAttr schedule, StringRef name) {
  if (auto given = schedule.getNumbers().getAs<FloatAttr>(name))
    return given.getValueAsDouble();
  const Number *number = findNumber(*findKind(schedule.getKind()), name);
  return number->like.empty() ? *number->defaultValue
                              : getScheduleNumber(schedule, number->like);
}

namespace {
/// Arithmetic of evaluateSchedule.
struct DoubleMath {
  using Value = double;
  using Truth = bool;
  double number(double value) const { return value; }
  double add(double x, double y) const { return x + y; }
  double sub(double x, double y) const { return x - y; }
  double mul(double x, double y) const { return x * y; }
  double div(double x, double y) const { return x / y; }
  double min(double x, double y) const { return std::min(x, y); }
  double max(double x, double y) const { return std::max(x, y); }
  double floor(double x) const { return std::floor(x); }
  double log(double x) const { return std::log(x); }
  double cos(double x) const { return std::cos(x); }
  double sqrt(double x) const { return std::sqrt(x); }
  double pow(double x, double y) const { return std::pow(x, y); }
  bool less(double x, double y) const { return x < y; }
  double select(bool truth, double x, double y) const { return truth ? x : y; }
};
} // namespace

double mlir::train::evaluateSchedule(ScheduleAttr schedule, int64_t step) {
  double k = static_cast<double>(std::max<int64_t>(step, 1)) - 1.0;
  return ScheduleFormula(DoubleMath(), schedule).build(k);
}
