//===- OffloadPlanTest.cpp - Programs with memory elsewhere ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step whose state is on disk: what its program takes in each memory, and
// what the file for the runtime says of it.
//
//===----------------------------------------------------------------------===//

#include "PlanStep.h"

#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Plan.h"
#include "zero/Lowering/PlanTimeline.h"

#include "runtime/zplan_generated.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::zero;
namespace fb = zrt::fb;

/// SGD with momentum of two parameters of 1024 elements; the momentum is on
/// disk, and updates are one after the other.
static std::string makeDiskStep() {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string disk =
      "!zero.sharded<1024xf32, @dp, axes = [], dim = 0, mem = disk>";
  std::string host =
      "!zero.sharded<1024xf32, @dp, axes = [], dim = 0, mem = host>";
  std::string whole = "tensor<1024xf32>";
  os << "module {\nshard.grid @dp(shape = 1)\n"
     << "func.func private @sgd(%p: " << whole << ", %m: " << whole << ") -> ("
     << whole << ", " << whole
     << ") attributes {plan.host, plan.kernel, plan.tied = array<i64: 0, 1>} "
        "{\n%r = train.add %p, %m : ("
     << whole << ", " << whole << ") -> " << whole
     << "\n%t = train.add %r, %m : (" << whole << ", " << whole << ") -> "
     << whole << "\nreturn %r, %t : " << whole << ", " << whole << "\n}\n";
  for (const char *name : {"v", "w"})
    os << "zero.param @" << name << " : " << whole << "\nzero.state @" << name
       << ".m of @" << name << " : " << disk << "\n";
  os << "func.func @step() {\n";
  for (std::string n : {"v", "w"})
    os << "%s" << n << " = zero.read @" << n << ".m : " << disk << "\n%h" << n
       << " = zero.transfer %s" << n << " from disk to host : (" << disk
       << ") -> " << host << "\n%m" << n << " = zero.local %h" << n
       << " on @dp axes [] : " << host << " -> " << whole << "\n%p" << n
       << " = zero.read @" << n << " : " << whole << "\n%q" << n
       << " = zero.transfer %p" << n << " from device to host : (" << whole
       << ") -> " << whole << "\n%n" << n << ":2 = zero.on_host (%a = %q" << n
       << ", %b = %m" << n << ") : (" << whole << ", " << whole << ") -> ("
       << whole << ", " << whole << ") {\n%c:2 = plan.dispatch @sgd(%a, %b) "
       << "tied [0, 1] : (" << whole << ", " << whole << ") -> (" << whole
       << ", " << whole << ")\nzero.yield %c#0, %c#1 : " << whole << ", "
       << whole << "\n}\n%u" << n << " = zero.transfer %n" << n
       << "#0 from host to device : (" << whole << ") -> " << whole
       << "\nzero.assign @" << n << ", %u" << n << " : " << whole << "\n%d" << n
       << " = zero.transfer %n" << n << "#1 from host to disk : (" << whole
       << ") -> " << whole << "\nzero.assign @" << n << ".m, %d" << n << " : "
       << whole << "\n";
  os << "return\n}\n}\n";
  return text;
}

namespace {
class OffloadPlan : public testing::Test {
protected:
  OffloadPlan() : module(makePlan(makeDiskStep(), context)) {}
  plan::ProgramOp program() { return programOf(*module); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

// What is on disk lasts; its windows in host memory share their bytes.
TEST_F(OffloadPlan, WindowsShareTheirBytes) {
  ASSERT_TRUE(module);
  EXPECT_EQ(getArenaBytes(program(), plan::Space::Device), 2 * 4096);
  EXPECT_EQ(getArenaBytes(program(), plan::Space::Host), 2 * 4096);
  EXPECT_EQ(getArenaBytes(program(), plan::Space::Disk), 2 * 4096);
}

TEST_F(OffloadPlan, MissingHostMemoryIsNamed) {
  ASSERT_TRUE(module);
  EXPECT_EQ(describeMissingMemory(program(), 5000, plan::Space::Host),
            "needs 8192 bytes of host memory on each rank, 3192 more than the "
            "budget of 5000; largest at the peak: state v.m, copied (4096 "
            "bytes), parameter v, copied (4096 bytes); what would help: a "
            "higher ZeRO stage, more ranks at stage 1 to 3, state on disk");
}

TEST_F(OffloadPlan, TheFileSaysWhereAndHow) {
  ASSERT_TRUE(module);
  plan::ProgramOp plan = program();
  plan.setBudget(100000);
  for (auto arena : plan.getBody().getOps<plan::ArenaOp>())
    if (arena.getSpace() == plan::Space::Host)
      arena.setBudget(20000);
  std::string bytes;
  ASSERT_TRUE(succeeded(writeZplan(*module, KernelTarget::host(), bytes)));
  const fb::Program &file = *fb::GetProgram(bytes.data());
  ASSERT_EQ(file.arenas()->size(), 3u);
  int64_t budgets[] = {100000, 20000, -1};
  uint32_t alignments[] = {64, 4096, 4096};
  for (uint32_t i = 0; i < 3; ++i) {
    const fb::Arena &arena = *file.arenas()->Get(i);
    EXPECT_EQ(arena.space(), fb::Space(i));
    EXPECT_EQ(arena.bytes(), 8192u);
    EXPECT_EQ(arena.lower_bound(), 8192u);
    EXPECT_EQ(arena.budget(), budgets[i]);
    EXPECT_EQ(arena.alignment(), alignments[i]);
  }
  std::vector<std::string> labels;
  for (const fb::Command *command : *file.commands()) {
    labels.push_back(command->label()->str());
    bool launch = command->op() == fb::Op_Launch;
    EXPECT_EQ(command->host(), launch);
    EXPECT_EQ(command->split() > 0, launch);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{
                        "copy v.m", "copy v", "sgd", "copy v", "copy v.m",
                        "copy w.m", "copy w", "sgd", "copy w", "copy w.m"}));
}
