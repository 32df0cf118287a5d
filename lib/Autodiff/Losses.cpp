//===- Losses.cpp - Losses ------------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The losses of a training step, composed of operations of the train dialect,
// and the labels they compare with.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/TrainStep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace mlir::train;

using Dims = SmallVector<int64_t>;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static std::string formatDims(ArrayRef<int64_t> dims) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[' << llvm::interleaved(dims) << ']';
  return text;
}

/// The argument with this `zero.input` name, or null.
static BlockArgument findInput(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : function.getArguments()) {
    auto input = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       "zero.input");
    if (input && input.getValue() == name)
      return argument;
  }
  return {};
}

namespace {
/// Builds one loss at the end of a forward function.
class LossBuilder {
public:
  LossBuilder(func::FuncOp function, const TrainStepOptions &options)
      : function(function), options(options),
        terminator(function.getBody().front().getTerminator()),
        builder(terminator), loc(function.getLoc()) {}

  FailureOr<Value> build();

private:
  template <typename OpTy, typename... Args>
  Value make(Args &&...args) {
    return OpTy::create(builder, loc, std::forward<Args>(args)...)
        ->getResult(0);
  }
  Value scalar(Value like, double value) {
    return createScalar(builder, loc, getElementTypeOrSelf(like), value);
  }
  /// Starts an error about the function.
  InFlightDiagnostic error() {
    return std::move(function.emitError()
                     << "@" << function.getSymName() << " ");
  }

  FailureOr<Value> findPrediction(StringRef output);
  FailureOr<Value> addLabels(RankedTensorType type);
  FailureOr<int64_t> findClassAxis(ArrayRef<int64_t> logits);

  FailureOr<Value> buildOutput(StringRef name);
  FailureOr<Value> buildCrossEntropy(Value logits);
  FailureOr<Value> buildCausalLm(Value logits);
  FailureOr<Value> buildMse(Value prediction);
  FailureOr<Value> buildBce(Value logits);

  FailureOr<Value> findTokens(RankedTensorType type);
  Value shiftLabels(Value labels);
  Value meanOfAll(Value value);
  Value widen(Value value);

  func::FuncOp function;
  const TrainStepOptions &options;
  Operation *terminator;
  OpBuilder builder;
  Location loc;
};
} // namespace

//===----------------------------------------------------------------------===//
// What is compared with what
//===----------------------------------------------------------------------===//

/// The output called `output`, or the only float output where that is empty.
FailureOr<Value> LossBuilder::findPrediction(StringRef output) {
  SmallVector<unsigned> candidates;
  SmallVector<std::string> names;
  for (unsigned i = 0, e = function.getNumResults(); i < e; ++i) {
    if (!isa<FloatType>(getElementTypeOrSelf(terminator->getOperand(i))))
      continue;
    if (!output.empty() && getOutputName(function, i) != output)
      continue;
    candidates.push_back(i);
    names.push_back(getOutputName(function, i));
  }
  if (candidates.size() == 1)
    return terminator->getOperand(candidates.front());
  if (!output.empty())
    return error() << "has no float output called " << output;
  if (candidates.empty())
    return error() << "has no float output to compute a loss from";
  return error() << "has several float outputs (" << llvm::join(names, ", ")
                 << "); choose one, such as loss=" << options.loss << ":"
                 << names.front();
}

/// Adds the argument for labels, after the inputs.
FailureOr<Value> LossBuilder::addLabels(RankedTensorType type) {
  if (findInput(function, "labels"))
    return error() << "has an input called labels already; a model that "
                      "computes its own loss trains with loss=output:NAME";
  unsigned index = function.getNumArguments();
  NamedAttribute name(builder.getStringAttr("zero.input"),
                      builder.getStringAttr("labels"));
  if (failed(function.insertArgument(
          index, type, builder.getDictionaryAttr(name), function.getLoc())))
    return failure();
  return function.getArgument(index);
}

/// The axis whose removal from the logits' shape gives the labels' shape, the
/// last one where two fit or the labels' shape is not known.
FailureOr<int64_t> LossBuilder::findClassAxis(ArrayRef<int64_t> logits) {
  if (logits.empty())
    return error() << "gives a scalar, but cross-entropy needs logits with a "
                      "class axis";
  if (!options.labelsShape)
    return logits.size() - 1;
  for (int64_t axis = logits.size() - 1; axis >= 0; --axis) {
    Dims rest(logits);
    rest.erase(rest.begin() + axis);
    if (rest == *options.labelsShape)
      return axis;
  }
  return error() << "gives logits of shape " << formatDims(logits)
                 << ", which labels of shape "
                 << formatDims(*options.labelsShape)
                 << " do not fit: no axis can be the class axis";
}

//===----------------------------------------------------------------------===//
// The losses
//===----------------------------------------------------------------------===//

/// f16 and bf16 as f32, in which losses are computed.
Value LossBuilder::widen(Value value) {
  Type element = getElementTypeOrSelf(value);
  Type wide = getStatisticsType(element);
  return element == wide ? value : make<CastOp>(value, wide);
}

Value LossBuilder::meanOfAll(Value value) {
  Dims axes(llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank())));
  return make<ReduceMeanOp>(value, axes, /*keepdims=*/false);
}

/// What a model's output was cast from; losses on logits widen by themselves.
static Value getUncast(Value value) {
  auto cast = value.getDefiningOp<CastOp>();
  return cast && isa<Float16Type, BFloat16Type>(
                     getElementTypeOrSelf(cast.getInput()))
             ? cast.getInput()
             : value;
}

FailureOr<Value> LossBuilder::buildCrossEntropy(Value logits) {
  FailureOr<int64_t> axis = findClassAxis(typeOf(logits).getShape());
  if (failed(axis))
    return failure();
  Dims shape(typeOf(logits).getShape());
  shape.erase(shape.begin() + *axis);
  FailureOr<Value> labels =
      addLabels(RankedTensorType::get(shape, builder.getI64Type()));
  if (failed(labels))
    return failure();
  return make<CrossEntropyOp>(getUncast(logits), *labels, /*weights=*/Value(),
                              *axis, options.ignoreIndex);
}

/// The integer input with this shape, which labels itself.
FailureOr<Value> LossBuilder::findTokens(RankedTensorType type) {
  SmallVector<Value> candidates;
  for (BlockArgument argument : function.getArguments()) {
    auto input = dyn_cast<RankedTensorType>(argument.getType());
    if (input && input.getShape() == type.getShape() &&
        input.getElementType().isInteger() &&
        !input.getElementType().isInteger(1))
      candidates.push_back(argument);
  }
  if (candidates.size() == 1)
    return candidates.front();
  // Attention masks look like tokens; the usual name tells them apart.
  if (BlockArgument named = findInput(function, "input_ids");
      named && llvm::is_contained(candidates, named))
    return Value(named);
  return error() << "has " << candidates.size() << " integer inputs of shape "
                 << formatDims(type.getShape())
                 << " that could be the labels of causal-lm; pass "
                    "labels=separate";
}

/// Label t becomes label t + 1; the last position has none.
Value LossBuilder::shiftLabels(Value labels) {
  RankedTensorType type = typeOf(labels);
  int64_t last = type.getRank() - 1;
  Dims starts(type.getRank(), 0), strides(type.getRank(), 1),
      fill(type.getShape());
  starts[last] = 1;
  fill[last] = 1;
  Value rest = make<SliceOp>(labels, starts, Dims(type.getShape()), strides);
  auto fillType = RankedTensorType::get(fill, type.getElementType());
  Value ignored = make<arith::ConstantOp>(DenseElementsAttr::get(
      fillType,
      builder.getIntegerAttr(type.getElementType(), options.ignoreIndex)));
  return make<ConcatOp>(ValueRange{rest, ignored}, last);
}

FailureOr<Value> LossBuilder::buildCausalLm(Value logits) {
  ArrayRef<int64_t> shape = typeOf(logits).getShape();
  if (shape.size() < 2 || shape[shape.size() - 2] < 2)
    return error() << "gives shape " << formatDims(shape)
                   << ", but causal-lm needs logits of at least 2 positions";
  auto type = RankedTensorType::get(shape.drop_back(), builder.getI64Type());
  FailureOr<Value> labels =
      options.labels == "input" ? findTokens(type) : addLabels(type);
  if (failed(labels))
    return failure();
  return make<CrossEntropyOp>(getUncast(logits), shiftLabels(*labels),
                              /*weights=*/Value(), shape.size() - 1,
                              options.ignoreIndex);
}

FailureOr<Value> LossBuilder::buildMse(Value prediction) {
  Value wide = widen(prediction);
  FailureOr<Value> labels = addLabels(typeOf(wide));
  if (failed(labels))
    return failure();
  Value difference = make<SubOp>(wide, *labels);
  return meanOfAll(make<MulOp>(difference, difference));
}

/// `max(x, 0) - x * y + log(1 + exp(-|x|))`, which never overflows. At x = 0
/// the halves of max's derivative give the exact derivative 1/2 - y.
FailureOr<Value> LossBuilder::buildBce(Value logits) {
  Value x = widen(logits);
  FailureOr<Value> labels = addLabels(typeOf(x));
  if (failed(labels))
    return failure();
  Value positive = make<MaxOp>(x, scalar(x, 0.0));
  Value linear = make<SubOp>(positive, make<MulOp>(x, *labels));
  Value decay = make<ExpOp>(make<NegOp>(make<AbsOp>(x)));
  Value tail = make<LogOp>(make<AddOp>(decay, scalar(x, 1.0)));
  return meanOfAll(make<AddOp>(linear, tail));
}

FailureOr<Value> LossBuilder::buildOutput(StringRef name) {
  if (!findOutput(function, name))
    return error() << "has no output called " << name;
  FailureOr<Value> loss = findPrediction(name);
  if (failed(loss))
    return failure();
  RankedTensorType type = typeOf(*loss);
  if (type.getNumElements() != 1)
    return error() << "has output " << name << " of shape "
                   << formatDims(type.getShape())
                   << ", which is no loss: expected one element";
  return type.getRank() == 0 ? *loss : make<ReshapeOp>(*loss, Dims());
}

FailureOr<Value> LossBuilder::build() {
  auto [kind, output] = StringRef(options.loss).split(':');
  if (kind == "output")
    return buildOutput(output);
  auto buildKind =
      llvm::StringSwitch<FailureOr<Value> (LossBuilder::*)(Value)>(kind)
          .Case("cross-entropy", &LossBuilder::buildCrossEntropy)
          .Case("causal-lm", &LossBuilder::buildCausalLm)
          .Case("mse", &LossBuilder::buildMse)
          .Case("bce", &LossBuilder::buildBce)
          .Default(nullptr);
  if (!buildKind)
    return error() << "cannot train with unknown loss " << options.loss
                   << ", expected cross-entropy, causal-lm, mse, bce or "
                      "output:NAME";
  FailureOr<Value> prediction = findPrediction(output);
  if (failed(prediction))
    return failure();
  return (this->*buildKind)(*prediction);
}

FailureOr<Value> mlir::train::buildLoss(func::FuncOp function,
                                        const TrainStepOptions &options) {
  return LossBuilder(function, options).build();
}
