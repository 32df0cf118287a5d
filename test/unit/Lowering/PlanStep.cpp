//===- PlanStep.cpp - A step with collectives in flight -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See PlanStep.h.
//
//===----------------------------------------------------------------------===//

#include "PlanStep.h"

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "zero/Lowering/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace {
/// Writes the step line by line.
class StepWriter {
public:
  StepWriter(int layers, bool hsdp) : layers(layers), hsdp(hsdp) {}
  std::string write();

private:
  void startGather(int layer, const char *pass);
  void forward();
  void backward();
  void awaitGradient(int layer);
  void update();

  int layers;
  bool hsdp;
  std::string text;
  llvm::raw_string_ostream os{text};
  const std::string whole = "tensor<8x8xf32>", part = "tensor<2x8xf32>";
  std::string grid, state;
};
} // namespace

void StepWriter::startGather(int layer, const char *pass) {
  os << "%f" << pass << layer << " = zero.all_gather_start %s" << layer
     << " on " << grid << " : (" << state << ") -> !zero.future<" << whole
     << ">\n";
}

void StepWriter::forward() {
  startGather(0, "w");
  for (int i = 0; i < layers; ++i) {
    os << "%w" << i << " = zero.wait %fw" << i << " : !zero.future<" << whole
       << ">\n";
    if (i + 1 < layers)
      startGather(i + 1, "w");
    os << "%h" << i + 1 << " = train.matmul %h" << i << ", %w" << i << " : ("
       << whole << ", " << whole << ") -> " << whole << "\nzero.release %w" << i
       << " : " << whole << "\n";
  }
}

/// The gradient's shard; with replicas it is summed over them at once.
void StepWriter::awaitGradient(int layer) {
  os << "%g" << layer << " = zero.wait %fg" << layer << " : !zero.future<"
     << part << ">\n";
  if (hsdp)
    os << "%fr" << layer << " = zero.all_reduce_start %g" << layer
       << " average on @grid axes [0] : (" << part << ") -> !zero.future<"
       << part << ">\n";
}

void StepWriter::backward() {
  startGather(layers - 1, "v");
  for (int i = layers - 1; i >= 0; --i) {
    std::string dy = i + 1 == layers ? "%h" + std::to_string(layers)
                                     : "%d" + std::to_string(i + 1);
    os << "%v" << i << " = zero.wait %fv" << i << " : !zero.future<" << whole
       << ">\n";
    if (i > 0)
      startGather(i - 1, "v");
    os << "%dw" << i << " = train.matmul %h" << i << ", " << dy
       << " {transpose_a} : (" << whole << ", " << whole << ") -> " << whole
       << "\n";
    if (i + 1 < layers)
      awaitGradient(i + 1);
    os << "%fg" << i << " = zero.reduce_scatter_start %dw" << i
       << " average on " << grid << " : (" << whole << ") -> !zero.future<"
       << part << ">\n"
       << "%d" << i << " = train.matmul " << dy << ", %v" << i
       << " {transpose_b} : (" << whole << ", " << whole << ") -> " << whole
       << "\nzero.release %v" << i << " : " << whole << "\n";
  }
  awaitGradient(0);
}

void StepWriter::update() {
  for (int i = layers - 1; i >= 0; --i) {
    std::string gradient = "%g" + std::to_string(i);
    if (hsdp) {
      os << "%r" << i << " = zero.wait %fr" << i << " : !zero.future<" << part
         << ">\n";
      gradient = "%r" + std::to_string(i);
    }
    os << "%l" << i << " = zero.local %s" << i << " on " << grid << " : "
       << state << " -> " << part << "\n%n" << i << " = plan.dispatch @sgd(%l"
       << i << ", " << gradient << ") tied [0] : (" << part << ", " << part
       << ") -> " << part << "\nzero.assign @w" << i << ", %n" << i << " : "
       << part << "\n";
  }
}

std::string StepWriter::write() {
  grid = hsdp ? "@grid axes [1]" : "@grid";
  state = std::string("!zero.sharded<8x8xf32, @grid, ") +
          (hsdp ? "axes = [1], " : "") + "dim = 0>";
  os << "module attributes {zero.stage = 3 : i64} {\nshard.grid @grid(shape = "
     << (hsdp ? "2x4" : "4") << ")\n";
  for (int i = 0; i < layers; ++i)
    os << "zero.param @w" << i << " : " << state << "\n";
  os << "func.func private @sgd(" << part << ", " << part << ") -> " << part
     << " attributes {plan.kernel}\n"
     << "func.func @step(%h0: " << whole << " {zero.input = \"x\"}) -> ("
     << whole << " {zero.output = \"dx\"}) {\n";
  for (int i = 0; i < layers; ++i)
    os << "%s" << i << " = zero.read @w" << i << " : " << state << "\n";
  forward();
  backward();
  update();
  os << "return %d0 : " << whole << "\n}\n}\n";
  return text;
}

std::string makeStep(int layers, bool hsdp) {
  return StepWriter(layers, hsdp).write();
}

OwningOpRef<ModuleOp> makePlan(const std::string &step, MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, plan::PlanDialect,
                      shard::ShardDialect, train::TrainDialect,
                      zero::ZeroDialect>();
  auto module = parseSourceString<ModuleOp>(step, &context);
  PassManager passes(&context);
  zero::buildPlanPipeline(passes);
  if (!module || failed(passes.run(*module)))
    return nullptr;
  return module;
}

plan::ProgramOp programOf(ModuleOp module) {
  return *module.getOps<plan::ProgramOp>().begin();
}
