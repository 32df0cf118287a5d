//===- RowLists.h - Lists of rows that the data select ---------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters write a mixture of experts with NonZero: for each expert the list
// of the tokens that it gets, as long as the data say. Here such a list has all
// rows that it can have, with a mask of those that count. What is computed for
// the others is never seen, as long as rows stay apart from each other: a list
// is followed through the operations that read it, and where its rows are added
// up or written to a whole tensor those that do not count are left out.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_ROWLISTS_H
#define ZERO_LIB_IMPORT_ROWLISTS_H

#include "mlir/IR/Builders.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::zero::onnx_import {

/// A dimension of a value whose entries are rows of a list: entry
/// `(b * rows + row) * after + a` belongs to `row`.
struct RowList {
  int64_t axis;
  /// Which rows count: tensor<rows x i1>.
  Value mask;
  int64_t before = 1, after = 1;

  int64_t rows() const;
  bool operator==(const RowList &other) const {
    return axis == other.axis && mask == other.mask &&
           before == other.before && after == other.after;
  }
};

class RowLists {
public:
  /// A list whose rows are the columns of `coordinates` (tensor<rank x rows x
  /// i64>) that `mask` names.
  Value make(OpBuilder &builder, Location loc, Value coordinates, Value mask);

  /// The list that a dimension of `value` is, or null.
  const RowList *find(Value value) const {
    auto it = lists.find(value);
    return it == lists.end() ? nullptr : &it->second;
  }

  /// Follows the lists through the operations that were made since the last
  /// call; an error where one of them mixes rows.
  LogicalResult follow();

  /// Leaves out the rows that do not count where they would be seen. Fails if
  /// `function` returns a list.
  LogicalResult finish(func::FuncOp function);

private:
  LogicalResult followOne(Operation *op);

  DenseMap<Value, RowList> lists;
  /// The last operation that was looked at; null while there is no list.
  Operation *last = nullptr;
  SmallVector<Operation *> made, guarded;
};

/// The axis of `mask` along which at most one element is not 0 where all other
/// coordinates are equal, if that can be seen: an expert gets a token once.
std::optional<int64_t> findExclusiveAxis(Value mask);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_ROWLISTS_H
