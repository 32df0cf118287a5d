//===- TrainToLinalg.h - Helpers of train-to-linalg -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the lowerings of the train dialect share, private to this folder. An
// elementwise operation becomes one linalg.generic. An operation on rows
// becomes a loop nest over the other dimensions, whose body works on slices, so
// that its temporaries are one row.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_TRAINTOLINALG_H
#define ZERO_LIB_LOWERING_TRAINTOLINALG_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace mlir::train {
class ScatterOp;
} // namespace mlir::train

namespace mlir::zero {

//===----------------------------------------------------------------------===//
// Patterns, one file each
//===----------------------------------------------------------------------===//

void populateTrainCastToLinalg(RewritePatternSet &patterns);
void populateTrainContractionToLinalg(RewritePatternSet &patterns);
void populateTrainElementwiseToLinalg(RewritePatternSet &patterns);
void populateTrainIndexToLinalg(RewritePatternSet &patterns);
void populateTrainLossToLinalg(RewritePatternSet &patterns);
void populateTrainNormToLinalg(RewritePatternSet &patterns);
void populateTrainOptimizerToLinalg(RewritePatternSet &patterns);
void populateTrainPoolToLinalg(RewritePatternSet &patterns);
void populateTrainRandomToLinalg(RewritePatternSet &patterns);
void populateTrainReductionToLinalg(RewritePatternSet &patterns);
void populateTrainScatterToLinalg(RewritePatternSet &patterns);
void populateTrainShapeToLinalg(RewritePatternSet &patterns);
void populateTrainSoftmaxToLinalg(RewritePatternSet &patterns);
void populateTrainStepToLinalg(RewritePatternSet &patterns);

/// Makes every train.scan of a kernel a loop around the operations of its body.
void lowerScans(func::FuncOp kernel);

/// Makes every unsigned tensor of a kernel a signless one, which is what arith
/// computes with; the operations keep the knowledge for isUnsigned.
void makeSignless(func::FuncOp kernel);

/// Whether operand `index` of an operation of the kernel was unsigned.
bool isUnsigned(Operation *op, unsigned index = 0);

/// Empty tensors for the results of `op` if none has an element: slices of
/// nothing are no valid IR.
std::optional<SmallVector<Value>> lowerEmpty(OpBuilder &b, Operation *op);

/// Replaces an operation by the values that `lower` builds.
template <typename OpTy>
struct LowerTrainOp : OpRewritePattern<OpTy> {
  using Lower = SmallVector<Value> (*)(OpBuilder &, OpTy);
  LowerTrainOp(MLIRContext *context, Lower lower)
      : OpRewritePattern<OpTy>(context), lower(lower) {}

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    std::optional<SmallVector<Value>> empty = lowerEmpty(b, op);
    b.replaceOp(op, empty ? *empty : lower(b, op));
    return success();
  }

  Lower lower;
};

template <typename OpTy>
void addLowering(RewritePatternSet &patterns,
                 SmallVector<Value> (*lower)(OpBuilder &, OpTy)) {
  patterns.add<LowerTrainOp<OpTy>>(patterns.getContext(), lower);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// The type that arithmetic on `element` is done in: f32 for narrower floats.
Type getComputeType(Type element);

/// How a float becomes one of 8 bits (train.cast's attributes).
struct TinyRounding {
  bool overflows = false;
  StringRef scale = "up";
};
/// Floats of 8 bits that kernels convert.
bool isTinyFloat(Type type);
/// A float of 8 bits as f32, and back.
Value widenTiny(OpBuilder &b, Location loc, Value x);
Value roundToTiny(OpBuilder &b, Location loc, Value x, Type type,
                  const TinyRounding &rounding);

/// Conversion between float types, or between integer types.
Value convertScalar(OpBuilder &b, Location loc, Value value, Type to);

Value constantScalar(OpBuilder &b, Location loc, Type type, double value);
Value constantIndex(OpBuilder &b, Location loc, int64_t value);
/// The smallest or largest value of `type`; infinities of floats.
Value extremeScalar(OpBuilder &b, Location loc, Type type, bool largest,
                    bool isUnsigned = false);

/// Strict float arithmetic at one place; a number takes the type of the other
/// operand.
struct FloatMath {
  OpBuilder &b;
  Location loc;

  Value constant(Type type, double value) const;
  Value cast(Value x, Type type) const;
  Value add(Value x, Value y) const;
  Value sub(Value x, Value y) const;
  Value mul(Value x, Value y) const;
  Value div(Value x, Value y) const;
  Value neg(Value x) const;
  Value sqrt(Value x) const;
  Value add(Value x, double y) const { return add(x, like(x, y)); }
  Value mul(Value x, double y) const { return mul(x, like(x, y)); }
  Value div(Value x, double y) const { return div(x, like(x, y)); }
  /// value - x.
  Value subFrom(double value, Value x) const { return sub(like(x, value), x); }
  /// 1 / sqrt(x + epsilon).
  Value rsqrt(Value x, double epsilon) const;

private:
  Value like(Value x, double value) const {
    return constant(x.getType(), value);
  }
};

/// The combination of two scalars by a reduction; sums may be reordered, which
/// is what lets LLVM keep them in vector lanes.
Value addReassociated(OpBuilder &b, Location loc, Value lhs, Value rhs);
Value maxScalar(OpBuilder &b, Location loc, Value lhs, Value rhs,
                bool isUnsigned = false);
Value minScalar(OpBuilder &b, Location loc, Value lhs, Value rhs,
                bool isUnsigned = false);

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

RankedTensorType getTensorType(Value value);

Value emptyTensor(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                  Type element);
Value emptyTensor(OpBuilder &b, Location loc, Type type);
Value filledTensor(OpBuilder &b, Location loc, Type type, double value);

/// The only element of a rank-0 tensor.
Value extractScalar(OpBuilder &b, Location loc, Value tensor);
Value extractElement(OpBuilder &b, Location loc, Value tensor,
                     ValueRange indices);
Value insertElement(OpBuilder &b, Location loc, Value scalar, Value tensor,
                    ValueRange indices);
Value scalarTensor(OpBuilder &b, Location loc, Value scalar, Type type);
Value copyOf(OpBuilder &b, Location loc, Value tensor);

/// Builds the results' elements from the operands' elements, which come in
/// their own element types.
using ElementsFn =
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

/// One linalg.generic over the shape of `inits`, to which `operands` broadcast
/// by numpy's rules. With `readsInits` the elements of `inits` follow those of
/// the operands.
SmallVector<Value> mapElements(OpBuilder &b, Location loc, ValueRange inits,
                               ValueRange operands, ElementsFn body,
                               bool readsInits = false);

/// Folds all elements of `operands` (of one shape) into scalars that start as
/// `inits`. The body gets the elements, then the accumulators.
SmallVector<Value> reduceElements(OpBuilder &b, Location loc,
                                  ValueRange operands, ValueRange inits,
                                  ElementsFn body);

/// The sum of what `body` makes of the elements of `operands`, in `type`.
Value sumElements(OpBuilder &b, Location loc, ValueRange operands, Type type,
                  ElementsFn body);

/// The position along a dimension of `size` that `index` means: negative counts
/// from the end. The result lies in the dimension for any index.
Value resolveIndex(OpBuilder &b, Location loc, Value index, int64_t size);

/// `old` combined with `update` as a scatter's `reduction` says.
Value combineScattered(OpBuilder &b, Location loc, train::ScatterOp op,
                       Value old, Value update);

//===----------------------------------------------------------------------===//
// Loops over rows
//===----------------------------------------------------------------------===//

using LoopBody = function_ref<SmallVector<Value>(
    OpBuilder &, Location, ValueRange indices, ValueRange carried)>;

/// A loop nest over `extents` that carries `inits`; its results.
SmallVector<Value> buildLoops(OpBuilder &b, Location loc,
                              ArrayRef<int64_t> extents, ValueRange inits,
                              LoopBody body);

/// Selects of a tensor, at indices of all its dimensions outside of `rowDims`,
/// the row over `rowDims`.
class Rows {
public:
  Rows(ArrayRef<int64_t> shape, ArrayRef<int64_t> rowDims);

  /// The extents of the dimensions outside of `rowDims`.
  ArrayRef<int64_t> getExtents() const { return extents; }
  int64_t getRowSize() const;

  Value extract(OpBuilder &b, Location loc, Value tensor,
                ValueRange indices) const;
  Value insert(OpBuilder &b, Location loc, Value row, Value tensor,
               ValueRange indices) const;

  /// Indices into a tensor whose row dimensions are 1.
  SmallVector<Value> keepDims(OpBuilder &b, Location loc,
                              ValueRange indices) const;

private:
  SmallVector<OpFoldResult> getOffsets(OpBuilder &b, ValueRange indices) const;

  SmallVector<int64_t> shape, extents;
  SmallVector<bool> inRow;
};

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_TRAINTOLINALG_H
