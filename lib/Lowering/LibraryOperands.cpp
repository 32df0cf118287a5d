//===- LibraryOperands.cpp - Operands of library calls --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transposes, broadcast batches and biases as strides.
//
//===----------------------------------------------------------------------===//

#include "LibraryOperands.h"

#include "dialects/Train/Train.h"

using namespace mlir;
using namespace mlir::zero;

/// `place` as an operand of a matrix product: batch dimensions broadcast to
/// `batch`, the last two swapped where asked.
static Place matmulOperand(Place place, ArrayRef<int64_t> batch,
                           bool transpose) {
  StridedLayout layout;
  layout.offset = place.layout.offset;
  ArrayRef<int64_t> sizes = place.layout.sizes, strides = place.layout.strides;
  size_t own = sizes.size() - 2;
  for (size_t i = 0; i < batch.size(); ++i) {
    bool broadcast =
        i + own < batch.size() || sizes[i + own - batch.size()] != batch[i];
    layout.sizes.push_back(batch[i]);
    layout.strides.push_back(broadcast ? 0 : strides[i + own - batch.size()]);
  }
  layout.sizes.append({sizes[own + transpose], sizes[own + !transpose]});
  layout.strides.append({strides[own + transpose], strides[own + !transpose]});
  place.layout = layout;
  return place;
}

/// A bias of any shape that broadcasts to `shape`.
static Place biasOperand(Place place, ArrayRef<int64_t> shape) {
  place.layout = broadcastLayout(place.layout, shape);
  return place;
}

/// Joins the rows of all batches of `a` and `result` into one matrix where `b`
/// is the same for all: one large product instead of many small ones.
static void flattenBatch(Place &a, Place &b, Place &result) {
  size_t batch = b.layout.sizes.size() - 2;
  for (size_t i = 0; i < batch; ++i)
    if (b.layout.strides[i] != 0 && b.layout.sizes[i] != 1)
      return;
  if (!a.layout.isContiguous() || !result.layout.isContiguous())
    return;
  auto flatten = [&](StridedLayout &layout) {
    int64_t offset = layout.offset, columns = layout.sizes.back();
    int64_t rows = 1;
    for (int64_t size : ArrayRef<int64_t>(layout.sizes).drop_back())
      rows *= size;
    layout = StridedLayout::contiguous({rows, columns});
    layout.offset = offset;
  };
  flatten(a.layout);
  flatten(result.layout);
  b.layout.sizes.erase(b.layout.sizes.begin(), b.layout.sizes.begin() + batch);
  b.layout.strides.erase(b.layout.strides.begin(),
                         b.layout.strides.begin() + batch);
}

static SmallVector<Place>
matmulOperands(train::MatmulOp op, Place &result,
               llvm::function_ref<Place(Value)> placeOf) {
  ArrayRef<int64_t> batch = ArrayRef<int64_t>(result.layout.sizes).drop_back(2);
  Place a = matmulOperand(placeOf(op.getLhs()), batch, op.getTransposeA());
  Place b = matmulOperand(placeOf(op.getRhs()), batch, op.getTransposeB());
  flattenBatch(a, b, result);
  return {a, b};
}

LibraryCall
mlir::zero::describeLibraryCall(Operation *op, ArrayRef<Place> results,
                                llvm::function_ref<Place(Value)> placeOf) {
  LibraryCall call;
  call.callee = "matmul";
  SmallVector<Place> written(results);
  if (auto matmul = dyn_cast<train::MatmulOp>(op)) {
    call.operands = matmulOperands(matmul, written.front(), placeOf);
  } else if (auto gemm = dyn_cast<train::GemmOp>(op)) {
    call.operands = {
        matmulOperand(placeOf(gemm.getA()), {}, gemm.getTransposeA()),
        matmulOperand(placeOf(gemm.getB()), {}, gemm.getTransposeB()),
        biasOperand(placeOf(gemm.getC()), results.front().layout.sizes)};
  } else {
    call.callee = op->getName().stripDialect();
    for (Value operand : op->getOperands())
      call.operands.push_back(placeOf(operand));
    for (StringRef name : {"strides", "pads", "dilations", "group", "scale",
                           "causal", "ratio", "samples"})
      if (std::optional<Attribute> value = op->getInherentAttr(name);
          value && *value)
        call.settings.emplace_back(StringAttr::get(op->getContext(), name),
                                   *value);
  }
  call.operands.append(written);
  return call;
}
