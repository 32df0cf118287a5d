//===- TrainingArtifacts.cpp - onnxruntime's training graphs --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What onnxruntime.training.artifacts.generate_artifacts writes. In
// training_model.onnx the weights are inputs, and so is a buffer for each
// gradient, which com.microsoft::InPlaceAccumulatorV2 adds to; its names are
// the only tie between the two: NAME_grad.accumulation.buffer.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/NodeReader.h"
#include "lib/Import/OrtCheckpoint.h"
#include "lib/Import/TrainingForms.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::zero;
using namespace mlir::zero::onnx_import;

static constexpr llvm::StringLiteral kBufferEnd = "_grad.accumulation.buffer";

namespace {
class ArtifactReader {
public:
  ArtifactReader(Model &model, const ImportOptions &options,
                 MLIRContext *context)
      : model(model), graph(*model.proto.mutable_graph()), options(options),
        context(context), loc(FileLineColLoc::get(context, model.path, 0, 0)) {}

  LogicalResult run();

private:
  LogicalResult findGradients();
  LogicalResult addGradient(int node);
  LogicalResult checkDropped();
  void dropAccumulators();
  LogicalResult replaceOutputs();
  void nameSeed();
  int64_t sizeOf(const onnx::TensorShapeProto_Dimension &dim) const;
  void rename(StringRef from, const std::string &to);
  void splitSamples();
  void splitInput(onnx::ValueInfoProto &input, int64_t batch, int64_t rows);
  LogicalResult takeWeights();
  LogicalResult takeWeight(const onnx::ValueInfoProto *input,
                           TensorData &tensor);
  LogicalResult takeOptimizer();
  LogicalResult takeStates();
  bool isAdams(const OrtState &state) const;
  std::string beside(const std::string &given, StringRef name) const;

  InFlightDiagnostic error() { return emitError(loc); }
  InFlightDiagnostic nodeError(int node) {
    return emitError(nodeLoc(model, node, context));
  }

  Model &model;
  onnx::GraphProto &graph;
  const ImportOptions &options;
  MLIRContext *context;
  Location loc;
  TrainingForm form;
  /// The values of the gradients.
  std::vector<std::string> gradients;
  llvm::DenseSet<int> accumulators;
  llvm::StringSet<> droppedInputs, droppedOutputs;
  /// Of the checkpoint: where it is, the optimizer's states and its steps.
  std::string checkpointPath;
  std::vector<OrtState> states;
  int64_t steps = 0;
};
} // namespace

static bool isAccumulator(const onnx::NodeProto &node) {
  return node.domain() == "com.microsoft" &&
         (node.op_type() == "InPlaceAccumulatorV2" ||
          node.op_type() == "InPlaceAccumulator");
}

/// Erases the elements of a repeated field that `drops` says so of.
template <typename Field, typename Fn>
static void eraseIf(Field *field, Fn drops) {
  int kept = 0;
  for (int i = 0; i < field->size(); ++i)
    if (!drops(i, field->Get(i)))
      field->SwapElements(kept++, i);
  field->DeleteSubrange(kept, field->size() - kept);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult ArtifactReader::addGradient(int index) {
  const onnx::NodeProto &node = graph.node(index);
  auto nodeError = [&] { return this->nodeError(index) << node.op_type(); };
  if (node.input_size() < 2)
    return nodeError() << ": expected a buffer and a gradient";
  StringRef name = node.input(0);
  if (!name.consume_back(kBufferEnd) || name.empty())
    return nodeError() << ": its buffer '" << printable(node.input(0))
                       << "' is not named PARAMETER" << kBufferEnd
                       << ", so that its parameter is not known";
  if (!form.trained.insert(name).second)
    return nodeError() << ": a second gradient of '" << printable(name) << "'";
  form.targets.push_back(name.str());
  gradients.push_back(node.input(1));
  droppedInputs.insert(node.input(0));
  for (int i = 2; i < node.input_size(); ++i)
    droppedInputs.insert(node.input(i));
  for (const std::string &output : node.output())
    droppedOutputs.insert(output);
  accumulators.insert(index);
  return success();
}

LogicalResult ArtifactReader::findGradients() {
  for (int i = 0; i < graph.node_size(); ++i)
    if (isAccumulator(graph.node(i)) && failed(addGradient(i)))
      return failure();
  return success();
}

/// Buffers and flags are for the accumulators alone.
LogicalResult ArtifactReader::checkDropped() {
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string &name : graph.node(i).input())
      if (!accumulators.contains(i) && !name.empty() &&
          (droppedInputs.contains(name) || droppedOutputs.contains(name)))
        return nodeError(i) << "uses '" << printable(name)
                            << "', which belongs to the accumulation of "
                               "gradients";
  return success();
}

void ArtifactReader::dropAccumulators() {
  eraseIf(graph.mutable_node(),
          [&](int i, const auto &) { return accumulators.contains(i); });
  eraseIf(graph.mutable_input(), [&](int, const auto &input) {
    return droppedInputs.contains(input.name());
  });
  eraseIf(graph.mutable_output(), [&](int, const auto &output) {
    return droppedOutputs.contains(output.name());
  });
}

/// The loss, which is the first output, and the gradients.
LogicalResult ArtifactReader::replaceOutputs() {
  if (!graph.output_size())
    return error() << "accumulates gradients but has no output that is a loss";
  if (!options.found)
    return success();
  graph.mutable_output()->DeleteSubrange(1, graph.output_size() - 1);
  nameSeed();
  for (const std::string &value : gradients)
    graph.add_output()->set_name(value);
  return success();
}

/// The gradient by the loss is an initializer of 1. As an input it can become
/// another number: the loss scale, a share of a micro-batch.
void ArtifactReader::nameSeed() {
  std::string name = graph.output(0).name() + "_grad";
  const TensorData *one = model.initializer(name);
  if (!one || one->type != DType::F32 || one->size() != 1 ||
      one->decode().number(0) != 1 || model.uses.count(kSeedInput))
    return;
  onnx::ValueInfoProto &input = *graph.add_input();
  input.set_name(kSeedInput.str());
  onnx::TypeProto::Tensor &type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape();
  for (int64_t dim : one->shape)
    type.mutable_shape()->add_dim()->set_dim_value(dim);
  rename(name, kSeedInput.str());
}

/// Lets nodes use another value.
void ArtifactReader::rename(StringRef from, const std::string &to) {
  for (onnx::NodeProto &node : *graph.mutable_node())
    for (std::string &used : *node.mutable_input())
      if (used == from)
        used = to;
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

/// The size of a dimension; -1 where it is not known yet.
int64_t
ArtifactReader::sizeOf(const onnx::TensorShapeProto_Dimension &dim) const {
  if (dim.has_dim_value())
    return dim.dim_value();
  auto given = options.dims.find(dim.dim_param());
  return given == options.dims.end() ? -1 : given->second;
}

/// The loss of a language model takes its labels as one row of all tokens. As
/// [samples, tokens] they can be cut into the parts of the ranks.
void ArtifactReader::splitInput(onnx::ValueInfoProto &input, int64_t batch,
                                int64_t rows) {
  std::string flat = input.name() + " as one row", shape = flat + ", its shape";
  rename(input.name(), flat);
  auto *dims = input.mutable_type()->mutable_tensor_type()->mutable_shape();
  dims->clear_dim();
  dims->add_dim()->set_dim_value(batch);
  dims->add_dim()->set_dim_value(rows / batch);
  onnx::NodeProto constant, reshape;
  constant.set_op_type("Constant");
  constant.add_output(shape);
  onnx::AttributeProto &value = *constant.add_attribute();
  value.set_name("value_ints");
  value.set_type(onnx::AttributeProto::INTS);
  value.add_ints(rows);
  reshape.set_op_type("Reshape");
  reshape.set_name(flat);
  reshape.add_input(input.name());
  reshape.add_input(shape);
  reshape.add_output(flat);
  for (onnx::NodeProto *node : {&reshape, &constant}) {
    graph.add_node()->Swap(node);
    for (int i = graph.node_size() - 1; i > 0; --i)
      graph.mutable_node()->SwapElements(i, i - 1);
  }
}

void ArtifactReader::splitSamples() {
  int64_t batch = -1;
  for (onnx::ValueInfoProto &input : *graph.mutable_input()) {
    const auto &shape = input.type().tensor_type().shape();
    if (!shape.dim_size() || model.initializer(input.name()) ||
        input.name() == kSeedInput)
      continue;
    int64_t rows = sizeOf(shape.dim(0));
    if (batch < 0)
      batch = rows;
    int32_t type = input.type().tensor_type().elem_type();
    bool labels =
        type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32;
    if (labels && batch > 0 && shape.dim_size() == 1 && rows > batch &&
        rows % batch == 0)
      splitInput(input, batch, rows);
  }
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// A file of the artifacts, as given or with its usual name.
std::string ArtifactReader::beside(const std::string &given,
                                   StringRef name) const {
  if (!given.empty())
    return given;
  SmallString<128> path(llvm::sys::path::parent_path(model.path));
  llvm::sys::path::append(path, name);
  return std::string(path);
}

/// Whether a tensor of `shape` fits an input; symbolic dimensions do.
static bool fits(const onnx::TypeProto &type, DType element,
                 ArrayRef<int64_t> shape) {
  if (!type.has_tensor_type() ||
      dtypeFromOnnx(type.tensor_type().elem_type()) != element)
    return false;
  const auto &dims = type.tensor_type().shape().dim();
  if (!type.tensor_type().has_shape())
    return true;
  if (dims.size() != int(shape.size()))
    return false;
  for (auto [dim, size] : llvm::zip(dims, shape))
    if (dim.has_dim_value() && dim.dim_value() != size)
      return false;
  return true;
}

LogicalResult ArtifactReader::takeWeight(const onnx::ValueInfoProto *input,
                                         TensorData &tensor) {
  if (!input || model.initializer(tensor.name))
    return success();
  if (!fits(input->type(), tensor.type, tensor.shape))
    return error() << "input '" << printable(tensor.name)
                   << "' has another type or shape than the checkpoint's "
                   << safetensorsName(tensor.type) << " tensor of that name";
  model.initializerIndex[tensor.name] = model.initializers.size();
  model.initializers.push_back(std::move(tensor));
  return success();
}

LogicalResult ArtifactReader::takeWeights() {
  auto lacksOne = [&](const std::string &name) {
    return !model.initializer(name);
  };
  if (llvm::none_of(form.targets, lacksOne))
    return success();
  checkpointPath = beside(options.checkpoint, "checkpoint");
  StringRef path = checkpointPath;
  FailureOr<OrtCheckpoint> checkpoint = readOrtCheckpoint(path, [&] {
    return emitError(FileLineColLoc::get(context, path, 0, 0));
  });
  if (failed(checkpoint))
    return failure();
  llvm::StringMap<const onnx::ValueInfoProto *> inputs;
  for (const auto &input : graph.input())
    inputs[input.name()] = &input;
  for (auto *tensors : {&checkpoint->trained, &checkpoint->frozen})
    for (TensorData &tensor : *tensors)
      if (failed(takeWeight(inputs.lookup(tensor.name), tensor)))
        return failure();
  for (const std::string &name : form.targets)
    if (lacksOne(name))
      return error() << "has a gradient of '" << printable(name)
                     << "', which is neither an initializer nor both an input "
                        "and in '"
                     << path << "'";
  states = std::move(checkpoint->states);
  steps = checkpoint->steps;
  return success();
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

static std::optional<FoundOptimizer> readOptimizer(NodeReader &node) {
  FoundOptimizer found;
  if (node.op() == "SGDOptimizerV2") {
    found.name = "sgd";
    return found;
  }
  // The defaults of the operator's schema.
  found.name = node.intAttr("adam_mode", 0) ? "adamw-hf" : "adamw";
  found.beta1 = node.floatAttr("alpha", 0.9);
  found.beta2 = node.floatAttr("beta", 0.999);
  found.epsilon = node.floatAttr("epsilon", 1e-8);
  found.weightDecay = node.floatAttr("weight_decay", 1e-2);
  found.biasCorrection = node.intAttr("correct_bias", 1) != 0;
  if (node.failed())
    return std::nullopt;
  return found;
}

LogicalResult ArtifactReader::takeOptimizer() {
  std::string path = beside(options.optimizerModel, "optimizer_model.onnx");
  if (options.optimizerModel.empty() && !llvm::sys::fs::exists(path)) {
    emitRemark(loc) << "has no optimizer_model.onnx beside it: the optimizer "
                       "is the one of the flags";
    return success();
  }
  FailureOr<std::unique_ptr<Model>> optimizer =
      onnx_import::loadModel(path, context);
  if (failed(optimizer))
    return failure();
  const onnx::GraphProto &nodes = (*optimizer)->graph();
  for (int i = 0; i < nodes.node_size(); ++i) {
    NodeReader node(nodes.node(i), nodeLoc(**optimizer, i, context),
                    /*opset=*/1);
    if (node.domain() != "com.microsoft" ||
        (node.op() != "AdamWOptimizer" && node.op() != "SGDOptimizerV2"))
      continue;
    options.found->optimizer = readOptimizer(node);
    return success(options.found->optimizer.has_value());
  }
  return emitError(FileLineColLoc::get(context, path, 0, 0))
         << "has no AdamWOptimizer and no SGDOptimizerV2, the optimizers of "
            "onnxruntime";
}

/// Whether a state, sorted, has the two moments of the parameter's gradient.
bool ArtifactReader::isAdams(const OrtState &state) const {
  const TensorData &param = *model.initializer(state.param);
  return state.moments.size() == 2 && state.moments[0].name == "momentum0" &&
         state.moments[1].name == "momentum1" &&
         llvm::all_of(state.moments, [&](const TensorData &moment) {
           return moment.type == DType::F32 && moment.shape == param.shape;
         });
}

/// What the checkpoint has of the optimizer goes on under train-step's names.
LogicalResult ArtifactReader::takeStates() {
  if (states.empty())
    return success();
  if (!options.found || !options.found->optimizer) {
    emitWarning(loc) << "'" << checkpointPath
                     << "' has the state of an optimizer, which is not taken: "
                        "training begins anew";
    return success();
  }
  form.doneSteps = steps;
  // What onnxruntime saves for SGDOptimizerV2, that does not use.
  if (options.found->optimizer->name == "sgd")
    return success();
  for (OrtState &state : states) {
    if (!form.trained.contains(state.param))
      continue;
    llvm::sort(state.moments, [](const TensorData &a, const TensorData &b) {
      return a.name < b.name;
    });
    if (!isAdams(state))
      return error() << "'" << checkpointPath << "' has a state of '"
                     << printable(state.param)
                     << "' that is not momentum0 and momentum1, in f32 and of "
                        "its shape";
    for (auto [i, moment] : llvm::enumerate(state.moments)) {
      moment.name = state.param + (i ? ".exp_avg_sq" : ".exp_avg");
      form.moments.emplace_back(state.param, std::move(moment));
    }
  }
  return success();
}

LogicalResult ArtifactReader::run() {
  if (failed(findGradients()))
    return failure();
  if (form.targets.empty())
    return success();
  if (failed(checkDropped()))
    return failure();
  dropAccumulators();
  if (failed(replaceOutputs()) || failed(takeWeights()))
    return failure();
  splitSamples();
  if (options.found) {
    options.found->gradients = true;
    if (failed(takeOptimizer()))
      return failure();
  }
  if (failed(takeStates()))
    return failure();
  model.training = std::make_shared<TrainingForm>(std::move(form));
  return success();
}

LogicalResult zero::onnx_import::takeArtifacts(Model &model,
                                               const ImportOptions &options,
                                               MLIRContext *context) {
  return ArtifactReader(model, options, context).run();
}
