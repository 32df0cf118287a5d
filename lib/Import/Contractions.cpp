//===- Contractions.cpp - Matrix products ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products reach the IR as few, large, two-dimensional products: a
// transposed operand becomes a flag, and leading dimensions of the left
// operand become rows when the right one is a matrix, so that the gradient of
// the weight is one product, too.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Looks through a transpose of the last two dimensions.
static Value skipTranspose(Value value, bool &transposed) {
  auto op = value.getDefiningOp<train::TransposeOp>();
  if (!op)
    return value;
  ArrayRef<int64_t> perm = op.getPermutation();
  int64_t rank = perm.size();
  for (int64_t i = 0; i < rank - 2; ++i)
    if (perm[i] != i)
      return value;
  if (rank < 2 || perm[rank - 1] != rank - 2)
    return value;
  transposed = !transposed;
  return op.getInput();
}

static Value product(NodeContext &c, Value a, Value b, bool transposeA,
                     bool transposeB) {
  SmallVector<NamedAttribute> flags;
  if (transposeA)
    flags.push_back(c.flag("transpose_a"));
  if (transposeB)
    flags.push_back(c.flag("transpose_b"));
  return c.emit<train::MatmulOp>({a, b}, flags);
}

/// [..., K] x [K, N] as [rows, K] x [K, N].
static Value flattenedProduct(NodeContext &c, Value a, Value b,
                              bool transposeB) {
  SmallVector<int64_t> result(shapeOf(a));
  int64_t rows = *countElements(ArrayRef(result).drop_back());
  Value flat = c.reshape(a, {rows, result.back()});
  Value product2D = product(c, flat, b, false, transposeB);
  if (!product2D)
    return {};
  result.back() = shapeOf(product2D).back();
  return c.reshape(product2D, result);
}

static LogicalResult importMatMul(NodeContext &c) {
  Value a = c.value(0), b = c.value(1);
  if (!a || !b)
    return failure();
  int64_t rankA = typeOf(a).getRank(), rankB = typeOf(b).getRank();
  if (rankA == 0 || rankB == 0)
    return c.fail("expects operands of rank 1 or more");
  // numpy: a vector is a row on the left and a column on the right, and the
  // dimension added for that disappears from the result.
  if (rankA == 1)
    a = c.reshape(a, {1, shapeOf(a)[0]});
  if (rankB == 1)
    b = c.reshape(b, {shapeOf(b)[0], 1});
  bool transposeA = false, transposeB = false;
  b = skipTranspose(b, transposeB);
  Value result;
  if (typeOf(a).getRank() > 2 && typeOf(b).getRank() == 2) {
    result = flattenedProduct(c, a, b, transposeB);
  } else {
    a = skipTranspose(a, transposeA);
    result = product(c, a, b, transposeA, transposeB);
  }
  if (!result)
    return failure();
  SmallVector<int64_t> shape(shapeOf(result));
  if (rankB == 1)
    shape.pop_back();
  if (rankA == 1)
    shape.erase(shape.end() - (rankB == 1 ? 1 : 2));
  return c.result(c.reshape(result, shape));
}

static LogicalResult importGemm(NodeContext &c) {
  Value a = c.value(0), b = c.value(1);
  if (!a || !b)
    return failure();
  if (typeOf(a).getRank() != 2 || typeOf(b).getRank() != 2)
    return c.fail("expects matrices");
  bool transposeA = c.node.intAttr("transA", 0);
  bool transposeB = c.node.intAttr("transB", 0);
  double alpha = c.node.floatAttr("alpha", 1);
  double beta = c.node.floatAttr("beta", 1);
  a = skipTranspose(a, transposeA);
  b = skipTranspose(b, transposeB);
  if (alpha != 1)
    a = c.emit<train::MulOp>({a, c.scalar(a, alpha)});
  Value bias = c.has(2) && beta != 0 ? c.value(2) : Value();
  if (!a || (c.has(2) && beta != 0 && !bias))
    return failure();
  if (!bias)
    return c.result(product(c, a, b, transposeA, transposeB));
  if (beta != 1)
    bias = c.emit<train::MulOp>({bias, c.scalar(bias, beta)});
  SmallVector<NamedAttribute> flags;
  if (transposeA)
    flags.push_back(c.flag("transpose_a"));
  if (transposeB)
    flags.push_back(c.flag("transpose_b"));
  return c.result(c.emit<train::GemmOp>({a, b, bias}, flags));
}

//===----------------------------------------------------------------------===//
// Determinants
//===----------------------------------------------------------------------===//

/// Largest matrix whose determinant is written out: n * 2^(n - 1) products.
static constexpr int64_t kMaxDeterminant = 6;

/// Element [..., row, column] of matrices, as [...].
static Value matrixElement(NodeContext &c, Value matrices, int64_t row,
                           int64_t column) {
  ArrayRef<int64_t> shape = shapeOf(matrices);
  int64_t rank = shape.size();
  SmallVector<int64_t> starts(rank, 0), limits(shape), strides(rank, 1);
  starts[rank - 2] = row;
  limits[rank - 2] = row + 1;
  starts[rank - 1] = column;
  limits[rank - 1] = column + 1;
  Value element = c.emit<train::SliceOp>(
      matrices, {c.list("starts", starts), c.list("limits", limits),
                 c.list("strides", strides)});
  return c.reshape(element, shape.drop_back(2));
}

/// Expands along rows: the determinant of the first rows and a set of as many
/// columns, for every set. Exact for singular matrices, and so is its gradient.
static LogicalResult importDet(NodeContext &c) {
  Value input = c.value(0);
  if (!input)
    return failure();
  int64_t rank = typeOf(input).getRank();
  if (rank < 2 || shapeOf(input)[rank - 1] != shapeOf(input)[rank - 2])
    return c.fail("expects square matrices");
  int64_t size = shapeOf(input)[rank - 1];
  if (size < 1 || size > kMaxDeterminant)
    return c.fail("a determinant of " + Twine(size) +
                  " rows is not supported; at most " + Twine(kMaxDeterminant) +
                  " are");
  Formula f{c};
  std::vector<Value> minors(size_t(1) << size);
  for (unsigned set = 1; set < minors.size(); ++set) {
    int64_t row = llvm::popcount(set) - 1;
    int64_t sign = row % 2 == 0 ? 1 : -1;
    for (int64_t column = 0; column < size; ++column) {
      unsigned rest = set & ~(1u << column);
      if (rest == set)
        continue;
      Value term = matrixElement(c, input, row, column);
      if (rest)
        term = f.mul(term, minors[rest]);
      Value &sum = minors[set];
      if (sum)
        sum = sign > 0 ? f.add(sum, term) : f.sub(sum, term);
      else
        sum = sign > 0 ? term : f.neg(term);
      sign = -sign;
    }
  }
  return c.result(minors.back());
}

void zero::onnx_import::addContractionHandlers(HandlerTable &table) {
  table["Det"] = {importDet, 1, 11};
  table["Gemm"] = {importGemm, 2};
  table["MatMul"] = {importMatMul, 2};
}
