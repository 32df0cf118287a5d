//===- RowLists.cpp - Lists of rows that the data select ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation that is not named here is an error where it reads a list: what
// it does with the rows that do not count is not known.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/RowLists.h"

#include "mlir/IR/OpImplementation.h"

#include "dialects/Train/Train.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::train;
using namespace mlir::zero::onnx_import;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Sizes of values of the IR do not overflow.
static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

int64_t RowList::rows() const { return shapeOf(mask)[0]; }

//===----------------------------------------------------------------------===//
// Rules: where a list is in the result of an operation
//===----------------------------------------------------------------------===//

/// An operation and the lists of its operands.
struct Reader {
  Operation *op;
  SmallVector<std::optional<RowList>> in;

  ArrayRef<int64_t> resultShape() const { return shapeOf(op->getResult(0)); }
};

using Rule = std::optional<RowList>;

static Rule at(RowList list, int64_t axis) {
  list.axis = axis;
  return list;
}

/// Both, where they agree; `failed` is set where they do not.
static void join(Rule &sum, Rule next, bool &failed) {
  if (!next || (sum && !(*sum == *next)))
    failed = true;
  sum = next;
}

/// Operands that numpy's rules broadcast to the result.
static Rule broadcastRule(const Reader &reader) {
  Rule result;
  bool failed = false;
  int64_t rank = reader.resultShape().size();
  for (auto [operand, list] : llvm::zip(reader.op->getOperands(), reader.in)) {
    if (!list)
      continue;
    ArrayRef<int64_t> shape = shapeOf(operand);
    int64_t axis = list->axis + rank - int64_t(shape.size());
    failed |= reader.resultShape()[axis] != shape[list->axis];
    join(result, at(*list, axis), failed);
  }
  return failed ? Rule() : result;
}

/// The dimension of `shape` that holds the rows after a reshape.
static Rule reshapeRule(const Reader &reader) {
  const RowList &list = *reader.in[0];
  ArrayRef<int64_t> from = shapeOf(reader.op->getOperand(0));
  ArrayRef<int64_t> to = reader.resultShape();
  int64_t rows = list.rows();
  int64_t outer = product(from.take_front(list.axis)) * list.before;
  int64_t inner = list.after * product(from.drop_front(list.axis + 1));
  for (int64_t axis = 0, rank = to.size(); axis < rank; ++axis) {
    int64_t front = product(to.take_front(axis));
    int64_t back = product(to.drop_front(axis + 1));
    if (front == 0 || back == 0 || outer % front || inner % back)
      continue;
    RowList result{axis, list.mask, outer / front, inner / back};
    if (to[axis] == result.before * rows * result.after)
      return result;
  }
  return std::nullopt;
}

static Rule transposeRule(const Reader &reader) {
  ArrayRef<int64_t> from = cast<TransposeOp>(reader.op).getPermutation();
  return at(*reader.in[0], llvm::find(from, reader.in[0]->axis) - from.begin());
}

static Rule sliceRule(const Reader &reader) {
  auto slice = cast<SliceOp>(reader.op);
  int64_t axis = reader.in[0]->axis;
  return reader.resultShape()[axis] == shapeOf(slice.getInput())[axis]
             ? reader.in[0]
             : Rule();
}

static Rule padRule(const Reader &reader) {
  int64_t axis = reader.in[0]->axis;
  return reader.resultShape()[axis] == shapeOf(reader.op->getOperand(0))[axis]
             ? reader.in[0]
             : Rule();
}

static Rule concatRule(const Reader &reader) {
  Rule result;
  bool failed = false;
  for (const std::optional<RowList> &list : reader.in)
    if (list)
      join(result, *list, failed);
  failed |= result && result->axis == int64_t(cast<ConcatOp>(reader.op).getAxis());
  return failed ? Rule() : result;
}

static Rule gatherRule(const Reader &reader) {
  auto gather = cast<GatherOp>(reader.op);
  int64_t axis = gather.getAxis();
  if (reader.in[0] && reader.in[1])
    return std::nullopt;
  if (reader.in[1])
    return at(*reader.in[1], axis + reader.in[1]->axis);
  int64_t old = reader.in[0]->axis;
  int64_t added = int64_t(shapeOf(gather.getIndices()).size()) - 1;
  if (old == axis)
    return std::nullopt;
  return at(*reader.in[0], old < axis ? old : old + added);
}

/// A product, in which no row is summed over. `in[2]`, if any, is what is
/// added.
static Rule productRule(const Reader &reader, bool transposeA,
                        bool transposeB) {
  Rule result;
  bool failed = false;
  int64_t rank = reader.resultShape().size();
  for (int64_t i = 0; i < int64_t(reader.in.size()); ++i) {
    const std::optional<RowList> &list = reader.in[i];
    if (!list)
      continue;
    int64_t own = shapeOf(reader.op->getOperand(i)).size();
    int64_t axis = list->axis + rank - own;
    // The dimension of the operand that is summed over, from the end.
    int64_t summed = i == 0 ? (transposeA ? 2 : 1) : (transposeB ? 1 : 2);
    if (i < 2 && own - list->axis == summed)
      return std::nullopt;
    if (i == 0 && own - list->axis <= 2)
      axis = rank - 2;
    if (i == 1 && own - list->axis <= 2)
      axis = rank - 1;
    failed |= reader.resultShape()[axis] !=
              shapeOf(reader.op->getOperand(i))[list->axis];
    join(result, at(*list, axis), failed);
  }
  return failed ? Rule() : result;
}

/// A reduction of other dimensions.
static Rule reduceRule(const Reader &reader, ArrayRef<int64_t> axes,
                       bool keepDims) {
  int64_t axis = reader.in[0]->axis, dropped = 0;
  for (int64_t reduced : axes) {
    if (reduced == axis)
      return std::nullopt;
    dropped += reduced < axis && !keepDims;
  }
  return at(*reader.in[0], axis - dropped);
}

/// Something that happens along `axis` or, with `onwards`, from it on.
static Rule alongRule(const Reader &reader, int64_t axis, bool onwards) {
  for (size_t i = 1; i < reader.in.size(); ++i)
    if (reader.in[i])
      return std::nullopt;
  int64_t own = reader.in[0]->axis;
  return own == axis || (onwards && own > axis) ? Rule() : reader.in[0];
}

static Rule ruleOf(const Reader &reader) {
  Operation *op = reader.op;
  if (op->hasTrait<BroadcastElementwise>() || isa<BroadcastOp>(op))
    return broadcastRule(reader);
  return llvm::TypeSwitch<Operation *, Rule>(op)
      .Case([&](ReshapeOp) { return reshapeRule(reader); })
      .Case([&](TransposeOp) { return transposeRule(reader); })
      .Case([&](SliceOp) { return sliceRule(reader); })
      .Case([&](PadOp) { return padRule(reader); })
      .Case([&](ConcatOp) { return concatRule(reader); })
      .Case([&](GatherOp) { return gatherRule(reader); })
      .Case([&](MatmulOp product) {
        return productRule(reader, product.getTransposeA(),
                           product.getTransposeB());
      })
      .Case([&](GemmOp product) {
        return productRule(reader, product.getTransposeA(),
                           product.getTransposeB());
      })
      .Case<ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp>([&](auto op) {
        return reduceRule(reader, op.getAxes(), op.getKeepdims());
      })
      .Case<SoftmaxOp, LogSoftmaxOp>([&](auto op) {
        return alongRule(reader, op.getAxis(), /*onwards=*/false);
      })
      .Case<LayerNormOp, RmsNormOp>([&](auto op) {
        return alongRule(reader, op.getAxis(), /*onwards=*/true);
      })
      .Default(Rule());
}

//===----------------------------------------------------------------------===//
// Operations at which a list ends
//===----------------------------------------------------------------------===//

/// The list of the updates of a scatter, and that of its indices, seen as one
/// of the indices; null where they do not agree.
static Rule scatterList(const Reader &reader, int64_t axis, unsigned indices,
                        unsigned updates) {
  Rule result = reader.in[indices];
  bool failed = false;
  if (const std::optional<RowList> &list = reader.in[updates]) {
    Rule own = at(*list, list->axis - axis);
    int64_t rank = shapeOf(reader.op->getOperand(indices)).size();
    failed = own->axis < 0 || own->axis >= rank;
    if (result)
      join(result, own, failed);
    else
      result = own;
  }
  return failed ? Rule() : result;
}

/// Where the rows that do not count have to be left out; null if `op` is no
/// such place or reads the list in another way, too.
static Rule endOf(const Reader &reader) {
  if (auto scatter = dyn_cast<ScatterOp>(reader.op))
    return reader.in[0] ? Rule()
                        : scatterList(reader, scatter.getAxis(), 1, 2);
  if (auto sum = dyn_cast<GatherGradOp>(reader.op))
    return scatterList(reader, sum.getAxis(), 1, 0);
  if (isa<ReduceSumOp>(reader.op))
    return reader.in[0];
  return std::nullopt;
}

LogicalResult RowLists::followOne(Operation *op) {
  Reader reader{op, {}};
  for (Value operand : op->getOperands()) {
    const RowList *list = find(operand);
    reader.in.push_back(list ? std::optional(*list) : std::nullopt);
  }
  if (llvm::none_of(reader.in, [](auto &list) { return bool(list); }))
    return success();
  if (Rule rule = op->getNumResults() ? ruleOf(reader) : Rule()) {
    for (Value result : op->getResults())
      lists.insert({result, *rule});
    return success();
  }
  if (endOf(reader)) {
    guarded.push_back(op);
    return success();
  }
  return emitError(op->getLoc())
         << "mixes rows of a list whose length depends on the data (NonZero): '"
         << op->getName().getStringRef()
         << "' of them is not supported; rows may be computed one by one, and "
            "added or written to rows of a whole tensor";
}

Value RowLists::make(OpBuilder &builder, Location loc, Value coordinates,
                     Value mask) {
  auto op = UnrealizedConversionCastOp::create(
      builder, loc, coordinates.getType(), ValueRange{coordinates, mask});
  made.push_back(op);
  lists.insert({op.getResult(0), RowList{1, mask}});
  if (!last)
    last = op;
  return op.getResult(0);
}

LogicalResult RowLists::follow() {
  if (!last)
    return success();
  while (Operation *next = last->getNextNode()) {
    last = next;
    if (!isa<UnrealizedConversionCastOp>(next) && failed(followOne(next)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Leaving rows out
//===----------------------------------------------------------------------===//

namespace {
/// Builds what leaves rows out, before an operation.
struct Guard {
  OpBuilder b;
  Location loc;

  explicit Guard(Operation *op) : b(op), loc(op->getLoc()) {}

  Value scalar(Value like, int64_t value) {
    return createScalar(b, loc, getElementTypeOrSelf(like), double(value));
  }
  /// The mask of `list`, in the dimension `axis` of `rank`.
  Value mask(const RowList &list, int64_t axis, int64_t rank) {
    Value mask = list.mask;
    int64_t rows = list.rows();
    if (list.before != 1 || list.after != 1) {
      mask = ReshapeOp::create(b, loc, mask, {1, rows, 1});
      mask = BroadcastOp::create(b, loc, mask,
                                 {list.before, rows, list.after});
    }
    SmallVector<int64_t> shape(rank, 1);
    shape[axis] = list.before * rows * list.after;
    return ReshapeOp::create(b, loc, mask, shape);
  }
  Value where(Value condition, Value a, Value c) {
    return WhereOp::create(b, loc, condition, a, c);
  }
};
} // namespace

/// Rows that do not count become 0 in operand `i`.
static void zeroRows(Operation *op, unsigned i, const RowList &list,
                     int64_t axis) {
  Guard guard(op);
  Value operand = op->getOperand(i);
  Value mask = guard.mask(list, axis, shapeOf(operand).size());
  op->setOperand(i, guard.where(mask, operand, guard.scalar(operand, 0)));
}

/// Rows that do not count go to a row after the last of the data, which is cut
/// off afterwards.
static void discardRows(ScatterOp op, const RowList &list) {
  Guard guard(op);
  Value indices = op.getIndices(), data = op.getData();
  int64_t axis = op.getAxis(), rank = shapeOf(data).size();
  int64_t size = shapeOf(data)[axis];
  Value negative =
      LessOp::create(guard.b, guard.loc, indices, guard.scalar(indices, 0));
  Value wrapped =
      AddOp::create(guard.b, guard.loc, indices, guard.scalar(indices, size));
  Value places = guard.where(negative, wrapped, indices);
  Value mask = guard.mask(list, list.axis, shapeOf(indices).size());
  places = guard.where(mask, places, guard.scalar(indices, size));
  SmallVector<int64_t> none(rank, 0), one(rank, 0), strides(rank, 1);
  one[axis] = 1;
  Value longer = PadOp::create(guard.b, guard.loc, data, none, one, none);
  auto scatter = ScatterOp::create(guard.b, guard.loc, longer, places,
                                   op.getUpdates(), axis, op.getReduction());
  Value result = SliceOp::create(guard.b, guard.loc, scatter, none,
                                 shapeOf(data), strides);
  op.getResult().replaceAllUsesWith(result);
  op.erase();
}

LogicalResult RowLists::finish(func::FuncOp function) {
  if (!last)
    return success();
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands())
    if (find(operand.get()))
      return emitError(function.getLoc())
             << "output number " << operand.getOperandNumber()
             << " has a dimension whose size depends on the data (NonZero)";
  for (Operation *op : guarded) {
    Reader reader{op, {}};
    for (Value operand : op->getOperands()) {
      const RowList *list = find(operand);
      reader.in.push_back(list ? std::optional(*list) : std::nullopt);
    }
    RowList list = *endOf(reader);
    if (auto scatter = dyn_cast<ScatterOp>(op))
      discardRows(scatter, list);
    else if (auto sum = dyn_cast<GatherGradOp>(op))
      zeroRows(op, 0, list, list.axis + sum.getAxis());
    else
      zeroRows(op, 0, list, list.axis);
  }
  for (Operation *op : made) {
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  }
  return success();
}
