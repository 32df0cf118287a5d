//===- TrainAutodiffPass.cpp - Gradients as outputs -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass train-autodiff.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/Autodiff.h"

#include "zero/Autodiff/Passes.h"

#include "mlir/IR/TypeUtilities.h"

namespace mlir::train {
#define GEN_PASS_DEF_TRAINAUTODIFFPASS
#include "zero/Autodiff/Passes.h.inc"
} // namespace mlir::train

using namespace mlir;
using namespace mlir::train;

namespace {
struct TrainAutodiffPass
    : train::impl::TrainAutodiffPassBase<TrainAutodiffPass> {
  using TrainAutodiffPassBase::TrainAutodiffPassBase;

  void runOnOperation() override {
    if (failed(differentiate()))
      signalPassFailure();
  }

private:
  LogicalResult differentiate();
  FailureOr<Value> findLoss(func::FuncOp target);
  void collectVariables(func::FuncOp target);

  /// What to differentiate by, and the names of the gradients.
  SmallVector<Variable> variables;
  SmallVector<std::string> names;
};
} // namespace

/// The output called `loss`, or the only one that can be a loss.
FailureOr<Value> TrainAutodiffPass::findLoss(func::FuncOp target) {
  Operation *terminator = target.getBody().front().getTerminator();
  SmallVector<Value> candidates;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
      continue;
    if (loss.empty() || getOutputName(target, i) == loss)
      candidates.push_back(value);
  }
  if (candidates.size() == 1)
    return candidates.front();
  if (!loss.empty())
    return target.emitError()
           << "@" << function << " has no rank-0 float output called " << loss;
  return target.emitError() << "@" << function << " has " << candidates.size()
                            << " rank-0 float outputs, name one with loss=";
}

void TrainAutodiffPass::collectVariables(func::FuncOp target) {
  variables.clear();
  names.clear();
  for (ReadParameter &read : collectTrainedParameters(getOperation(), target)) {
    variables.push_back(read.reads);
    names.push_back(("grad." + read.param.getSymName()).str());
  }
  if (!inputs)
    return;
  for (BlockArgument argument : target.getArguments()) {
    auto name = target.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    "zero.input");
    if (!name || !isa<FloatType>(getElementTypeOrSelf(argument)))
      continue;
    variables.push_back({argument});
    names.push_back("grad." + name.str());
  }
}

LogicalResult TrainAutodiffPass::differentiate() {
  auto target = getOperation().lookupSymbol<func::FuncOp>(function);
  if (!target)
    return getOperation().emitError() << "module has no function @" << function;
  if (!llvm::hasSingleElement(target.getBody()))
    return target.emitError()
           << "@" << function
           << " is not straight-line code, expected one block";
  FailureOr<Value> lossValue = findLoss(target);
  if (failed(lossValue))
    return failure();
  collectVariables(target);
  Block &body = target.getBody().front();
  OpBuilder builder(body.getTerminator());
  FailureOr<SmallVector<Value>> grads =
      buildGradients(builder, *lossValue, variables);
  if (failed(grads))
    return failure();
  for (auto [grad, name] : llvm::zip_equal(*grads, names)) {
    if (!grad)
      continue;
    NamedAttribute output(builder.getStringAttr("zero.output"),
                          builder.getStringAttr(name));
    if (failed(target.insertResult(target.getNumResults(), grad.getType(),
                                   builder.getDictionaryAttr(output))))
      return failure();
    Operation *terminator = body.getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), grad);
  }
  eraseDeadOps(body);
  return success();
}
