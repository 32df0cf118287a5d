//===- PtxSyntax.h - The text of a PTX module, parsed ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX as LLVM's NVPTX backend and nvcc write it (PTX ISA 9.0): names are
// resolved to registers, variables and labels; opcodes stay words. Sizes and
// offsets are in bytes.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTXSYNTAX_H
#define ZERO_TEST_FAKECUDA_PTXSYNTAX_H

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fake_cuda::ptx {

/// Text that is no PTX, or PTX that this interpreter does not know; the message
/// names line and text.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  F32,
  F32x2,
  F64,
};

/// `word` without its dot, as in "f32"; None where it is no type.
Type typeOf(std::string_view word);
/// Bytes of a value; 4 for a predicate (a mask of lanes).
unsigned bytesOf(Type type);
bool isSigned(Type type);

enum class Space : uint8_t { Generic, Global, Shared, Local, Const, Param };

/// What a name stands for that has an address.
struct Variable {
  std::string name;
  Space space = Space::Generic;
  uint64_t bytes = 0;
  uint64_t align = 1;
  /// Declared without a size: the dynamic shared memory of a launch, or another
  /// module's.
  bool isUnsized = false;
  bool isExtern = false;
  /// What it contains at first; the rest is zero.
  std::vector<unsigned char> init;
  /// Addresses within it: (offset, name of a variable, offset there).
  struct Address {
    uint64_t at;
    std::string name;
    int64_t offset;
  };
  std::vector<Address> addresses;
};

struct Operand {
  enum Kind : uint8_t {
    Register, // `index` in Function::registers
    Special,  // `name`, as in "%tid.x"
    Integer,  // `bits`
    Float,    // `bits` of an f64
    Float32,  // `bits` of an f32
    Symbol,   // `variable`, or a function or label of `name`
    Memory,   // [parts[0] + bits]
    Vector,   // {parts...}
    Pair,     // parts[0]|parts[1]
    List,     // (parts...)
    Sink,     // _
  };
  Kind kind = Sink;
  bool negated = false;
  uint32_t index = 0;
  uint64_t bits = 0;
  std::string name;
  const Variable *variable = nullptr;
  std::vector<Operand> parts;
};

struct Instruction {
  uint32_t line = 0;
  /// As written, for messages.
  std::string_view text;
  /// The predicate register before it, or -1.
  int32_t guard = -1;
  bool guardNegated = false;
  /// "ld", "global", "f32" of ld.global.f32
  std::vector<std::string_view> words;
  std::vector<Operand> operands;
};

struct Function {
  std::string name;
  bool isEntry = false;
  bool hasBody = false;
  std::vector<std::unique_ptr<Variable>> params, results;
  /// Types of the registers, in the order of declaration.
  std::vector<Type> registers;
  /// Local, shared and param variables of the body.
  std::vector<std::unique_ptr<Variable>> variables;
  std::vector<Instruction> body;
  /// Index in `body` behind each label.
  std::map<std::string, uint32_t, std::less<>> labels;
  /// Tables of brx.idx.
  std::map<std::string, std::vector<std::string>, std::less<>> targets;
  /// Threads of a block: at most, exactly; zero: not given.
  std::array<uint32_t, 3> maxThreads{}, requiredThreads{};
};

/// A parsed module; it owns the text that instructions point into.
struct Syntax {
  std::string text;
  std::string target;
  std::vector<std::unique_ptr<Variable>> variables;
  std::vector<std::unique_ptr<Function>> functions;

  const Function *find(std::string_view name) const;
};

/// Throws Error.
std::unique_ptr<Syntax> parse(std::string_view text);

} // namespace fake_cuda::ptx

#endif // ZERO_TEST_FAKECUDA_PTXSYNTAX_H
