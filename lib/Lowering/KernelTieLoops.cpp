//===- KernelTieLoops.cpp - Where loops keep what they carry --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a step of a loop computes goes, at its end, to where the loop keeps it:
// a loop of a kernel has no memory but that of its initial values.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELTIELOOPS
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

/// Whether `value` is `target` with elements written to it.
static bool isWrittenTo(Value value, Value target) {
  while (value != target) {
    auto result = dyn_cast<OpResult>(value);
    Operation *op = result ? result.getOwner() : nullptr;
    if (auto loop = dyn_cast_or_null<scf::ForOp>(op)) {
      value = loop.getTiedLoopInit(result)->get();
      // A loop works on a copy of what is read after it.
      if (value == target && !target.hasOneUse())
        return false;
    } else if (auto branch = dyn_cast_or_null<scf::IfOp>(op)) {
      unsigned number = result.getResultNumber();
      if (!isWrittenTo(branch.elseYield().getOperand(number), target))
        return false;
      value = branch.thenYield().getOperand(number);
    } else if (auto style = dyn_cast_or_null<DestinationStyleOpInterface>(op)) {
      value = style.getTiedOpOperand(result)->get();
    } else {
      return false;
    }
  }
  return true;
}

/// Gives each value that `loop` carries to the next step the memory of the one
/// before. A view may be of a carried value itself: it is copied first.
static void tie(scf::ForOp loop) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  SmallVector<OpOperand *> untied;
  for (auto [operand, argument] :
       llvm::zip_equal(yield->getOpOperands(), loop.getRegionIterArgs()))
    if (isa<RankedTensorType>(argument.getType()) &&
        !isWrittenTo(operand.get(), argument))
      untied.push_back(&operand);
  OpBuilder b(yield);
  for (OpOperand *operand : untied)
    if (Value value = operand->get(); !value.getDefiningOp<linalg::LinalgOp>())
      operand->set(bufferization::AllocTensorOp::create(
          b, loop.getLoc(), cast<RankedTensorType>(value.getType()),
          ValueRange(), value));
  for (OpOperand *operand : untied) {
    Value argument = loop.getRegionIterArgs()[operand->getOperandNumber()];
    operand->set(
        bufferization::MaterializeInDestinationOp::create(
            b, loop.getLoc(), argument.getType(), operand->get(), argument)
            .getResult());
  }
}

namespace {
struct KernelTieLoops : zero::impl::KernelTieLoopsBase<KernelTieLoops> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func->hasAttr(kKernelAttr))
      func.walk([](scf::ForOp loop) { tie(loop); });
  }
};
} // namespace
