//===- ModelShape.cpp - Models by their sizes ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ModelShape.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/ModelShape.h"

#include "zero/Cost/Machine.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir::zero;

namespace {
struct KnownModel {
  StringLiteral name;
  int64_t hidden, layers, heads, kvHeads, ffn, vocab;
  bool gated, tied;
  int64_t positions = 0, experts = 1, expertsUsed = 1;
};
} // namespace

// Sizes as the models' configuration files say. MPT: llm-foundry's training
// benchmarks; its position table is as long as the sequence.
static constexpr KnownModel known[] = {
    {"gpt2", 768, 12, 12, 12, 3072, 50257, false, true, 1024},
    {"gpt2-medium", 1024, 24, 16, 16, 4096, 50257, false, true, 1024},
    {"gpt2-large", 1280, 36, 20, 20, 5120, 50257, false, true, 1024},
    {"gpt2-xl", 1600, 48, 25, 25, 6400, 50257, false, true, 1024},
    {"mpt-125m", 768, 12, 12, 12, 3072, 50368, false, true},
    {"mpt-350m", 1024, 24, 16, 16, 4096, 50368, false, true},
    {"mpt-760m", 1536, 24, 12, 12, 6144, 50368, false, true},
    {"mpt-1b", 2048, 24, 16, 16, 8192, 50368, false, true},
    {"mpt-3b", 2560, 32, 20, 20, 10240, 50368, false, true},
    {"mpt-7b", 4096, 32, 32, 32, 16384, 50368, false, true},
    {"mpt-13b", 5120, 40, 40, 40, 20480, 50368, false, true},
    {"mpt-30b", 7168, 48, 56, 56, 28672, 50368, false, true},
    {"mpt-70b", 8192, 80, 64, 64, 32768, 50368, false, true},
    {"llama2-7b", 4096, 32, 32, 32, 11008, 32000, true, false},
    {"llama2-13b", 5120, 40, 40, 40, 13824, 32000, true, false},
    {"llama2-34b", 8192, 48, 64, 8, 22016, 32000, true, false},
    {"llama2-70b", 8192, 80, 64, 8, 28672, 32000, true, false},
    {"llama3-8b", 4096, 32, 32, 8, 14336, 128256, true, false},
    {"llama3-70b", 8192, 80, 64, 8, 28672, 128256, true, false},
    {"llama3-405b", 16384, 126, 128, 8, 53248, 128256, true, false},
    {"mixtral-8x7b", 4096, 32, 32, 8, 14336, 32000, true, false, 0, 8, 2},
    {"mixtral-8x22b", 6144, 56, 48, 8, 16384, 32000, true, false, 0, 8, 2},
};

std::vector<ShapeParameter> ModelShape::layerParameters() const {
  std::vector<ShapeParameter> list;
  auto add = [&](StringRef name, std::vector<int64_t> dims) {
    list.push_back({name.str(), std::move(dims)});
  };
  auto product = [&](StringRef name, int64_t out, int64_t in) {
    add((name + ".weight").str(), {out, in});
    if (!gated)
      add((name + ".bias").str(), {out});
  };
  auto norm = [&](StringRef name) {
    add((name + ".weight").str(), {hidden});
    if (!gated)
      add((name + ".bias").str(), {hidden});
  };
  norm("norm1");
  if (gated) {
    product("attention.q", hidden, hidden);
    product("attention.k", kvSize(), hidden);
    product("attention.v", kvSize(), hidden);
  } else {
    product("attention.qkv", hidden + 2 * kvSize(), hidden);
  }
  product("attention.out", hidden, hidden);
  norm("norm2");
  if (experts > 1)
    add("router.weight", {experts, hidden});
  for (int64_t expert = 0; expert != experts; ++expert) {
    std::string prefix = experts > 1 ? "expert" + utostr(expert) + "." : "ffn.";
    if (gated)
      product(prefix + "gate", ffn, hidden);
    product(prefix + "up", ffn, hidden);
    product(prefix + "down", hidden, ffn);
  }
  return list;
}

std::vector<ShapeParameter> ModelShape::outerParameters(int64_t seq) const {
  std::vector<ShapeParameter> list = {{"embedding.weight", {vocab, hidden}}};
  if (!gated)
    list.push_back({"positions.weight", {positions ? positions : seq, hidden}});
  list.push_back({"norm.weight", {hidden}});
  if (!gated)
    list.push_back({"norm.bias", {hidden}});
  if (!tied)
    list.push_back({"head.weight", {vocab, hidden}});
  return list;
}

static int64_t sum(const std::vector<ShapeParameter> &list) {
  int64_t total = 0;
  for (const ShapeParameter &parameter : list)
    total += parameter.elements();
  return total;
}

int64_t ModelShape::layerSize() const { return sum(layerParameters()); }
int64_t ModelShape::outerSize(int64_t seq) const {
  return sum(outerParameters(seq));
}
int64_t ModelShape::size(int64_t seq) const {
  return layers * layerSize() + outerSize(seq);
}

int64_t ModelShape::activeSize(int64_t seq) const {
  int64_t expert = (gated ? 3 : 2) * hidden * ffn + (gated ? 0 : ffn + hidden);
  return size(seq) - layers * (experts - expertsUsed) * expert;
}

FlopsPerToken mlir::zero::flopsPerToken(const ModelShape &shape, int64_t seq) {
  FlopsPerToken flops;
  double attention = 12.0 * shape.layers * shape.hidden * seq;
  double active = shape.activeSize(seq);
  flops.palm = 6 * active + attention;
  // A tied table is also the head and counts as such.
  double embedding = shape.tied ? 0 : shape.embeddingSize();
  flops.torchtitan = 6 * (active - embedding) + attention;
  double h = shape.hidden;
  double products = 4 * h * (h + shape.kvSize()) + 2.0 * seq * h +
                    (shape.gated ? 6 : 4) * h * shape.ffn * shape.expertsUsed;
  flops.megatron =
      3 * (shape.layers * products + 2 * h * static_cast<double>(shape.vocab));
  return flops;
}

std::vector<StringRef> mlir::zero::modelNames() {
  std::vector<StringRef> names;
  for (const KnownModel &model : known)
    names.push_back(model.name);
  return names;
}

Expected<ModelShape> mlir::zero::findModel(StringRef name) {
  for (const KnownModel &model : known) {
    if (model.name != name)
      continue;
    ModelShape shape;
    shape.name = name.str();
    shape.hidden = model.hidden;
    shape.layers = model.layers;
    shape.heads = model.heads;
    shape.kvHeads = model.kvHeads;
    shape.ffn = model.ffn;
    shape.vocab = model.vocab;
    shape.gated = model.gated;
    shape.tied = model.tied;
    shape.positions = model.positions;
    shape.experts = model.experts;
    shape.expertsUsed = model.expertsUsed;
    return shape;
  }
  std::vector<StringRef> names = modelNames();
  StringRef close = closestName(name, names);
  std::string hint =
      close.empty() ? "" : "did you mean '" + close.str() + "'? ";
  return createStringError(inconvertibleErrorCode(),
                           "unknown model '" + name + "'; " + hint +
                               "Known: " + join(names, ", "));
}

std::string mlir::zero::checkShape(const ModelShape &shape) {
  std::pair<StringRef, int64_t> sizes[] = {
      {"hidden", shape.hidden}, {"layers", shape.layers},
      {"heads", shape.heads},   {"kv_heads", shape.kvHeads},
      {"ffn", shape.ffn},       {"vocab", shape.vocab},
  };
  for (auto [name, size] : sizes)
    if (size < 1)
      return (name + " is " + Twine(size) + "; expected 1 or more").str();
  if (shape.hidden % shape.heads != 0)
    return ("hidden is " + Twine(shape.hidden) + ", heads " +
            Twine(shape.heads) + "; expected a multiple of heads")
        .str();
  if (shape.heads % shape.kvHeads != 0)
    return ("heads is " + Twine(shape.heads) + ", kv_heads " +
            Twine(shape.kvHeads) + "; expected a multiple of kv_heads")
        .str();
  // Bytes of any plan must fit into 64 bits.
  double d = shape.hidden, layers = shape.layers;
  double size = layers * d * (4 * d + 3.0 * shape.ffn * shape.experts) +
                2 * d * shape.vocab;
  if (!(size < 1e15))
    return "has more than 1e15 parameters";
  return {};
}
