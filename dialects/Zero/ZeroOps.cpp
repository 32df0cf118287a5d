//===- ZeroOps.cpp - state, reads and ends of life ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Syntax and verifiers of the symbols and of the ops that touch them.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/HostSyntax.h"

using namespace mlir;
using namespace mlir::zero;

/// init("file"[, "tensor"])
static ParseResult parseInitSource(OpAsmParser &parser, StringAttr &file,
                                   StringAttr &tensor) {
  if (parser.parseAttribute(file))
    return failure();
  if (failed(parser.parseOptionalComma()))
    return success();
  return parser.parseAttribute(tensor);
}

static void printInitSource(OpAsmPrinter &printer, Operation *, StringAttr file,
                            StringAttr tensor) {
  printer << file;
  if (tensor)
    printer << ", " << tensor;
}

/// tied("a", "b")
static ParseResult parseNames(OpAsmParser &parser, ArrayAttr &names) {
  SmallVector<Attribute> list;
  auto parseName = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseAttribute(name))
      return failure();
    list.push_back(name);
    return success();
  };
  if (parser.parseCommaSeparatedList(parseName))
    return failure();
  names = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printNames(OpAsmPrinter &printer, Operation *, ArrayAttr names) {
  llvm::interleaveComma(names, printer);
}

#define GET_OP_CLASSES
#include "dialects/Zero/ZeroOps.cpp.inc"

/// Rules of a symbol's type that need nothing but the type.
static LogicalResult verifyStateType(Operation *op, Type type) {
  auto tensor = getLogicalType(type);
  if (!tensor || !tensor.hasStaticShape())
    return op->emitOpError() << "expects a tensor of static shape or a "
                             << "!zero.sharded, got " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// ParamOp, StateOp
//===----------------------------------------------------------------------===//

void ParamOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                    Type type) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getTypeAttrName(state.name), TypeAttr::get(type));
}

RankedTensorType ParamOp::getLogicalType() {
  return zero::getLogicalType(getType());
}

LogicalResult ParamOp::verify() {
  if (failed(verifyStateType(*this, getType())))
    return failure();
  if (bool(getInitFile()) + getZeros() + getOnes() > 1)
    return emitOpError("expects at most one of init, zeros and ones");
  if (getInitTensor() && !getInitFile())
    return emitOpError("names a tensor to start from but no file");
  if (getFrozen() && getBuffer())
    return emitOpError("cannot be both frozen and a buffer");
  if (getBuffer() && isa<ShardedType>(getType()))
    return emitOpError() << "is a buffer, which every rank holds whole; "
                         << "expects a tensor type, got " << getType();
  return success();
}

void StateOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                    StringRef param, Type type) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  if (!param.empty())
    state.addAttribute(getParamAttrName(state.name),
                       FlatSymbolRefAttr::get(builder.getContext(), param));
  state.addAttribute(getTypeAttrName(state.name), TypeAttr::get(type));
}

RankedTensorType StateOp::getLogicalType() {
  return zero::getLogicalType(getType());
}

LogicalResult StateOp::verify() {
  if (failed(verifyStateType(*this, getType())))
    return failure();
  if (bool(getInitFile()) + getZeros() + bool(getValue()) > 1)
    return emitOpError("expects at most one of init, zeros and value");
  if (getInitTensor() && !getInitFile())
    return emitOpError("names a tensor to start from but no file");
  if (getValue() && getValue()->getType() != getLogicalType())
    return emitOpError() << "expects a value of type " << getLogicalType()
                         << ", got " << getValue()->getType();
  if (getAccumulator() && !getZeros())
    return emitOpError("is an accumulator; expects zeros to start from");
  if (!getParam() && isa<ShardedType>(getType()))
    return emitOpError()
           << "is a state of no parameter, which every rank holds "
           << "whole; expects a tensor type, got " << getType();
  return success();
}

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getParam())
    return success();
  auto param = symbols.lookupNearestSymbolFrom<ParamOp>(*this, getParamAttr());
  if (!param)
    return emitOpError() << "refers to " << getParamAttr()
                         << ", which is not a zero.param of this module";
  if (!param.isTrained())
    return emitOpError() << "is the state of " << getParamAttr()
                         << ", which is not trained";
  if (getLogicalType().getShape() != param.getLogicalType().getShape())
    return emitOpError() << "expects the shape of its parameter "
                         << param.getLogicalType() << ", got "
                         << getLogicalType();
  auto sharded = dyn_cast<ShardedType>(getType());
  auto paramSharded = dyn_cast<ShardedType>(param.getType());
  // A parameter that only lies elsewhere is not cut.
  bool cut = paramSharded && !paramSharded.getAxes().empty();
  if (cut && (!sharded || sharded.getDim() != paramSharded.getDim() ||
              sharded.getGrid() != paramSharded.getGrid() ||
              sharded.getAxes() != paramSharded.getAxes()))
    return emitOpError() << "expects to be cut as its parameter "
                         << paramSharded << ", got " << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// ReadOp, AssignOp
//===----------------------------------------------------------------------===//

/// The type of a param or state, null with an error where there is none.
static Type lookupStateType(Operation *op, FlatSymbolRefAttr name,
                            SymbolTableCollection &symbols) {
  Operation *symbol = symbols.lookupNearestSymbolFrom(op, name);
  if (auto param = dyn_cast_or_null<ParamOp>(symbol))
    return param.getType();
  if (auto state = dyn_cast_or_null<StateOp>(symbol))
    return state.getType();
  op->emitOpError() << "refers to " << name
                    << ", which is not a zero.param or zero.state";
  return {};
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Type type = lookupStateType(*this, getSymbolAttr(), symbols);
  if (!type)
    return failure();
  if (type != getType())
    return emitOpError() << "expects the type of " << getSymbolAttr() << ", "
                         << type << ", got " << getType();
  return success();
}

void ReadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getValue(), getSymbol());
}

LogicalResult AssignOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Type type = lookupStateType(*this, getSymbolAttr(), symbols);
  if (!type)
    return failure();
  auto param = symbols.lookupNearestSymbolFrom<ParamOp>(*this, getSymbolAttr());
  if (param && param.getFrozen())
    return emitOpError() << "assigns " << getSymbolAttr()
                         << ", which is frozen";
  Type expected = type;
  if (auto sharded = dyn_cast<ShardedType>(type)) {
    auto grid = symbols.lookupNearestSymbolFrom<shard::GridOp>(
        *this, sharded.getGrid());
    FailureOr<int64_t> ranks = failure();
    if (grid)
      ranks = getRanks(grid, sharded.getAxes());
    if (failed(ranks))
      return emitOpError() << "assigns " << getSymbolAttr()
                           << ", whose grid is not declared: " << sharded;
    expected = sharded.getLocalType(*ranks);
  }
  if (expected != getValue().getType())
    return emitOpError() << "expects " << expected << " for " << getSymbolAttr()
                         << " of type " << type << ", got "
                         << getValue().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// ReleaseOp
//===----------------------------------------------------------------------===//

LogicalResult ReleaseOp::verify() {
  if (getValues().empty())
    return emitOpError("expects at least one gathered value");
  for (Value value : getValues())
    if (!isa_and_nonnull<AllGatherOp, WaitOp, ReshardOp>(value.getDefiningOp()))
      return emitOpError()
             << "expects results of zero.all_gather, zero.wait or "
             << "zero.reshard, got another value of type " << value.getType();
  return success();
}
