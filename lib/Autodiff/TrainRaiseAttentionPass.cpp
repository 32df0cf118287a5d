//===- TrainRaiseAttentionPass.cpp - Attention found in products ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass train-raise-attention: from each softmax down to the product with
// the values, and up to the product of queries and keys.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/Attention.h"
#include "zero/Autodiff/Autodiff.h"
#include "zero/Autodiff/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

namespace mlir::train {
#define GEN_PASS_DEF_TRAINRAISEATTENTIONPASS
#include "zero/Autodiff/Passes.h.inc"
} // namespace mlir::train

using namespace mlir;
using namespace mlir::train;

/// A score below this takes no part in any softmax: exp of it is 0.
static constexpr double kHidden = -1e4;
/// Of cuDNN's kernels.
static constexpr int64_t kHeadMultiple = 8, kMaxHead = 128;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

std::string mlir::train::whyUnsupportedAttention(AttentionLibrary library,
                                                 Type element, int64_t headSize,
                                                 int64_t valueSize,
                                                 bool dropout) {
  if (library == AttentionLibrary::Host)
    return element.isF64() ? "it is in f64, and the host has it in f32, bf16 "
                             "and f16"
                           : "";
  if (!element.isBF16() && !element.isF16()) {
    std::string type;
    llvm::raw_string_ostream(type) << element;
    return "it is in " + type + ", and cuDNN has it in bf16 and f16";
  }
  for (int64_t size : {headSize, valueSize})
    if (size % kHeadMultiple != 0 || size > kMaxHead)
      return "its heads have a size of " + std::to_string(size) +
             ", and cuDNN takes multiples of " + std::to_string(kHeadMultiple) +
             " up to " + std::to_string(kMaxHead);
  if (dropout)
    return "its probabilities are dropped out, and cuDNN draws other numbers";
  return "";
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The number that all elements of `value` are, if it is such a constant.
static std::optional<double> getSplat(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat() ||
      !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToDouble();
}

/// Whether `mask`, added to scores, hides just the keys after each query.
static bool isCausal(Value mask, int64_t queries, int64_t keys) {
  DenseElementsAttr elements;
  if (!matchPattern(mask, m_Constant(&elements)) ||
      !isa<FloatType>(elements.getElementType()) ||
      elements.getNumElements() != queries * keys)
    return false;
  ArrayRef<int64_t> shape = shapeOf(mask);
  if (shape.size() < 2 || shape.back() != keys)
    return false;
  for (auto [i, value] : llvm::enumerate(elements.getValues<APFloat>())) {
    bool seen =
        static_cast<int64_t>(i) % keys <= static_cast<int64_t>(i) / keys;
    double number = value.convertToDouble();
    if (seen ? number != 0 : !(number <= kHidden))
      return false;
  }
  return true;
}

/// The same of a condition under which scores stay.
static bool isCausalCondition(Value condition, int64_t queries, int64_t keys) {
  DenseElementsAttr elements;
  if (!matchPattern(condition, m_Constant(&elements)) ||
      elements.getNumElements() != queries * keys ||
      shapeOf(condition).size() < 2 || shapeOf(condition).back() != keys)
    return false;
  for (auto [i, seen] : llvm::enumerate(elements.getValues<bool>()))
    if (seen !=
        (static_cast<int64_t>(i) % keys <= static_cast<int64_t>(i) / keys))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Match
//===----------------------------------------------------------------------===//

namespace {
/// Attention around a softmax.
struct Match {
  /// Empty: it is attention. Null: there is no product on one side, which is
  /// nothing to say.
  std::optional<std::string> whyNot;

  MatmulOp scoreProduct, valueProduct;
  /// Between the softmax and the values, if any.
  DropoutOp dropout;
  double scale = 1.0;
  bool causal = false;
  SmallVector<Value> masks;
  /// A score stays where the condition holds, and is the number elsewhere.
  SmallVector<std::pair<Value, double>> conditions;
};

class Matcher {
public:
  Matcher(SoftmaxOp softmax, std::optional<AttentionLibrary> library)
      : softmax(softmax), library(library) {}
  Match match();

private:
  bool findValueProduct();
  bool findScoreProduct();
  bool step(Value &at);
  bool scaleBy(Value other, bool divide);
  bool haveOneBatch();
  std::string whyUnsupported();

  SoftmaxOp softmax;
  std::optional<AttentionLibrary> library;
  Match result;
};
} // namespace

static Value throughCasts(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>()) {
    if (!isa<FloatType>(getElementTypeOrSelf(cast.getInput())))
      break;
    value = cast.getInput();
  }
  return value;
}

/// The one user of `value`, through casts.
static Operation *onlyUser(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.getUsers().begin();
    if (!isa<CastOp>(user))
      return user;
    value = user->getResult(0);
  }
  return nullptr;
}

/// PyTorch's exporters replace what is no number by 0: a query that sees no key
/// has no probabilities. The result of that, or `probabilities`.
static Value throughNanGuard(Value probabilities) {
  auto isNumber = [&](Value zero) {
    std::optional<double> number = getSplat(throughCasts(zero));
    return number && *number == 0;
  };
  for (Operation *user : probabilities.getUsers()) {
    auto where = dyn_cast<WhereOp>(user);
    auto isNan =
        where ? where.getCondition().getDefiningOp<IsNanOp>() : IsNanOp();
    if (isNan && isNan.getInput() == probabilities &&
        isNan->getResult(0).hasOneUse() &&
        where.getOnFalse() == probabilities && isNumber(where.getOnTrue()) &&
        llvm::range_size(probabilities.getUses()) == 2)
      return where.getResult();
  }
  return probabilities;
}

bool Matcher::findValueProduct() {
  Value probabilities = softmax.getResult();
  while (probabilities.hasOneUse() &&
         isa<CastOp>(*probabilities.getUsers().begin()))
    probabilities = probabilities.getUsers().begin()->getResult(0);
  probabilities = throughNanGuard(probabilities);
  result.dropout = dyn_cast_or_null<DropoutOp>(onlyUser(probabilities));
  if (result.dropout)
    probabilities = result.dropout.getResult();
  result.valueProduct = dyn_cast_or_null<MatmulOp>(onlyUser(probabilities));
  return result.valueProduct && !result.valueProduct.getTransposeA() &&
         throughCasts(result.valueProduct.getLhs()) ==
             throughCasts(probabilities);
}

/// A factor below masks would scale them too.
bool Matcher::scaleBy(Value other, bool divide) {
  std::optional<double> factor = getSplat(throughCasts(other));
  if (!factor || !(*factor > 0) || !std::isfinite(*factor))
    return false;
  result.scale = divide ? result.scale / *factor : result.scale * *factor;
  return true;
}

/// Goes from `at` to the operand that carries the scores, and notes what the
/// operation between does to them.
bool Matcher::step(Value &at) {
  Operation *op = at.getDefiningOp();
  ArrayRef<int64_t> shape = shapeOf(softmax.getInput());
  bool scaled = result.scale != 1.0;
  if (auto cast = dyn_cast_or_null<CastOp>(op)) {
    at = cast.getInput();
    return isa<FloatType>(getElementTypeOrSelf(at));
  }
  if (auto mul = dyn_cast_or_null<MulOp>(op)) {
    bool first = getSplat(throughCasts(mul.getLhs())).has_value();
    at = first ? mul.getRhs() : mul.getLhs();
    return scaleBy(first ? mul.getLhs() : mul.getRhs(), /*divide=*/false);
  }
  if (auto div = dyn_cast_or_null<DivOp>(op)) {
    at = div.getLhs();
    return scaleBy(div.getRhs(), /*divide=*/true);
  }
  if (auto add = dyn_cast_or_null<AddOp>(op)) {
    // The scores are what is as large as the sum and no constant.
    bool first = shapeOf(add.getLhs()) == shape &&
                 !matchPattern(throughCasts(add.getLhs()), m_Constant());
    at = first ? add.getLhs() : add.getRhs();
    result.masks.push_back(first ? add.getRhs() : add.getLhs());
    return !scaled;
  }
  if (auto where = dyn_cast_or_null<WhereOp>(op)) {
    std::optional<double> hidden = getSplat(throughCasts(where.getOnFalse()));
    at = where.getOnTrue();
    result.conditions.push_back({where.getCondition(), hidden.value_or(0)});
    return !scaled && hidden && *hidden <= kHidden;
  }
  return false;
}

bool Matcher::findScoreProduct() {
  Value at = softmax.getInput();
  while (!at.getDefiningOp<MatmulOp>())
    if (!step(at) || shapeOf(at) != shapeOf(softmax.getInput()))
      return false;
  result.scoreProduct = at.getDefiningOp<MatmulOp>();
  return true;
}

/// Whether `value` is computed from a parameter that is trained.
static bool dependsOnTraining(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  (void)getBackwardSlice(value, &slice, options);
  return llvm::any_of(slice, [](Operation *op) {
    auto read = dyn_cast<zero::ReadOp>(op);
    auto param = read ? SymbolTable::lookupNearestSymbolFrom<zero::ParamOp>(
                            read, read.getSymbolAttr())
                      : zero::ParamOp();
    return param && param.isTrained();
  });
}

/// Whether no operand of the products is broadcast.
bool Matcher::haveOneBatch() {
  ArrayRef<int64_t> batch = shapeOf(softmax.getInput()).drop_back(2);
  return llvm::all_of(
      ArrayRef<Value>{result.scoreProduct.getLhs(),
                      result.scoreProduct.getRhs(),
                      result.valueProduct.getRhs()},
      [&](Value operand) { return shapeOf(operand).drop_back(2) == batch; });
}

/// Why the target's library has no such attention; empty: it has.
std::string Matcher::whyUnsupported() {
  for (Value mask : result.masks)
    if (dependsOnTraining(mask))
      return "its mask depends on a trained parameter";
  if (result.dropout && result.dropout.getAlong().value_or(0) != 0)
    return "its dropout has samples along dimension " +
           std::to_string(*result.dropout.getAlong()) + " instead of the batch";
  if (!library)
    return "";
  return whyUnsupportedAttention(
      *library, getElementTypeOrSelf(result.scoreProduct.getLhs()),
      shapeOf(result.scoreProduct.getLhs()).back(),
      shapeOf(result.valueProduct.getResult()).back(),
      /*dropout=*/bool(result.dropout));
}

Match Matcher::match() {
  int64_t rank = shapeOf(softmax.getInput()).size();
  if (static_cast<int64_t>(softmax.getAxis()) != rank - 1)
    return result;
  bool between = findValueProduct();
  if (!findScoreProduct() || !between) {
    if (between && result.masks.size() + result.conditions.size() > 0)
      result.whyNot = "its scores are no scaled product of queries and keys";
    else if (!between && result.scoreProduct)
      result.whyNot = "its probabilities are used elsewhere";
    return result;
  }
  if (rank != 3 && rank != 4)
    result.whyNot = "its scores have " + std::to_string(rank) +
                    " dimensions instead of 3 or 4: batch, heads, queries, "
                    "keys";
  else if (result.scoreProduct.getTransposeA())
    result.whyNot = "its queries are transposed";
  else if (!haveOneBatch())
    result.whyNot = "its operands are not of one batch";
  else
    result.whyNot = whyUnsupported();
  return result;
}

//===----------------------------------------------------------------------===//
// Replacement
//===----------------------------------------------------------------------===//

namespace {
/// Builds the attention of a match in front of its second product.
class Raiser {
public:
  Raiser(Match &match, std::optional<AttentionLibrary> library)
      : match(match), library(library), builder(match.valueProduct),
        loc(match.valueProduct.getLoc()) {}
  void raise();

private:
  template <typename Op, typename... Args>
  Value make(Args &&...args) {
    return builder.createOrFold<Op>(loc, std::forward<Args>(args)...);
  }
  Value withoutFactor(Value value);
  Value swapLast(Value value);
  Value withHeads(Value value);
  Value withoutRepetition(Value heads);
  void addMask(Value added);
  void addCondition(Value condition, double hidden, ArrayRef<int64_t> scores);
  Value additive(Value condition, double hidden);
  Value withFourDims(Value added, int64_t rank);
  void findOperands();
  void findMasks(ArrayRef<int64_t> scores);
  double exactScale(int64_t size) const;

  Match &match;
  std::optional<AttentionLibrary> library;
  OpBuilder builder;
  Location loc;
  Value query, key, value, mask;
};
} // namespace

/// Moves a constant factor of queries or keys to the scale.
Value Raiser::withoutFactor(Value value) {
  auto mul = value.getDefiningOp<MulOp>();
  if (!mul)
    return value;
  for (auto [factor, other] : {std::pair(mul.getLhs(), mul.getRhs()),
                               std::pair(mul.getRhs(), mul.getLhs())})
    if (std::optional<double> number = getSplat(factor);
        number && *number > 0 && other.getType() == value.getType()) {
      match.scale *= *number;
      return other;
    }
  return value;
}

/// `value` with its last two dimensions swapped; in front of a reshape that
/// leaves them alone, where it may undo another transpose.
Value Raiser::swapLast(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (reshape && shapeOf(reshape.getInput()).size() >= 2 &&
      shapeOf(reshape.getInput()).take_back(2) == shapeOf(value).take_back(2)) {
    SmallVector<int64_t> shape(shapeOf(value));
    std::swap(shape.back(), shape[shape.size() - 2]);
    return make<ReshapeOp>(swapLast(reshape.getInput()), shape);
  }
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(value).size()));
  std::swap(order.back(), order[order.size() - 2]);
  return make<TransposeOp>(value, order);
}

/// Three dimensions are those of one head each.
Value Raiser::withHeads(Value value) {
  SmallVector<int64_t> shape(shapeOf(value));
  if (shape.size() == 3)
    shape.insert(shape.begin() + 1, 1);
  return make<ReshapeOp>(value, shape);
}

/// The heads before each was repeated for its group of query heads.
Value Raiser::withoutRepetition(Value heads) {
  auto join = heads.getDefiningOp<ReshapeOp>();
  auto repeat =
      join ? join.getInput().getDefiningOp<BroadcastOp>() : BroadcastOp();
  auto split =
      repeat ? repeat.getInput().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!split)
    return heads;
  ArrayRef<int64_t> from = shapeOf(split.getInput()),
                    one = shapeOf(split.getResult()),
                    many = shapeOf(repeat.getResult()), to = shapeOf(heads);
  if (from.size() != 4 || one.size() != 5 || many.size() != 5 || one[2] != 1 ||
      to[1] != many[1] * many[2])
    return heads;
  for (auto [i, size] : llvm::enumerate(from))
    if (one[i + (i > 1)] != size || many[i + (i > 1)] != size ||
        (i != 1 && to[i] != size))
      return heads;
  return split.getInput();
}

void Raiser::addMask(Value added) {
  mask = mask ? make<AddOp>(mask, added) : added;
}

static double lowestOf(Type type) {
  return APFloat::getLargest(cast<FloatType>(type).getFloatSemantics(),
                             /*Negative=*/true)
      .convertToDouble();
}

/// What, added to scores, hides them where the condition does not hold.
Value Raiser::additive(Value condition, double hidden) {
  Type type = getElementTypeOrSelf(match.scoreProduct.getResult());
  Value zero = createScalar(builder, loc, type, 0.0);
  Value number = createScalar(builder, loc, type,
                              std::isinf(hidden)
                                  ? hidden
                                  : std::max(hidden, lowestOf(type)));
  return make<WhereOp>(condition, zero, number);
}

/// The usual scale where only the narrow type of its factors keeps them from
/// being that.
double Raiser::exactScale(int64_t size) const {
  double usual = 1 / std::sqrt(static_cast<double>(size));
  return std::abs(match.scale / usual - 1) < 0x1p-7 ? usual : match.scale;
}

/// A mask that broadcasts to scores of `rank` dimensions with a batch and heads.
Value Raiser::withFourDims(Value added, int64_t rank) {
  SmallVector<int64_t> shape(shapeOf(added));
  shape.insert(shape.begin(), rank - shape.size(), 1);
  return withHeads(make<ReshapeOp>(added, shape));
}

Value mlir::train::fitMaskToGpu(OpBuilder &builder, Location loc, Value mask,
                                ArrayRef<int64_t> scores, Type element) {
  if (getElementTypeOrSelf(mask) != element) {
    // Rounding must not make a mask infinite: rows would become no numbers.
    mask = builder.createOrFold<CastOp>(loc, mask, element);
    Value lowest = createScalar(builder, loc, element, lowestOf(element));
    mask = builder.createOrFold<MaxOp>(loc, mask, lowest);
  }
  SmallVector<int64_t> shape(shapeOf(mask));
  llvm::copy(scores.take_back(2), shape.end() - 2);
  return builder.createOrFold<BroadcastOp>(loc, mask, shape);
}

/// The operands of the products; factors go to the scale, repetitions of heads
/// away.
void Raiser::findOperands() {
  query = withoutFactor(match.scoreProduct.getLhs());
  key = withoutFactor(match.scoreProduct.getRhs());
  if (!match.scoreProduct.getTransposeB())
    key = swapLast(key);
  value = match.valueProduct.getRhs();
  if (match.valueProduct.getTransposeB())
    value = swapLast(value);
  Value fewKeys = withoutRepetition(key), fewValues = withoutRepetition(value);
  if (shapeOf(fewKeys)[1] == shapeOf(fewValues)[1]) {
    key = fewKeys;
    value = fewValues;
  }
}

/// What `value` was before it was broadcast: masks are broadcast anyway.
static Value throughBroadcasts(Value value) {
  while (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getInput();
  return value;
}

static bool isAllTrue(Value condition) {
  DenseElementsAttr elements;
  return matchPattern(condition, m_Constant(&elements)) && elements.isSplat() &&
         elements.getSplatValue<bool>();
}

/// A conjunction is taken apart: what is causal becomes that, and the rest
/// keeps the shape that it has without it.
void Raiser::addCondition(Value condition, double hidden,
                          ArrayRef<int64_t> scores) {
  SmallVector<Value> parts = {condition};
  Value rest;
  while (!parts.empty()) {
    Value part = throughBroadcasts(parts.pop_back_val());
    if (auto both = part.getDefiningOp<AndOp>()) {
      parts.append({both.getRhs(), both.getLhs()});
      continue;
    }
    if (isCausalCondition(part, scores[scores.size() - 2], scores.back()))
      match.causal = true;
    else if (!isAllTrue(part))
      rest = rest ? make<AndOp>(rest, part) : part;
  }
  if (rest)
    addMask(additive(rest, hidden));
}

void Raiser::findMasks(ArrayRef<int64_t> scores) {
  int64_t queries = scores[scores.size() - 2], keys = scores.back();
  for (Value mask : match.masks) {
    Value added = throughBroadcasts(throughCasts(mask));
    auto where = added.getDefiningOp<WhereOp>();
    auto number = [&](Value value) { return getSplat(throughCasts(value)); };
    std::optional<double> seen =
        where ? number(where.getOnTrue()) : std::nullopt;
    std::optional<double> hidden =
        where ? number(where.getOnFalse()) : std::nullopt;
    if (isCausal(added, queries, keys))
      match.causal = true;
    else if (seen && hidden && *seen == 0 && *hidden <= kHidden)
      addCondition(where.getCondition(), *hidden, scores);
    else
      addMask(throughBroadcasts(mask));
  }
  for (auto [condition, hidden] : match.conditions)
    addCondition(condition, hidden, scores);
}

void Raiser::raise() {
  SmallVector<int64_t> scores(shapeOf(match.scoreProduct.getResult()));
  findOperands();
  findMasks(scores);
  if (mask)
    mask = withFourDims(mask, scores.size());
  if (mask && library == AttentionLibrary::Gpu)
    mask = fitMaskToGpu(builder, loc, mask, scores,
                        getElementTypeOrSelf(query));
  Value queries = withHeads(query), keys = withHeads(key),
        values = withHeads(value);
  DropoutOp dropout = match.dropout;
  auto attention = AttentionOp::create(
      builder, loc, queries, keys, values, mask,
      dropout ? dropout.getKey() : Value(),
      dropout ? dropout.getFirstSample() : Value(),
      APFloat(exactScale(shapeOf(query).back())), match.causal,
      dropout ? dropout.getRatioAttr() : FloatAttr(),
      dropout ? dropout.getSamplesAttr() : IntegerAttr());
  Value old = match.valueProduct.getResult();
  old.replaceAllUsesWith(make<ReshapeOp>(attention.getResult(), shapeOf(old)));
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

void mlir::train::raiseAttention(ModuleOp module,
                                 std::optional<AttentionLibrary> library) {
  for (auto function : module.getOps<func::FuncOp>()) {
    SmallVector<SoftmaxOp> softmaxes;
    function.walk([&](SoftmaxOp op) { softmaxes.push_back(op); });
    for (SoftmaxOp softmax : softmaxes) {
      Match match = Matcher(softmax, library).match();
      if (!match.whyNot)
        continue;
      if (match.whyNot->empty())
        Raiser(match, library).raise();
      else
        softmax.emitRemark()
            << "attention stays products and a softmax: " << *match.whyNot;
    }
    for (Block &block : function.getBody())
      eraseDeadOps(block);
  }
}

namespace {
struct TrainRaiseAttentionPass
    : train::impl::TrainRaiseAttentionPassBase<TrainRaiseAttentionPass> {
  using TrainRaiseAttentionPassBase::TrainRaiseAttentionPassBase;

  void runOnOperation() override {
    std::optional<AttentionLibrary> library = AttentionLibrary::Gpu;
    if (host)
      library = AttentionLibrary::Host;
    if (any)
      library = std::nullopt;
    raiseAttention(getOperation(), library);
  }
};
} // namespace
