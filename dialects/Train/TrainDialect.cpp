//===- TrainDialect.cpp - The train dialect and its syntax ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialect and its operations and holds the custom parts of their
// textual form.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::train;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// `tensor<8xf32>` where all three types are equal, else a function type.
static void printBroadcastTypes(OpAsmPrinter &printer, Operation *op, Type lhs,
                                Type rhs, Type result) {
  if (lhs == rhs && lhs == result)
    printer << lhs;
  else
    printer.printFunctionalType(op);
}

static ParseResult parseBroadcastTypes(OpAsmParser &parser, Type &lhs,
                                       Type &rhs, Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type))
    return failure();
  auto function = dyn_cast<FunctionType>(type);
  if (!function) {
    lhs = rhs = result = type;
    return success();
  }
  if (function.getNumInputs() != 2 || function.getNumResults() != 1)
    return parser.emitError(loc, "expected two operand types and one result "
                                 "type");
  lhs = function.getInput(0);
  rhs = function.getInput(1);
  result = function.getResult(0);
  return success();
}

/// `tensor<8xi1> to tensor<8xf32>`: the element type comes from the result.
static void printCastTypes(OpAsmPrinter &printer, Operation *, Type input,
                           Type result, TypeAttr) {
  printer << input << " to " << result;
}

static ParseResult parseCastTypes(OpAsmParser &parser, Type &input,
                                  Type &result, TypeAttr &to) {
  RankedTensorType type;
  if (parser.parseType(input) || parser.parseKeyword("to") ||
      parser.parseType(type))
    return failure();
  result = type;
  to = TypeAttr::get(type.getElementType());
  return success();
}

/// `tensor<8x4xf32> to tensor<32xf32>`: the shape comes from the result.
static void printShapeTypes(OpAsmPrinter &printer, Operation *, Type input,
                            Type result, DenseI64ArrayAttr) {
  printer << input << " to " << result;
}

static ParseResult parseShapeTypes(OpAsmParser &parser, Type &input,
                                   Type &result, DenseI64ArrayAttr &shape) {
  RankedTensorType type;
  if (parser.parseType(input) || parser.parseKeyword("to") ||
      parser.parseType(type))
    return failure();
  result = type;
  shape = parser.getBuilder().getDenseI64ArrayAttr(type.getShape());
  return success();
}

/// `%param, %grad[, %momentum], %lr[, %step]`: the number of operands tells
/// which optional ones are there, since a step comes only with a momentum.
static void printSgdOperands(OpAsmPrinter &printer, Operation *, Value param,
                             Value grad, Value momentum, Value lr, Value step) {
  SmallVector<Value> operands = {param, grad, momentum, lr, step};
  llvm::erase(operands, Value());
  printer << operands;
}

static ParseResult
parseSgdOperands(OpAsmParser &parser, OpAsmParser::UnresolvedOperand &param,
                 OpAsmParser::UnresolvedOperand &grad,
                 std::optional<OpAsmParser::UnresolvedOperand> &momentum,
                 OpAsmParser::UnresolvedOperand &lr,
                 std::optional<OpAsmParser::UnresolvedOperand> &step) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  if (parser.parseOperandList(operands))
    return failure();
  if (operands.size() < 3 || operands.size() > 5)
    return parser.emitError(loc, "expected 3 to 5 operands: parameter, "
                                 "gradient, momentum buffer (optional), "
                                 "learning rate, step (optional)");
  param = operands[0];
  grad = operands[1];
  if (operands.size() > 3)
    momentum = operands[2];
  lr = operands[operands.size() > 3 ? 3 : 2];
  if (operands.size() > 4)
    step = operands[4];
  return success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

#include "dialects/Train/TrainDialect.cpp.inc"

#include "dialects/Train/TrainInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.cpp.inc"

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Train/TrainAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Train/TrainOps.cpp.inc"
      >();
}
