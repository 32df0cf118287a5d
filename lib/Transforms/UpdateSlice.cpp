//===- UpdateSlice.cpp - the update of one parameter ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognises updates by interface or as elementwise ops, and copies them.
//
//===----------------------------------------------------------------------===//

#include "UpdateSlice.h"

#include "dialects/Train/Train.h"
#include "dialects/Zero/Gradient.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Dialect/Traits.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Which ops are elementwise
//===----------------------------------------------------------------------===//

static bool hasShape(Value value, ArrayRef<int64_t> shape) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getShape() == shape;
}

/// Whether an operand that broadcasts by numpy's rules has the same value in
/// all rows of a tensor of shape `shape`.
static bool isSameInAllRows(Value value, ArrayRef<int64_t> shape) {
  auto type = dyn_cast<ShapedType>(value.getType());
  if (!type || shape.empty())
    return true;
  if (!type.hasRank())
    return false;
  return type.getRank() < static_cast<int64_t>(shape.size()) ||
         type.getDimSize(0) == 1;
}

/// All loops parallel, whole tensors read and written in place, other operands
/// not indexed by the row, and the row's number not used.
static bool isElementwiseLinalg(linalg::LinalgOp op, ArrayRef<int64_t> shape) {
  if (op.getNumParallelLoops() != op.getNumLoops() || op.hasIndexSemantics() ||
      op.getNumLoops() != shape.size())
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (hasShape(operand.get(), shape))
      return map.isIdentity();
    return shape.empty() || !map.isFunctionOfDim(0);
  });
}

bool zero::isElementwiseOn(Operation *op, ArrayRef<int64_t> shape) {
  auto matches = [&](Value value) { return hasShape(value, shape); };
  if (op->getNumResults() == 0 || !llvm::all_of(op->getResults(), matches) ||
      !isMemoryEffectFree(op))
    return false;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return isElementwiseLinalg(linalgOp, shape);
  if (op->getNumOperands() == 0 || op->getNumRegions() != 0)
    return false;
  // A few tosa ops lack the trait that the others have.
  bool elementwise = op->hasTrait<OpTrait::Elementwise>() ||
                     op->hasTrait<OpTrait::ResultsBroadcastableShape>() ||
                     op->hasTrait<OpTrait::tosa::TosaElementwiseOperator>() ||
                     op->hasTrait<train::BroadcastElementwise>() ||
                     isa<tosa::MulOp, tosa::CastOp>(op);
  if (!elementwise)
    return false;
  return llvm::all_of(op->getOperands(), [&](Value value) {
    return matches(value) || isSameInAllRows(value, shape);
  });
}

//===----------------------------------------------------------------------===//
// From the assigned values to the gradient
//===----------------------------------------------------------------------===//

namespace {
/// Finds the gradient of an update written in elementwise ops: the last value
/// on the way from the data to the assigned values through which all data goes.
class SliceFinder {
public:
  SliceFinder(ParamUpdate &update, const RankVariance &variance)
      : update(update), variance(variance),
        shape(update.param.getLogicalType().getShape()) {}

  LogicalResult find();

private:
  bool isWhole(Value value) const { return hasShape(value, shape); }
  bool isOnlyGradient(Value value);
  bool isAnchor(Value value) const;
  void collect(Value value);
  void addToFrontier(Value value);
  Value latest() const;
  LogicalResult checkOperands();

  ParamUpdate &update;
  const RankVariance &variance;
  ArrayRef<int64_t> shape;
  llvm::SetVector<Operation *> slice;
  llvm::DenseMap<Value, bool> onlyGradient;
  llvm::SetVector<Value> frontier;
};
} // namespace

/// Collects the elementwise ops that lead to `value`.
void SliceFinder::collect(Value value) {
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || !isElementwiseOn(op, shape) || !slice.insert(op))
      continue;
    llvm::append_range(
        worklist, llvm::make_filter_range(op->getOperands(),
                                          [&](Value v) { return isWhole(v); }));
  }
}

/// Values that belong to the update, not to the gradient: state and
/// hyperparameters, that is what is the same on all ranks and no constant.
bool SliceFinder::isAnchor(Value value) const {
  if (variance.differs(value))
    return false;
  SmallVector<Value> worklist = {value};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || isa<ReadOp>(op))
      return true;
    llvm::append_range(worklist, getUsedValues(op));
  }
  return false;
}

static bool isMarked(Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->hasAttr(kGradientMark);
}

/// Whether `value` depends on data and, through elementwise ops, on neither
/// state nor hyperparameters.
bool SliceFinder::isOnlyGradient(Value value) {
  if (!variance.differs(value))
    return false;
  Operation *op = value.getDefiningOp();
  if (!op || !slice.contains(op) || isMarked(value))
    return true;
  // An update begins behind a mark.
  if (llvm::any_of(op->getOperands(), isMarked))
    return false;
  auto it = onlyGradient.find(value);
  if (it != onlyGradient.end())
    return it->second;
  bool result = llvm::all_of(op->getOperands(), [&](Value operand) {
    return variance.differs(operand) ? isOnlyGradient(operand)
                                     : !isAnchor(operand);
  });
  onlyGradient[value] = result;
  return result;
}

/// Walks from `value` towards the data up to the first values that are only
/// gradient; ops passed on the way belong to the update.
void SliceFinder::addToFrontier(Value value) {
  if (isOnlyGradient(value)) {
    frontier.insert(value);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (!op || !slice.contains(op) || !update.ops.insert(op))
    return;
  for (Value operand : op->getOperands())
    if (isWhole(operand))
      addToFrontier(operand);
}

Value SliceFinder::latest() const {
  Value last;
  for (Value value : frontier) {
    Operation *op = value.getDefiningOp();
    if (!last || (op && (!last.getDefiningOp() ||
                         last.getDefiningOp()->isBeforeInBlock(op))))
      last = value;
  }
  return last;
}

/// Everything else that enters the update is the same on all ranks.
LogicalResult SliceFinder::checkOperands() {
  for (Operation *op : update.ops)
    for (Value operand : getUsedValues(op)) {
      Operation *def = operand.getDefiningOp();
      bool inside = def && update.ops.contains(def);
      if (inside || operand == update.gradient || !variance.differs(operand))
        continue;
      InFlightDiagnostic diag =
          update.assigns.front().emitOpError()
          << "updates @" << update.param.getSymName()
          << " with a value of type " << operand.getType()
          << " that depends on one rank's data beside "
          << "the gradient; reduce it over the ranks first";
      diag.attachNote(operand.getLoc()) << "the value is computed here";
      return diag;
    }
  return success();
}

LogicalResult SliceFinder::find() {
  for (AssignOp assign : update.assigns)
    collect(assign.getValue());
  for (AssignOp assign : update.assigns)
    addToFrontier(assign.getValue());
  while (frontier.size() > 1) {
    Value last = latest();
    Operation *op = last.getDefiningOp();
    if (!op || !slice.contains(op)) {
      InFlightDiagnostic diag =
          update.assigns.front().emitOpError()
          << "updates @" << update.param.getSymName()
          << " from several values that depend on one rank's data; expects one "
          << "gradient that enters elementwise ops";
      for (Value value : frontier)
        diag.attachNote(value.getLoc()) << "this value enters the update";
      return diag;
    }
    frontier.remove(last);
    update.ops.insert(op);
    for (Value operand : op->getOperands())
      if (isWhole(operand) && variance.differs(operand))
        frontier.insert(operand);
  }
  update.gradient = frontier.empty() ? Value() : frontier.front();
  return checkOperands();
}

/// Walks from an assigned value through elementwise ops of one operand, such as
/// the cast of a new master weight, which are added to `casts`.
static Value skipCasts(Value value, ArrayRef<int64_t> shape,
                       SmallVectorImpl<Operation *> &casts) {
  Operation *op = value.getDefiningOp();
  while (op && op->getNumOperands() == 1 && isElementwiseOn(op, shape)) {
    casts.push_back(op);
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  return value;
}

/// The update when it is an op of the OptimizerUpdate interface. Where it is of
/// a master copy, the parameter is assigned a cast of that.
static LogicalResult takeOptimizerUpdate(ParamUpdate &update,
                                         OptimizerUpdate op) {
  ArrayRef<int64_t> shape = update.param.getLogicalType().getShape();
  for (AssignOp assign : update.assigns) {
    SmallVector<Operation *> casts;
    auto result =
        dyn_cast<OpResult>(skipCasts(assign.getValue(), shape, casts));
    if (!result || result.getOwner() != op)
      return assign.emitOpError()
             << "expects all values of @" << update.param.getSymName()
             << " and its states from one " << op->getName() << " op";
    update.ops.insert(casts.begin(), casts.end());
    bool ofMaster = !casts.empty() && result.getResultNumber() == 0 &&
                    assign.getSymbol() == update.param.getSymName();
    Value replaced = op.getReplacedOperand(result.getResultNumber()).get();
    auto read = replaced.getDefiningOp<ReadOp>();
    if (!ofMaster && (!read || read.getSymbolAttr() != assign.getSymbolAttr()))
      return assign.emitOpError()
             << "assigns " << assign.getSymbolAttr() << " result "
             << result.getResultNumber() << " of " << op->getName()
             << ", which does not replace a read of that symbol";
  }
  update.gradient = op.getGradientOperand().get();
  update.ops.insert(op);
  return success();
}

LogicalResult zero::findUpdateSlice(ParamUpdate &update, const StepInfo &info,
                                    const RankVariance &variance) {
  SmallVector<Operation *> casts;
  Value value = skipCasts(update.assigns.front().getValue(),
                          update.param.getLogicalType().getShape(), casts);
  if (auto op = value.getDefiningOp<OptimizerUpdate>())
    return takeOptimizerUpdate(update, op);
  return SliceFinder(update, variance).find();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static Type toLocal(Type type, RankedTensorType whole, RankedTensorType local) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getShape() != whole.getShape())
    return type;
  return RankedTensorType::get(local.getShape(), tensor.getElementType());
}

Value zero::makeLocal(OpBuilder &builder, Value value, Type type,
                      const Partition &cut) {
  Operation *def = value.getDefiningOp();
  Location loc = value.getLoc();
  // What has no contents of its own is cheaper to remake than to cut.
  if (isa_and_nonnull<tensor::EmptyOp, tensor::SplatOp>(def)) {
    Operation *copy = builder.clone(*def);
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }
  SplatElementsAttr splat;
  if (def && matchPattern(value, m_Constant(&splat))) {
    auto attr = SplatElementsAttr::get(cast<ShapedType>(type),
                                       splat.getSplatValue<Attribute>());
    if (Operation *constant =
            def->getDialect()->materializeConstant(builder, attr, type, loc))
      return constant->getResult(0);
  }
  return LocalOp::create(builder, loc, type, value, cut.grid, cut.shardAxes);
}

void zero::cloneUpdate(OpBuilder &builder, ParamUpdate &update,
                       IRMapping &mapping, const Partition *cut) {
  RankedTensorType whole = update.param.getLogicalType();
  RankedTensorType local = cut ? getLocalType(whole, cut->ranks) : whole;
  SmallVector<Operation *> ops(update.ops.begin(), update.ops.end());
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : ops) {
    for (Value operand : getUsedValues(op)) {
      Type type = toLocal(operand.getType(), whole, local);
      if (!mapping.contains(operand) && type != operand.getType())
        mapping.map(operand, makeLocal(builder, operand, type, *cut));
    }
    Operation *copy = builder.clone(*op, mapping);
    if (cut)
      for (OpResult result : copy->getResults())
        result.setType(toLocal(result.getType(), whole, local));
  }
}
