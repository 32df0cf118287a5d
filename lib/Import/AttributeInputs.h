//===- AttributeInputs.h - Attributes that became inputs --------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Old versions of some operators have as attributes what later ones have as
// inputs. Evaluators and handlers see the later form only.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_ATTRIBUTEINPUTS_H
#define ZERO_LIB_IMPORT_ATTRIBUTEINPUTS_H

#include "lib/Import/GraphImporter.h"

#include <list>

namespace mlir::zero::onnx_import {

/// Adds to the inputs of a node those that it has as attributes; `made` keeps
/// them. Wrong types are errors of the node.
void addAttributeInputs(NodeReader &node, SmallVectorImpl<Binding *> &inputs,
                        std::list<Binding> &made);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_ATTRIBUTEINPUTS_H
