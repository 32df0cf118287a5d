//===- ModelShape.h - Models by their sizes ---------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decoder-only transformers described by their sizes, so that a step can be
// planned without the model. Needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PLANNER_MODELSHAPE_H
#define ZERO_PLANNER_MODELSHAPE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace mlir::zero {

/// One parameter of a model.
struct ShapeParameter {
  std::string name;
  std::vector<int64_t> dims;
  int64_t elements() const {
    int64_t count = 1;
    for (int64_t dim : dims)
      count *= dim;
    return count;
  }
};

/// A decoder-only transformer. Two families: GPT (biases, LayerNorm, learned
/// positions) where `gated` is false, and Llama (no biases, RMSNorm, rotary
/// positions, gated feed-forward) where it is true.
struct ModelShape {
  std::string name;
  int64_t hidden = 0, layers = 0, heads = 0, kvHeads = 0;
  int64_t ffn = 0;
  int64_t vocab = 0;
  int64_t experts = 1, expertsUsed = 1; ///< feed-forwards held, used per token
  bool gated = false;
  bool tied = false; ///< head and embedding are one parameter
  /// Rows of the table of learned positions; 0: as long as the sequence.
  int64_t positions = 0;

  int64_t headSize() const { return hidden / heads; }
  int64_t kvSize() const { return kvHeads * headSize(); }

  /// Parameters of one layer, and of what is outside the layers.
  std::vector<ShapeParameter> layerParameters() const;
  std::vector<ShapeParameter> outerParameters(int64_t seq) const;

  /// Numbers of parameters.
  int64_t layerSize() const;
  int64_t outerSize(int64_t seq) const;
  int64_t size(int64_t seq) const;
  /// Those that touch a token: experts count as far as they are used.
  int64_t activeSize(int64_t seq) const;
  int64_t embeddingSize() const { return vocab * hidden; }
};

/// Training flops of one token; a multiply-add counts two.
struct FlopsPerToken {
  /// arXiv 2204.02311, appendix B: 6 N + 12 L H d s.
  double palm = 0;
  /// torchtitan: as above without the input embedding.
  double torchtitan = 0;
  /// Megatron-LM: products only, attention halved by its mask.
  double megatron = 0;
};

FlopsPerToken flopsPerToken(const ModelShape &shape, int64_t seq);

/// Names of the known models.
std::vector<llvm::StringRef> modelNames();

/// A known model. The error suggests the closest name.
llvm::Expected<ModelShape> findModel(llvm::StringRef name);

/// Empty, or what is wrong with a shape ("heads is 0; expected ...").
std::string checkShape(const ModelShape &shape);

} // namespace mlir::zero

#endif // ZERO_PLANNER_MODELSHAPE_H
