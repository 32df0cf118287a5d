//===- Rebatch.h - A graph at another batch --------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph that was exported at one batch has its size in shapes that are
// written down. It is imported twice: as it is, which records the shape of each
// value, and with inputs of the new batch. A dimension that differs between the
// two is the batch; shapes that are written down are corrected where only one
// correction keeps samples apart, and what cannot be proved is an error.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_REBATCH_H
#define ZERO_LIB_IMPORT_REBATCH_H

#include "lib/Import/HostTensor.h"
#include "lib/Import/NodeReader.h"

#include "llvm/ADT/StringMap.h"

#include <set>

namespace mlir::zero::onnx_import {

/// The shape of a tensor; nothing for what is none.
using MaybeShape = std::optional<SmallVector<int64_t>>;

class Rebatch {
public:
  /// From a batch of `from` samples to one of `to`.
  Rebatch(int64_t from, int64_t to) : from(from), to(to) {}

  int64_t oldBatch() const { return from; }
  int64_t newBatch() const { return to; }

  /// The second import begins.
  void startNew() { isNew = true; }
  /// Whether this is the second import, whose shapes are the new ones.
  bool makesNew() const { return isNew; }

  /// An input of the graph: the shape at the batch of this import.
  void addInput(StringRef name, SmallVectorImpl<int64_t> &shape);

  /// From here on rows of integers that count from 0 to the old batch are taken
  /// to count the samples.
  void countSamples() { counts = true; }
  /// Whether the first import has met such rows.
  bool hasCounts() const { return metCounts; }

  /// The integers of input 1 of a Reshape, Expand or Range, or the ends of a
  /// Slice, that `node` needs at the new batch; nothing where they stay.
  /// `axes`: of a Slice. Fails with an error where they cannot be known.
  FailureOr<std::optional<SmallVector<int64_t>>>
  correct(NodeReader &node, const MaybeShape &data, ArrayRef<int64_t> literal,
          ArrayRef<int64_t> axes);

  /// What stands for the constant that is input `i` at the new batch; nothing
  /// where it stays, or would have more than `room` elements.
  std::optional<HostTensor> constantFor(NodeReader &node, int i,
                                        const HostTensor &constant,
                                        int64_t room) const;

  /// Records what `node` made, or compares it with what it made at the old
  /// batch. An error names the node where the difference is not the batch.
  LogicalResult add(NodeReader &node, ArrayRef<MaybeShape> results);

  /// An error where a size is the batch only by its number.
  LogicalResult finish() const;

private:
  struct Known {
    SmallVector<int64_t> before, after;
    /// Nodes that were taken to expand something to the batch or to count to
    /// it, on which the difference rests alone.
    std::set<unsigned> assumed;
    bool changed() const { return before != after; }
  };

  const Known *inputOf(NodeReader &node, int i) const;
  std::optional<unsigned> batchDim(const Known &known) const;
  FailureOr<SmallVector<int64_t>> reshape(NodeReader &node, const Known &data,
                                          ArrayRef<int64_t> wanted) const;
  std::optional<SmallVector<int64_t>> expand(NodeReader &node,
                                             const Known *data,
                                             ArrayRef<int64_t> wanted,
                                             ArrayRef<int64_t> literal);
  std::optional<HostTensor> sampleOf(NodeReader &node, int i,
                                     const HostTensor &constant) const;
  std::optional<HostTensor> rowsOf(NodeReader &node, const HostTensor &table,
                                   int64_t room) const;
  std::set<unsigned> assumptions(NodeReader &node);
  LogicalResult compare(NodeReader &node, int i, Known &known);

  int64_t from, to;
  bool isNew = false, counts = false, metCounts = false;
  llvm::StringMap<Known> values;
  /// The nodes that expand something to a size that may be the batch, or count
  /// to it; null once it has met the batch.
  std::vector<std::optional<std::pair<Location, std::string>>> open;
};

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_REBATCH_H
