//===- Einsum.cpp - Sums of products by a formula -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each operand first loses what concerns it alone: diagonals, and dimensions
// that nobody else has. Then operands are joined from left to right: what both
// have and is needed later is a batch, what both have and is not is contracted
// by a matrix product.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/IndexMath.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

using Dims = SmallVector<int64_t>;

/// Dimensions of an ellipsis have labels from here on, the last one the first.
static constexpr int64_t kEllipsis = 256;

namespace {
/// A tensor and the label of each of its dimensions.
struct Term {
  Value value;
  Dims labels;

  bool has(int64_t label) const { return llvm::is_contained(labels, label); }
};

/// The formula: the labels of each operand and of the result.
struct Formula {
  SmallVector<Dims> operands;
  Dims result;
};

class EinsumImporter {
public:
  explicit EinsumImporter(NodeContext &c) : c(c) {}
  LogicalResult run();

private:
  LogicalResult readLabels(StringRef text, int64_t rank, Dims &labels);
  LogicalResult readFormula(StringRef equation);
  void implyResult();
  LogicalResult readSizes();
  bool isNeeded(int64_t label, size_t after) const;
  Value takeDiagonal(Term &term, size_t first, size_t second);
  Value reduceAlone(Term &term, size_t index);
  Value arrange(Term &term, ArrayRef<Dims> groups, bool join);
  Value join(Term &lhs, Term &rhs, size_t after);
  Value contract(Term &lhs, Term &rhs, ArrayRef<Dims> groups);

  NodeContext &c;
  Formula formula;
  SmallVector<Term> terms;
  llvm::SmallDenseMap<int64_t, int64_t> sizes;
  int64_t ellipsisRank = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// The formula
//===----------------------------------------------------------------------===//

/// The labels of one operand of `rank` dimensions, or of the result with the
/// rank -1.
LogicalResult EinsumImporter::readLabels(StringRef text, int64_t rank,
                                         Dims &labels) {
  size_t dots = text.find("...");
  if (dots != StringRef::npos && text.find("...", dots + 3) != StringRef::npos)
    return c.fail("its equation has two ellipses for one tensor");
  int64_t letters = text.size() - (dots == StringRef::npos ? 0 : 3);
  int64_t hidden = rank < 0 ? ellipsisRank : rank - letters;
  if (hidden < 0 || (dots == StringRef::npos && rank >= 0 && hidden != 0))
    return c.fail("its equation has " + Twine(letters) +
                  " labels for an operand of rank " + Twine(rank));
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (int64_t d = hidden - 1; d >= 0; --d)
        labels.push_back(kEllipsis + d);
      ellipsisRank = std::max(ellipsisRank, hidden);
      i += 2;
      continue;
    }
    if (!llvm::isAlpha(text[i]))
      return c.fail("its equation has an unexpected character");
    labels.push_back(text[i]);
  }
  return success();
}

/// Without an arrow the result has the ellipsis and then, in alphabetical
/// order, the labels that stand once.
void EinsumImporter::implyResult() {
  for (int64_t d = ellipsisRank - 1; d >= 0; --d)
    formula.result.push_back(kEllipsis + d);
  for (int64_t label = 0; label < kEllipsis; ++label) {
    int64_t count = 0;
    for (const Dims &labels : formula.operands)
      count += llvm::count(labels, label);
    if (count == 1)
      formula.result.push_back(label);
  }
}

LogicalResult EinsumImporter::readFormula(StringRef equation) {
  auto [left, right] = equation.split("->");
  SmallVector<StringRef> operands;
  left.split(operands, ',');
  if (operands.size() != c.numInputs())
    return c.fail("its equation has " + Twine(operands.size()) +
                  " operands, but it has " + Twine(c.numInputs()));
  for (auto [i, text] : llvm::enumerate(operands)) {
    Value value = c.value(i);
    Dims labels;
    if (!value || failed(readLabels(text, typeOf(value).getRank(), labels)))
      return failure();
    terms.push_back({value, labels});
    formula.operands.push_back(labels);
  }
  if (!equation.contains("->")) {
    implyResult();
    return success();
  }
  if (failed(readLabels(right, -1, formula.result)))
    return failure();
  llvm::SmallDenseSet<int64_t> known, taken;
  for (const Dims &labels : formula.operands)
    known.insert(labels.begin(), labels.end());
  for (int64_t label : formula.result)
    if (!known.contains(label) || !taken.insert(label).second)
      return c.fail("its equation has a result that no operand has, or twice");
  return success();
}

/// The size of each label; dimensions of 1 broadcast.
LogicalResult EinsumImporter::readSizes() {
  for (Term &term : terms)
    for (auto [label, size] :
         llvm::zip_equal(term.labels, shapeOf(term.value))) {
      int64_t &known = sizes.try_emplace(label, size).first->second;
      if (known == 1)
        known = size;
      if (size != known && size != 1)
        return c.fail("its equation gives one label to the sizes " +
                      Twine(known) + " and " + Twine(size));
    }
  return success();
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

/// Whether the result or an operand behind number `after` has the label.
bool EinsumImporter::isNeeded(int64_t label, size_t after) const {
  if (llvm::is_contained(formula.result, label))
    return true;
  for (size_t i = after + 1; i < terms.size(); ++i)
    if (terms[i].has(label))
      return true;
  return false;
}

/// The elements with equal places in two dimensions: every n+1st of both
/// joined, at the front.
Value EinsumImporter::takeDiagonal(Term &term, size_t first, size_t second) {
  Dims shape(shapeOf(term.value));
  Dims order = {int64_t(first), int64_t(second)}, labels;
  int64_t label = term.labels[first], size = shape[first];
  if (size != shape[second]) {
    (void)c.fail("its equation repeats a label in one operand for the sizes " +
                 Twine(size) + " and " + Twine(shape[second]));
    return {};
  }
  labels.push_back(label);
  Dims joined = {size * size};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d == first || d == second)
      continue;
    order.push_back(d);
    labels.push_back(term.labels[d]);
    joined.push_back(shape[d]);
  }
  Value value = c.reshape(c.transpose(term.value, order), joined);
  term.labels = labels;
  return slicePiece(c, value, 0, 0, size, size + 1);
}

/// Takes diagonals, drops what is broadcast and sums what nobody else has.
Value EinsumImporter::reduceAlone(Term &term, size_t index) {
  for (size_t i = 0; i < term.labels.size() && term.value; ++i)
    for (size_t k = i + 1; k < term.labels.size(); ++k)
      if (term.labels[i] == term.labels[k]) {
        term.value = takeDiagonal(term, i, k);
        i = size_t(-1); // The dimensions have moved.
        break;
      }
  if (!term.value)
    return {};
  Dims axes, labels, kept;
  for (auto [d, label] : llvm::enumerate(term.labels)) {
    bool isShared = isNeeded(label, index);
    for (size_t i = 0; i < index; ++i)
      isShared |= terms[i].has(label);
    int64_t size = shapeOf(term.value)[d];
    bool isBroadcast = size == 1 && sizes[label] != 1;
    if (!isShared && !isBroadcast) {
      axes.push_back(d);
      continue;
    }
    if (isBroadcast)
      continue;
    labels.push_back(label);
    kept.push_back(size);
  }
  if (!axes.empty())
    term.value = c.emit<train::ReduceSumOp>(term.value, c.list("axes", axes));
  term.labels = labels;
  return c.reshape(term.value, kept);
}

/// The term with its dimensions in the order of `groups`; with `join` one
/// dimension for each group, else 1 for each label that it lacks.
Value EinsumImporter::arrange(Term &term, ArrayRef<Dims> groups, bool join) {
  Dims order, shape;
  for (const Dims &group : groups) {
    int64_t total = 1;
    for (int64_t label : group) {
      auto at = llvm::find(term.labels, label);
      bool isMissing = at == term.labels.end();
      if (!isMissing)
        order.push_back(at - term.labels.begin());
      int64_t size = isMissing ? 1 : sizes[label];
      total *= size;
      if (!join)
        shape.push_back(size);
    }
    if (join)
      shape.push_back(total);
  }
  bool isOrdered = llvm::is_sorted(order);
  Value value = isOrdered ? term.value : c.transpose(term.value, order);
  return c.reshape(value, shape);
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

/// Groups: batch, left alone, right alone, contracted.
Value EinsumImporter::contract(Term &lhs, Term &rhs, ArrayRef<Dims> groups) {
  bool isFloat = isa<FloatType>(typeOf(lhs.value).getElementType());
  if (groups[3].empty() || !isFloat) {
    Value left = arrange(lhs, groups, /*join=*/false);
    Value right = arrange(rhs, groups, /*join=*/false);
    Value product = c.emit<train::MulOp>({left, right});
    int64_t kept = groups[0].size() + groups[1].size() + groups[2].size();
    Dims axes =
        llvm::to_vector(llvm::seq<int64_t>(kept, kept + groups[3].size()));
    return axes.empty()
               ? product
               : c.emit<train::ReduceSumOp>(product, c.list("axes", axes));
  }
  SmallVector<Dims> left = {groups[1], groups[3]};
  SmallVector<Dims> right = {groups[3], groups[2]};
  if (!groups[0].empty()) {
    left.insert(left.begin(), groups[0]);
    right.insert(right.begin(), groups[0]);
  }
  Value a = arrange(lhs, left, /*join=*/true);
  Value b = arrange(rhs, right, /*join=*/true);
  return c.emit<train::MatmulOp>({a, b});
}

/// The product of two terms, summed over what no later one needs.
Value EinsumImporter::join(Term &lhs, Term &rhs, size_t after) {
  SmallVector<Dims> groups(4);
  for (int64_t label : lhs.labels) {
    bool isShared = rhs.has(label);
    groups[!isShared ? 1 : isNeeded(label, after) ? 0 : 3].push_back(label);
  }
  for (int64_t label : rhs.labels)
    if (!lhs.has(label))
      groups[2].push_back(label);
  Value product = contract(lhs, rhs, groups);
  Dims labels, shape;
  for (const Dims &group : ArrayRef(groups).take_front(3))
    for (int64_t label : group) {
      labels.push_back(label);
      shape.push_back(sizes[label]);
    }
  lhs.labels = labels;
  return c.reshape(product, shape);
}

LogicalResult EinsumImporter::run() {
  std::string equation = c.node.stringAttr("equation", "");
  llvm::erase(equation, ' ');
  if (c.node.failed() || failed(readFormula(equation)) || failed(readSizes()))
    return failure();
  for (size_t i = 0; i < terms.size(); ++i)
    if (!(terms[i].value = reduceAlone(terms[i], i)))
      return failure();
  Term total = terms[0];
  for (size_t i = 1; i < terms.size(); ++i)
    if (!(total.value = join(total, terms[i], i)))
      return failure();
  // What one operand broadcasts the other may have had alone.
  Dims rest, labels, shape;
  for (auto [d, label] : llvm::enumerate(total.labels))
    (isNeeded(label, terms.size()) ? labels : rest)
        .push_back(isNeeded(label, terms.size()) ? label : int64_t(d));
  if (!rest.empty())
    total = {c.emit<train::ReduceSumOp>(total.value, c.list("axes", rest)),
             labels};
  if (!total.value)
    return failure();
  for (int64_t label : formula.result)
    shape.push_back(sizes[label]);
  return c.result(
      c.broadcast(arrange(total, formula.result, /*join=*/false), shape));
}

static LogicalResult importEinsum(NodeContext &c) {
  return EinsumImporter(c).run();
}

void zero::onnx_import::addEinsumHandlers(HandlerTable &table) {
  table["Einsum"] = {importEinsum, 1};
}
