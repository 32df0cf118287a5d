//===- OutlineState.cpp - zero-outline-state ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns arguments and results with zero.role into symbols, reads and
// assignments.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "zero/Transforms/Passes.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZEROOUTLINESTATEPASS
#include "zero/Transforms/Passes.h.inc"
} // namespace mlir::zero

#define DEBUG_TYPE "zero-outline-state"

using namespace mlir;
using namespace mlir::zero;

static constexpr StringLiteral kRole = "zero.role";
static constexpr StringLiteral kName = "zero.name";
static constexpr StringLiteral kOf = "zero.of";
static constexpr StringLiteral kUnit = "zero.unit";

namespace {
enum class Role { Param, Frozen, Buffer, State, Input, Hyper, Output, Unknown };

/// Outlines one function.
class Outliner {
public:
  Outliner(func::FuncOp func, SymbolTable &symbols)
      : func(func), symbols(symbols), body(&func.getFunctionBody().front()) {}

  LogicalResult run();
  int64_t numSymbols = 0;

private:
  LogicalResult outlineArgument(unsigned index);
  LogicalResult outlineResult(unsigned index);
  LogicalResult declare(unsigned index, Role role, StringRef name);
  StringRef getString(DictionaryAttr attrs, StringRef name);

  func::FuncOp func;
  SymbolTable &symbols;
  Block *body;
  /// Arguments and results that symbols take the place of.
  llvm::BitVector deadArguments, deadResults;
};

class OutlineStatePass
    : public zero::impl::ZeroOutlineStatePassBase<OutlineStatePass> {
public:
  void runOnOperation() override;
};
} // namespace

/// The role that `attrs` names, or `otherwise` where they name none.
static Role parseRole(DictionaryAttr attrs, Role otherwise) {
  Attribute attr = attrs ? attrs.get(kRole) : nullptr;
  if (!attr)
    return otherwise;
  auto role = dyn_cast<StringAttr>(attr);
  return llvm::StringSwitch<Role>(role ? role.getValue() : "")
      .Case("param", Role::Param)
      .Case("frozen", Role::Frozen)
      .Case("buffer", Role::Buffer)
      .Case("state", Role::State)
      .Case("input", Role::Input)
      .Case("hyper", Role::Hyper)
      .Case("output", Role::Output)
      .Default(Role::Unknown);
}

static bool hasRoles(func::FuncOp func) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (func.getArgAttr(i, kRole))
      return true;
  return false;
}

StringRef Outliner::getString(DictionaryAttr attrs, StringRef name) {
  auto attr = attrs ? attrs.getAs<StringAttr>(name) : nullptr;
  return attr ? attr.getValue() : "";
}

/// Declares the symbol of argument `index` and reads it in the argument's
/// place.
LogicalResult Outliner::declare(unsigned index, Role role, StringRef name) {
  DictionaryAttr attrs = func.getArgAttrDict(index);
  BlockArgument arg = body->getArgument(index);
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  if (!type || !type.hasStaticShape())
    return func.emitOpError() << "argument " << index << " ('" << name
                              << "') is state and needs a tensor type of "
                              << "static shape, got " << arg.getType();
  if (symbols.lookup(name))
    return func.emitOpError() << "argument " << index << " is named '" << name
                              << "', which is already a symbol";
  OpBuilder builder(func);
  Operation *symbol;
  if (role == Role::State) {
    StringRef of = getString(attrs, kOf);
    if (!symbols.lookup<ParamOp>(of))
      return func.emitOpError()
             << "argument " << index << " ('" << name << "') is a state of '"
             << of << "', which is no earlier argument with role param";
    auto state = StateOp::create(builder, arg.getLoc(), name, of, type);
    state.setZeros(true);
    symbol = state;
  } else {
    auto param = ParamOp::create(builder, arg.getLoc(), name, type);
    param.setFrozen(role == Role::Frozen);
    param.setBuffer(role == Role::Buffer);
    if (StringRef unit = getString(attrs, kUnit); !unit.empty())
      param.setUnit(unit);
    symbol = param;
  }
  symbols.insert(symbol);
  builder.setInsertionPointToStart(body);
  // Reads stand in the order of the arguments.
  while (builder.getInsertionPoint() != body->end() &&
         isa<ReadOp>(*builder.getInsertionPoint()))
    builder.setInsertionPointAfter(&*builder.getInsertionPoint());
  auto read = ReadOp::create(builder, arg.getLoc(), type,
                             SymbolTable::getSymbolName(symbol));
  arg.replaceAllUsesWith(read.getValue());
  deadArguments.set(index);
  ++numSymbols;
  return success();
}

LogicalResult Outliner::outlineArgument(unsigned index) {
  DictionaryAttr attrs = func.getArgAttrDict(index);
  // Said already in the words of a step function.
  if (attrs && (attrs.get(kInputAttr) || attrs.get(kHyperAttr)))
    return success();
  Role role = parseRole(attrs, Role::Input);
  std::string name = getString(attrs, kName).str();
  if (name.empty())
    name = ("arg" + Twine(index)).str();
  if (role == Role::Unknown || role == Role::Output)
    return func.emitOpError()
           << "argument " << index << " has zero.role '"
           << getString(attrs, kRole)
           << "'; expects param, frozen, buffer, state, input or hyper";
  if (role != Role::Input && role != Role::Hyper)
    return declare(index, role, name);
  StringRef attr = kHyperAttr;
  if (role == Role::Input)
    attr = kInputAttr;
  func.removeArgAttr(index, kRole);
  func.removeArgAttr(index, kName);
  func.setArgAttr(index, attr, StringAttr::get(func.getContext(), name));
  return success();
}

LogicalResult Outliner::outlineResult(unsigned index) {
  DictionaryAttr attrs = func.getResultAttrDict(index);
  if (attrs && attrs.get(kOutputAttr))
    return success();
  Role role = parseRole(attrs, Role::Output);
  StringRef of = getString(attrs, kOf);
  MLIRContext *context = func.getContext();
  if (role == Role::Output) {
    std::string name = getString(attrs, kName).str();
    if (name.empty())
      name = ("output" + Twine(index)).str();
    func.removeResultAttr(index, StringAttr::get(context, kRole));
    func.removeResultAttr(index, StringAttr::get(context, kName));
    func.setResultAttr(index, kOutputAttr, StringAttr::get(context, name));
    if (!func.getResultAttr(index, kAcrossAttr))
      func.setResultAttr(index, kAcrossAttr, StringAttr::get(context, "mean"));
    return success();
  }
  if (role != Role::Param && role != Role::State && role != Role::Buffer)
    return func.emitOpError() << "result " << index << " has zero.role '"
                              << getString(attrs, kRole)
                              << "'; expects param, state, buffer or output";
  bool matches = role == Role::State ? bool(symbols.lookup<StateOp>(of))
                                     : bool(symbols.lookup<ParamOp>(of));
  if (!matches)
    return func.emitOpError() << "result " << index << " is the new value of '"
                              << of << "', which is no argument with that role";
  Operation *terminator = body->getTerminator();
  OpBuilder builder(terminator);
  AssignOp::create(builder, terminator->getLoc(), of,
                   terminator->getOperand(index));
  deadResults.set(index);
  return success();
}

LogicalResult Outliner::run() {
  deadArguments.resize(func.getNumArguments());
  deadResults.resize(func.getNumResults());
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (failed(outlineArgument(i)))
      return failure();
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (failed(outlineResult(i)))
      return failure();
  body->getTerminator()->eraseOperands(deadResults);
  return success(succeeded(func.eraseResults(deadResults)) &&
                 succeeded(func.eraseArguments(deadArguments)));
}

void OutlineStatePass::runOnOperation() {
  SymbolTable symbols(getOperation());
  SmallVector<func::FuncOp> funcs(getOperation().getOps<func::FuncOp>());
  for (func::FuncOp func : funcs) {
    if (func.isExternal() || !hasRoles(func))
      continue;
    if (!func.getFunctionBody().hasOneBlock()) {
      func.emitOpError("has zero.role arguments and several blocks; a step "
                       "function is one block");
      return signalPassFailure();
    }
    Outliner outliner(func, symbols);
    if (failed(outliner.run()))
      return signalPassFailure();
    numSymbols += outliner.numSymbols;
  }
}
