//===- ScanBuilder.h - Making and changing train.scan -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of a train.scan sees nothing but its arguments. Here it is written
// as if it saw all around it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_SCANBUILDER_H
#define ZERO_DIALECTS_TRAIN_SCANBUILDER_H

#include "dialects/Train/Train.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::train {

/// Builds one train.scan. Until it is finished the builder stands at the end of
/// the body, whose operations may use values from outside.
class ScanBuilder {
public:
  ScanBuilder(OpBuilder &builder, Location loc, int64_t steps, bool reverse);
  /// Without `finish` the body is dropped.
  ~ScanBuilder() { builder.restoreInsertionPoint(outside); }
  ScanBuilder(const ScanBuilder &) = delete;
  ScanBuilder &operator=(const ScanBuilder &) = delete;

  /// What a step gets of a value that starts as `init`.
  Value addCarried(Value init);
  /// The same for a value of `type` that starts as 0.
  Value addCarriedZero(Type type);
  /// What a step gets of `tensor`.
  Value addScanned(Value tensor);

  Block *getBlock() { return body; }

  /// Makes the operation, in the builder's former place: `carried` are the next
  /// values, one for each that was added. What the body uses from outside
  /// becomes operands, constants of one value are copied, and what is the same
  /// in all steps moves out.
  ScanOp finish(ValueRange carried, ValueRange stacked);

private:
  void hoistInvariants();
  SmallVector<Value> isolate();
  bool isOutside(Value value) const { return value.getParentBlock() != body; }

  OpBuilder &builder;
  OpBuilder::InsertPoint outside;
  Location loc;
  int64_t steps;
  bool reverse;
  std::unique_ptr<Region> region;
  Block *body;
  SmallVector<Value> inits, scanned;
};

/// Drops results, operands, carried values and operations of the body that
/// nothing needs. False if all are needed; else `op` was replaced.
bool eraseUnusedParts(RewriterBase &rewriter, ScanOp op);

/// The results that hold `values` of the body of `op` at all steps. Where it
/// does not give them yet, a new scan before it does, which also takes over its
/// uses.
SmallVector<Value> stackValues(OpBuilder &builder, ScanOp op,
                               ArrayRef<Value> values);

} // namespace mlir::train

#endif // ZERO_DIALECTS_TRAIN_SCANBUILDER_H
