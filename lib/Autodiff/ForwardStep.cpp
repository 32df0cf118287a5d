//===- ForwardStep.cpp - A forward pass as a program ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing is added: the function changes its name, and the module says that no
// parameter is trained.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/TrainStep.h"

using namespace mlir;
using namespace mlir::train;

LogicalResult mlir::train::buildForwardStep(ModuleOp module) {
  FailureOr<func::FuncOp> function = findForward(module);
  if (failed(function))
    return failure();
  Builder builder(module.getContext());
  function->setName("step");
  // Ranks have samples of their own.
  for (unsigned i = 0, e = function->getNumResults(); i != e; ++i)
    function->setResultAttr(i, zero::kAcrossAttr,
                            builder.getStringAttr("mean"));
  module->setAttr(zero::kForwardAttr, builder.getUnitAttr());
  return success();
}
