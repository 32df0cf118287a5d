//===- InitAll.h - everything a tool registers ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the project's dialects, external models, passes and pipelines.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_INITALL_H
#define ZERO_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::zero {

/// Adds the train, zero and plan dialects and the upstream dialects they use,
/// with the interfaces of other dialects that the passes rely on.
void registerAllDialects(DialectRegistry &registry);

/// Registers every pass and pipeline of the project.
void registerAllPasses();

} // namespace mlir::zero

#endif // ZERO_INITALL_H
