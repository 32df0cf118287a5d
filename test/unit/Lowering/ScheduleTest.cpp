//===- ScheduleTest.cpp - Schedules against those of others ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// train.schedule and evaluateSchedule against tables that the real PyTorch,
// DeepSpeed and Hugging Face wrote (test/unit/Autodiff/data), at every step.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>

using namespace zero_test;
namespace json = llvm::json;

namespace {
/// A schedule and the values that its updates have to use.
struct Case {
  std::string name, kind;
  std::map<std::string, double> numbers;
  std::vector<double> values;

  /// As train.schedule has it.
  std::string attribute() const;
  mlir::train::ScheduleAttr attribute(mlir::MLIRContext &context) const;
};
} // namespace

std::string Case::attribute() const {
  std::string text = "<\"" + kind + "\", {";
  for (const auto &[name, value] : numbers) {
    char number[32];
    snprintf(number, sizeof(number), "%.17e", value);
    text += (text.back() == '{' ? "" : ", ") + name + " = " + number + " : f64";
  }
  return text + "}>";
}

mlir::train::ScheduleAttr Case::attribute(mlir::MLIRContext &context) const {
  mlir::Builder builder(&context);
  std::vector<mlir::NamedAttribute> list;
  for (const auto &[name, value] : numbers)
    list.push_back(builder.getNamedAttr(name, builder.getF64FloatAttr(value)));
  return mlir::train::ScheduleAttr::get(&context, kind,
                                        builder.getDictionaryAttr(list));
}

/// A value of the table's `params`; words and truth values are numbers here.
static double toNumber(const json::Value &value) {
  if (auto text = value.getAsString())
    return *text == "linear" ? 1.0 : 0.0;
  if (auto truth = value.getAsBoolean())
    return *truth;
  return *value.getAsNumber();
}

static void addNumbers(Case &c, const json::Object &params) {
  for (const auto &[key, value] : params) {
    if (const json::Object *warmup = value.getAsObject()) {
      c.numbers["warmup"] = *warmup->getNumber("total_iters");
      c.numbers["warmup_start_factor"] = *warmup->getNumber("start_factor");
    } else {
      c.numbers[key.str()] = toNumber(value);
    }
  }
}

static std::vector<double> toNumbers(const json::Array &array) {
  std::vector<double> numbers;
  for (const json::Value &value : array)
    numbers.push_back(*value.getAsNumber());
  return numbers;
}

/// The momentum of a one-cycle schedule, which has the sizes of the rate's.
static Case getMomentum(const Case &rate, const json::Array &betas) {
  Case momentum = rate;
  momentum.name += " momentum";
  momentum.kind = "OneCycleMomentum";
  for (const char *name :
       {"lr", "cycle_min_lr", "cycle_max_lr", "decay_lr_rate"})
    momentum.numbers.erase(name);
  momentum.values = toNumbers(betas);
  return momentum;
}

static std::vector<Case> readTable(const std::string &file) {
  std::vector<Case> cases;
  auto buffer = llvm::MemoryBuffer::getFile(ZERO_AUTODIFF_DATA "/" + file);
  EXPECT_TRUE(bool(buffer)) << file;
  llvm::Expected<json::Value> table = json::parse((*buffer)->getBuffer());
  EXPECT_TRUE(bool(table)) << file;
  for (const json::Value &entry : *table->getAsObject()->getArray("cases")) {
    const json::Object &object = *entry.getAsObject();
    Case c;
    c.name = object.getString("name")->str();
    c.kind = object.getString("schedule")->str();
    c.numbers["lr"] = *object.getNumber("lr");
    addNumbers(c, *object.getObject("params"));
    c.values = toNumbers(*object.getArray("rates"));
    cases.push_back(c);
    if (const json::Array *betas = object.getArray("beta1"))
      cases.push_back(getMomentum(c, *betas));
  }
  return cases;
}

static std::vector<Case> readTables() {
  std::vector<Case> cases = readTable("schedules.json");
  for (const Case &c : readTable("huggingface_schedules.json"))
    cases.push_back(c);
  return cases;
}

/// One kernel a schedule: "f0", "f1" in f32 and "d0", "d1" in f64.
static std::string getKernels(const std::vector<Case> &cases) {
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i)
    for (const char *type : {"f32", "f64"})
      text += substitute(R"(
        func.func @%NAME%(%step: tensor<i64>) -> tensor<%T%>
            attributes {plan.kernel} {
          %0 = train.schedule %step %SCHEDULE% : tensor<i64> -> tensor<%T%>
          return %0 : tensor<%T%>
        })",
                         {{"NAME", type + std::to_string(i)},
                          {"T", type},
                          {"SCHEDULE", cases[i].attribute()}});
  return text;
}

TEST(Schedule, ValuesAreThoseOfTheirSources) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::train::TrainDialect>();
  std::vector<Case> cases = readTables();
  ASSERT_EQ(cases.size(), 43u);
  for (const Case &c : cases) {
    mlir::train::ScheduleAttr schedule = c.attribute(context);
    ASSERT_EQ(c.values.size(), 48u);
    for (int64_t k = 0; k < 48; ++k) {
      double value = mlir::train::evaluateSchedule(schedule, k + 1);
      // PyTorch multiplies rates from step to step, which drifts in f64.
      EXPECT_NEAR(value, c.values[k], 1e-13 * (1e-5 + std::fabs(c.values[k])))
          << c.name << " update " << k;
      EXPECT_EQ(float(value), float(c.values[k])) << c.name << " update " << k;
    }
  }
}

TEST(Schedule, KernelsAreTheFormulas) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::train::TrainDialect>();
  std::vector<Case> cases = readTables();
  Kernels kernels(getKernels(cases));
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  std::vector<int64_t> steps = {-3, 0};
  for (int64_t step = 1; step <= 300; ++step)
    steps.push_back(step);
  for (int64_t step :
       {999, 1000, 1001, 1002, 1003, 2000, 2001, 4001, 4002, 1000000})
    steps.push_back(step);
  for (size_t i = 0; i < cases.size(); ++i) {
    mlir::train::ScheduleAttr schedule = cases[i].attribute(context);
    for (int64_t step : steps) {
      double expected = mlir::train::evaluateSchedule(schedule, step), wide;
      float narrow;
      kernels.run("f64" + std::to_string(i), {&step, &wide});
      kernels.run("f32" + std::to_string(i), {&step, &narrow});
      EXPECT_EQ(wide, expected) << cases[i].name << " step " << step;
      EXPECT_EQ(narrow, float(expected)) << cases[i].name << " step " << step;
    }
  }
}

// TorchTitan's schedule by hand: 2 rising, 3 level, 4 falling steps.
TEST(Schedule, WarmupStableDecay) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::train::TrainDialect>();
  Case c{"",
         "warmup_stable_decay",
         {{"lr", 8.0}, {"warmup", 2.0}, {"stable", 3.0}, {"decay", 4.0}},
         {}};
  auto check = [&](double type, double least, std::vector<double> expected) {
    c.numbers["decay_type"] = type;
    c.numbers["min_factor"] = least;
    for (size_t k = 0; k < expected.size(); ++k)
      EXPECT_DOUBLE_EQ(
          mlir::train::evaluateSchedule(c.attribute(context), k + 1),
          expected[k])
          << type << " update " << k;
  };
  check(0.0, 0.0, {4, 8, 8, 8, 8, 6, 4, 2, 0});
  check(0.0, 0.5, {4, 8, 8, 8, 8, 7, 6, 5, 4});
  check(1.0, 0.0,
        {4, 8, 8, 8, 8, 4, 8 * (1 - std::sqrt(0.5)), 8 * (1 - std::sqrt(0.75)),
         0});
  check(2.0, 0.0, {4, 8, 8, 8, 8, 4 + 4 * std::sqrt(0.5)});
}

// Without a warm-up the rate does not start below `lr`.
TEST(Schedule, WarmupStableDecayWithoutWarmup) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::train::TrainDialect>();
  Case c{"", "warmup_stable_decay", {{"lr", 1.0}, {"decay", 2.0}}, {}};
  EXPECT_EQ(mlir::train::evaluateSchedule(c.attribute(context), 1), 0.5);
  EXPECT_EQ(mlir::train::evaluateSchedule(c.attribute(context), 2), 0.0);
}
