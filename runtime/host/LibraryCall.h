//===- LibraryCall.h - Library functions of call commands -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call command becomes a short list of oneDNN primitives and copies when a
// session begins; a step then only executes them. Scratch memory is counted
// here and allocated once for each rank, the largest call's.
//
// The library computes in f32 alone: operands in bf16 and f16 are widened on
// the way into scratch memory, and results rounded on the way out of it. So a
// result is rounded once, and no processor needs instructions for these types.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_LIBRARYCALL_H
#define ZERO_RT_HOST_LIBRARYCALL_H

#include "runtime/core/Program.h"
#include "runtime/host/StridedCopy.h"

#include <dnnl.hpp>

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace zrt {

/// Where a step of a library call reads or writes. It moves by `loopStrides`
/// bytes in each dimension of the call's loop; none: it stays.
struct Place {
  enum Base { OperandBase, ScratchBase };
  Base base = OperandBase;
  size_t operand = 0;
  uint64_t byteOffset = 0;
  std::vector<int64_t> loopStrides;
};

/// A tensor in an operand or in scratch memory.
struct Stored {
  View view;
  Place place;
  fb::DType type = fb::DType_F32;
};

struct PrimitiveArg {
  int id;
  dnnl::memory::desc desc;
  Place place;
};

/// A strided copy, which may convert, a function of ours, or a primitive.
struct LibraryStep {
  std::optional<StridedCopy> copy;
  Place from, to;

  /// Of the operands' addresses, and of the call's scratch memory.
  std::function<void(uint8_t *const *operands, uint8_t *scratch)> function;

  dnnl::primitive primitive;
  std::vector<PrimitiveArg> args;
};

/// What a call command needs for its shapes: shared by all ranks and by all
/// commands of the same shapes.
struct LibraryCall {
  std::vector<LibraryStep> steps;
  std::vector<int64_t> loop; ///< how often the steps run, in each dimension
  uint64_t scratchBytes = 0;

  /// Scratch space of this call; it begins on a cache line.
  Place scratch(uint64_t bytes);
  void addCopy(const Stored &from, const Stored &to);
  /// Adds a primitive and its scratchpad.
  void addPrimitive(const dnnl::primitive &primitive,
                    const dnnl::memory::desc &scratchpad,
                    std::vector<PrimitiveArg> args);

private:
  std::map<size_t, Place> scratchpads; // by size: no two are in use at once
};

/// Prepares the library function of a call command; throws Error if there is
/// none or if it cannot take the operands.
LibraryCall makeLibraryCall(const Program &program, const Command &command,
                            const dnnl::engine &engine);
/// The same for one function; `types` are the operands' element types.
LibraryCall makeMatmul(const Command &command,
                       const std::vector<fb::DType> &types,
                       const dnnl::engine &engine);
LibraryCall makeAttention(const Command &command,
                          const std::vector<fb::DType> &types);
LibraryCall makeConvolution(const Command &command,
                            const std::vector<fb::DType> &types,
                            const dnnl::engine &engine);

/// Throws Error unless library calls compute with elements of this type.
void checkLibraryType(fb::DType type);

/// Two commands with equal keys can share a LibraryCall.
std::string libraryCallKey(const Program &program, const Command &command);

/// A library call on one rank's addresses.
class BoundCall {
public:
  BoundCall(std::shared_ptr<const LibraryCall> boundCall,
            std::vector<uint8_t *> addresses, uint8_t *scratch,
            const dnnl::engine &engine);

  void run(dnnl::stream &stream);

private:
  uint8_t *address(const Place &place,
                   const std::vector<int64_t> &position) const;
  void runSteps(const std::vector<int64_t> &position, dnnl::stream &stream);

  std::shared_ptr<const LibraryCall> call;
  std::vector<uint8_t *> operands;
  uint8_t *scratch;
  std::vector<std::unordered_map<int, dnnl::memory>> args; // by step
};

/// Attributes every primitive here is made with.
dnnl::primitive_attr primitiveAttr();

} // namespace zrt

#endif // ZERO_RT_HOST_LIBRARYCALL_H
