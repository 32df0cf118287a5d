//===- HostSyntax.h - syntax of transfers and zero.on_host ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// from device to host; (%p = %a, %g = %b) : (T, T) -> (T) { ... }
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_ZERO_HOSTSYNTAX_H
#define DIALECTS_ZERO_HOSTSYNTAX_H

#include "dialects/Zero/Zero.h"

namespace mlir::zero {

ParseResult
parseHostBody(OpAsmParser &parser,
              SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inputs,
              SmallVectorImpl<Type> &inputTypes,
              SmallVectorImpl<Type> &resultTypes, Region &body);

/// Of the start form, whose one result is a future.
ParseResult
parseHostBody(OpAsmParser &parser,
              SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inputs,
              SmallVectorImpl<Type> &inputTypes, Type &future, Region &body);

/// A memory space as one word; the attribute by itself is #zero<memory host>.
ParseResult parseMemory(OpAsmParser &parser, MemoryAttr &memory);
void printMemory(OpAsmPrinter &printer, Operation *op, MemoryAttr memory);

void printHostBody(OpAsmPrinter &printer, Operation *op, OperandRange inputs,
                   TypeRange inputTypes, TypeRange resultTypes, Region &body);

} // namespace mlir::zero

#endif // DIALECTS_ZERO_HOSTSYNTAX_H
