//===- ZeroTypes.cpp - types of the zero dialect --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Syntax and rules of !zero.sharded and !zero.future.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::zero;

#include "dialects/Zero/ZeroEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Zero/ZeroAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Zero/ZeroTypes.cpp.inc"

void ZeroDialect::registerTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Zero/ZeroAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Zero/ZeroTypes.cpp.inc"
      >();
}

RankedTensorType ShardedType::getLocalType(int64_t ranks) const {
  return zero::getLocalType(getLogicalType(), ranks, getDim());
}

ShardedType ShardedType::withMemory(Memory mem) const {
  return get(getContext(), getShape(), getElementType(), getGrid(), getAxes(),
             getDim(), mem);
}

/// Parses `name = ` of a `!zero.sharded` field that follows a comma.
static ParseResult parseField(AsmParser &parser, StringRef &name) {
  return failure(parser.parseKeyword(&name) || parser.parseEqual());
}

/// !zero.sharded<10x64xf32, @dp, axes = [0], dim = 0, mem = device>
Type ShardedType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  FlatSymbolRefAttr grid;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.parseAttribute(grid))
    return {};
  SmallVector<int64_t> axes = {0};
  int64_t dim = 0;
  Memory mem = Memory::Device;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name, space;
    SMLoc loc = parser.getCurrentLocation();
    if (failed(parseField(parser, name)))
      return {};
    if (name == "axes") {
      axes.clear();
      if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
            return parser.parseInteger(axes.emplace_back());
          }))
        return {};
    } else if (name == "dim") {
      if (parser.parseInteger(dim))
        return {};
    } else if (name == "mem") {
      loc = parser.getCurrentLocation();
      if (parser.parseKeyword(&space))
        return {};
      std::optional<Memory> parsed = symbolizeMemory(space);
      if (!parsed) {
        parser.emitError(loc, "expects mem to be device, host or disk, not '")
            << space << "'";
        return {};
      }
      mem = *parsed;
    } else {
      parser.emitError(loc, "expects axes, dim or mem, not '") << name << "'";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardedType>(parser.getContext(), shape, elementType,
                                        grid, axes, dim, mem);
}

void ShardedType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << ", " << getGrid();
  if (getAxes() != ArrayRef<int64_t>{0}) {
    printer << ", axes = [";
    llvm::interleaveComma(getAxes(), printer);
    printer << ']';
  }
  printer << ", dim = " << getDim();
  if (getMem() != Memory::Device)
    printer << ", mem = " << stringifyMemory(getMem());
  printer << '>';
}

LogicalResult ShardedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> shape, Type elementType,
                                  FlatSymbolRefAttr grid,
                                  ArrayRef<int64_t> axes, int64_t dim,
                                  Memory mem) {
  if (!elementType.isIntOrFloat())
    return emitError() << "expects an integer or float element type, not "
                       << elementType;
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
    return emitError() << "dim = " << dim << " is not a dimension of a tensor "
                       << "of rank " << shape.size();
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t axis : axes)
    if (axis < 0 || !seen.insert(axis).second)
      return emitError() << "axes lists " << axis
                         << ", which is negative or a repetition";
  return success();
}

LogicalResult FutureType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<Type> types) {
  for (Type type : types)
    if (!getLogicalType(type))
      return emitError() << "expects ranked tensors or !zero.sharded, not "
                         << type;
  return success();
}
