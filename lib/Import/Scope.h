//===- Scope.h - Names of a graph, a subgraph or a function ----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model's graph holds subgraphs (attributes of If, Loop, Scan and
// SequenceMap), whose names hide nothing and see those around them, and calls
// functions, whose bodies see only their own. Both are imported in place, once
// for each time they run: this says what a name stands for while that happens.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_SCOPE_H
#define ZERO_LIB_IMPORT_SCOPE_H

#include "lib/Import/HostTensor.h"
#include "lib/Import/NodeReader.h"

#include "mlir/IR/Value.h"

namespace mlir::zero::onnx_import {

struct Param;

/// What a name of the graph stands for.
struct Binding {
  HostRef host;
  Value value;
  Param *param = nullptr;
  /// Set for values of sequence type.
  std::shared_ptr<std::vector<Binding>> sequence;
  /// An optional that has no element. One that has is its element.
  bool isNone = false;
  /// Known at import, but made from the length of a list whose rows the data
  /// select (RowLists.h): good as a shape only.
  bool countsRows = false;

  Binding() = default;
  Binding(Value value) : value(value) {}
  Binding(HostTensor tensor)
      : host(std::make_shared<HostTensor>(std::move(tensor))) {}
  Binding(Param *param) : param(param) {}
  static Binding none() {
    Binding binding;
    binding.isNone = true;
    return binding;
  }
  static Binding list(std::vector<Binding> elements) {
    Binding binding;
    binding.sequence =
        std::make_shared<std::vector<Binding>>(std::move(elements));
    return binding;
  }
  /// Whether it stands for anything: names of outputs that were not made and
  /// of inputs that a call leaves out do not.
  bool exists() const { return host || value || param || sequence || isNone; }
};

/// How often each name is used, in subgraphs, too.
using UseCounts = llvm::StringMap<unsigned>;

void countUses(const onnx::GraphProto &graph, UseCounts &uses);
void countUses(const onnx::FunctionProto &function, UseCounts &uses);

/// What is found once about a graph that may be imported many times.
struct BodyFacts {
  UseCounts uses;
  /// Its initializers by name.
  std::vector<std::pair<StringRef, Binding>> constants;
};

/// A call that is being imported.
struct FunctionCall {
  const onnx::FunctionProto *function;
  CallAttributes attributes;
  /// The call whose body holds this one; null for one of the model's graph.
  const FunctionCall *caller;
};

/// One graph, subgraph or body of a function while it is imported.
struct Scope {
  /// Whose names are seen here, too; null for the model's graph and for bodies
  /// of functions.
  Scope *outer = nullptr;
  /// The call this is part of; null outside of functions.
  const FunctionCall *call = nullptr;
  /// The node this belongs to; null for the model's graph.
  const Location *node = nullptr;
  const UseCounts *uses = nullptr;
  llvm::StringMap<Binding> bindings;

  bool isMainGraph() const { return !node; }
  /// What `name` stands for here; null if nothing does. `owner`, if given, gets
  /// the scope that says so.
  Binding *find(StringRef name, Scope **owner = nullptr);
};

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_SCOPE_H
