//===- Samples.cpp - Which dimension holds the samples --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass over the operations, in order. What is known of a value is that it
// is the same for all samples, or which dimension holds them, outermost in
// that dimension; or nothing.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Samples.h"

#include "lib/Import/GraphImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::zero;
using namespace mlir::zero::onnx_import;

namespace {
/// Where a value has its samples.
struct Place {
  enum Kind { Nowhere, Along, Unknown } kind = Unknown;
  int64_t dim = 0;

  static Place nowhere() { return {Nowhere}; }
  static Place along(int64_t dim) { return {Along, dim}; }
  bool operator==(const Place &other) const {
    return kind == other.kind && dim == other.dim;
  }
};

class SampleFinder {
public:
  explicit SampleFinder(func::FuncOp function) : function(function) {}
  LogicalResult run();

private:
  bool findInputs();
  Place of(Value value) const { return places.lookup(value); }
  Place find(Operation *op) const;
  void follow(Operation *op);
  void follow(train::ScanOp op);
  Place elementwise(Operation *op) const;
  Place reshape(train::ReshapeOp op) const;
  Place transpose(train::TransposeOp op) const;
  Place slice(train::SliceOp op) const;
  Place concat(train::ConcatOp op) const;
  Place gather(train::GatherOp op) const;
  Place matmul(train::MatmulOp op) const;
  Place reduce(Operation *op, ArrayRef<int64_t> axes, bool keepDims) const;
  Place first(Operation *op) const;
  Place outside(Operation *op, int64_t axis) const;
  Place byUse(Value value) const;
  template <typename Op>
  LogicalResult place(Op op, Place where);

  func::FuncOp function;
  int64_t samples = 0;
  DenseMap<Value, Place> places;
  DenseMap<Value, Place> sites; // of dropouts, by key
};
} // namespace

/// False where the inputs do not have one number of samples.
bool SampleFinder::findInputs() {
  bool equal = true;
  for (BlockArgument argument : function.getArguments()) {
    bool data = function.getArgAttr(argument.getArgNumber(), kInputAttr) &&
                typeOf(argument).getRank() > 0;
    places[argument] = data ? Place::along(0) : Place::nowhere();
    if (!data)
      continue;
    equal &= samples == 0 || samples == shapeOf(argument)[0];
    samples = shapeOf(argument)[0];
  }
  return equal;
}

/// Operands are aligned at their last dimensions; one with a size of 1 there
/// belongs to all samples.
Place SampleFinder::elementwise(Operation *op) const {
  int64_t rank = typeOf(op->getResult(0)).getRank();
  Place found = Place::nowhere();
  for (Value operand : op->getOperands()) {
    Place own = of(operand);
    if (own.kind == Place::Nowhere)
      continue;
    if (own.kind == Place::Unknown)
      return {};
    own.dim += rank - typeOf(operand).getRank();
    if (found.kind == Place::Along && !(found == own))
      return {};
    found = own;
  }
  return found;
}

/// The samples stay together where as many elements lie before the dimension,
/// and its size is a multiple of their number.
Place SampleFinder::reshape(train::ReshapeOp op) const {
  Place from = of(op.getInput());
  if (from.kind != Place::Along)
    return from;
  auto countBefore = [](ArrayRef<int64_t> shape, int64_t dim) {
    int64_t count = 1;
    for (int64_t size : shape.take_front(dim))
      count *= size;
    return count;
  };
  int64_t before = countBefore(shapeOf(op.getInput()), from.dim);
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim)
    if (countBefore(shape, dim) == before && shape[dim] % samples == 0)
      return Place::along(dim);
  return {};
}

Place SampleFinder::transpose(train::TransposeOp op) const {
  Place from = of(op.getInput());
  if (from.kind != Place::Along)
    return from;
  return Place::along(llvm::find(op.getPermutation(), from.dim) -
                      op.getPermutation().begin());
}

Place SampleFinder::slice(train::SliceOp op) const {
  Place from = of(op.getInput());
  bool cut = from.kind == Place::Along && shapeOf(op.getResult())[from.dim] !=
                                              shapeOf(op.getInput())[from.dim];
  return cut ? Place() : from;
}

Place SampleFinder::concat(train::ConcatOp op) const {
  Place found = elementwise(op);
  bool joined =
      found.kind == Place::Along && found.dim == int64_t(op.getAxis());
  return joined ? Place() : found;
}

Place SampleFinder::gather(train::GatherOp op) const {
  Place data = of(op.getData()), indices = of(op.getIndices());
  int64_t axis = op.getAxis(), rank = typeOf(op.getIndices()).getRank();
  if (data.kind == Place::Nowhere && indices.kind == Place::Along)
    return Place::along(axis + indices.dim);
  if (data.kind != Place::Along || indices.kind != Place::Nowhere)
    return data.kind == Place::Nowhere ? indices : Place();
  if (data.dim == axis)
    return {};
  return Place::along(data.dim < axis ? data.dim : data.dim + rank - 1);
}

/// Samples among the rows of one side, or in the stack.
Place SampleFinder::matmul(train::MatmulOp op) const {
  int64_t rank = typeOf(op.getResult()).getRank();
  Place found = Place::nowhere();
  for (auto [operand, transposed, kept] :
       {std::tuple(op.getLhs(), op.getTransposeA(), rank - 2),
        std::tuple(op.getRhs(), op.getTransposeB(), rank - 1)}) {
    Place own = of(operand);
    if (own.kind == Place::Nowhere)
      continue;
    int64_t last = typeOf(operand).getRank() - 1;
    bool isLhs = operand == op.getLhs() && kept == rank - 2;
    int64_t outer = isLhs != transposed ? last - 1 : last;
    if (own.kind == Place::Unknown || (own.dim >= last - 1 && own.dim != outer))
      return {};
    own.dim = own.dim == outer ? kept : own.dim + rank - 1 - last;
    if (found.kind == Place::Along && !(found == own))
      return {};
    found = own;
  }
  return found;
}

Place SampleFinder::reduce(Operation *op, ArrayRef<int64_t> axes,
                           bool keepDims) const {
  Place from = of(op->getOperand(0));
  if (from.kind != Place::Along)
    return from;
  if (llvm::is_contained(axes, from.dim))
    return {};
  int64_t before =
      llvm::count_if(axes, [&](int64_t axis) { return axis < from.dim; });
  return Place::along(keepDims ? from.dim : from.dim - before);
}

/// An operation with one sample in each part of its first dimension.
Place SampleFinder::first(Operation *op) const {
  Place from = of(op->getOperand(0));
  for (Value operand : op->getOperands().drop_front())
    if (of(operand).kind != Place::Nowhere && !(of(operand) == from))
      return {};
  return from.kind == Place::Along && from.dim != 0 ? Place() : from;
}

/// An operation that mixes what lies along `axis` and after.
Place SampleFinder::outside(Operation *op, int64_t axis) const {
  Place from = of(op->getOperand(0));
  return from.kind == Place::Along && from.dim >= axis ? Place() : from;
}

Place SampleFinder::find(Operation *op) const {
  if (op->getNumOperands() == 0)
    return Place::nowhere();
  if (llvm::all_of(op->getOperands(), [&](Value operand) {
        return of(operand).kind == Place::Nowhere;
      }))
    return Place::nowhere();
  if (op->hasTrait<train::BroadcastElementwise>())
    return elementwise(op);
  return TypeSwitch<Operation *, Place>(op)
      .Case([&](train::ReshapeOp op) { return reshape(op); })
      .Case([&](train::BroadcastOp op) { return elementwise(op); })
      .Case([&](train::TransposeOp op) { return transpose(op); })
      .Case([&](train::SliceOp op) { return slice(op); })
      .Case([&](train::ConcatOp op) { return concat(op); })
      .Case([&](train::PadOp op) {
        Place from = of(op.getInput());
        bool cut =
            from.kind == Place::Along && shapeOf(op.getResult())[from.dim] !=
                                             shapeOf(op.getInput())[from.dim];
        return cut ? Place() : from;
      })
      .Case([&](train::GatherOp op) { return gather(op); })
      .Case([&](train::MatmulOp op) { return matmul(op); })
      .Case<train::ReduceSumOp, train::ReduceMeanOp, train::ReduceMaxOp,
            train::ReduceMinOp, train::ReduceProdOp, train::ReduceLogSumExpOp>(
          [&](auto op) { return reduce(op, op.getAxes(), op.getKeepdims()); })
      .Case<train::SoftmaxOp, train::LogSoftmaxOp, train::CumulativeSumOp>(
          [&](auto op) {
            Place from = of(op.getInput());
            bool mixed =
                from.kind == Place::Along && from.dim == int64_t(op.getAxis());
            return mixed ? Place() : from;
          })
      .Case<train::LayerNormOp, train::RmsNormOp, train::NormalizeOp>(
          [&](auto op) { return outside(op, op.getAxis()); })
      .Case<train::GemmOp, train::ConvOp, train::MaxPoolOp, train::AvgPoolOp,
            train::BatchNormOp, train::BatchNormInferenceOp,
            train::AttentionOp>([&](auto op) {
        bool transposed = false;
        if constexpr (std::is_same_v<decltype(op), train::GemmOp>)
          transposed = op.getTransposeA();
        return transposed ? Place() : first(op);
      })
      .Default(Place());
}

void SampleFinder::follow(Operation *op) {
  if (auto scan = dyn_cast<train::ScanOp>(op))
    return follow(scan);
  Place where = find(op);
  // Further results of another rank are statistics.
  for (Value result : op->getResults())
    places[result] =
        typeOf(result).getRank() == typeOf(op->getResult(0)).getRank()
            ? where
            : Place();
}

/// A value that starts the same for all samples may be carried with them.
void SampleFinder::follow(train::ScanOp op) {
  for (auto [argument, operand] :
       llvm::zip_equal(op.getBody()->getArguments(), op.getOperands()))
    places[argument] = of(operand);
  for (BlockArgument argument : op.getScannedArguments())
    if (Place &own = places[argument]; own.kind == Place::Along)
      own = own.dim == 0 ? Place() : Place::along(own.dim - 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation &inner : op.getBody()->without_terminator())
      follow(&inner);
    for (auto [argument, value] :
         llvm::zip_equal(op.getCarriedArguments(), op.getYieldedCarried())) {
      Place &before = places[argument], after = of(value);
      if (before == after || before.kind == Place::Unknown)
        continue;
      before = before.kind == Place::Nowhere ? after : Place();
      changed = true;
    }
  }
  for (auto [result, value] :
       llvm::zip_equal(op.getFinals(), op.getYieldedCarried()))
    places[result] = of(value);
  for (auto [result, value] :
       llvm::zip_equal(op.getStacked(), op.getYieldedStacked())) {
    places[result] = of(value);
    places[result].dim += 1;
  }
}

/// Numbers drawn from nothing belong to the samples of what they first meet
/// elementwise.
Place SampleFinder::byUse(Value value) const {
  ArrayRef<int64_t> shape = shapeOf(value);
  for (Operation *user : value.getUsers()) {
    if (!user->hasTrait<train::BroadcastElementwise>() ||
        user->getNumResults() != 1)
      continue;
    if (shapeOf(user->getResult(0)) == shape &&
        llvm::all_of(user->getOperands(), [&](Value other) {
          return other == value || typeOf(other).getRank() == 0;
        }))
      if (Place found = byUse(user->getResult(0)); found.kind == Place::Along)
        return found;
    int64_t rank = typeOf(user->getResult(0)).getRank();
    for (Value other : user->getOperands()) {
      Place own = of(other);
      int64_t dim = own.dim + int64_t(shape.size()) - typeOf(other).getRank();
      if (own.kind == Place::Along && rank == int64_t(shape.size()) &&
          dim >= 0 && shape[dim] % samples == 0)
        return Place::along(dim);
    }
  }
  return {};
}

template <typename Op>
LogicalResult SampleFinder::place(Op op, Place where) {
  if (where.kind == Place::Unknown)
    return op.emitError()
           << "draws random numbers for a tensor of type " << op.getType()
           << ", and which dimension of it holds the samples is not known: it "
              "must follow from the first dimension of the inputs";
  places[op.getResult()] = where;
  if (where.kind == Place::Nowhere)
    return success();
  op.setSamples(samples);
  op.setAlong(where.dim);
  return success();
}

LogicalResult SampleFinder::run() {
  bool equal = findInputs();
  for (Operation &op : function.getBody().front()) {
    if (equal)
      follow(&op);
    LogicalResult placed =
        TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](train::DropoutOp op) {
              sites[op.getKey()] = of(op.getInput());
              return place(op, of(op.getInput()));
            })
            .Case<train::RandomUniformOp, train::RandomNormalOp>([&](auto op) {
              // A mask that is drawn again.
              if (auto site = sites.find(op.getKey()); site != sites.end())
                return place(op, site->second);
              // No dimension could hold them: all samples share the numbers.
              bool shared = llvm::none_of(op.getShape(), [&](int64_t size) {
                return samples > 0 && size % samples == 0;
              });
              return place(op,
                           shared ? Place::nowhere() : byUse(op.getResult()));
            })
            .Default(success());
    if (failed(placed))
      return failure();
  }
  return success();
}

LogicalResult onnx_import::placeSamples(func::FuncOp function) {
  bool any = false;
  function.walk([&](Operation *op) {
    any |= isa<train::DropoutOp, train::RandomUniformOp, train::RandomNormalOp>(
        op);
  });
  return any ? SampleFinder(function).run() : success();
}
