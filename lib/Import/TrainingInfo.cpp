//===- TrainingInfo.cpp - ONNX's TrainingInfoProto ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// onnx.proto3 defines a step as the inference graph with the nodes, inputs and
// initializers of the algorithm's graph behind its own; update_binding then
// says which initializer gets which of the values.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/TrainingForms.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {
class AlgorithmJoiner {
public:
  AlgorithmJoiner(Model &model, std::vector<StoredData> &stored, ErrorFn error)
      : graph(*model.proto.mutable_graph()),
        info(*model.proto.mutable_training_info(0)),
        algorithm(*info.mutable_algorithm()), stored(stored), error(error) {}

  FailureOr<TrainingForm> run();

private:
  LogicalResult bindUpdates();
  FailureOr<std::string> findLoss() const;
  void moveNodes();

  onnx::GraphProto &graph;
  onnx::TrainingInfoProto &info;
  onnx::GraphProto &algorithm;
  std::vector<StoredData> &stored;
  ErrorFn error;
  TrainingForm form;
  /// The new values, in the order of the form's targets.
  std::vector<std::string> values;
};
} // namespace

LogicalResult AlgorithmJoiner::bindUpdates() {
  llvm::StringMap<bool> floats; // of the inference graph: whether a float
  for (const auto &tensor : graph.initializer()) {
    std::optional<DType> type = dtypeFromOnnx(tensor.data_type());
    floats[tensor.name()] = type && isFloat(*type);
  }
  llvm::StringSet<> own, seen;
  for (const auto &tensor : algorithm.initializer())
    own.insert(tensor.name());
  for (const auto &binding : info.update_binding()) {
    StringRef name = binding.key();
    auto found = floats.find(name);
    if (found == floats.end() && !own.contains(name))
      return error() << "updates '" << printable(name)
                     << "' in its training algorithm, which is no initializer";
    if (!seen.insert(name).second)
      return error() << "updates '" << printable(name)
                     << "' twice in its training algorithm";
    bool trained = found != floats.end() && found->second;
    (trained ? form.trained : form.states).insert(name);
    form.targets.push_back(name.str());
    values.push_back(binding.value());
  }
  if (form.trained.empty())
    return error() << "has a training algorithm that updates no float "
                      "initializer of the graph";
  return success();
}

/// What the gradients are of; without the operator Gradient the first output
/// that is no new value.
FailureOr<std::string> AlgorithmJoiner::findLoss() const {
  for (const auto &node : algorithm.node())
    if (node.op_type() == "Gradient" &&
        node.domain() == "ai.onnx.preview.training")
      for (const auto &attribute : node.attribute())
        if (attribute.name() == "y")
          return attribute.s();
  llvm::StringSet<> updates;
  for (const std::string &value : values)
    updates.insert(value);
  for (const auto &output : algorithm.output())
    if (!updates.contains(output.name()))
      return output.name();
  error() << "has a training algorithm without a loss: neither a node Gradient "
             "nor an output that is no new value";
  return failure();
}

void AlgorithmJoiner::moveNodes() {
  for (auto &node : *algorithm.mutable_node())
    graph.add_node()->Swap(&node);
  for (auto &input : *algorithm.mutable_input()) {
    form.numbers.insert(input.name());
    graph.add_input()->Swap(&input);
  }
  for (auto &tensor : *algorithm.mutable_initializer()) {
    graph.add_initializer()->Swap(&tensor);
    stored.push_back({});
  }
}

FailureOr<TrainingForm> AlgorithmJoiner::run() {
  form.kind = TrainingForm::Step;
  if (failed(bindUpdates()))
    return failure();
  FailureOr<std::string> loss = findLoss();
  if (failed(loss))
    return failure();
  moveNodes();
  graph.clear_output();
  graph.add_output()->set_name(*loss);
  for (const std::string &value : values)
    graph.add_output()->set_name(value);
  return std::move(form);
}

LogicalResult zero::onnx_import::joinAlgorithm(Model &model,
                                               std::vector<StoredData> &stored,
                                               ErrorFn error) {
  int count = model.proto.training_info_size();
  if (count > 1)
    return error() << "has " << count
                   << " training algorithms, expected at most one";
  FailureOr<TrainingForm> form = AlgorithmJoiner(model, stored, error).run();
  if (failed(form))
    return failure();
  model.training = std::make_shared<TrainingForm>(std::move(*form));
  return success();
}
