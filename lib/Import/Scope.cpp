//===- Scope.cpp - Names of a graph, a subgraph or a function -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Imports subgraphs and calls of functions where they stand. A hostile file
// can make few nodes run often, and call itself: depth and number of nodes that
// are imported from bodies are bounded.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

// How deep subgraphs and calls may nest together.
static constexpr unsigned maxDepth = 100;
// How many nodes bodies may add to those of the model's graph: a fixed number
// and one for each node in the file.
static constexpr int64_t maxBodyNodes = int64_t(1) << 16;
static constexpr int64_t maxBodyNodesPerNode = 16;
static constexpr int maxFunctions = 10000;

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

template <typename Nodes>
static void countNodeUses(const Nodes &nodes, UseCounts &uses) {
  for (const onnx::NodeProto &node : nodes) {
    for (const std::string &name : node.input())
      if (!name.empty())
        ++uses[name];
    for (const onnx::AttributeProto &attr : node.attribute()) {
      if (attr.has_g())
        countUses(attr.g(), uses);
      for (const onnx::GraphProto &graph : attr.graphs())
        countUses(graph, uses);
    }
  }
}

void zero::onnx_import::countUses(const onnx::GraphProto &graph,
                                  UseCounts &uses) {
  countNodeUses(graph.node(), uses);
  for (const auto &output : graph.output())
    ++uses[output.name()];
}

void zero::onnx_import::countUses(const onnx::FunctionProto &function,
                                  UseCounts &uses) {
  countNodeUses(function.node(), uses);
  for (const std::string &output : function.output())
    ++uses[output];
}

Binding *Scope::find(StringRef name, Scope **owner) {
  for (Scope *scope = this; scope; scope = scope->outer)
    if (auto it = scope->bindings.find(name); it != scope->bindings.end()) {
      if (owner)
        *owner = scope;
      return &it->second;
    }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static std::string functionKey(StringRef domain, StringRef name,
                               StringRef overload) {
  if (domain == "ai.onnx")
    domain = "";
  return (domain + ":" + name + ":" + overload).str();
}

LogicalResult GraphImporter::findFunctions() {
  if (model.proto.functions_size() > maxFunctions)
    return emitError(fileLoc)
           << "has " << model.proto.functions_size()
           << " functions; the limit is " << maxFunctions;
  for (const onnx::FunctionProto &function : model.proto.functions()) {
    std::string key =
        functionKey(function.domain(), function.name(), function.overload());
    if (!functions.try_emplace(key, &function).second)
      return emitError(fileLoc) << "has two functions '"
                                << printable(function.name()) << "' of domain '"
                                << printable(function.domain()) << "'";
  }
  return success();
}

const onnx::FunctionProto *
GraphImporter::functionOf(const onnx::NodeProto &node) const {
  return functions.empty()
             ? nullptr
             : functions.lookup(functionKey(node.domain(), node.op_type(),
                                            node.overload()));
}

int64_t GraphImporter::opsetOf(StringRef domain) const {
  if (!scope->call)
    return model.opsetOf(domain);
  for (const auto &import : scope->call->function->opset_import())
    if (import.domain() == domain ||
        (domain.empty() && import.domain() == "ai.onnx") ||
        (domain == "ai.onnx" && import.domain().empty()))
      return import.version();
  return 0;
}

/// The attributes that `node` gives a call of `function`.
static CallAttributes callAttributes(NodeReader &node,
                                     const onnx::FunctionProto &function) {
  CallAttributes attributes;
  for (const onnx::AttributeProto &attr : function.attribute_proto())
    attributes[attr.name()] = &attr;
  for (const onnx::AttributeProto &attr : node.message().attribute())
    if (const onnx::AttributeProto *given = node.find(attr.name()))
      attributes[attr.name()] = given;
  return attributes;
}

LogicalResult GraphImporter::callFunction(NodeReader &node,
                                          const onnx::FunctionProto &function,
                                          ArrayRef<Binding *> inputs) {
  for (const FunctionCall *call = scope->call; call; call = call->caller)
    if (call->function == &function)
      return node.error() << "is a call of a function that calls itself";
  if (int(inputs.size()) > function.input_size() ||
      node.message().output_size() > function.output_size())
    return node.error() << "the function has " << function.input_size()
                        << " inputs and " << function.output_size()
                        << " outputs, the call " << inputs.size() << " and "
                        << node.message().output_size();
  FunctionCall call{&function, callAttributes(node, function), scope->call};
  Location loc = node.location();
  Scope inner;
  inner.call = &call;
  inner.node = &loc;
  for (int i = 0; i < function.input_size(); ++i)
    inner.bindings[function.input(i)] =
        i < int(inputs.size()) && inputs[i] ? *inputs[i] : Binding();
  auto [it, isNew] = bodies.try_emplace(&function);
  if (isNew) {
    it->second = std::make_unique<BodyFacts>();
    countUses(function, it->second->uses);
  }
  inner.uses = &it->second->uses;
  SmallVector<StringRef> outputs(function.output().begin(),
                                 function.output().end());
  outputs.truncate(node.message().output_size());
  FailureOr<SmallVector<Binding>> results =
      importBody(node, inner, function.node(), outputs);
  return failed(results) ? failure() : bindOutputs(node, *results);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Binding>>
GraphImporter::importBody(NodeReader &node, Scope &inner, const Nodes &nodes,
                          ArrayRef<StringRef> outputs) {
  if (depth >= maxDepth) {
    node.error() << "subgraphs and calls of functions nest deeper than "
                 << maxDepth;
    return failure();
  }
  // One more, so that empty bodies do not run forever.
  bodyNodes += 1 + nodes.size();
  if (bodyNodes > maxBodyNodes + maxBodyNodesPerNode * fileNodes) {
    node.error() << "loops and functions make more than "
                 << maxBodyNodes + maxBodyNodesPerNode * fileNodes << " nodes";
    return failure();
  }
  llvm::SaveAndRestore<Scope *> saveScope(scope, &inner);
  llvm::SaveAndRestore<unsigned> saveDepth(depth, depth + 1);
  for (const onnx::NodeProto &each : nodes)
    if (failed(importNode(each, innerLoc(each, *inner.node))))
      return failure();
  SmallVector<Binding> results;
  for (StringRef name : outputs) {
    Binding *binding = inner.find(name);
    if (!binding) {
      node.error() << "the output '" << printable(name)
                   << "' of its body is made by nothing";
      return failure();
    }
    results.push_back(*binding);
  }
  return results;
}

FailureOr<const BodyFacts *>
GraphImporter::factsOf(const onnx::GraphProto &graph, NodeReader &node) {
  std::unique_ptr<BodyFacts> &facts = bodies[&graph];
  if (facts)
    return facts.get();
  auto made = std::make_unique<BodyFacts>();
  countUses(graph, made->uses);
  if (graph.sparse_initializer_size()) {
    node.error() << "has a subgraph with sparse initializers, which are not "
                    "supported";
    return failure();
  }
  for (const onnx::TensorProto &proto : graph.initializer()) {
    FailureOr<TensorData> data =
        readTensor(proto, files, [&] { return node.error(); });
    if (failed(data))
      return failure();
    // They count as if computed: bytes of external data cost nothing.
    if (data->size() > hostBudget.room()) {
      node.error() << "has a subgraph with the initializer '"
                   << printable(proto.name()) << "' of " << data->size()
                   << " elements; initializers of the model's graph may be "
                      "that large";
      return failure();
    }
    hostBudget.used += data->size();
    made->constants.push_back({proto.name(), Binding(data->decode())});
  }
  facts = std::move(made);
  return facts.get();
}

FailureOr<SmallVector<Binding>>
GraphImporter::importSubgraph(NodeReader &node, const onnx::GraphProto &graph,
                              ArrayRef<Binding> inputs) {
  FailureOr<const BodyFacts *> facts = factsOf(graph, node);
  if (failed(facts))
    return failure();
  if (graph.input_size() != int(inputs.size())) {
    node.error() << "its body has " << graph.input_size()
                 << " inputs, expected " << inputs.size();
    return failure();
  }
  Location loc = node.location();
  Scope inner;
  inner.outer = scope;
  inner.call = scope->call;
  inner.node = &loc;
  inner.uses = &(*facts)->uses;
  for (const auto &[name, value] : (*facts)->constants)
    inner.bindings[name] = value;
  for (auto [input, value] : llvm::zip(graph.input(), inputs))
    inner.bindings[input.name()] = value;
  SmallVector<StringRef> outputs;
  for (const auto &output : graph.output())
    outputs.push_back(output.name());
  return importBody(node, inner, graph.node(), outputs);
}

Location GraphImporter::innerLoc(const onnx::NodeProto &node, Location outer) {
  if (node.name().empty())
    return outer;
  std::string name = node.name();
  if (auto named = dyn_cast<NameLoc>(outer)) {
    name = named.getName().str() + "/" + name;
    outer = named.getChildLoc();
  }
  return NameLoc::get(StringAttr::get(context, printable(name)), outer);
}
