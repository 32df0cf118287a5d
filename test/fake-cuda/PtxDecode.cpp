//===- PtxDecode.cpp - From words to handlers -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxDecode.h"

#include <algorithm>

using namespace fake_cuda::ptx;

static const DecodeTable &decodeTable() {
  static const DecodeTable table = [] {
    DecodeTable made;
    addIntegerInstructions(made);
    addFloatInstructions(made);
    addCompareInstructions(made);
    addConvertInstructions(made);
    addMoveInstructions(made);
    addWarpInstructions(made);
    addMemoryInstructions(made);
    addAtomicInstructions(made);
    addControlInstructions(made);
    return made;
  }();
  return table;
}

const Code &fake_cuda::ptx::decode(const Syntax &syntax,
                                   const Function &function,
                                   const Layout &layout, Program &program) {
  auto [entry, isNew] = program.codes.try_emplace(&function);
  if (isNew) {
    auto code = std::make_unique<Code>();
    code->function = &function;
    Decoder(syntax, function, *code, layout, program).run();
    program.codes[&function] = std::move(code);
  } else if (!entry->second) {
    throw Error("PTX function '" + function.name +
                "' calls itself: recursion is not supported");
  }
  return *program.codes[&function];
}

void Decoder::fail(const std::string &what) const {
  throw Error("PTX line " + std::to_string(source->line) + ": '" +
              std::string(source->text) + "': " + what);
}

bool Decoder::take(std::string_view word) {
  auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end())
    return false;
  words.erase(found);
  return true;
}

std::string_view
Decoder::takeOne(std::initializer_list<std::string_view> choice) {
  for (std::string_view word : choice)
    if (take(word))
      return word;
  return "";
}

void Decoder::ignore(std::initializer_list<std::string_view> choice) {
  for (std::string_view word : choice)
    take(word);
}

void Decoder::ignorePrefix(std::string_view prefix) {
  words.erase(std::remove_if(words.begin(), words.end(),
                             [&](std::string_view word) {
                               return word.substr(0, prefix.size()) == prefix;
                             }),
              words.end());
}

Type Decoder::lastType() const {
  Type last = Type::None;
  for (std::string_view word : words)
    if (Type type = typeOf(word); type != Type::None)
      last = type;
  return last;
}

Type Decoder::takeType() {
  for (std::string_view word : words) {
    Type type = typeOf(word);
    if (type == Type::None)
      continue;
    take(word);
    return type;
  }
  fail("a type is missing");
}

const Operand &Decoder::operand(size_t i) {
  if (i >= source->operands.size())
    fail("operand " + std::to_string(i + 1) + " is missing");
  return source->operands[i];
}

void Decoder::expectOperands(size_t count, size_t most) {
  most = std::max(count, most);
  if (operandCount() < count || operandCount() > most)
    fail("it has " + std::to_string(operandCount()) + " operands, expected " +
         std::to_string(count));
}

uint32_t Decoder::scratch(unsigned bytes) {
  uint32_t slot = code.registerBytes;
  code.registerBytes += bytes * kLanes;
  return slot;
}

uint32_t Decoder::constant(uint64_t bits, unsigned bytes) {
  if (bytes < 8)
    bits &= (uint64_t(1) << (8 * bytes)) - 1;
  auto [entry, isNew] = constantSlots.try_emplace({bits, bytes});
  if (isNew) {
    entry->second = code.constants.size() | 1;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned i = 0; i < bytes; ++i)
        code.constants.push_back(bits >> (8 * i));
  }
  return entry->second;
}

uint32_t Decoder::preset(const std::string &name, unsigned bytes,
                         uint64_t addend) {
  auto [entry, isNew] = presetSlots.try_emplace({name, bytes, addend});
  if (isNew) {
    entry->second = scratch(bytes);
    code.presets.push_back({findSpecial(name), entry->second, bytes, addend});
  }
  return entry->second;
}

uint32_t Decoder::list(std::vector<uint32_t> slots) {
  code.lists.push_back(std::move(slots));
  return code.lists.size() - 1;
}

uint32_t Decoder::addCall(Call call) {
  code.calls.push_back(std::move(call));
  return code.calls.size() - 1;
}

static uint64_t immediate(const Operand &operand, Type type) {
  if (operand.kind != Operand::Float || bytesOf(type) != 4)
    return operand.bits;
  double value;
  std::memcpy(&value, &operand.bits, sizeof value);
  float narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  return bits;
}

uint32_t Decoder::value(const Operand &operand, Type type) {
  unsigned bytes = 0;
  uint32_t slot = wideValue(operand, type, bytes);
  if (bytes != bytesOf(type))
    fail("'" + operand.name + "' has " + std::to_string(bytes) +
         " bytes, expected " + std::to_string(bytesOf(type)));
  return slot;
}

uint32_t Decoder::wideValue(const Operand &operand, Type type,
                            unsigned &bytes) {
  bytes = bytesOf(type);
  bool isFloat = type == Type::F32 || type == Type::F64;
  switch (operand.kind) {
  case Operand::Register: {
    Type held = function.registers[operand.index];
    bytes = bytesOf(held);
    if ((held == Type::Pred) != (type == Type::Pred) || bytes < bytesOf(type))
      fail("register '" + operand.name + "' has another type than expected");
    return registerSlots[operand.index];
  }
  case Operand::Special:
    if (!findSpecial(operand.name))
      fail("register '" + operand.name + "' is not known");
    return preset(operand.name, bytes);
  case Operand::Symbol:
    if (bytes != 4 && bytes != 8)
      fail("the address of '" + operand.name + "' has 4 or 8 bytes");
    if (!operand.variable)
      fail("'" + operand.name + "' is no variable");
    if (isOnStack(operand.variable))
      return preset("", bytes, stackOffset(operand.variable) + operand.bits);
    if (!layout.count(operand.variable))
      fail("'" + operand.name + "' has no address here");
    return constant(layout.at(operand.variable) + operand.bits, bytes);
  case Operand::Integer:
    if (type == Type::Pred)
      return constant(operand.bits ? kAllLanes : 0, sizeof(Mask));
    if (isFloat)
      fail("an integer where a floating-point number belongs");
    return constant(operand.bits, bytes);
  case Operand::Float:
  case Operand::Float32:
    if (bytes != (operand.kind == Operand::Float32 ? 4u : 8u) &&
        !(operand.kind == Operand::Float && bytes == 4))
      fail("a floating-point number of another size than the operand");
    return constant(immediate(operand, type), bytes);
  default:
    fail("a single value was expected as operand");
  }
}

uint32_t Decoder::result(const Operand &operand, Type type) {
  unsigned bytes = 0;
  uint32_t slot = wideResult(operand, type, bytes);
  if (bytes != bytesOf(type))
    fail("'" + operand.name + "' has " + std::to_string(bytes) +
         " bytes, expected " + std::to_string(bytesOf(type)));
  return slot;
}

uint32_t Decoder::wideResult(const Operand &operand, Type type,
                             unsigned &bytes) {
  bytes = bytesOf(type);
  if (operand.kind == Operand::Sink)
    return scratch(std::max(bytes, 4u));
  if (operand.kind != Operand::Register)
    fail("a register was expected as result");
  return wideValue(operand, type, bytes);
}

uint32_t Decoder::base(const Operand &memory, unsigned &bytes,
                       int64_t &offset) {
  if (memory.kind != Operand::Memory)
    fail("an address in brackets was expected");
  const Operand &base = memory.parts[0];
  offset = static_cast<int64_t>(memory.bits);
  if (base.kind == Operand::Register)
    return wideValue(base, Type::B32, bytes);
  return wideValue(base, Type::B64, bytes);
}

uint32_t Decoder::labelOf(const std::string &name) {
  auto found = function.labels.find(name);
  if (found == function.labels.end())
    fail("there is no label '" + name + "'");
  return found->second;
}

const std::vector<std::string> *
Decoder::targetsOf(std::string_view table) const {
  auto found = function.targets.find(table);
  return found == function.targets.end() ? nullptr : &found->second;
}

const Function &Decoder::functionOf(const Operand &operand) {
  const Function *callee = syntax.find(operand.name);
  if (operand.kind != Operand::Symbol || !callee)
    fail("only functions of the module can be called, by name");
  if (!callee->hasBody)
    fail("function '" + operand.name + "' has no body in the module");
  return *callee;
}

const Code &Decoder::codeOf(const Function &callee) {
  const Code &called = ptx::decode(syntax, callee, layout, program);
  code.totalStackBytes =
      std::max(code.totalStackBytes, code.stackBytes + called.totalStackBytes);
  return called;
}

void Decoder::layOutRegisters() {
  // Predicates last: the others stay aligned to 64 bytes.
  registerSlots.resize(function.registers.size());
  for (size_t i = 0; i < function.registers.size(); ++i) {
    Type type = function.registers[i];
    if (type == Type::Pred)
      continue;
    registerSlots[i] = scratch(std::max(bytesOf(type), 2u));
  }
  for (size_t i = 0; i < function.registers.size(); ++i) {
    if (function.registers[i] != Type::Pred)
      continue;
    registerSlots[i] = code.registerBytes;
    code.registerBytes += sizeof(Mask);
  }
  code.registerBytes = (code.registerBytes + 63) / 64 * 64;
}

void Decoder::layOutStack() {
  auto place = [&](const std::vector<std::unique_ptr<Variable>> &variables) {
    for (const auto &variable : variables) {
      if (variable->space != Space::Local && variable->space != Space::Param)
        continue;
      uint32_t align = std::max<uint64_t>(variable->align, 1);
      code.stackBytes = (code.stackBytes + align - 1) / align * align;
      stackOffsets[variable.get()] = code.stackBytes;
      code.stackBytes += variable->bytes;
    }
  };
  if (!function.isEntry) {
    place(function.params);
    place(function.results);
    for (const auto &param : function.params)
      code.paramOffsets.push_back(stackOffsets[param.get()]);
    for (const auto &result : function.results)
      code.resultOffsets.push_back(stackOffsets[result.get()]);
  }
  place(function.variables);
  code.stackBytes = (code.stackBytes + 15) / 16 * 16;
  code.totalStackBytes = code.stackBytes;
}

void Decoder::decode(const Instruction &instruction) {
  source = &instruction;
  words.assign(instruction.words.begin() + 1, instruction.words.end());
  auto found = decodeTable().find(opcode());
  if (found == decodeTable().end())
    fail("instruction '" + std::string(opcode()) + "' is not known");
  Inst inst;
  inst.source = &instruction;
  inst.guardNegated = instruction.guardNegated;
  if (instruction.guard >= 0)
    inst.guard = registerSlots[instruction.guard];
  flows.emplace_back();
  found->second(*this, inst);
  if (!words.empty())
    fail("modifier '." + std::string(words[0]) + "' is not known");
  code.insts.push_back(inst);
}

/// What a body without `ret` ends with.
static Instruction makeReturn() {
  Instruction ret;
  ret.text = "the end of the function";
  ret.words = {"ret"};
  return ret;
}

void Decoder::run() {
  static const Instruction end = makeReturn();
  layOutRegisters();
  layOutStack();
  for (const Instruction &instruction : function.body)
    decode(instruction);
  decode(end);
  std::vector<uint32_t> meetings = findMeetings(flows);
  for (size_t i = 0; i < code.insts.size(); ++i)
    if (!flows[i].targets.empty())
      code.insts[i].d = meetings[i];
}
