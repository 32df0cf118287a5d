//===- PtxParse.cpp - Parser of PTX ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxLexer.h"

#include <cstring>
#include <optional>

using namespace fake_cuda::ptx;

Type fake_cuda::ptx::typeOf(std::string_view word) {
  static const std::map<std::string_view, Type> types = {
      {"pred", Type::Pred},     {"b8", Type::B8},       {"b16", Type::B16},
      {"b32", Type::B32},       {"b64", Type::B64},     {"b128", Type::B128},
      {"u8", Type::U8},         {"u16", Type::U16},     {"u32", Type::U32},
      {"u64", Type::U64},       {"s8", Type::S8},       {"s16", Type::S16},
      {"s32", Type::S32},       {"s64", Type::S64},     {"f16", Type::F16},
      {"f16x2", Type::F16x2},   {"f32", Type::F32},     {"bf16", Type::BF16},
      {"bf16x2", Type::BF16x2}, {"f32x2", Type::F32x2}, {"f64", Type::F64},
  };
  auto found = types.find(word);
  return found == types.end() ? Type::None : found->second;
}

unsigned fake_cuda::ptx::bytesOf(Type type) {
  switch (type) {
  case Type::None:
    return 0;
  case Type::B8:
  case Type::U8:
  case Type::S8:
    return 1;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return 2;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
  case Type::F32x2:
    return 8;
  case Type::B128:
    return 16;
  default:
    return 4;
  }
}

bool fake_cuda::ptx::isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}

const Function *Syntax::find(std::string_view name) const {
  const Function *found = nullptr;
  for (const auto &function : functions)
    if (function->name == name && (!found || function->hasBody))
      found = function.get();
  return found;
}

namespace {
class Parser {
public:
  explicit Parser(Syntax &syntax) : syntax(syntax), lexer(syntax.text) {}

  void parseModule();

private:
  /// What a name means in a scope: a register, or a variable.
  struct Meaning {
    uint32_t reg = 0;
    const Variable *variable = nullptr;
  };
  using Scope = std::map<std::string, Meaning, std::less<>>;

  void parseFunction(bool isEntry);
  void parseParams(std::vector<std::unique_ptr<Variable>> &params);
  bool parseFunctionDirective(Function &function);
  std::array<uint32_t, 3> parseExtents();
  void parseBlock();
  void parseStatement();
  bool parseDeclaration();
  void parseRegisters();
  void parseBranchTargets(const std::string &label);
  void parseInstruction();
  Operand parseOperand();
  Operand parseList(Operand::Kind kind, std::string_view close);
  Operand parseMemory();
  Operand parseName();
  std::optional<Space> spaceOf(std::string_view word) const;
  std::unique_ptr<Variable> parseVariable(Space space);
  void parseInitializer(Variable &variable, unsigned elementBytes);
  void parseInitialValue(Variable &variable, unsigned elementBytes);
  const Meaning *lookUp(std::string_view name) const;

  Syntax &syntax;
  Lexer lexer;
  Function *function = nullptr;
  std::vector<Scope> scopes{1};
};
} // namespace

void Parser::parseModule() {
  bool isExtern = false;
  while (lexer.peek().kind != Token::End) {
    std::string_view word = lexer.peek().text;
    if (word == ".version" || word == ".address_size" || word == ".file" ||
        word == ".loc" || word == ".alias") {
      lexer.skipLine();
    } else if (word == ".target") {
      lexer.take();
      syntax.target = lexer.expectWord("a target");
      while (lexer.takeIf(","))
        lexer.expectWord("a target");
    } else if (word == ".section") {
      while (!lexer.peek().is("}") && lexer.peek().kind != Token::End)
        lexer.take();
      lexer.expect("}");
    } else if (word == ".pragma") {
      while (!lexer.takeIf(";"))
        lexer.take();
    } else if (word == ".visible" || word == ".weak" || word == ".common" ||
               word == ".extern") {
      isExtern = word == ".extern";
      lexer.take();
      continue;
    } else if (word == ".entry" || word == ".func") {
      lexer.take();
      parseFunction(word == ".entry");
    } else if (auto space = spaceOf(word)) {
      lexer.take();
      auto variable = parseVariable(*space);
      variable->isExtern = isExtern;
      lexer.expect(";");
      scopes.back()[variable->name] = {0, variable.get()};
      syntax.variables.push_back(std::move(variable));
    } else {
      lexer.fail("a directive at module level");
    }
    isExtern = false;
  }
}

std::optional<Space> Parser::spaceOf(std::string_view word) const {
  if (word == ".global")
    return Space::Global;
  if (word == ".shared")
    return Space::Shared;
  if (word == ".local")
    return Space::Local;
  if (word == ".const")
    return Space::Const;
  if (word == ".param")
    return Space::Param;
  return std::nullopt;
}

/// Behind the state space: `.align 4 .b8 name[16] = {...}`.
std::unique_ptr<Variable> Parser::parseVariable(Space space) {
  auto variable = std::make_unique<Variable>();
  variable->space = space;
  unsigned lanes = 1;
  uint64_t align = 0;
  Type type = Type::None;
  while (lexer.peek().kind == Token::Word && lexer.peek().text[0] == '.') {
    std::string_view word = lexer.take().text;
    if (word == ".align") {
      uint64_t value = lexer.expectInteger("an alignment");
      // Behind .ptr it is that of what the parameter points to.
      if (type == Type::None)
        align = value;
    } else if (word == ".v2" || word == ".v4") {
      lanes = word[2] - '0';
    } else if (word == ".attribute") {
      while (!lexer.takeIf(")"))
        lexer.take();
    } else if (typeOf(word.substr(1)) != Type::None) {
      type = typeOf(word.substr(1));
    } else if (word != ".ptr" && word != ".managed" && !spaceOf(word)) {
      lexer.fail("a variable behind '" + std::string(word) + "'");
    }
  }
  if (type == Type::None)
    lexer.fail("a type");
  unsigned element = bytesOf(type) * lanes;
  variable->name = lexer.expectWord("the name of a variable");
  variable->align = align ? align : element;
  variable->bytes = element;
  while (lexer.takeIf("[")) {
    if (lexer.peek().kind == Token::Integer)
      variable->bytes *= lexer.take().bits;
    else
      variable->isUnsized = true;
    lexer.expect("]");
  }
  if (variable->isUnsized)
    variable->bytes = 0;
  if (lexer.takeIf("="))
    parseInitializer(*variable, bytesOf(type));
  return variable;
}

void Parser::parseInitializer(Variable &variable, unsigned elementBytes) {
  if (!lexer.takeIf("{"))
    return parseInitialValue(variable, elementBytes);
  while (!lexer.takeIf("}")) {
    parseInitializer(variable, elementBytes);
    if (!lexer.takeIf(",") && !lexer.peek().is("}"))
      lexer.fail("',' or '}'");
  }
  if (variable.isUnsized)
    variable.bytes = variable.init.size();
  if (variable.init.size() > variable.bytes)
    lexer.fail("no more values than '" + variable.name + "' holds");
}

void Parser::parseInitialValue(Variable &variable, unsigned elementBytes) {
  bool isNegative = lexer.takeIf("-");
  uint64_t bits = 0;
  unsigned bytes = elementBytes;
  if (lexer.peek().kind == Token::Word) {
    std::string name(lexer.take().text);
    if (name == "generic") {
      lexer.expect("(");
      name = lexer.expectWord("a variable");
      lexer.expect(")");
    }
    int64_t offset = lexer.takeIf("+") ? lexer.expectInteger("an offset") : 0;
    variable.addresses.push_back({variable.init.size(), name, offset});
  } else if (lexer.peek().kind == Token::Integer) {
    bits = lexer.take().bits;
  } else if (lexer.peek().kind == Token::Float ||
             lexer.peek().kind == Token::Float32) {
    Token number = lexer.take();
    bits = number.bits;
    if (number.kind == Token::Float && elementBytes == 4) {
      double value;
      std::memcpy(&value, &bits, sizeof value);
      float narrow = static_cast<float>(value);
      bits = 0;
      std::memcpy(&bits, &narrow, sizeof narrow);
    }
  } else {
    lexer.fail("an initial value");
  }
  if (isNegative)
    bits = 0 - bits;
  for (unsigned i = 0; i < bytes; ++i)
    variable.init.push_back(static_cast<unsigned char>(bits >> (8 * i)));
}

void Parser::parseParams(std::vector<std::unique_ptr<Variable>> &params) {
  lexer.expect("(");
  while (!lexer.takeIf(")")) {
    lexer.expect(".param");
    params.push_back(parseVariable(Space::Param));
    if (!lexer.takeIf(",") && !lexer.peek().is(")"))
      lexer.fail("',' or ')'");
  }
}

std::array<uint32_t, 3> Parser::parseExtents() {
  std::array<uint32_t, 3> extents{1, 1, 1};
  unsigned i = 0;
  do {
    extents[i++] = lexer.expectInteger("a count of threads");
  } while (i < 3 && lexer.takeIf(","));
  return extents;
}

/// Between the parameters and the body. False where there is none (any more).
bool Parser::parseFunctionDirective(Function &function) {
  std::string_view word = lexer.peek().text;
  if (word == ".maxntid" || word == ".reqntid") {
    lexer.take();
    auto &extents =
        word == ".maxntid" ? function.maxThreads : function.requiredThreads;
    extents = parseExtents();
  } else if (word == ".minnctapersm" || word == ".maxnreg" ||
             word == ".maxnctapersm" || word == ".maxclusterrank") {
    lexer.take();
    lexer.expectInteger("a number");
  } else if (word == ".noreturn") {
    lexer.take();
  } else if (word == ".pragma") {
    while (!lexer.takeIf(";"))
      lexer.take();
  } else {
    return false;
  }
  return true;
}

void Parser::parseFunction(bool isEntry) {
  auto made = std::make_unique<Function>();
  function = made.get();
  function->isEntry = isEntry;
  if (!isEntry && lexer.peek().is("("))
    parseParams(function->results);
  function->name = lexer.expectWord("the name of a function");
  if (lexer.peek().is("("))
    parseParams(function->params);
  while (parseFunctionDirective(*function))
    ;
  scopes.emplace_back();
  for (auto *params : {&function->params, &function->results})
    for (auto &param : *params)
      scopes.back()[param->name] = {0, param.get()};
  if (!lexer.takeIf(";")) {
    function->hasBody = true;
    parseBlock();
  }
  scopes.pop_back();
  syntax.functions.push_back(std::move(made));
}

void Parser::parseBlock() {
  lexer.expect("{");
  scopes.emplace_back();
  while (!lexer.takeIf("}"))
    parseStatement();
  scopes.pop_back();
}

void Parser::parseStatement() {
  const Token &token = lexer.peek();
  if (token.is("{"))
    return parseBlock();
  if (lexer.takeIf(";"))
    return;
  if (token.kind == Token::Word && token.text[0] == '.' && parseDeclaration())
    return;
  parseInstruction();
}

bool Parser::parseDeclaration() {
  std::string_view word = lexer.peek().text;
  if (word == ".loc" || word == ".file") {
    lexer.skipLine();
  } else if (word == ".reg") {
    lexer.take();
    parseRegisters();
  } else if (word == ".pragma" || word == ".callprototype") {
    while (!lexer.takeIf(";"))
      lexer.take();
  } else if (auto space = spaceOf(word)) {
    lexer.take();
    auto variable = parseVariable(*space);
    lexer.expect(";");
    scopes.back()[variable->name] = {0, variable.get()};
    function->variables.push_back(std::move(variable));
  } else {
    lexer.fail("an instruction or a declaration");
  }
  return true;
}

/// Behind .reg: `.b32 %r<5>, %x;`.
void Parser::parseRegisters() {
  std::string_view word = lexer.expectWord("a type of registers");
  Type type = typeOf(word.substr(1));
  if (word[0] != '.' || type == Type::None)
    lexer.fail("a type of registers before");
  do {
    std::string name(lexer.expectWord("a register"));
    uint32_t next = function->registers.size();
    if (!lexer.takeIf("<")) {
      scopes.back()[name] = {next, nullptr};
      function->registers.push_back(type);
      continue;
    }
    uint64_t count = lexer.expectInteger("a count of registers");
    if (count > 1u << 20)
      lexer.fail("at most 2^20 registers before");
    lexer.expect(">");
    for (uint32_t i = 0; i < count; ++i)
      scopes.back()[name + std::to_string(i)] = {next + i, nullptr};
    function->registers.insert(function->registers.end(), count, type);
  } while (lexer.takeIf(","));
  lexer.expect(";");
}

void Parser::parseBranchTargets(const std::string &label) {
  lexer.expect(".branchtargets");
  auto &targets = function->targets[label];
  do {
    targets.emplace_back(lexer.expectWord("a label"));
  } while (lexer.takeIf(","));
  lexer.expect(";");
}

void Parser::parseInstruction() {
  Instruction made;
  made.line = lexer.peek().line;
  size_t begin = lexer.begin();
  if (lexer.takeIf("@")) {
    made.guardNegated = lexer.takeIf("!");
    std::string_view name = lexer.expectWord("a predicate");
    const Meaning *meaning = lookUp(name);
    if (!meaning || meaning->variable ||
        function->registers[meaning->reg] != Type::Pred)
      lexer.fail("a predicate register instead of '" + std::string(name) + "'");
    made.guard = static_cast<int32_t>(meaning->reg);
  }
  std::string_view word = lexer.expectWord("an instruction");
  if (made.guard < 0 && lexer.takeIf(":")) {
    if (!function->labels.emplace(word, function->body.size()).second)
      lexer.fail("each label once, but '" + std::string(word) +
                 "' twice; before");
    if (lexer.peek().is(".branchtargets"))
      parseBranchTargets(std::string(word));
    return;
  }
  for (size_t from = 0; from <= word.size();) {
    size_t dot = std::min(word.find('.', from), word.size());
    made.words.push_back(word.substr(from, dot - from));
    from = dot + 1;
  }
  while (!lexer.peek().is(";")) {
    made.operands.push_back(parseOperand());
    if (!lexer.takeIf(",") && !lexer.peek().is(";"))
      lexer.fail("',' or ';'");
  }
  lexer.expect(";");
  made.text = lexer.slice(begin, lexer.end());
  function->body.push_back(std::move(made));
}

const Parser::Meaning *Parser::lookUp(std::string_view name) const {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    auto found = scope->find(name);
    if (found != scope->end())
      return &found->second;
  }
  return nullptr;
}

Operand Parser::parseList(Operand::Kind kind, std::string_view close) {
  Operand list;
  list.kind = kind;
  while (!lexer.takeIf(close)) {
    list.parts.push_back(parseOperand());
    if (!lexer.takeIf(",") && !lexer.peek().is(close))
      lexer.fail("',' or '" + std::string(close) + "'");
  }
  return list;
}

/// Behind the bracket: `%rd1+-16]`.
Operand Parser::parseMemory() {
  Operand memory;
  memory.kind = Operand::Memory;
  memory.parts.push_back(parseOperand());
  while (!lexer.takeIf("]")) {
    bool isNegative = lexer.takeIf("-");
    if (!isNegative)
      lexer.expect("+");
    isNegative ^= lexer.takeIf("-");
    uint64_t offset = lexer.expectInteger("an offset");
    memory.bits += isNegative ? 0 - offset : offset;
  }
  return memory;
}

Operand Parser::parseName() {
  Operand operand;
  operand.name = lexer.expectWord("an operand");
  if (operand.name == "_")
    return operand;
  const Meaning *meaning = lookUp(operand.name);
  if (meaning && !meaning->variable) {
    operand.kind = Operand::Register;
    operand.index = meaning->reg;
  } else if (meaning || operand.name[0] != '%') {
    operand.kind = Operand::Symbol;
    operand.variable = meaning ? meaning->variable : nullptr;
    // An address plus a constant: `mov.u64 %rd1, table+8`.
    if (lexer.takeIf("+")) {
      bool isNegative = lexer.takeIf("-");
      uint64_t offset = lexer.expectInteger("an offset");
      operand.bits = isNegative ? 0 - offset : offset;
    }
  } else {
    operand.kind = Operand::Special;
  }
  return operand;
}

Operand Parser::parseOperand() {
  if (lexer.takeIf("{"))
    return parseList(Operand::Vector, "}");
  if (lexer.takeIf("("))
    return parseList(Operand::List, ")");
  if (lexer.takeIf("["))
    return parseMemory();
  if (lexer.takeIf("!")) {
    Operand operand = parseName();
    operand.negated = true;
    return operand;
  }
  bool isNegative = lexer.takeIf("-");
  Token::Kind kind = lexer.peek().kind;
  if (kind == Token::Integer || kind == Token::Float ||
      kind == Token::Float32) {
    Operand operand;
    operand.kind = kind == Token::Integer ? Operand::Integer
                   : kind == Token::Float ? Operand::Float
                                          : Operand::Float32;
    operand.bits = lexer.take().bits;
    if (isNegative && kind == Token::Integer)
      operand.bits = 0 - operand.bits;
    else if (isNegative)
      operand.bits ^= uint64_t(1) << (kind == Token::Float ? 63 : 31);
    return operand;
  }
  Operand operand = parseName();
  if (lexer.takeIf("|")) {
    Operand pair;
    pair.kind = Operand::Pair;
    pair.parts.push_back(std::move(operand));
    pair.parts.push_back(parseName());
    return pair;
  }
  return operand;
}

std::unique_ptr<Syntax> fake_cuda::ptx::parse(std::string_view text) {
  auto syntax = std::make_unique<Syntax>();
  syntax->text = text;
  Parser(*syntax).parseModule();
  return syntax;
}
