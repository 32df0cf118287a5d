//===- TrainPrecisionPass.cpp - Computing in bf16 or f16 ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass train-precision: one walk over the forward function, which casts the
// operands of each operation and infers its result types anew.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/Passes.h"
#include "zero/Autodiff/TrainStep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::train {
#define GEN_PASS_DEF_TRAINPRECISIONPASS
#include "zero/Autodiff/Passes.h.inc"
} // namespace mlir::train

using namespace mlir;
using namespace mlir::train;

FloatType mlir::train::getFloatType(MLIRContext *context, FloatKind kind) {
  switch (kind) {
  case FloatKind::F32:
    return Float32Type::get(context);
  case FloatKind::BF16:
    return BFloat16Type::get(context);
  case FloatKind::F16:
    return Float16Type::get(context);
  }
  llvm_unreachable("unknown float kind");
}

std::optional<FloatKind> mlir::train::parseFloatKind(StringRef text) {
  return llvm::StringSwitch<std::optional<FloatKind>>(text)
      .Case("f32", FloatKind::F32)
      .Case("bf16", FloatKind::BF16)
      .Cases({"f16", "fp16"}, FloatKind::F16)
      .Default(std::nullopt);
}

static Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

/// Floats that are computed in the chosen type; f64 is kept.
static bool isConverted(Type element) {
  return isa<Float32Type, Float16Type, BFloat16Type>(element);
}

static Type withElement(Type type, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(type).getShape(),
                               element);
}

namespace {
/// Converts one forward function.
class PrecisionConverter {
public:
  PrecisionConverter(func::FuncOp function, Type narrow)
      : function(function), narrow(narrow),
        f32(Float32Type::get(function.getContext())),
        symbols(function->getParentOfType<ModuleOp>()) {}

  LogicalResult run();

private:
  LogicalResult retypeParameters();
  void castInputs();
  void findBufferUpdates();
  LogicalResult convert(Operation *op);
  LogicalResult convertCompute(Operation *op);
  LogicalResult convertScan(ScanOp op);
  void convertReturn(Operation *op);

  bool isBuffer(Value value) const;
  Type chooseElement(Operation *op) const;
  Type chooseCarried(Value value) const;
  void setOperand(OpOperand &operand, Type element);

  func::FuncOp function;
  Type narrow, f32;
  SymbolTable symbols;
  /// What leads to the values that buffers are assigned.
  DenseSet<Operation *> bufferUpdates;
  DenseMap<std::pair<Value, Type>, Value> casts;
};
} // namespace

//===----------------------------------------------------------------------===//
// What stands around the operations
//===----------------------------------------------------------------------===//

LogicalResult PrecisionConverter::retypeParameters() {
  for (auto param :
       function->getParentOfType<ModuleOp>().getOps<zero::ParamOp>()) {
    auto type = dyn_cast<RankedTensorType>(param.getType());
    if (!type)
      return param.emitError()
             << "@" << param.getSymName() << " is partitioned already; "
             << "train-precision runs before train-step";
    if (!param.getBuffer() && isConverted(type.getElementType()))
      param.setTypeAttr(TypeAttr::get(withElement(type, narrow)));
  }
  return success();
}

/// Inputs stay as the data file has them.
void PrecisionConverter::castInputs() {
  OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
  for (BlockArgument argument : function.getArguments()) {
    if (argument.use_empty() || !isConverted(elementOf(argument)) ||
        elementOf(argument) == narrow)
      continue;
    auto cast = CastOp::create(builder, argument.getLoc(), argument, narrow);
    argument.replaceAllUsesExcept(cast.getResult(), cast);
  }
}

void PrecisionConverter::findBufferUpdates() {
  SmallVector<Value> worklist;
  for (auto assign : function.getOps<zero::AssignOp>())
    worklist.push_back(assign.getValue());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (op && bufferUpdates.insert(op).second)
      llvm::append_range(worklist, op->getOperands());
  }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool PrecisionConverter::isBuffer(Value value) const {
  auto read = value.getDefiningOp<zero::ReadOp>();
  auto param =
      read ? symbols.lookup<zero::ParamOp>(read.getSymbol()) : zero::ParamOp();
  return param && param.getBuffer();
}

/// The type that `op` computes in. A statistic or loss, which has f32 whatever
/// its operands have, makes what is computed from it f32 as well.
Type PrecisionConverter::chooseElement(Operation *op) const {
  if (isa<MatmulOp, GemmOp, ConvOp, AttentionOp>(op))
    return narrow;
  for (Value operand : op->getOperands())
    if (elementOf(operand).isF32() && !narrow.isF32() &&
        !operand.getDefiningOp<arith::ConstantOp>() &&
        (!isBuffer(operand) || bufferUpdates.contains(op)))
      return f32;
  return narrow;
}

/// A constant in `element`. A finite number stays finite: masks are the least
/// f32, and infinity would make a row of them no number.
static ElementsAttr convertConstant(DenseFPElementsAttr numbers, Type element) {
  const llvm::fltSemantics &semantics =
      cast<FloatType>(element).getFloatSemantics();
  return numbers.mapValues(element, [&](const APFloat &number) {
    APFloat rounded = number;
    bool losesInfo;
    rounded.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
    if (rounded.isInfinity() && number.isFinite())
      rounded = APFloat::getLargest(semantics, number.isNegative());
    return rounded.bitcastToAPInt();
  });
}

/// Gives `operand` this element type, by a cast or another constant.
void PrecisionConverter::setOperand(OpOperand &operand, Type element) {
  Value value = operand.get();
  if (!isConverted(elementOf(value)) || elementOf(value) == element)
    return;
  Value &converted = casts[{value, element}];
  if (!converted) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    DenseFPElementsAttr numbers;
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      numbers = dyn_cast<DenseFPElementsAttr>(constant.getValue());
    if (numbers)
      converted = arith::ConstantOp::create(builder, value.getLoc(),
                                            convertConstant(numbers, element));
    else
      converted = CastOp::create(builder, value.getLoc(), value, element);
  }
  operand.set(converted);
}

LogicalResult PrecisionConverter::convertCompute(Operation *op) {
  Type element = chooseElement(op);
  // Running statistics keep their type beside the input's.
  bool hasStatistics = isa<BatchNormOp, BatchNormInferenceOp>(op);
  for (OpOperand &operand : op->getOpOperands())
    setOperand(operand, !hasStatistics                   ? element
                        : operand.getOperandNumber() < 3 ? narrow
                                                         : f32);
  auto inference = dyn_cast<InferTypeOpInterface>(op);
  bool hasFloats = llvm::any_of(op->getResults(), [](Value result) {
    return isConverted(elementOf(result));
  });
  if (!hasFloats)
    return success();
  if (!inference)
    return op->emitOpError()
           << "cannot be computed in " << narrow
           << ": its result types do not follow from its operands";
  SmallVector<Type> types;
  if (failed(inference.inferReturnTypes(
          op->getContext(), op->getLoc(), op->getOperands(),
          op->getAttrDictionary(), op->getPropertiesStorage(), op->getRegions(),
          types)))
    return failure();
  for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
    result.setType(type);
  return success();
}

/// The type in which a loop takes `value`.
Type PrecisionConverter::chooseCarried(Value value) const {
  bool isStatistic = elementOf(value).isF32() && !isBuffer(value) &&
                     !value.getDefiningOp<arith::ConstantOp>();
  return isStatistic ? f32 : narrow;
}

/// The body of a loop is converted as the function around it is; what it
/// carries keeps the type that it starts with.
LogicalResult PrecisionConverter::convertScan(ScanOp op) {
  for (OpOperand &operand : op->getOpOperands())
    setOperand(operand, chooseCarried(operand.get()));
  for (auto [argument, operand] :
       llvm::zip_equal(op.getBody()->getArguments(), op.getOperands()))
    argument.setType(withElement(argument.getType(), elementOf(operand)));
  for (Operation &inner :
       llvm::make_early_inc_range(op.getBody()->without_terminator()))
    if (failed(convert(&inner)))
      return failure();
  YieldOp yield = op.getYield();
  for (auto [value, init] : llvm::zip(yield.getValuesMutable(), op.getInits()))
    setOperand(value, elementOf(init));
  SmallVector<Type> types(op.getInits().getTypes());
  for (auto [result, value] :
       llvm::zip_equal(op.getStacked(), op.getYieldedStacked()))
    types.push_back(withElement(result.getType(), elementOf(value)));
  for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
    result.setType(cast<RankedTensorType>(type));
  return success();
}

/// Outputs keep the type that they had.
void PrecisionConverter::convertReturn(Operation *op) {
  for (auto [operand, type] :
       llvm::zip_equal(op->getOpOperands(), function.getResultTypes()))
    setOperand(operand, getElementTypeOrSelf(type));
}

LogicalResult PrecisionConverter::convert(Operation *op) {
  if (auto read = dyn_cast<zero::ReadOp>(op)) {
    if (auto param = symbols.lookup<zero::ParamOp>(read.getSymbol()))
      read.getValue().setType(cast<RankedTensorType>(param.getType()));
    return success();
  }
  if (auto assign = dyn_cast<zero::AssignOp>(op)) {
    if (auto param = symbols.lookup<zero::ParamOp>(assign.getSymbol()))
      setOperand(assign.getValueMutable(),
                 param.getLogicalType().getElementType());
    return success();
  }
  if (auto cast = dyn_cast<CastOp>(op)) {
    // The model's own casts between these types say nothing any more.
    Type to = cast.getTo(), from = elementOf(cast.getInput());
    bool isStatistic = from.isF32() && to.isF32();
    if (isConverted(to) && !isStatistic) {
      cast.setTo(narrow);
      cast.getResult().setType(
          mlir::cast<RankedTensorType>(withElement(cast.getType(), narrow)));
    }
    return success();
  }
  if (op->hasTrait<OpTrait::ReturnLike>()) {
    convertReturn(op);
    return success();
  }
  if (isa<arith::ConstantOp>(op))
    return success();
  if (auto scan = dyn_cast<ScanOp>(op))
    return convertScan(scan);
  return convertCompute(op);
}

LogicalResult PrecisionConverter::run() {
  if (failed(retypeParameters()))
    return failure();
  findBufferUpdates();
  castInputs();
  Block &body = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(body))
    if (failed(convert(&op)))
      return failure();
  for (auto cast : llvm::make_early_inc_range(body.getOps<CastOp>()))
    if (cast.getInput().getType() == cast.getType()) {
      cast.getResult().replaceAllUsesWith(cast.getInput());
      cast.erase();
    }
  eraseDeadOps(body);
  return success();
}

LogicalResult mlir::train::convertPrecision(ModuleOp module, FloatKind type) {
  if (type == FloatKind::F32)
    return success();
  auto function = module.lookupSymbol<func::FuncOp>("forward");
  if (!function)
    return module.emitError("module has no function @forward to convert");
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError(
        "@forward is not straight-line code, expected one block");
  Type narrow = getFloatType(module.getContext(), type);
  return PrecisionConverter(function, narrow).run();
}

namespace {
struct TrainPrecisionPass
    : train::impl::TrainPrecisionPassBase<TrainPrecisionPass> {
  using TrainPrecisionPassBase::TrainPrecisionPassBase;

  void runOnOperation() override {
    std::optional<FloatKind> kind = parseFloatKind(type);
    if (!kind)
      getOperation().emitError()
          << "unknown type " << type << ", expected f32, bf16 or f16";
    if (!kind || failed(convertPrecision(getOperation(), *kind)))
      signalPassFailure();
  }
};
} // namespace
