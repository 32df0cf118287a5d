//===- VerifyPlanTest.cpp - Broken plans are caught at every place --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Breaks a correct plan in one way at a time, everywhere it can be broken in
// that way.
//
//===----------------------------------------------------------------------===//

#include "PlanStep.h"

#include "zero/Transforms/PlanOrder.h"
#include "zero/Transforms/VerifyPlan.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using plan::CommandOpInterface;

namespace {
/// Ways to break; `place` counts from 0 until it is past the last one, which
/// the function says by returning false.
using Mutation = llvm::function_ref<bool(plan::ProgramOp, int place)>;

class VerifyPlan : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    module = makePlan(makeStep(4, /*hsdp=*/GetParam()), context);
    ASSERT_TRUE(module);
  }

  /// The error for a copy of the plan that `mutate` has changed at `place`;
  /// nothing when there is no such place, "" when it passes.
  std::optional<std::string> errorAt(Mutation mutate, int place) {
    OwningOpRef<ModuleOp> copy(module->clone());
    if (!mutate(programOf(*copy), place))
      return std::nullopt;
    std::string error;
    ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &diagnostic) {
      error = diagnostic.str();
      return success();
    });
    bool caught = failed(zero::verifyPlan(programOf(*copy)));
    EXPECT_EQ(caught, !error.empty());
    return error;
  }

  /// Every place must be caught; the number of places.
  int expectCaught(Mutation mutate) {
    int place = 0;
    for (; auto error = errorAt(mutate, place); ++place)
      EXPECT_NE(*error, "") << "place " << place << " passes";
    return place;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

static auto commandsOf(plan::ProgramOp program) {
  return llvm::to_vector(program.getBody().getOps<CommandOpInterface>());
}

/// Pairs of positions of which the first is done before the second begins.
static std::vector<std::pair<int, int>> orderOf(plan::ProgramOp program) {
  zero::PlanOrder order(program);
  std::vector<std::pair<int, int>> pairs;
  for (int b = 0, e = order.getCommands().size(); b < e; ++b)
    for (int a = 0; a < b; ++a)
      if (order.isBefore(a, b))
        pairs.emplace_back(a, b);
  return pairs;
}

/// Drops the `place`-th wait of the program.
static bool dropWait(plan::ProgramOp program, int place) {
  for (CommandOpInterface command : commandsOf(program))
    for (unsigned i = 0; i < command.getWaitEvents().size(); ++i)
      if (place-- == 0) {
        command.eraseWaitEvent(i);
        return true;
      }
  return false;
}

TEST_P(VerifyPlan, AcceptsWhatPlanLowerMakes) {
  EXPECT_TRUE(succeeded(zero::verifyPlan(programOf(*module))));
}

// No wait is implied by others: without any of them more orders are possible.
TEST_P(VerifyPlan, CatchesEveryDroppedWait) {
  auto whole = orderOf(programOf(*module));
  int place = 0;
  for (;; ++place) {
    OwningOpRef<ModuleOp> copy(module->clone());
    if (!dropWait(programOf(*copy), place))
      break;
    EXPECT_NE(orderOf(programOf(*copy)), whole) << "wait " << place;
  }
  EXPECT_GE(place, 20);
  EXPECT_EQ(expectCaught(dropWait), place);
}

// Without the fingerprint, what makes a dropped wait an error is that memory
// would be used out of order. Where the step awaits a shard only to add it up
// over the replicas, compute would merely go on earlier: that is another
// schedule, but a safe one.
TEST_P(VerifyPlan, CatchesEveryDroppedWaitThatMemoryNeeds) {
  int safe = 0;
  auto drop = [](plan::ProgramOp program, int place) {
    program.removeOrderAttr();
    return dropWait(program, place);
  };
  for (int place = 0; auto error = errorAt(drop, place); ++place)
    if (error->empty()) {
      ++safe;
      OwningOpRef<ModuleOp> copy(module->clone());
      auto before = commandsOf(programOf(*module));
      dropWait(programOf(*copy), place);
      for (auto [left, kept] : llvm::zip(commandsOf(programOf(*copy)), before))
        EXPECT_TRUE(left.getWaitEvents().size() ==
                        kept.getWaitEvents().size() ||
                    left.getStreamName() == plan::kComputeStream);
    }
  // How many depends on where the buffers lie; one a layer at most.
  EXPECT_LE(safe, GetParam() ? 4 : 0);
}

TEST_P(VerifyPlan, NamesWhatIsWrongWithAnEvent) {
  auto signalled = [](plan::ProgramOp program) {
    std::vector<CommandOpInterface> all;
    for (CommandOpInterface command : commandsOf(program))
      if (command.getSignalEvent())
        all.push_back(command);
    return all;
  };
  auto lost = errorAt(
      [&](plan::ProgramOp program, int) {
        signalled(program)[0].setSignalEvent(nullptr);
        return true;
      },
      0);
  EXPECT_NE(lost->find("waits for an event that no command before it signals"),
            std::string::npos);
  auto twice = errorAt(
      [&](plan::ProgramOp program, int) {
        auto all = signalled(program);
        all[1].setSignalEvent(all[0].getSignalEvent());
        return true;
      },
      0);
  EXPECT_NE(twice->find("signals an event that a command before it signals "
                        "already"),
            std::string::npos);
  auto nobody = errorAt(
      [&](plan::ProgramOp program, int) {
        OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
        plan::EventOp::create(builder, program.getLoc(),
                              plan::EventType::get(program.getContext()));
        return true;
      },
      0);
  EXPECT_NE(nobody->find("is signalled by no command"), std::string::npos);
}

TEST_P(VerifyPlan, CatchesEveryDroppedSignal) {
  EXPECT_GE(expectCaught([](plan::ProgramOp program, int place) {
              for (CommandOpInterface command : commandsOf(program))
                if (command.getSignalEvent() && place-- == 0) {
                  command.setSignalEvent(nullptr);
                  return true;
                }
              return false;
            }),
            15);
}

// An event of another command instead of the right one.
TEST_P(VerifyPlan, CatchesEveryEventSignalledByTwo) {
  EXPECT_GE(expectCaught([](plan::ProgramOp program, int place) {
              Value previous;
              for (CommandOpInterface command : commandsOf(program)) {
                Value event = command.getSignalEvent();
                if (event && previous && place-- == 0) {
                  command.setSignalEvent(previous);
                  return true;
                }
                previous = event ? event : previous;
              }
              return false;
            }),
            15);
}

/// Whether two buffers are alive at one time.
static bool overlap(const zero::PlanLifetime &a, const zero::PlanLifetime &b) {
  return a.first <= b.last && b.first <= a.last && a.first <= a.last &&
         b.first <= b.last;
}

TEST_P(VerifyPlan, CatchesEveryOffsetOnAnotherLiveBuffer) {
  int places = expectCaught([](plan::ProgramOp program, int place) {
    auto lifetimes = zero::computeLifetimes(program, zero::PlanOrder(program));
    for (size_t a = 0; a < lifetimes.size(); ++a)
      for (size_t b = 0; b < lifetimes.size(); ++b)
        if (a != b && overlap(lifetimes[a], lifetimes[b]) && place-- == 0) {
          lifetimes[a].buffer.setOffset(*lifetimes[b].buffer.getOffset());
          return true;
        }
    return false;
  });
  EXPECT_GE(places, 200);
}

// One byte too close to a neighbour is as wrong.
TEST_P(VerifyPlan, CatchesEveryOffsetOneByteOff) {
  EXPECT_GE(expectCaught([](plan::ProgramOp program, int place) {
              auto lifetimes =
                  zero::computeLifetimes(program, zero::PlanOrder(program));
              for (auto &a : lifetimes)
                for (auto &b : lifetimes)
                  if (overlap(a, b) &&
                      *a.buffer.getOffset() + uint64_t(a.buffer.getBytes()) ==
                          *b.buffer.getOffset() &&
                      place-- == 0) {
                    b.buffer.setOffset(*b.buffer.getOffset() - 1);
                    return true;
                  }
              return false;
            }),
            10);
}

TEST_P(VerifyPlan, CatchesEverySwapOfTwoCollectivesOnAChannel) {
  EXPECT_GE(expectCaught([](plan::ProgramOp program, int place) {
              llvm::StringMap<CommandOpInterface> last;
              for (CommandOpInterface command : commandsOf(program)) {
                if (!isa<plan::CollectiveOpInterface>(*command))
                  continue;
                CommandOpInterface &before = last[command.getStreamName()];
                if (before && place-- == 0) {
                  command->moveBefore(before);
                  return true;
                }
                before = command;
              }
              return false;
            }),
            10);
}

// What a collective moves counts too, not only where it stands.
TEST_P(VerifyPlan, CatchesEverySwapOfTheBucketsOfTwoCollectives) {
  EXPECT_GE(expectCaught([](plan::ProgramOp program, int place) {
              llvm::StringMap<CommandOpInterface> last;
              for (CommandOpInterface command : commandsOf(program)) {
                if (!isa<plan::CollectiveOpInterface>(*command))
                  continue;
                CommandOpInterface &before = last[command.getStreamName()];
                if (before && place-- == 0) {
                  for (unsigned i = 0; i < 2; ++i) {
                    Value mine = command->getOperand(i);
                    command->setOperand(i, before->getOperand(i));
                    before->setOperand(i, mine);
                  }
                  return true;
                }
                before = command;
              }
              return false;
            }),
            10);
}

TEST_P(VerifyPlan, CatchesEveryReleaseBeforeTheLastUse) {
  EXPECT_GE(expectCaught([](plan::ProgramOp program, int place) {
              for (auto release : program.getBody().getOps<plan::ReleaseOp>()) {
                Operation *lastUse = nullptr;
                for (Operation *user : release.getBuffer().getUsers())
                  if (user->isBeforeInBlock(release) &&
                      isa<plan::CallOp>(user) &&
                      (!lastUse || lastUse->isBeforeInBlock(user)))
                    lastUse = user;
                if (lastUse && place-- == 0) {
                  release->moveBefore(lastUse);
                  return true;
                }
              }
              return false;
            }),
            4);
}

TEST_P(VerifyPlan, CatchesEverySecondRelease) {
  EXPECT_EQ(expectCaught([](plan::ProgramOp program, int place) {
              for (auto release : program.getBody().getOps<plan::ReleaseOp>())
                if (place-- == 0) {
                  OpBuilder(release).clone(*release);
                  return true;
                }
              return false;
            }),
            8);
}

// A start before the command that it waits for.
TEST_P(VerifyPlan, CatchesEveryCommandAheadOfItsEvent) {
  EXPECT_GE(expectCaught([](plan::ProgramOp program, int place) {
              llvm::DenseMap<Value, Operation *> signaller;
              for (CommandOpInterface command : commandsOf(program)) {
                for (Value event : command.getWaitEvents())
                  if (place-- == 0) {
                    command->moveBefore(signaller.lookup(event));
                    return true;
                  }
                if (Value event = command.getSignalEvent())
                  signaller[event] = command;
              }
              return false;
            }),
            20);
}

TEST_P(VerifyPlan, CatchesAnArenaOverTheBudget) {
  plan::ProgramOp program = programOf(*module);
  auto arena = *program.getBody().getOps<plan::ArenaOp>().begin();
  program.setBudget(*arena.getBytes());
  EXPECT_TRUE(succeeded(zero::verifyPlan(program)));
  EXPECT_EQ(expectCaught([&](plan::ProgramOp copy, int place) {
              copy.setBudget(*arena.getBytes() - 1);
              return place == 0;
            }),
            1);
}

// Ranks agree on the order, or none of them starts.
TEST_P(VerifyPlan, CatchesEverySwapWithoutEvents) {
  EXPECT_GE(expectCaught([](plan::ProgramOp program, int place) {
              SmallVector<CommandOpInterface> commands = commandsOf(program);
              for (size_t i = 1; i < commands.size(); ++i)
                if (isa<plan::CollectiveOpInterface>(*commands[i]) &&
                    isa<plan::CollectiveOpInterface>(*commands[i - 1]) &&
                    commands[i].getStreamName() ==
                        commands[i - 1].getStreamName() &&
                    place-- == 0) {
                  commands[i]->moveBefore(commands[i - 1]);
                  return true;
                }
              return false;
            }),
            1);
}

INSTANTIATE_TEST_SUITE_P(Grids, VerifyPlan, testing::Bool(),
                         [](const testing::TestParamInfo<bool> &info) {
                           return info.param ? "Hsdp" : "OneAxis";
                         });
