//===- PlanMemory.cpp - Why a program needs its memory --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The peak of a program in words.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/PlanTimeline.h"

#include "dialects/Zero/Zero.h"
#include "zero/Transforms/PlanOrder.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::zero;

/// Most tensors that a message names.
static constexpr size_t kMaxNames = 5;

/// The buffers of `space` alive when most bytes are, largest first.
static std::vector<PlanLifetime>
findPeak(plan::ProgramOp program, const PlanOrder &order, plan::Space space) {
  std::vector<PlanLifetime> lifetimes = computeLifetimes(program, order);
  llvm::erase_if(lifetimes, [&](const PlanLifetime &life) {
    return plan::BufferOp(life.buffer).getSpace() != space;
  });
  std::vector<int64_t> change(order.getCommands().size() + 2);
  for (const PlanLifetime &life : lifetimes)
    if (life.first <= life.last) {
      change[life.first] += plan::BufferOp(life.buffer).getBytes();
      change[life.last + 1] -= plan::BufferOp(life.buffer).getBytes();
    }
  int64_t alive = 0, most = -1, peak = 0;
  for (auto [position, delta] : llvm::enumerate(change)) {
    alive += delta;
    if (alive > most) {
      most = alive;
      peak = position;
    }
  }
  llvm::erase_if(lifetimes, [&](const PlanLifetime &life) {
    return life.first > peak || life.last < peak;
  });
  llvm::stable_sort(lifetimes, [](PlanLifetime a, PlanLifetime b) {
    return a.buffer.getBytes() > b.buffer.getBytes();
  });
  return lifetimes;
}

/// "parameter fc1.weight", "activation of matmul /fc1/Gemm".
static std::string nameOf(PlanLifetime life, const PlanOrder &order) {
  std::string kind = plan::stringifyKind(life.buffer.getKind()).str();
  for (Operation *user : life.buffer.getBuffer().getUsers()) {
    if (auto parameter = dyn_cast<plan::ParameterOp>(user))
      return kind + " " + parameter.getName().str();
    if (auto input = dyn_cast<plan::InputOp>(user))
      return kind + " " + input.getName().str();
  }
  if (life.buffer.getKind() == plan::Kind::Constant)
    return kind;
  std::string label = getCommandLabel(order.getCommands()[life.first].op);
  StringRef moved = label;
  if (!moved.consume_front("copy "))
    return kind + " of " + label;
  return (moved.starts_with(kind) ? "" : kind + " ") + moved.str() + ", copied";
}

/// What makes a step of this stage smaller.
static std::string describeHelp(plan::ProgramOp program,
                                ArrayRef<PlanLifetime> peak,
                                plan::Space space) {
  auto attr = program->getAttrOfType<IntegerAttr>(kStageAttr);
  int64_t stage = attr ? attr.getInt() : 0;
  SmallVector<StringRef> help;
  if (stage < 3)
    help.push_back("a higher ZeRO stage");
  if (stage > 0 || program.getRanks() == 1)
    help.push_back(stage > 0 ? "more ranks" : "more ranks at stage 1 to 3");
  if (space == plan::Space::Host)
    help.push_back("state on disk");
  if (llvm::any_of(peak, [](PlanLifetime life) {
        return life.buffer.getKind() == plan::Kind::Activation;
      }))
    help.push_back("a smaller batch");
  return llvm::join(help, ", ");
}

int64_t mlir::zero::getArenaBytes(plan::ProgramOp program, plan::Space space) {
  int64_t bytes = 0;
  for (auto arena : program.getBody().getOps<plan::ArenaOp>())
    if (arena.getSpace() == space)
      bytes += arena.getBytes().value_or(0);
  return bytes;
}

std::string mlir::zero::describeMissingMemory(plan::ProgramOp program,
                                              int64_t budget,
                                              plan::Space space) {
  int64_t bytes = getArenaBytes(program, space);
  PlanOrder order(program);
  std::vector<PlanLifetime> peak = findPeak(program, order, space);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "needs " << bytes << " bytes of " << plan::stringifySpace(space)
     << " memory on each rank, " << bytes - budget
     << " more than the budget of " << budget << "; largest at the peak: ";
  size_t count = std::min(peak.size(), kMaxNames);
  llvm::interleaveComma(ArrayRef(peak).take_front(count), os,
                        [&](PlanLifetime life) {
                          os << nameOf(life, order) << " ("
                             << life.buffer.getBytes() << " bytes)";
                        });
  os << "; what would help: " << describeHelp(program, peak, space);
  return text;
}
