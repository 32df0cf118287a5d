//===- KernelPassDestinations.cpp - Kernel results into buffers -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives a kernel on tensors the signature of its machine code: buffers in,
// buffers out. What is computed in place is left to upstream's bufferization.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELPASSDESTINATIONS
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

/// Checks that `func` is a single block on static ranked tensors and that
/// `tied` fits its signature.
static LogicalResult verifyKernel(func::FuncOp func, ArrayRef<int64_t> tied) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return func.emitOpError("is not a kernel: expected a body of one block");
  FunctionType type = func.getFunctionType();
  for (Type t : llvm::concat<const Type>(type.getInputs(), type.getResults())) {
    auto tensor = dyn_cast<RankedTensorType>(t);
    if (!tensor || !tensor.hasStaticShape())
      return func.emitOpError("is not a kernel: expected tensors of static "
                              "shape, but its type is ")
             << type;
  }
  if (tied.size() != type.getNumResults())
    return func.emitOpError("ties ")
           << tied.size() << " results but has " << type.getNumResults();
  for (auto [index, arg] : llvm::enumerate(tied)) {
    if (arg == -1)
      continue;
    if (arg < 0 || arg >= type.getNumInputs() ||
        type.getInput(arg) != type.getResult(index))
      return func.emitOpError("ties result ")
             << index << " to operand " << arg
             << ", which does not exist or has another type";
  }
  return success();
}

static bool isEmpty(Type tensor) {
  return cast<RankedTensorType>(tensor).getNumElements() == 0;
}

/// Nothing is read from or written to an empty buffer, and LLVM's conversion
/// knows no strides of 0: it has one dimension.
static Type toBuffer(Type tensor) {
  auto ranked = cast<RankedTensorType>(tensor);
  if (isEmpty(tensor))
    return MemRefType::get({0}, ranked.getElementType());
  return MemRefType::get(ranked.getShape(), ranked.getElementType());
}

namespace {
struct KernelPassDestinations
    : zero::impl::KernelPassDestinationsBase<KernelPassDestinations> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    SmallVector<int64_t> tied(func.getNumResults(), -1);
    if (auto attr = func->getAttrOfType<DenseI64ArrayAttr>(kTiedAttr))
      tied.assign(attr.asArrayRef().begin(), attr.asArrayRef().end());
    if (failed(verifyKernel(func, tied)))
      return signalPassFailure();

    convertOperands(func, tied);
    convertResults(func, tied);
    func.setType(FunctionType::get(
        &getContext(), func.getBody().front().getArgumentTypes(), {}));
    func.setResAttrsAttr(nullptr);
    func.setArgAttrsAttr(nullptr);
  }

  void convertOperands(func::FuncOp func, ArrayRef<int64_t> tied) {
    OpBuilder b = OpBuilder::atBlockBegin(&func.getBody().front());
    for (BlockArgument arg : func.getArguments()) {
      Type tensor = arg.getType();
      arg.setType(toBuffer(tensor));
      if (isEmpty(tensor)) {
        auto ranked = cast<RankedTensorType>(tensor);
        arg.replaceAllUsesWith(tensor::EmptyOp::create(
            b, arg.getLoc(), ranked.getShape(), ranked.getElementType()));
        continue;
      }
      bool writable = llvm::is_contained(tied, arg.getArgNumber());
      auto view = bufferization::ToTensorOp::create(
          b, arg.getLoc(), tensor, arg, /*restrict=*/true, writable);
      arg.replaceAllUsesExcept(view.getResult(), view);
    }
  }

  void convertResults(func::FuncOp func, ArrayRef<int64_t> tied) {
    Block &body = func.getBody().front();
    auto ret = cast<func::ReturnOp>(body.getTerminator());
    OpBuilder b(ret);
    for (auto [value, arg] : llvm::zip_equal(ret.getOperands(), tied)) {
      Value buffer = arg == -1 ? body.addArgument(toBuffer(value.getType()),
                                                  value.getLoc())
                               : body.getArgument(arg);
      if (isEmpty(value.getType()))
        continue;
      auto store = bufferization::MaterializeInDestinationOp::create(
          b, ret.getLoc(), value, buffer);
      store.setRestrict(arg == -1);
      store.setWritable(true);
    }
    ret->setOperands({});
  }
};
} // namespace
