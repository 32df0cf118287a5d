//===- KernelFuse.cpp - Fusion of the linalg operations of a kernel -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel makes one pass over its data: producers move into consumers, and
// into loops over rows. Upstream's fusion pattern does the rewriting; what is
// decided here is when it saves memory without computing anything twice.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELFUSE
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Booleans at the boundary
//===----------------------------------------------------------------------===//

/// Converts every element of `value` to `element` with `convert`.
static Value
mapElements(OpBuilder &b, Value value, Type element,
            function_ref<Value(OpBuilder &, Location, Value)> convert) {
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> kinds(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, init.getType(), value, init, ArrayRef{map, map}, kinds,
             [&](OpBuilder &nested, Location at, ValueRange args) {
               linalg::YieldOp::create(nested, at,
                                       convert(nested, at, args[0]));
             })
      .getResult(0);
}

static bool isBoolTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isInteger(1);
}

/// Booleans are bytes in memory; LLVM vectorizes loads of i8 but not of i1.
static void convertBooleans(func::FuncOp func) {
  Block &body = func.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  Type byte = b.getI8Type();
  for (BlockArgument arg : body.getArguments()) {
    if (!isBoolTensor(arg.getType()))
      continue;
    arg.setType(cast<RankedTensorType>(arg.getType()).clone(byte));
    auto toBool = [&](OpBuilder &n, Location at, Value x) -> Value {
      Value zero = arith::ConstantOp::create(n, at, n.getI8IntegerAttr(0));
      return arith::CmpIOp::create(n, at, arith::CmpIPredicate::ne, x, zero);
    };
    Value converted = mapElements(b, arg, b.getI1Type(), toBool);
    arg.replaceAllUsesExcept(converted, converted.getDefiningOp());
  }
  auto ret = cast<func::ReturnOp>(body.getTerminator());
  b.setInsertionPoint(ret);
  for (OpOperand &result : ret->getOpOperands()) {
    if (!isBoolTensor(result.get().getType()))
      continue;
    auto toByte = [&](OpBuilder &n, Location at, Value x) -> Value {
      return arith::ExtUIOp::create(n, at, byte, x);
    };
    result.set(mapElements(b, result.get(), byte, toByte));
  }
  func.setType(FunctionType::get(func.getContext(), body.getArgumentTypes(),
                                 ret.getOperandTypes()));
}

//===----------------------------------------------------------------------===//
// Where results go
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> getTied(func::FuncOp func) {
  auto tied = func->getAttrOfType<DenseI64ArrayAttr>(kTiedAttr);
  return tied ? llvm::to_vector(tied.asArrayRef()) : SmallVector<int64_t>();
}

/// Gives every result that does not read its init a fresh one: an operand as
/// init would be copied.
static void detachInits(func::FuncOp func) {
  func.walk([&](linalg::GenericOp op) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      auto type = dyn_cast<RankedTensorType>(init.get().getType());
      if (!type || op.payloadUsesValueFromOperand(&init))
        continue;
      OpBuilder b(op);
      init.set(tensor::EmptyOp::create(b, op.getLoc(), type.getShape(),
                                       type.getElementType()));
    }
  });
}

/// Computes tied results in their operand where every element only depends on
/// the operand's element in the same place.
static void reuseTiedOperands(func::FuncOp func) {
  auto ret = cast<func::ReturnOp>(func.getBody().front().getTerminator());
  for (auto [value, index] : llvm::zip(ret.getOperands(), getTied(func))) {
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (index < 0 || index >= func.getNumArguments() || !op)
      continue;
    Value arg = func.getArgument(index);
    OpOperand *init = op.getTiedOpOperand(cast<OpResult>(value));
    AffineMap map = op.getMatchingIndexingMap(init);
    bool aligned = llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *in) {
      return in->get() != arg || op.getMatchingIndexingMap(in) == map;
    });
    if (aligned && map.isPermutation() && arg.getType() == value.getType() &&
        !op.payloadUsesValueFromOperand(init))
      init->set(arg);
  }
}

//===----------------------------------------------------------------------===//
// Elementwise producers
//===----------------------------------------------------------------------===//

/// True when computing `op` a second time costs less than its result's way
/// through memory: a conversion or a move of elements.
static bool isCheap(linalg::GenericOp op) {
  return llvm::all_of(op.getBody()->without_terminator(), [](Operation &inner) {
    return isa<arith::CmpIOp, arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp,
               arith::SIToFPOp, arith::UIToFPOp, arith::TruncFOp,
               arith::TruncIOp, arith::ConstantOp>(inner);
  });
}

/// True when all uses of `producer` can be replaced by results of an operation
/// in the place of `consumer`.
static bool isUsedFrom(linalg::GenericOp producer, linalg::GenericOp consumer) {
  return llvm::all_of(producer->getUsers(), [&](Operation *user) {
    Operation *ancestor = consumer->getBlock()->findAncestorOpInBlock(*user);
    return ancestor &&
           (ancestor == consumer || consumer->isBeforeInBlock(ancestor));
  });
}

static bool isOnlyUsedBy(Operation *producer, Operation *consumer) {
  return llvm::all_of(producer->getUsers(),
                      [&](Operation *user) { return user == consumer; });
}

/// Fuses the producer of `operand` into its owner if that saves memory
/// traffic. True when the IR changed.
static bool fuseProducer(IRRewriter &b, OpOperand &operand) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  if (!producer || producer->getBlock() != consumer->getBlock() ||
      !linalg::areElementwiseOpsFusable(&operand))
    return false;
  bool single = isOnlyUsedBy(producer, consumer);
  // A producer whose result lives on becomes one more result of the consumer.
  bool shared = consumer.getNumParallelLoops() == consumer.getNumLoops() &&
                consumer.getNumLoops() == producer.getNumLoops() &&
                isUsedFrom(producer, consumer);
  if (!single && !shared && !isCheap(producer))
    return false;
  b.setInsertionPoint(consumer);
  FailureOr<linalg::ElementwiseOpFusionResult> fused =
      linalg::fuseElementwiseOps(b, &operand);
  if (failed(fused))
    return false;
  for (auto [from, to] : fused->replacements) {
    bool ofConsumer = from.getDefiningOp() == consumer;
    if (ofConsumer || shared)
      b.replaceAllUsesExcept(from, to, fused->fusedOp);
  }
  b.eraseOp(consumer);
  if (producer->use_empty())
    b.eraseOp(producer);
  return true;
}

static bool fuseProducers(IRRewriter &b, func::FuncOp func) {
  SmallVector<linalg::GenericOp> ops;
  func.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : llvm::reverse(ops))
    for (OpOperand &operand : op->getOpOperands())
      if (op.isDpsInput(&operand) && fuseProducer(b, operand))
        return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Producers of rows
//===----------------------------------------------------------------------===//

/// The part of `operand` that the elements `slice` of the result of `producer`
/// need; `map` and `resultMap` are the indexing maps of both.
static Value sliceOperand(OpBuilder &b, tensor::ExtractSliceOp slice,
                          Value operand, AffineMap map, AffineMap resultMap,
                          const llvm::SmallBitVector &dropped) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  SmallVector<int64_t> shape;
  for (AffineExpr expr : map.getResults()) {
    std::optional<unsigned> position = resultMap.getResultPosition(expr);
    if (!position) { // Broadcast: always element 0.
      offsets.push_back(b.getIndexAttr(0));
      sizes.push_back(b.getIndexAttr(1));
      strides.push_back(b.getIndexAttr(1));
      shape.push_back(1);
      continue;
    }
    unsigned dim = *position;
    offsets.push_back(slice.getMixedOffsets()[dim]);
    sizes.push_back(slice.getMixedSizes()[dim]);
    strides.push_back(slice.getMixedStrides()[dim]);
    if (!dropped[dim])
      shape.push_back(slice.getStaticSizes()[dim]);
  }
  auto type = cast<RankedTensorType>(operand.getType());
  return tensor::ExtractSliceOp::create(
      b, slice.getLoc(), RankedTensorType::get(shape, type.getElementType()),
      operand, offsets, sizes, strides);
}

/// `map` over the loops that remain when those of `dropped` are one element.
static AffineMap dropLoops(AffineMap map, AffineMap resultMap,
                           const llvm::SmallBitVector &dropped) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : map.getResults()) {
    std::optional<unsigned> dim = resultMap.getResultPosition(expr);
    if (dim && dropped[*dim])
      continue;
    unsigned loop = 0;
    for (unsigned i = 0; dim && i < *dim; ++i)
      loop += !dropped[i];
    exprs.push_back(dim ? getAffineDimExpr(loop, context) : expr);
  }
  return AffineMap::get(dropped.size() - dropped.count(), 0, exprs, context);
}

static bool isStatic(tensor::ExtractSliceOp slice) {
  return slice.getType().hasStaticShape() &&
         !ShapedType::isDynamicShape(slice.getStaticSizes());
}

static bool canSlice(linalg::GenericOp op) {
  return op && op.getNumResults() == 1 &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isPermutation() &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
           return map.isProjectedPermutation(/*allowZeroInResults=*/true);
         });
}

/// Indices of the whole in the body of `row`, which computes a slice of it.
static void shiftIndices(IRRewriter &b, linalg::GenericOp row,
                         tensor::ExtractSliceOp slice, AffineMap resultMap,
                         const llvm::SmallBitVector &dropped) {
  SmallVector<linalg::IndexOp> indices(row.getBody()->getOps<linalg::IndexOp>());
  for (linalg::IndexOp index : indices) {
    Location loc = index.getLoc();
    unsigned dim = *resultMap.getResultPosition(
        getAffineDimExpr(index.getDim(), b.getContext()));
    b.setInsertionPoint(index);
    auto valueOf = [&](OpFoldResult number) {
      return getValueOrCreateConstantIndexOp(b, loc, number);
    };
    Value shifted = valueOf(slice.getMixedOffsets()[dim]);
    if (!dropped[dim]) {
      unsigned loop = 0;
      for (unsigned i = 0; i < dim; ++i)
        loop += !dropped[i];
      Value inner = linalg::IndexOp::create(b, loc, loop);
      Value stride = valueOf(slice.getMixedStrides()[dim]);
      Value scaled = arith::MulIOp::create(b, loc, inner, stride);
      shifted = arith::AddIOp::create(b, loc, shifted, scaled);
    }
    b.replaceOp(index, shifted);
  }
}

/// In a loop, replaces a slice of an elementwise result by the computation of
/// that slice, so that the whole is never in memory.
static bool computeSlice(IRRewriter &b, tensor::ExtractSliceOp slice) {
  auto producer = slice.getSource().getDefiningOp<linalg::GenericOp>();
  if (!slice->getParentOfType<LoopLikeOpInterface>() || !isStatic(slice) ||
      !canSlice(producer) || producer->getBlock() == slice->getBlock())
    return false;
  OpOperand *init = producer.getDpsInitOperand(0);
  AffineMap resultMap = producer.getMatchingIndexingMap(init);
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  b.setInsertionPoint(slice);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : producer.getDpsInputOperands()) {
    AffineMap map = producer.getMatchingIndexingMap(input);
    inputs.push_back(
        sliceOperand(b, slice, input->get(), map, resultMap, dropped));
    maps.push_back(dropLoops(map, resultMap, dropped));
  }
  maps.push_back(dropLoops(resultMap, resultMap, dropped));
  Value out =
      producer.payloadUsesValueFromOperand(init)
          ? sliceOperand(b, slice, init->get(), resultMap, resultMap, dropped)
          : tensor::EmptyOp::create(b, slice.getLoc(),
                                    slice.getType().getShape(),
                                    slice.getType().getElementType());
  SmallVector<utils::IteratorType> kinds(slice.getType().getRank(),
                                         utils::IteratorType::parallel);
  auto row = linalg::GenericOp::create(b, producer.getLoc(), out.getType(),
                                       inputs, out, maps, kinds);
  b.cloneRegionBefore(producer.getRegion(), row.getRegion(),
                      row.getRegion().begin());
  shiftIndices(b, row, slice, resultMap, dropped);
  b.replaceOp(slice, row.getResult(0));
  if (producer->use_empty())
    b.eraseOp(producer);
  return true;
}

static bool computeSlices(IRRewriter &b, func::FuncOp func) {
  SmallVector<tensor::ExtractSliceOp> slices;
  func.walk([&](tensor::ExtractSliceOp slice) { slices.push_back(slice); });
  bool changed = false;
  for (tensor::ExtractSliceOp slice : slices)
    changed |= computeSlice(b, slice);
  return changed;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct KernelFuse : zero::impl::KernelFuseBase<KernelFuse> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr) || !func.getBody().hasOneBlock())
      return;
    convertBooleans(func);
    if (failed(simplify(func, /*generalize=*/true)))
      return signalPassFailure();
    detachInits(func);
    IRRewriter b(&getContext());
    do {
      while (fuseProducers(b, func))
        ;
    } while (computeSlices(b, func));
    if (failed(simplify(func, /*generalize=*/false)))
      return signalPassFailure();
    reuseTiedOperands(func);
  }

  LogicalResult simplify(func::FuncOp func, bool generalize) {
    RewritePatternSet patterns(&getContext());
    if (generalize)
      linalg::populateLinalgNamedOpsGeneralizationPatterns(patterns);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns,
                                                        &getContext());
    return applyPatternsGreedily(func, std::move(patterns));
  }
};
} // namespace
