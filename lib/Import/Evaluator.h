//===- Evaluator.h - ONNX operators on host tensors ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates nodes whose inputs are all known at import. What it computes never
// reaches the IR as operators, only as constants where compute uses it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_EVALUATOR_H
#define ZERO_LIB_IMPORT_EVALUATOR_H

#include "lib/Import/FileAccess.h"
#include "lib/Import/HostTensor.h"
#include "lib/Import/NodeReader.h"

#include <functional>

namespace mlir::zero::onnx_import {

/// The largest tensor that is made at import, in elements.
constexpr int64_t maxHostElements = int64_t(1) << 24;

/// How many elements are made for one model, which bounds what a hostile file
/// costs: 256 for each of its bytes, 2^23 at least and 2^27 at most. Operators
/// that make few of many count what they read.
struct HostBudget {
  explicit HostBudget(size_t fileBytes);
  int64_t total, used = 0;

  /// The largest tensor that may still be made.
  int64_t room() const { return std::min(maxHostElements, total - used); }
  /// Adds to `used`; an error of the node if that is more than `total`.
  LogicalResult take(int64_t elements, NodeReader &node);
};

/// One evaluation: the node, its inputs (null where omitted) and its results.
struct Evaluation {
  NodeReader &node;
  ArrayRef<const HostTensor *> inputs;
  SmallVectorImpl<HostTensor> &results;
  HostBudget &budget;

  bool has(unsigned i) const { return i < inputs.size() && inputs[i]; }
  const HostTensor &in(unsigned i) const { return *inputs[i]; }
  LogicalResult result(HostTensor tensor) {
    results.push_back(std::move(tensor));
    return success();
  }
  LogicalResult fail(const Twine &message) {
    node.error() << message;
    return failure();
  }
  /// Whether a result of `shape` may be made; emits an error if not.
  bool fits(ArrayRef<int64_t> shape);
};

using EvalFn = std::function<LogicalResult(Evaluation &)>;

/// An evaluator and how many inputs it cannot do without.
struct Evaluator {
  EvalFn fn;
  unsigned minInputs = 0;
};

/// The evaluator of an operator of the default domain; `fn` is null if the
/// operator has none.
Evaluator findEvaluator(StringRef op);

/// Runs it after checking the number of inputs.
LogicalResult evaluate(Evaluator evaluator, Evaluation &evaluation);

/// The value of a Constant node.
FailureOr<HostTensor> evaluateConstant(NodeReader &node, ExternalFiles &files);

void addMathEvaluators(llvm::StringMap<Evaluator> &table);
void addShapeEvaluators(llvm::StringMap<Evaluator> &table);
void addIndexEvaluators(llvm::StringMap<Evaluator> &table);
void addReductionEvaluators(llvm::StringMap<Evaluator> &table);

//===----------------------------------------------------------------------===//
// Rules shared with the operators that become IR
//===----------------------------------------------------------------------===//

/// The element type that Cast and BitCast name, and how Cast makes floats of 8
/// bits.
FailureOr<DType> castTarget(NodeReader &node);
FailureOr<CastRules> castRules(NodeReader &node);
/// Resolves the 0 and -1 entries of Reshape's target.
FailureOr<SmallVector<int64_t>> reshapeTarget(NodeReader &node,
                                              ArrayRef<int64_t> shape,
                                              ArrayRef<int64_t> target);
/// Start, limit and step per dimension after Slice's clamping; `ends` and
/// `steps` are as long as `starts`.
struct SliceRange {
  int64_t start, count, step;
};
FailureOr<SmallVector<SliceRange>>
sliceRanges(NodeReader &node, ArrayRef<int64_t> shape, ArrayRef<int64_t> starts,
            ArrayRef<int64_t> ends, ArrayRef<int64_t> axes,
            ArrayRef<int64_t> steps);
/// The sizes of Split's pieces of a dimension of `size`.
FailureOr<SmallVector<int64_t>> splitSizes(NodeReader &node, int64_t size,
                                           const HostTensor *given,
                                           int64_t outputs);
FailureOr<SmallVector<int64_t>> squeezedShape(NodeReader &node,
                                              ArrayRef<int64_t> shape,
                                              const HostTensor *axes);
FailureOr<SmallVector<int64_t>> unsqueezedShape(NodeReader &node,
                                                ArrayRef<int64_t> shape,
                                                const HostTensor &axes);
FailureOr<SmallVector<int64_t>> flattenedShape(NodeReader &node,
                                               ArrayRef<int64_t> shape);
/// Transpose's permutation of a tensor of `rank`.
FailureOr<SmallVector<int64_t>> permutation(NodeReader &node, int64_t rank);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_EVALUATOR_H
