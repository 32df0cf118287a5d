//===- Ties.cpp - Shared, copied and merged parameters --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters break ties (a second, often transposed copy of the weight) and
// make false ones (parameters merged because their initial values are equal).
// Both change what training computes, so both are undone here.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Parameters.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"

#include <array>
#include <cstring>

using namespace mlir;
using namespace mlir::zero::onnx_import;

static const char *keepCall =
    "torch.onnx.export(..., training=TrainingMode.TRAINING, "
    "do_constant_folding=False)";

//===----------------------------------------------------------------------===//
// Merged parameters
//===----------------------------------------------------------------------===//

/// The TorchScript exporter turns a parameter that equals another one into
/// `Identity(other) -> own.name`. 1-D parameters (biases of 0, gains of 1) are
/// then merely equal at the start: each becomes a parameter again.
void Parameters::restoreMerged() {
  for (const onnx::NodeProto &node : model.graph().node()) {
    if (node.op_type() != "Identity" || node.input_size() != 1 ||
        node.output_size() != 1 || !isDottedName(node.output(0)))
      continue;
    Param *source = find(node.input(0));
    if (!source || source->role != Role::Trained ||
        source->data->shape.size() > 1 || find(node.output(0)))
      continue;
    auto param = std::make_unique<Param>(*source);
    param->name = param->value = node.output(0);
    param->unit = unitOf(param->name);
    param->why = "was merged with '" + source->name + "', equal at the start";
    emitRemark(loc) << "'" << printable(param->name)
                    << "' is trained on its own: the exporter had merged it "
                       "with '"
                    << printable(source->name)
                    << "' because their initial values are equal";
    byName[param->name] = param.get();
    params.push_back(std::move(param));
  }
}

//===----------------------------------------------------------------------===//
// Broken ties
//===----------------------------------------------------------------------===//

/// What is read of a weight before another one equals it so far: reading all of
/// a large model's would take as long as copying it.
static constexpr int64_t maxSamples = 256;
/// Larger weights are not read through their mapping, which would stay
/// resident.
static constexpr size_t maxResident = size_t(1) << 20;
/// How many weights that look the same one is compared with: a tie is a pair.
static constexpr size_t maxAlike = 64;

/// Lets go of the pages that reading `data` brought in.
static void release(const TensorData &data, ArrayRef<char> part) {
  if (data.file)
    data.file->release(part);
}

/// One element, as bytes.
static std::array<char, 8> elementAt(const TensorData &data, int64_t index) {
  std::array<char, 8> element = {};
  size_t width = byteSize(data.type);
  ArrayRef<char> part = data.bytes.slice(index * width, width);
  if (data.file && data.bytes.size() > maxResident)
    data.file->read(part, element.data());
  else
    std::memcpy(element.data(), part.data(), width);
  return element;
}

/// Whether all of a sample of elements are one value: then equality says
/// nothing.
static bool isUniform(const TensorData &data) {
  int64_t count = data.size();
  for (int64_t i = 0; i < count; i += std::max<int64_t>(count / maxSamples, 1))
    if (elementAt(data, i) != elementAt(data, 0))
      return false;
  return true;
}

static bool areEqual(const TensorData &a, const TensorData &b) {
  if (a.shape != b.shape)
    return false;
  constexpr size_t piece = size_t(4) << 20;
  for (size_t at = 0; at < a.bytes.size(); at += piece) {
    size_t size = std::min(piece, a.bytes.size() - at);
    bool equal = a.bytes.slice(at, size) == b.bytes.slice(at, size);
    release(a, a.bytes.slice(at, size));
    release(b, b.bytes.slice(at, size));
    if (!equal)
      return false;
  }
  return true;
}

static bool isTransposeOf(const TensorData &a, const TensorData &b) {
  int64_t rows = a.shape[0], cols = a.shape[1], width = byteSize(a.type);
  if (b.shape[0] != cols || b.shape[1] != rows)
    return false;
  // In tiles: else each element of `b` would come from another page.
  constexpr int64_t tile = 64;
  bool equal = true;
  for (int64_t r0 = 0; equal && r0 < rows; r0 += tile) {
    for (int64_t c0 = 0; equal && c0 < cols; c0 += tile)
      for (int64_t r = r0; equal && r < std::min(r0 + tile, rows); ++r)
        for (int64_t c = c0; equal && c < std::min(c0 + tile, cols); ++c)
          equal = !memcmp(&a.bytes[(r * cols + c) * width],
                          &b.bytes[(c * rows + r) * width], width);
    release(b, b.bytes);
  }
  release(a, a.bytes);
  return equal;
}

/// Whether two PyTorch names differ only in numbers: copies of one layer, such
/// as nn.TransformerEncoder makes, start equal and are no tie.
static bool areClones(StringRef a, StringRef b) {
  SmallVector<StringRef> x, y;
  a.split(x, '.');
  b.split(y, '.');
  if (x.size() != y.size())
    return false;
  for (auto [p, q] : llvm::zip(x, y))
    if (p != q &&
        !(llvm::all_of(p, llvm::isDigit) && llvm::all_of(q, llvm::isDigit)))
      return false;
  return true;
}

/// A hash of what a matrix and its transpose share, the diagonal, of which a
/// sample is cheap: few pairs remain to be compared byte by byte.
static size_t hashDiagonal(const TensorData &data) {
  int64_t length = std::min(data.shape[0], data.shape[1]);
  size_t hash = data.bytes.size();
  for (int64_t i = 0; i < length;
       i += std::max<int64_t>(length / maxSamples, 1)) {
    std::array<char, 8> element = elementAt(data, i * (data.shape[1] + 1));
    hash = llvm::hash_combine(hash, StringRef(element.data(), element.size()));
  }
  return hash;
}

/// Whether `copy` is the copy and `kept` the parameter that it was made from.
static bool isBrokenTie(const Param &kept, const Param &copy) {
  bool keptNamed = isDottedName(kept.name), copyNamed = isDottedName(copy.name);
  if (!keptNamed || (copyNamed && areClones(kept.name, copy.name)))
    return false;
  return kept.data->type == copy.data->type &&
         kept.data->bytes.size() == copy.data->bytes.size();
}

void Parameters::restoreTies() {
  llvm::MapVector<size_t, SmallVector<Param *>> groups;
  for (auto &param : params)
    if (param->role == Role::Trained && param->data->shape.size() == 2 &&
        !isUniform(*param->data))
      groups[hashDiagonal(*param->data)].push_back(param.get());
  for (auto &[hash, group] : groups) {
    if (group.size() < 2)
      continue;
    // A parameter with a name comes before nameless copies of it.
    llvm::stable_sort(group, [](Param *a, Param *b) {
      return isDottedName(a->name) > isDottedName(b->name);
    });
    for (size_t i = 1; i < group.size(); ++i) {
      Param *copy = group[i];
      for (Param *kept : ArrayRef(group).take_front(std::min(i, maxAlike))) {
        if (kept->copyOf || !isBrokenTie(*kept, *copy))
          continue;
        bool equal = areEqual(*kept->data, *copy->data);
        if (!equal && !isTransposeOf(*kept->data, *copy->data))
          continue;
        copy->copyOf = kept;
        copy->transposed = !equal;
        copy->why = std::string(equal ? "copy" : "transposed copy") + " of '" +
                    kept->name + "', tied to it again";
        kept->tied.push_back(copy->name);
        emitRemark(loc) << "'" << printable(copy->name) << "' is "
                        << (equal ? "a copy" : "a transposed copy") << " of '"
                        << printable(kept->name)
                        << "': the exporter had broken their tie, which is "
                           "restored";
        break;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Names that the exporter dropped
//===----------------------------------------------------------------------===//

/// The text of a node's metadata entry, or "".
static StringRef metadata(const onnx::NodeProto &node, StringRef key) {
  for (const auto &entry : node.metadata_props())
    if (key == entry.key())
      return entry.value();
  return "";
}

/// Calls `found` with what torch.export's metadata say a node computes for: the
/// variables of its call (`%p_fc_weight`) and the module it stands in (`fc`).
static void forEachTrace(const onnx::NodeProto &node,
                         llvm::function_ref<void(StringRef)> found) {
  StringRef call = metadata(node, "pkg.torch.onnx.fx_node");
  for (size_t at = call.find('%'); at != StringRef::npos;
       at = call.find('%', at + 1)) {
    StringRef rest = call.substr(at + 1);
    size_t length =
        rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; })
            .size();
    found(call.substr(at, length + 1));
  }
  // ['', 'model', 'model.fc', 'linear']: the last but one is the module itself.
  SmallVector<StringRef> parts;
  metadata(node, "pkg.torch.onnx.name_scopes").split(parts, '\'');
  if (parts.size() >= 5)
    found(parts[parts.size() - 4]);
}

/// Another name of `param`: of the same tensor or, where the exporter dropped
/// the name, the only one.
static void addName(Param &param, StringRef name) {
  if (!isDottedName(param.name) && param.tied.empty()) {
    param.unit = unitOf(name);
    param.why += ", PyTorch's '" + name.str() + "'";
  }
  param.tied.push_back(name.str());
}

/// A parameter of the signature that has no initializer may be another name
/// of one that has: its module's nodes then use that one.
void Parameters::nameTies() {
  llvm::StringMap<Param *> byTrace;
  for (auto &param : params) {
    size_t rank = param->data->shape.size();
    bool nameless = !isDottedName(param->name);
    if (param->role != Role::Constant && (nameless ? rank > 1 : rank == 2))
      for (const Use &use : usesOf(param->data->name))
        forEachTrace(*use.node, [&](StringRef trace) {
          byTrace.try_emplace(trace, param.get());
        });
  }
  for (auto [target, variable] : torchSignature.parameters) {
    if (find(target))
      continue;
    Param *param = byTrace.lookup(("%" + variable).str());
    if (!param)
      param = byTrace.lookup(target.rsplit('.').first);
    // A module's bias is no other name of its weight.
    StringRef last = target.rsplit('.').second;
    if (param && (isDottedName(param->name)
                      ? StringRef(param->name).rsplit('.').second == last
                      : last != "bias"))
      addName(*param, target);
  }
}

//===----------------------------------------------------------------------===//
// What the export lost
//===----------------------------------------------------------------------===//

static std::string quoteFirst(ArrayRef<StringRef> names) {
  std::string text;
  for (StringRef name : names.take_front(3))
    text += (text.empty() ? "'" : ", '") + printable(name) + "'";
  if (names.size() > 3)
    text += " and " + std::to_string(names.size() - 3) + " more";
  return text;
}

/// Parameters that torch.export lists and the graph no longer has.
void Parameters::warnOfFoldedParameters() {
  llvm::StringSet<> known;
  for (auto &param : params) {
    known.insert(param->name);
    for (const std::string &name : param->tied)
      known.insert(name);
  }
  SmallVector<StringRef> lost;
  bool batchNorm = false;
  for (auto [target, variable] : torchSignature.parameters)
    if (!known.contains(target))
      lost.push_back(target);
  for (auto [target, variable] : torchSignature.buffers)
    batchNorm |= !known.contains(target) && target.ends_with("running_mean");
  if (lost.empty())
    return;
  emitWarning(loc) << "the exporter folded parameters away, which can no "
                      "longer be trained: "
                   << quoteFirst(lost)
                   << (batchNorm ? " (BatchNormalization was folded into Conv)"
                                 : "")
                   << "; torch.onnx.export(..., dynamo=True, optimize=False) "
                      "keeps them";
}

/// Whether operand `operand` of an operator says how it works: nothing that was
/// a parameter once.
static bool isSetting(const Use &use) {
  StringRef op = use.node->op_type();
  if (op == "Resize" || op == "Upsample" || op == "QuantizeLinear" ||
      op == "DequantizeLinear")
    return use.operand >= 1;
  if (op == "QLinearConv" || op == "QLinearMatMul")
    return use.operand != 0 && use.operand != 3;
  return op == "OneHot" && use.operand == 2;
}

/// Float initializers that look like folded parameters or baked tables.
void Parameters::warnOfBakedConstants() {
  SmallVector<StringRef> baked, foldedConv;
  for (auto &param : params) {
    const TensorData &data = *param->data;
    bool named = isDottedName(data.name);
    if (param->role == Role::Trained &&
        StringRef(data.name).starts_with("onnx::Conv"))
      foldedConv.push_back(data.name);
    // Shapes and scalars are ordinary constants.
    bool table = isFloat(data.type) ? data.size() > 1 : data.shape.size() > 2;
    if (param->role == Role::Constant && !named && table &&
        !llvm::all_of(usesOf(data.name), isSetting))
      baked.push_back(data.name);
  }
  const char *call = torchSignature.present
                         ? "torch.onnx.export(..., dynamo=True, optimize=False)"
                         : keepCall;
  if (!baked.empty())
    emitWarning(loc) << "initializers without a PyTorch name are taken as "
                        "constants (folded parameters, masks or position "
                        "tables): "
                     << quoteFirst(baked) << "; " << call
                     << " keeps what they were made from";
  if (!foldedConv.empty())
    emitWarning(loc) << "weights of Conv without a PyTorch name ("
                     << quoteFirst(foldedConv)
                     << "): BatchNormalization was probably folded into them; "
                     << call << " keeps it";
}

void Parameters::warnOfLosses() {
  warnOfFoldedParameters();
  warnOfBakedConstants();
}
