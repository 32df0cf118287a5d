//===- ZeroHost.cpp - compute of the host's processor ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Syntax of transfers, syntax and constraints of zero.on_host and its start
// form.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/HostSyntax.h"

using namespace mlir;
using namespace mlir::zero;

ParseResult zero::parseMemory(OpAsmParser &parser, MemoryAttr &memory) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Memory> value = symbolizeMemory(word);
  if (!value)
    return parser.emitError(loc)
           << "expected device, host or disk, got '" << word << "'";
  memory = MemoryAttr::get(parser.getContext(), *value);
  return success();
}

void zero::printMemory(OpAsmPrinter &printer, Operation *, MemoryAttr memory) {
  printer << stringifyMemory(memory.getValue());
}

//===----------------------------------------------------------------------===//
// Syntax: (%p = %a, %g = %b) : (T, T) -> (T) { ... }
//===----------------------------------------------------------------------===//

ParseResult
zero::parseHostBody(OpAsmParser &parser,
                    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inputs,
                    SmallVectorImpl<Type> &inputTypes,
                    SmallVectorImpl<Type> &resultTypes, Region &body) {
  SmallVector<OpAsmParser::Argument> arguments;
  SMLoc loc = parser.getCurrentLocation();
  FunctionType type;
  if (parser.parseAssignmentList(arguments, inputs) ||
      parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != inputs.size())
    return parser.emitError(loc)
           << "expected " << inputs.size() << " operand types, got "
           << type.getNumInputs();
  llvm::append_range(inputTypes, type.getInputs());
  llvm::append_range(resultTypes, type.getResults());
  for (auto [argument, input] : llvm::zip_equal(arguments, type.getInputs()))
    argument.type = input;
  return parser.parseRegion(body, arguments);
}

ParseResult
zero::parseHostBody(OpAsmParser &parser,
                    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inputs,
                    SmallVectorImpl<Type> &inputTypes, Type &future,
                    Region &body) {
  SmallVector<Type> results;
  SMLoc loc = parser.getCurrentLocation();
  if (parseHostBody(parser, inputs, inputTypes, results, body))
    return failure();
  if (results.size() != 1)
    return parser.emitError(loc)
           << "expected one future, got " << results.size() << " results";
  future = results.front();
  return success();
}

void zero::printHostBody(OpAsmPrinter &printer, Operation *op,
                         OperandRange inputs, TypeRange inputTypes,
                         TypeRange resultTypes, Region &body) {
  printer << "(";
  llvm::interleaveComma(
      llvm::zip(body.getArguments(), inputs), printer, [&](auto pair) {
        printer << std::get<0>(pair) << " = " << std::get<1>(pair);
      });
  printer << ") : ";
  printer.printFunctionalType(inputTypes, resultTypes);
  printer << " ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/true);
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult verifyBody(OpTy op) {
  Block &body = op.getBody().front();
  if (!llvm::equal(body.getArgumentTypes(), op.getInputs().getTypes()))
    return op.emitOpError("has a body whose arguments differ from the "
                          "operands in number or type");
  SmallVector<Type> expected = op.getYieldedTypes();
  if (!llvm::equal(op.getYield().getOperandTypes(), expected))
    return op.emitOpError()
           << "has a body that yields " << op.getYield().getOperandTypes()
           << ", expected " << TypeRange(expected);
  return success();
}

LogicalResult OnHostOp::verify() { return verifyBody(*this); }
LogicalResult OnHostStartOp::verify() { return verifyBody(*this); }

// What the implicit terminator of a body without results needs.
void YieldOp::build(OpBuilder &, OperationState &) {}

YieldOp OnHostOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}
YieldOp OnHostStartOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

SmallVector<Type> OnHostOp::getYieldedTypes() {
  return llvm::to_vector(getResultTypes());
}
SmallVector<Type> OnHostStartOp::getYieldedTypes() {
  return llvm::to_vector(getFuture().getType().getTypes());
}

void OnHostOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getNumResults())
    setName(getResult(0), "hosted");
}
void OnHostStartOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFuture(), "host");
}
