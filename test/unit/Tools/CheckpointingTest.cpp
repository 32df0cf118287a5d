//===- CheckpointingTest.cpp - Tests of saving and going on ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State goes from any number of ranks and precision to any other; saves happen
// when they are due, and their errors come out. What a whole run makes of it is
// test/e2e/checkpoint.py.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Checkpointing.h"
#include "tools/zero-run/CheckpointingState.h"

#include "../Io/TestFiles.h"
#include "../Runtime/PlanBuilder.h"

#include <gmock/gmock.h>

#include <csignal>
#include <cstring>
#include <deque>
#include <thread>

using namespace zero_tools;
using namespace zrt::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fb = zrt::fb;

namespace {

/// A plan without commands: its state is all there is.
class StatePlan {
public:
  explicit StatePlan(uint32_t ranks, bool sharded = true)
      : plan(ranks), sharded(sharded) {
    plan.program.stage = sharded ? 3 : 0;
    plan.program.optimizer = "adamw";
    plan.program.samples_per_rank = 2;
  }
  StatePlan &trained(const std::string &name, std::vector<int64_t> shape,
                     fb::DType type = fb::DType_F32) {
    add(name, std::move(shape), type, sharded).role = fb::ParamRole_Trained;
    return *this;
  }
  StatePlan &state(const std::string &name, const std::string &of,
                   std::vector<int64_t> shape, fb::DType type = fb::DType_F32) {
    fb::ParameterT &parameter =
        add(name, std::move(shape), type, sharded && !of.empty());
    parameter.role = fb::ParamRole_State;
    parameter.of = of;
    return *this;
  }
  StatePlan &statistic(const std::string &name, std::vector<int64_t> shape,
                       fb::DType type = fb::DType_F32) {
    add(name, std::move(shape), type, false).role = fb::ParamRole_Buffer;
    return *this;
  }

  zrt::test::PlanBuilder plan;

private:
  fb::ParameterT &add(const std::string &name, std::vector<int64_t> shape,
                      fb::DType type, bool cut) {
    cut = cut && !shape.empty();
    fb::ParameterT &parameter =
        plan.parameter(name, std::move(shape), cut, fb::Init_Zeros);
    parameter.dtype = type;
    if (type != fb::DType_F32) {
      std::vector<int64_t> held = plan.program.buffers[parameter.buffer]->shape;
      parameter.buffer = plan.buffer(name, held, type, fb::Kind_Parameter);
    }
    return parameter;
  }
  bool sharded;
};

/// A session and its logical tensors.
struct StateRun {
  explicit StateRun(const StatePlan &state) : running(state.plan) {}

  uint32_t index(const std::string &name) {
    int64_t index = running.program.findParameter(name);
    EXPECT_GE(index, 0) << name;
    return uint32_t(index);
  }
  template <typename T>
  void set(const std::string &name, const std::vector<T> &values) {
    zrt::Status failed = running.session.setParameter(
        index(name), values.data(), values.size() * sizeof(T));
    ASSERT_FALSE(failed) << failed.message();
  }
  template <typename T = float>
  std::vector<T> get(const std::string &name) {
    std::vector<T> values(running.program.parameter(index(name)).bytes /
                          sizeof(T));
    zrt::Status failed = running.session.getParameter(
        index(name), values.data(), values.size() * sizeof(T));
    EXPECT_FALSE(failed) << failed.message();
    return values;
  }
  template <typename T = float>
  T ofRank(const std::string &name, uint32_t rank) {
    T value = {};
    zrt::Status failed =
        running.session.readChunk(index(name), rank, 0, &value, sizeof(T));
    EXPECT_FALSE(failed) << failed.message();
    return value;
  }
  template <typename T>
  void setRank(const std::string &name, uint32_t rank, T value) {
    zrt::Status failed =
        running.session.writeChunk(index(name), rank, 0, &value, sizeof(T));
    ASSERT_FALSE(failed) << failed.message();
  }

  Running running;
};

class CheckpointingTest : public FileTest {
protected:
  /// Saves a run's state at a step.
  void save(StateRun &run, int64_t step, const std::string &name = "run") {
    CheckpointOptions options;
    options.folder = in(name);
    Checkpointing checkpoints = make(options, run);
    checkpoints.resume();
    checkpoints.afterStep(step);
    checkpoints.finish();
  }
  ResumePoint load(StateRun &run, const std::string &name = "run") {
    CheckpointOptions options;
    options.resume = in(name);
    return make(options, run).resume();
  }
  std::string loadError(StateRun &run) {
    try {
      load(run);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "";
  }
  Checkpointing make(const CheckpointOptions &options, StateRun &run) {
    kept.push_back(options);
    return Checkpointing(
        kept.back(), run.running.program, run.running.session,
        [this](const std::string &text) { notes.push_back(text); });
  }
  std::vector<std::string> saved() {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(in("run")))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::vector<std::string> notes;
  std::deque<CheckpointOptions> kept;
};

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

StatePlan model(uint32_t ranks, bool sharded, int64_t rows) {
  StatePlan plan(ranks, sharded);
  plan.trained("w", {rows, 3}).state("w.exp_avg", "w", {rows, 3});
  plan.trained("b", {rows}).trained("scale", {});
  return plan;
}

/// Every number of ranks and both layouts into every other, for sizes that
/// leave short and empty shards.
TEST_F(CheckpointingTest, AnyRanksToAnyRanks) {
  int pairs = 0;
  for (int64_t rows : {1, 3, 5, 257})
    for (uint32_t from = 1; from <= 8; ++from) {
      bool sharded = from != 1;
      StateRun run(model(from, sharded, rows));
      std::vector<float> w = numbers(1, rows * 3),
                         moment = numbers(2, rows * 3), b = numbers(3, rows);
      run.set("w", w);
      run.set("w.exp_avg", moment);
      run.set("b", b);
      run.set<float>("scale", {0.5});
      std::string name =
          "run-" + std::to_string(rows) + "-" + std::to_string(from);
      save(run, 7, name);
      EXPECT_EQ(zrt::Checkpoint::open(in(name)).tensors()[0].parts, from);
      for (uint32_t to = 1; to <= 8; ++to)
        for (bool cut : {false, true}) {
          StateRun other(model(to, cut, rows));
          ResumePoint at = load(other, name);
          EXPECT_EQ(at.step, 7);
          EXPECT_EQ(at.firstSample, 7 * 2 * from);
          EXPECT_EQ(other.get("w"), w);
          EXPECT_EQ(other.get("w.exp_avg"), moment);
          EXPECT_EQ(other.get("b"), b);
          EXPECT_EQ(other.get("scale")[0], 0.5f);
          ++pairs;
        }
    }
  std::printf("%d pairs of layouts, all equal\n", pairs);
}

/// Replicas of shards: a grid of 2 x 2 holds each part twice.
TEST_F(CheckpointingTest, ReplicasGetTheirPart) {
  StateRun run(model(4, true, 5));
  run.set("w", numbers(1, 15));
  save(run, 1);
  StatePlan plan(4);
  plan.plan.program.grid = {2, 2};
  plan.trained("w", {5, 3}).state("w.exp_avg", "w", {5, 3});
  plan.trained("b", {5}).trained("scale", {});
  StateRun grid(plan);
  load(grid);
  for (uint32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(grid.ofRank("w", rank), numbers(1, 15)[rank % 2 ? 9 : 0]);
  save(grid, 2, "grid");
  zrt::Checkpoint checkpoint = zrt::Checkpoint::open(in("grid"));
  EXPECT_EQ(checkpoint.tensors()[0].parts, 2u);
}

/// Statistics of a rank's own go back to it; on other ranks all get the mean.
TEST_F(CheckpointingTest, StatisticsOfRanks) {
  auto plan = [](uint32_t ranks) {
    StatePlan plan(ranks);
    plan.statistic("mean", {1}).statistic("count", {1}, fb::DType_I64);
    return plan;
  };
  StateRun run(plan(3));
  for (uint32_t rank = 0; rank < 3; ++rank) {
    run.setRank("mean", rank, float(rank * rank)); // 0, 1, 4
    run.setRank("count", rank, int64_t(7));
  }
  save(run, 1);
  StateRun same(plan(3)), other(plan(2));
  load(same);
  load(other);
  for (uint32_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(same.ofRank("mean", rank), float(rank * rank));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(other.ofRank("mean", rank), float(5.0 / 3.0));
    EXPECT_EQ(other.ofRank<int64_t>("count", rank), 7);
  }
}

//===----------------------------------------------------------------------===//
// Precision and state of the step
//===----------------------------------------------------------------------===//

TEST_F(CheckpointingTest, PrecisionChangesBothWays) {
  StatePlan mixed(2), single(3);
  mixed.trained("w", {3}, fb::DType_BF16).state("w.master", "w", {3});
  single.trained("w", {3});
  std::vector<float> values = {1.0f, 1.00390625f, -3.14159274f};
  std::vector<uint16_t> rounded = {0x3F80, 0x3F80, 0xC049};
  StateRun low(mixed), high(single);
  low.set("w.master", values);
  low.set("w", rounded);
  save(low, 1, "low");
  load(high, "low");
  EXPECT_EQ(high.get("w"), values); // from the master copy
  save(high, 1, "high");
  StateRun again(mixed);
  load(again, "high");
  EXPECT_EQ(again.get("w.master"), values);
  EXPECT_EQ(again.get<uint16_t>("w"), rounded);
  EXPECT_EQ(zrt::Checkpoint::open(in("low")).facts().precision, "bf16");
}

TEST_F(CheckpointingTest, StateOfTheStepStartsFreshWithANote) {
  StatePlan plain(1), scaled(2);
  plain.trained("w", {2});
  scaled.trained("w", {2})
      .state("loss_scale", "", {})
      .state("optimizer_step", "", {}, fb::DType_I64);
  StateRun run(plain), fp16(scaled);
  save(run, 9);
  fp16.set<float>("loss_scale", {65536});
  load(fp16);
  EXPECT_EQ(fp16.get("loss_scale")[0], 65536.0f);
  EXPECT_EQ(fp16.ofRank<int64_t>("optimizer_step", 1), 9);
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0], "\"loss_scale\" is not in the checkpoint: it starts with "
                      "its initial value");
  EXPECT_EQ(notes[1], "\"optimizer_step\" is not in the checkpoint: it starts "
                      "at 9, the step");
  EXPECT_EQ(notes[2], "goes on after step 9 of " + in("run/step-00000009") +
                          " (1 rank, ZeRO stage 3, f32)");
  // With it, it is exact.
  fp16.set<float>("loss_scale", {1024});
  save(fp16, 12, "fp16");
  StateRun back(scaled), unscaled(plain);
  load(back, "fp16");
  EXPECT_EQ(back.get("loss_scale")[0], 1024.0f);
  notes.clear();
  load(unscaled, "fp16");
  EXPECT_EQ(notes[0], "2 states of the checkpoint are not used by this run, "
                      "first \"loss_scale\"");
}

TEST_F(CheckpointingTest, MismatchesHaveOneError) {
  StatePlan plan(2);
  plan.trained("w", {4, 3}).state("w.exp_avg", "w", {4, 3});
  StateRun run(plan);
  save(run, 1);
  StatePlan shape(2), unknown(2), missing(2), optimizer(2), type(2);
  shape.trained("w", {5, 3});
  missing.trained("w", {4, 3}).trained("v", {1});
  optimizer.trained("w", {4, 3}).state("w.momentum_buffer", "w", {4, 3});
  optimizer.plan.program.optimizer = "sgd";
  type.trained("w", {4, 3}, fb::DType_I64);
  StateRun wrongShape(shape), noW(unknown), more(missing), other(optimizer),
      integers(type);
  EXPECT_EQ(loadError(wrongShape), in("run/step-00000001") +
                                       ": tensor \"w\" is F32[4x3], the "
                                       "model's \"w\" is F32[5x3]");
  EXPECT_THAT(loadError(noW),
              HasSubstr("tensor \"w\" is no parameter of the model"));
  EXPECT_THAT(loadError(more), HasSubstr("has no tensor \"v\", which is a "
                                         "parameter of the model"));
  EXPECT_THAT(loadError(other),
              HasSubstr("has no \"w.momentum_buffer\", which the optimizer sgd "
                        "of this run keeps; it was saved with the optimizer "
                        "adamw"));
  EXPECT_THAT(loadError(integers), HasSubstr("the model's \"w\" is I64[4x3]"));
}

//===----------------------------------------------------------------------===//
// When
//===----------------------------------------------------------------------===//

TEST_F(CheckpointingTest, SavesWhenItIsDue) {
  for (bool synchronous : {false, true}) {
    std::filesystem::remove_all(in("run"));
    StateRun run(model(2, true, 5));
    CheckpointOptions options;
    options.folder = in("run");
    options.every = 2;
    options.keep = 2;
    options.synchronous = synchronous;
    Checkpointing checkpoints = make(options, run);
    EXPECT_EQ(checkpoints.resume().step, 0);
    // w, its moment, b, and the scalar once.
    EXPECT_EQ(checkpoints.snapshotBytes(),
              synchronous ? 0u : (15u + 15 + 5 + 1) * 4);
    for (int64_t step = 1; step <= 7; ++step) {
      run.set<float>("scale", {float(step)});
      EXPECT_FALSE(checkpoints.afterStep(step));
    }
    checkpoints.finish();
    EXPECT_FALSE(checkpoints.terminated());
    EXPECT_THAT(saved(), ElementsAre("step-00000006", "step-00000007"));
    StateRun at6(model(1, false, 5));
    EXPECT_EQ(load(at6, "run/step-00000006").step, 6);
    EXPECT_EQ(at6.get("scale")[0], 6.0f); // not what a later step wrote
  }
}

TEST_F(CheckpointingTest, SigtermSavesAndEnds) {
  StateRun run(model(2, true, 5));
  CheckpointOptions options;
  options.folder = in("run");
  Checkpointing checkpoints = make(options, run);
  checkpoints.resume();
  EXPECT_FALSE(checkpoints.afterStep(1));
  ASSERT_EQ(raise(SIGTERM), 0);
  EXPECT_TRUE(checkpoints.afterStep(2));
  EXPECT_TRUE(checkpoints.terminated());
  EXPECT_THAT(saved(), ElementsAre("step-00000002"));
  EXPECT_EQ(notes.back(), "SIGTERM: stops after step 2, which is saved; go on "
                          "with --resume " +
                              in("run"));
}

/// The thread's error comes out at the next step, and at the end.
TEST_F(CheckpointingTest, ErrorsOfTheWriterComeOut) {
  for (bool atEnd : {false, true}) {
    StateRun run(model(2, true, 5));
    CheckpointOptions options;
    options.folder = in("gone");
    options.every = 3000;
    Checkpointing checkpoints = make(options, run);
    checkpoints.resume();
    std::filesystem::remove_all(in("gone"));
    checkpoints.afterStep(3000);
    std::string error;
    try {
      // As soon as the thread has failed; 20 s are more than enough.
      for (int64_t step = 3001; step < 5000 && !atEnd; ++step) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        checkpoints.afterStep(step);
      }
      checkpoints.finish();
    } catch (const std::runtime_error &failed) {
      error = failed.what();
    }
    EXPECT_EQ(error, in("gone/.saving-step-00003000") +
                         ": cannot create: No such file or directory");
  }
}

TEST_F(CheckpointingTest, GoesOnWithSamplesOfTheData) {
  StateRun run(model(4, true, 5));
  save(run, 3); // 4 ranks of 2 samples
  StateRun other(model(3, true, 5));
  CheckpointOptions options;
  options.folder = options.resume = in("run");
  options.seed = 5;
  Checkpointing checkpoints = make(options, other);
  ResumePoint at = checkpoints.resume();
  EXPECT_EQ(at.step, 3);
  EXPECT_EQ(at.firstSample, 24);
  checkpoints.afterStep(5);
  checkpoints.finish();
  StateRun last(model(1, false, 5));
  EXPECT_EQ(load(last).firstSample, 24 + 2 * 6);
  EXPECT_EQ(zrt::Checkpoint::open(in("run")).facts().seed, 5);
}

TEST_F(CheckpointingTest, AFolderIsForOneRun) {
  StateRun run(model(2, true, 5));
  save(run, 4);
  save(run, 8, "other");
  auto errorOf = [&](const std::string &resume) -> std::string {
    CheckpointOptions options;
    options.folder = in("run");
    options.resume = resume.empty() ? "" : in(resume);
    try {
      make(options, run).resume();
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(errorOf(""), in("run") + ": has the checkpoint step-00000004 of an "
                                     "earlier run; go on with --resume, or "
                                     "give --checkpoint another folder");
  EXPECT_EQ(errorOf("run"), "");
  EXPECT_EQ(errorOf("other"), ""); // goes on from a later step
  save(run, 2, "early");
  EXPECT_EQ(errorOf("early"),
            in("run") + ": has the checkpoint step-00000004, and this run goes "
                        "on from step 2; give --checkpoint another folder, or "
                        "remove the later ones");
}

/// The first start of a job that is started again and again.
TEST_F(CheckpointingTest, NothingToResumeYet) {
  StateRun run(model(2, true, 5));
  CheckpointOptions options;
  options.folder = options.resume = in("new");
  EXPECT_EQ(make(options, run).resume().step, 0);
  EXPECT_EQ(notes.back(),
            in("new") + " has no checkpoint yet: the run starts at step 0");
  EXPECT_THAT(loadError(run), HasSubstr("cannot open: No such file"));
}

} // namespace
