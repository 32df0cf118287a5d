//===- PtxDecode.h - From words to handlers -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each file of instructions adds its decoders to the table, by the first word
// of the opcode. A decoder takes the modifiers that it knows; any that is left
// is an error, so that none is ever ignored.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTXDECODE_H
#define ZERO_TEST_FAKECUDA_PTXDECODE_H

#include "test/fake-cuda/PtxMachine.h"

#include <initializer_list>
#include <tuple>

namespace fake_cuda::ptx {

/// Addresses of variables of the module and of an entry's shared memory and
/// parameters, each in its own space.
using Layout = std::map<const Variable *, uint64_t>;

/// An entry and the functions that it calls, decoded for one layout.
struct Program {
  std::map<const Function *, std::unique_ptr<Code>> codes;
};

/// Where control goes from each instruction.
struct Flow {
  std::vector<uint32_t> targets;
  bool fallsThrough = true;
};

class Decoder {
public:
  Decoder(const Syntax &syntax, const Function &function, Code &code,
          const Layout &layout, Program &program)
      : syntax(syntax), function(function), code(code), layout(layout),
        program(program) {}

  /// Fills the code; throws Error.
  void run();

  // What decoders of instructions use.

  std::string_view opcode() const { return source->words[0]; }
  /// Takes a modifier; false if it does not stand there.
  bool take(std::string_view word);
  /// The first of the words that stands there, or "".
  std::string_view takeOne(std::initializer_list<std::string_view> words);
  void ignore(std::initializer_list<std::string_view> words);
  /// Takes all modifiers that begin so.
  void ignorePrefix(std::string_view prefix);
  /// Takes the first modifier, which must be a type.
  Type takeType();
  /// The type that stands last, that of the operation; None if there is none.
  Type lastType() const;
  std::string_view firstWord() const {
    return words.empty() ? std::string_view() : words[0];
  }

  size_t operandCount() const { return source->operands.size(); }
  const Operand &operand(size_t i);
  void expectOperands(size_t count, size_t most = 0);
  /// The slot of a value of a type: register, immediate, special register,
  /// address. A register must have the type's size.
  uint32_t value(size_t i, Type type) { return value(operand(i), type); }
  uint32_t value(const Operand &operand, Type type);
  /// The slot of a register to be written; a new one for a sink.
  uint32_t result(size_t i, Type type) { return result(operand(i), type); }
  uint32_t result(const Operand &operand, Type type);
  /// A register of at least the type's size, and its bytes; immediates have the
  /// type's.
  uint32_t wideValue(const Operand &operand, Type type, unsigned &bytes);
  uint32_t wideResult(const Operand &operand, Type type, unsigned &bytes);
  uint32_t list(std::vector<uint32_t> slots);

  uint32_t constant(uint64_t bits, unsigned bytes);
  uint32_t preset(const std::string &name, unsigned bytes, uint64_t addend = 0);
  uint32_t scratch(unsigned bytes);
  /// The base of a memory operand; its offset goes to `offset`.
  uint32_t base(const Operand &memory, unsigned &bytes, int64_t &offset);
  uint32_t labelOf(const std::string &name);
  /// On the stack of a thread; a parameter of an entry is not.
  bool isOnStack(const Variable *variable) const {
    return stackOffsets.count(variable);
  }
  uint32_t stackOffset(const Variable *variable) const {
    return stackOffsets.at(variable);
  }
  const Function &functionOf(const Operand &operand);
  const Code &codeOf(const Function &callee);
  uint32_t addCall(Call call);

  /// Where control goes from this instruction.
  Flow &flow() { return flows.back(); }
  bool isGuarded() const { return source->guard >= 0; }
  const std::vector<std::string> *targetsOf(std::string_view table) const;

  [[noreturn]] void fail(const std::string &what) const;

private:
  void layOutRegisters();
  void layOutStack();
  void decode(const Instruction &instruction);

  const Syntax &syntax;
  const Function &function;
  Code &code;
  const Layout &layout;
  Program &program;
  const Instruction *source = nullptr;
  std::vector<std::string_view> words;
  std::vector<Flow> flows;
  std::vector<uint32_t> registerSlots;
  std::map<const Variable *, uint32_t> stackOffsets;
  std::map<std::pair<uint64_t, unsigned>, uint32_t> constantSlots;
  std::map<std::tuple<std::string, unsigned, uint64_t>, uint32_t> presetSlots;
};

/// Decodes a function and what it calls, each once. Throws Error.
const Code &decode(const Syntax &syntax, const Function &function,
                   const Layout &layout, Program &program);

using DecodeFunction = void (*)(Decoder &, Inst &);
using DecodeTable = std::map<std::string_view, DecodeFunction>;

// Where the type is no floating-point one, of instructions that have both.
void decodeIntegerAdd(Decoder &decoder, Inst &inst);
void decodeIntegerMul(Decoder &decoder, Inst &inst);
void decodeIntegerMad(Decoder &decoder, Inst &inst);
void decodeIntegerDiv(Decoder &decoder, Inst &inst);
void decodeIntegerUnary(Decoder &decoder, Inst &inst);
void decodeIntegerMinMax(Decoder &decoder, Inst &inst);
/// bar.warp.sync, whose words have been taken.
void decodeWarpBarrier(Decoder &decoder, Inst &inst);

void addIntegerInstructions(DecodeTable &table);
void addFloatInstructions(DecodeTable &table);
void addCompareInstructions(DecodeTable &table);
void addConvertInstructions(DecodeTable &table);
void addMoveInstructions(DecodeTable &table);
void addWarpInstructions(DecodeTable &table);
void addMemoryInstructions(DecodeTable &table);
void addAtomicInstructions(DecodeTable &table);
void addControlInstructions(DecodeTable &table);

/// By instruction, where the sides of a divergent branch meet: its immediate
/// post-dominator; kNone: where the function ends.
std::vector<uint32_t> findMeetings(const std::vector<Flow> &flows);

} // namespace fake_cuda::ptx

#endif // ZERO_TEST_FAKECUDA_PTXDECODE_H
