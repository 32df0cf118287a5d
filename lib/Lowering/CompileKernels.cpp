//===- CompileKernels.cpp - Kernels to the LLVM dialect -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pipeline from kernels on tensors to the LLVM dialect, and the driver
// that runs it on a copy of a module's kernels.
//
//===----------------------------------------------------------------------===//

#include "CompileKernels.h"
#include "EmitObject.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LLVMContext.h"

using namespace mlir;
using namespace mlir::zero;

void zero::registerKernelDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, bufferization::BufferizationDialect,
                  linalg::LinalgDialect, math::MathDialect, scf::SCFDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerSubsetOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerDeviceDialects(registry);
}

//===----------------------------------------------------------------------===//
// Pipeline
//===----------------------------------------------------------------------===//

/// Everything a kernel may contain becomes linalg.generic or a loop on tensors.
static void addToLinalg(OpPassManager &pm) {
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createTrainToLinalg());
  func.addPass(tosa::createTosaToLinalgNamed());
  func.addPass(tosa::createTosaToLinalg());
  func.addPass(createTosaToArithPass());
  func.addPass(createTosaToTensorPass());
  func.addPass(createConvertElementwiseToLinalgPass());
  func.addPass(createCanonicalizerPass());
  func.addPass(createCSEPass());
  func.addPass(createKernelFuse());
  func.addPass(createCanonicalizerPass());
  func.addPass(createCSEPass());
}

/// Tensors become the caller's buffers, or temporaries on the stack.
static void addBufferization(OpPassManager &pm, int64_t maxTemporaryBytes) {
  pm.addNestedPass<func::FuncOp>(createKernelPassDestinations());
  // A result is computed where it is wanted: this must precede the analysis.
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  pm.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  // What a step computes from a value must not be computed in its place: this
  // must follow the elimination.
  pm.addNestedPass<func::FuncOp>(createKernelTieLoops());
  bufferization::OneShotBufferizePassOptions options;
  options.allowReturnAllocsFromLoops = false;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createCanonicalizerPass());
  func.addPass(createCSEPass());
  func.addPass(createKernelPlaceBuffers({maxTemporaryBytes}));
}

void zero::addKernelsToBuffers(OpPassManager &pm, int64_t maxTemporaryBytes) {
  addToLinalg(pm);
  addBufferization(pm, maxTemporaryBytes);
}

void zero::addKernelsToLLVM(OpPassManager &pm, bool expandHalf) {
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createConvertLinalgToLoopsPass());
  func.addPass(createKernelSplit());
  func.addPass(createKernelExpandFloats({expandHalf}));
  func.addPass(createKernelExpandMath());
  func.addPass(createCanonicalizerPass());
  func.addPass(createCSEPass());
  func.addPass(createSCFToControlFlowPass());
  func.addPass(memref::createExpandStridedMetadataPass());
  func.addPass(createLowerAffinePass());
  // Not ln(1 + x), which is 0 where x is small.
  func.addPass(createConvertMathToLLVMPass({/*approximateLog1p=*/false}));
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions bare;
  bare.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(bare));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void zero::buildKernelPipeline(OpPassManager &pm, bool expandHalf) {
  addKernelsToBuffers(pm, KernelPlaceBuffersOptions().maxStackBytes);
  addKernelsToLLVM(pm, expandHalf);
}

void zero::registerKernelPipeline() {
  PassPipelineRegistration<>(
      "kernel-to-llvm-pipeline",
      "Turn functions with plan.kernel into the LLVM dialect",
      [](OpPassManager &pm) { buildKernelPipeline(pm); });
}

//===----------------------------------------------------------------------===//
// Driver
//===----------------------------------------------------------------------===//

OwningOpRef<ModuleOp>
zero::cloneKernels(ModuleOp module,
                   llvm::function_ref<bool(func::FuncOp)> wanted,
                   SmallVectorImpl<std::string> &names) {
  OwningOpRef<ModuleOp> copy(ModuleOp::create(module.getLoc()));
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func->hasAttr(kKernelAttr) || !wanted(func))
      continue;
    func::FuncOp clone = func.clone();
    clone.setPublic();
    clone.setName((func.getName() + ".body").str());
    copy->push_back(clone);
    names.push_back(func.getName().str());
  }
  return copy;
}

/// Tells the kernels of `module` what became of their compiled copies.
static void recordSplits(ModuleOp kernels, ModuleOp module) {
  for (auto compiled : kernels.getOps<LLVM::LLVMFuncOp>()) {
    StringRef name = compiled.getName();
    if (Attribute split = compiled->getAttr(kSplitAttr);
        split && name.consume_back(".body"))
      module.lookupSymbol(name)->setAttr(kSplitAttr, split);
  }
}

void zero::loadKernelDialects(MLIRContext *context) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
}

LogicalResult zero::compileKernels(ModuleOp module, const KernelTarget &target,
                                   std::string &sharedObject) {
  loadKernelDialects(module.getContext());
  SmallVector<std::string> names;
  auto ofHost = [&](func::FuncOp kernel) {
    return target.gpu.empty() || kernel->hasAttr(kHostKernelAttr);
  };
  OwningOpRef<ModuleOp> kernels = cloneKernels(module, ofHost, names);
  if (!target.gpu.empty() && names.empty())
    return success();
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  buildKernelPipeline(pm, !llvm::is_contained(target.features, "f16c"));
  if (failed(pm.run(*kernels)))
    return failure();
  recordSplits(*kernels, module);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(*kernels, llvmContext, "kernels");
  // no test: the pipeline leaves only operations that have a translation.
  if (!code)
    return module.emitError("kernels cannot be translated to LLVM IR");
  return emitSharedObject(*code, names, target, module.getLoc(), sharedObject);
}
