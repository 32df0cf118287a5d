//===- Parameters.cpp - Which tensors are trained -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The decision, by falling weight: element type, use as running statistics,
// torch.export's signature, PyTorch's name, use as a weight; then the user's
// patterns.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Parameters.h"
#include "lib/Import/TrainingForms.h"

// GCC needs these two before the generated op headers.
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Zero/Zero.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <functional>

using namespace mlir;
using namespace mlir::zero;
using namespace mlir::zero::onnx_import;

bool zero::onnx_import::isDottedName(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  auto isWord = [](StringRef part) {
    return !part.empty() && llvm::all_of(part, [](char c) {
      return llvm::isAlnum(c) || c == '_';
    });
  };
  return parts.size() > 1 && llvm::all_of(parts, isWord) &&
         !llvm::isDigit(parts.back().front());
}

std::string zero::onnx_import::unitOf(StringRef parameter) {
  if (!isDottedName(parameter))
    return parameter.str();
  SmallVector<StringRef> parts;
  parameter.split(parts, '.');
  size_t keep = parts.size() - 1;
  for (size_t i = 0; i < keep; ++i)
    if (llvm::all_of(parts[i], llvm::isDigit))
      keep = i + 1;
  return llvm::join(ArrayRef(parts).take_front(keep), ".");
}

//===----------------------------------------------------------------------===//
// Evidence
//===----------------------------------------------------------------------===//

void Parameters::collectUses() {
  // The initializer behind a value that is one seen through a cast, ...
  llvm::StringMap<StringRef> origin;
  for (const TensorData &tensor : model.initializers)
    origin[tensor.name] = tensor.name;
  std::function<void(const onnx::GraphProto &)> collect;
  auto collectNode = [&](const onnx::NodeProto &node) {
    for (const onnx::AttributeProto &attr : node.attribute())
      if (attr.has_g())
        collect(attr.g());
    for (auto [i, input] : llvm::enumerate(node.input()))
      if (auto it = origin.find(input); it != origin.end())
        uses[it->second].push_back({&node, unsigned(i)});
    StringRef op = node.op_type();
    if ((op == "MatMul" || op == "Conv") && node.output_size())
      products.insert(node.output(0));
    bool passes = op == "Transpose" || op == "Identity" || op == "Cast" ||
                  op == "CastLike";
    if (!passes || !node.input_size() || !node.output_size())
      return;
    if (auto it = origin.find(node.input(0)); it != origin.end())
      origin[node.output(0)] = it->second;
  };
  collect = [&](const onnx::GraphProto &graph) {
    for (const onnx::NodeProto &node : graph.node())
      collectNode(node);
  };
  collect(model.graph());
}

ArrayRef<Use> Parameters::usesOf(StringRef initializer) const {
  auto it = uses.find(initializer);
  return it == uses.end() ? ArrayRef<Use>() : ArrayRef<Use>(it->second);
}

/// Lines such as `p_fc1_weight: PARAMETER target='fc1.weight'`.
void Parameters::readSignature() {
  for (const auto &entry : model.graph().metadata_props()) {
    if (!StringRef(entry.key()).ends_with("graph_signature"))
      continue;
    torchSignature.present = true;
    SmallVector<StringRef> lines;
    StringRef(entry.value()).split(lines, '\n');
    for (StringRef line : lines) {
      auto [variable, rest] = line.split(": ");
      auto [kind, target] = rest.split(" target='");
      target = target.take_until([](char c) { return c == '\''; });
      if (target.empty())
        continue;
      if (kind == "PARAMETER")
        torchSignature.parameters[target] = variable;
      else if (kind == "BUFFER")
        torchSignature.buffers[target] = variable;
    }
  }
}

/// What operand `operand` of an operator is, where it is a trainable one.
static StringRef weightOperand(StringRef op, unsigned operand, size_t rank) {
  bool recurrent = op == "LSTM" || op == "GRU" || op == "RNN";
  if (recurrent && operand >= 1 && operand <= 3)
    return operand == 3 ? "bias" : "weight";
  if ((op == "MatMul" && rank >= 2) || (op == "Gemm" && operand < 2) ||
      ((op == "Conv" || op == "ConvTranspose") && operand == 1))
    return "weight";
  if ((op == "Gemm" || op == "Conv" || op == "ConvTranspose") && operand == 2)
    return "bias";
  if (op == "Gather" && operand == 0 && rank == 2)
    return "table";
  if (op.ends_with("Normalization") && operand == 1)
    return "scale";
  if (op.ends_with("Normalization") && operand == 2)
    return "bias";
  return "";
}

/// Whether `use` adds the initializer to a matrix product or a convolution, as
/// exporters without Gemm write a bias.
bool Parameters::isAddedToProduct(const Use &use) const {
  return use.node->op_type() == "Add" && use.node->input_size() == 2 &&
         products.contains(use.node->input(1 - use.operand));
}

static std::string describe(const onnx::NodeProto &node) {
  std::string text = node.op_type();
  if (!node.name().empty())
    text += " '" + printable(node.name()) + "'";
  return text;
}

/// Buffers that PyTorch modules of wide use keep in float.
static bool isKnownBuffer(StringRef name) {
  StringRef last = name.rsplit('.').second;
  return llvm::is_contained({"inv_freq", "original_inv_freq", "running_mean",
                             "running_var", "masked_bias", "sin_cached",
                             "cos_cached", "freqs_cis", "pe"},
                            last);
}

//===----------------------------------------------------------------------===//
// Decision
//===----------------------------------------------------------------------===//

void Parameters::classify(Param &param) {
  const TensorData &data = *param.data;
  auto set = [&](Role role, const Twine &why) {
    param.role = role;
    param.why = why.str();
  };
  if (!isFloat(data.type))
    return set(Role::Constant, "not a float");
  std::string weight;
  for (const Use &use : usesOf(data.name)) {
    if ((use.node->op_type() == "BatchNormalization" ||
         use.node->op_type() == "BatchNormInternal") &&
        use.operand >= 3)
      return set(Role::Buffer, "running statistics of " + describe(*use.node));
    StringRef kind =
        weightOperand(use.node->op_type(), use.operand, data.shape.size());
    if (weight.empty() && !kind.empty())
      weight = (kind + " of " + describe(*use.node)).str();
    // Where there is a signature it names the biases.
    if (weight.empty() && !torchSignature.present && data.shape.size() == 1 &&
        data.size() > 1 && isAddedToProduct(use))
      weight = "bias added by " + describe(*use.node);
  }
  if (torchSignature.parameters.count(data.name))
    return set(Role::Trained, "parameter in torch.export's signature");
  if (torchSignature.buffers.count(data.name))
    return set(Role::Constant, "buffer in torch.export's signature");
  if (isDottedName(data.name) && isKnownBuffer(data.name))
    return set(Role::Constant, "name of a PyTorch buffer");
  if (isDottedName(data.name))
    return set(Role::Trained, "name of a PyTorch parameter");
  if (!weight.empty())
    return set(Role::Trained, weight);
  set(Role::Constant, "no PyTorch name and not used as a weight");
}

/// A model that says how it is trained says what is trained.
void Parameters::takeRoles(const TrainingForm &form) {
  for (auto &param : params) {
    if (form.trained.contains(param->value) && param->role != Role::Buffer) {
      param->role = Role::Trained;
      param->why = "the model's own training step updates it";
    } else if (form.states.contains(param->value)) {
      param->role = Role::Buffer;
      param->why = "state of the model's own training step";
    } else if (param->role == Role::Trained) {
      param->role = Role::Frozen;
      param->why = "the model's own training step does not update it";
    }
  }
}

/// Whether one of `patterns` matches; it is removed from `unmatched`.
static const std::string *matches(StringRef name,
                                  const std::vector<std::string> &patterns,
                                  ArrayRef<llvm::GlobPattern> globs,
                                  llvm::StringSet<> &unmatched) {
  const std::string *found = nullptr;
  for (auto [pattern, glob] : llvm::zip_equal(patterns, globs))
    if (glob.match(name)) {
      unmatched.erase(pattern);
      found = found ? found : &pattern;
    }
  return found;
}

static FailureOr<std::vector<llvm::GlobPattern>>
compile(const std::vector<std::string> &patterns, StringRef flag,
        Location loc) {
  std::vector<llvm::GlobPattern> globs;
  for (const std::string &pattern : patterns) {
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
    if (!glob) {
      emitError(loc) << flag << " '" << pattern
                     << "': " << llvm::toString(glob.takeError());
      return failure();
    }
    globs.push_back(std::move(*glob));
  }
  return globs;
}

LogicalResult Parameters::applyOverrides() {
  auto train = compile(options.train, "--train", loc);
  auto freeze = compile(options.freeze, "--freeze", loc);
  if (failed(train) || failed(freeze))
    return failure();
  llvm::StringSet<> unmatched;
  for (const auto *list : {&options.train, &options.freeze})
    for (const std::string &pattern : *list)
      unmatched.insert(pattern);
  for (auto &param : params) {
    const std::string *t =
        matches(param->value, options.train, *train, unmatched);
    const std::string *f =
        matches(param->value, options.freeze, *freeze, unmatched);
    if (t && !f && param->role != Role::Trained) {
      if (!isFloat(param->data->type) || param->role == Role::Buffer)
        return emitError(loc)
               << "--train '" << *t << "': '" << printable(param->value)
               << "' cannot be trained (" << param->why << ")";
      param->role = Role::Trained;
      param->why = "--train '" + *t + "'";
    }
    if (f && param->role == Role::Trained) {
      param->role = Role::Frozen;
      param->why = "--freeze '" + *f + "'";
    }
  }
  for (StringRef pattern : unmatched.keys())
    emitWarning(loc) << "pattern '" << pattern << "' matches no initializer";
  return success();
}

/// Whether the module, a step that is made of it or a file of weights has
/// something else of that name.
static bool isTaken(StringRef name, const Model &model) {
  StringRef fixed[] = {"forward",       "step",        "optimizer_step",
                       "loss_scale",    kGridName,     kGrid2DName,
                       kAccumulateName, "__metadata__"};
  // What the optimizer keeps of another parameter.
  auto [of, state] = name.rsplit('.');
  StringRef states[] = {"exp_avg",  "exp_avg_sq", "sum",
                        "momentum", "master",     "grad"};
  return llvm::is_contained(fixed, name) || name.starts_with("loss_scale.") ||
         (llvm::is_contained(states, state) && model.initializer(of) &&
          !model.training);
}

/// The name in the IR of an initializer.
static std::string symbolOf(const TensorData &data, const Model &model) {
  std::string name = data.name;
  if (isTaken(name, model))
    do
      name += "_";
    while (model.initializer(name));
  return name;
}

Param *Parameters::find(StringRef name) {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : it->second;
}

FailureOr<std::unique_ptr<Parameters>>
Parameters::decide(const Model &model, const ImportOptions &options,
                   MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, model.path, 0, 0);
  std::unique_ptr<Parameters> result(new Parameters(model, options, loc));
  result->collectUses();
  result->readSignature();
  for (const TensorData &data : model.initializers) {
    auto param = std::make_unique<Param>();
    param->data = &data;
    param->value = data.name;
    param->name = symbolOf(data, model);
    param->unit = unitOf(data.name);
    result->classify(*param);
    result->byName[data.name] = param.get();
    result->params.push_back(std::move(param));
  }
  // What a training graph has was a model once: it has been restored.
  if (model.training) {
    result->takeRoles(*model.training);
    if (failed(result->applyOverrides()))
      return failure();
    return result;
  }
  result->restoreMerged();
  if (failed(result->applyOverrides()))
    return failure();
  result->restoreTies();
  result->nameTies();
  result->warnOfLosses();
  return result;
}
