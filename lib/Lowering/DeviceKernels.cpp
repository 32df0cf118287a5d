//===- DeviceKernels.cpp - Kernels to PTX and launches --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of the device are compiled together: one text of PTX for a
// program.
//
//===----------------------------------------------------------------------===//

#include "CompileKernels.h"
#include "EmitPtx.h"
#include "GpuMapping.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace mlir::zero;

void zero::registerDeviceDialects(DialectRegistry &registry) {
  registry.insert<gpu::GPUDialect, NVVM::NVVMDialect, vector::VectorDialect>();
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerGPUDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

//===----------------------------------------------------------------------===//
// Pipeline
//===----------------------------------------------------------------------===//

/// From kernels on tensors to functions of launches alone.
static void addToLaunches(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createKernelPrepareGpu());
  // What is larger than registers and shared memory becomes scratch memory.
  addKernelsToBuffers(pm, /*maxTemporaryBytes=*/int64_t(1) << 62);
  addGpuMapping(pm);
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createConvertLinalgToLoopsPass());
  func.addPass(createKernelExpandFloats());
  func.addPass(createKernelExpandMath());
  func.addPass(createCanonicalizerPass());
  func.addPass(createCSEPass());
}

/// From outlined launches to the LLVM dialect.
static void addToNvvm(OpPassManager &pm) {
  OpPassManager &gpu = pm.nest<gpu::GPUModuleOp>();
  gpu.addPass(createSCFToControlFlowPass());
  gpu.addPass(memref::createExpandStridedMetadataPass());
  gpu.addPass(createLowerAffinePass());
  ConvertGpuOpsToNVVMOpsOptions options;
  options.indexBitwidth = 64;
  options.useBarePtrCallConv = true;
  gpu.addPass(createConvertGpuOpsToNVVMOps(options));
  // Of integers: the pass before takes LLVM's intrinsics for illegal.
  gpu.addPass(createConvertMathToLLVMPass());
  gpu.addPass(createCanonicalizerPass());
  gpu.addPass(createCSEPass());
  gpu.addPass(createReconcileUnrealizedCastsPass());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// Collects the launches of kernels and their functions.
class LaunchReader {
public:
  explicit LaunchReader(ModuleOp kernels) : symbols(kernels), all(kernels) {}

  /// Reads the launches of `function`, the kernel `name`. Their code gets the
  /// names of the entries.
  LogicalResult read(func::FuncOp function, StringRef name);

  SmallVector<DeviceKernel> kernels;

private:
  LogicalResult readLaunch(gpu::LaunchFuncOp op, DeviceKernel &kernel);
  std::string makeEntryName(StringRef name);

  SymbolTable symbols;
  ModuleOp all;
  llvm::StringSet<> taken;
};
} // namespace

/// A name that PTX allows and nothing else has, as close to `name` as can be:
/// profilers show it.
std::string LaunchReader::makeEntryName(StringRef name) {
  std::string entry = name.str();
  for (char &c : entry)
    if (!llvm::isAlnum(c))
      c = '_';
  if (entry.empty() || llvm::isDigit(entry.front()))
    entry = "k" + entry;
  std::string unique = entry;
  for (unsigned count = 2; !taken.insert(unique).second; ++count)
    unique = entry + "_" + std::to_string(count);
  return unique;
}

/// Bytes of the kernel's scratch memory where it has some.
static uint64_t getScratchBytes(func::FuncOp function) {
  unsigned count = function.getNumArguments();
  if (count == 0 || !function.getArgAttr(count - 1, kScratchAttr))
    return 0;
  return cast<MemRefType>(function.getArgument(count - 1).getType())
      .getNumElements();
}

static LogicalResult readSizes(gpu::LaunchFuncOp op, gpu::KernelDim3 from,
                               std::array<uint32_t, 3> &sizes) {
  std::array<Value, 3> values = {from.x, from.y, from.z};
  for (auto [size, value] : llvm::zip(sizes, values)) {
    std::optional<int64_t> constant = getConstantIntValue(value);
    // no test: kernel-map-to-gpu makes constant ones only.
    if (!constant || *constant < 1 || *constant > INT32_MAX)
      return op.emitOpError("has no constant size of at least 1");
    size = *constant;
  }
  return success();
}

LogicalResult LaunchReader::readLaunch(gpu::LaunchFuncOp op,
                                       DeviceKernel &kernel) {
  DeviceLaunch &launch = kernel.launches.emplace_back();
  launch.entry = makeEntryName(kernel.name);
  if (failed(readSizes(op, op.getGridSizeOperandValues(), launch.grid)) ||
      failed(readSizes(op, op.getBlockSizeOperandValues(), launch.block)))
    return failure();
  auto function = op->getParentOfType<func::FuncOp>();
  bool hasScratch = kernel.scratchBytes > 0;
  for (Value operand : op.getKernelOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    // no test: kernel-map-to-gpu passes buffers of the kernel only.
    if (!argument)
      return op.emitOpError("passes ")
             << operand << ", which is no buffer of the kernel";
    bool isScratch =
        hasScratch && argument.getArgNumber() + 1 == function.getNumArguments();
    launch.arguments.push_back(isScratch ? -1 : argument.getArgNumber());
  }
  auto code = cast<gpu::GPUFuncOp>(
      all.lookupSymbol<gpu::GPUModuleOp>(op.getKernelModuleName())
          .lookupSymbol(op.getKernelName()));
  code.setName(launch.entry);
  return success();
}

LogicalResult LaunchReader::read(func::FuncOp function, StringRef name) {
  DeviceKernel &kernel = kernels.emplace_back();
  kernel.name = name.str();
  kernel.scratchBytes = getScratchBytes(function);
  for (auto launch : function.getOps<gpu::LaunchFuncOp>())
    if (failed(readLaunch(launch, kernel)))
      return failure();
  return success();
}

/// Makes what is no launch yet one of one thread.
static void wrapKernel(func::FuncOp function) {
  if (llvm::any_of(function.getOps<gpu::LaunchOp>(), [](auto) { return true; }))
    return;
  Block &body = function.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  Location loc = function.getLoc();
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto launch = gpu::LaunchOp::create(b, loc, one, one, one, one, one, one);
  Block &inner = launch.getBody().front();
  b.setInsertionPointToEnd(&inner);
  auto end = gpu::TerminatorOp::create(b, loc);
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
    if (&op != launch && &op != one.getDefiningOp())
      op.moveBefore(end);
}

/// Gives the code of a launch its own constants: arguments are buffers.
static void sinkConstants(gpu::LaunchOp launch) {
  Region &code = launch.getBody();
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(code, captured);
  OpBuilder b = OpBuilder::atBlockBegin(&code.front());
  for (Value value : captured)
    if (Operation *constant = value.getDefiningOp();
        constant && constant->hasTrait<OpTrait::ConstantLike>())
      replaceAllUsesInRegionWith(value, b.clone(*constant)->getResult(0), code);
}

/// All code of the device in one module, in the order of its launches.
static gpu::GPUModuleOp joinModules(ModuleOp kernels) {
  OpBuilder b = OpBuilder::atBlockEnd(kernels.getBody());
  auto modules = llvm::to_vector(kernels.getOps<gpu::GPUModuleOp>());
  auto joined =
      gpu::GPUModuleOp::create(b, kernels.getLoc(), "zero_device_code");
  SymbolTable names(joined);
  for (gpu::GPUModuleOp module : modules) {
    // Constants of several kernels have one name.
    SymbolTable own(module);
    for (auto constant : module.getOps<memref::GlobalOp>())
      (void)own.renameToUnique(constant, {&names});
    for (Operation &op :
         llvm::make_early_inc_range(module.getBodyRegion().front()))
      names.insert(op.clone());
    module.erase();
  }
  return joined;
}

/// Buffers of a launch do not overlap: loads of what is not written may go by
/// way of the read-only cache.
static void addNoAlias(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel)
      for (llvm::Argument &argument : function.args())
        argument.addAttr(llvm::Attribute::NoAlias);
}

FailureOr<DeviceCode> zero::compileDeviceKernels(ModuleOp module,
                                                 const KernelTarget &target) {
  MLIRContext *context = module.getContext();
  loadKernelDialects(context);
  SmallVector<std::string> names;
  auto ofDevice = [](func::FuncOp kernel) {
    return !kernel->hasAttr(kHostKernelAttr);
  };
  OwningOpRef<ModuleOp> kernels = cloneKernels(module, ofDevice, names);
  PassManager toLaunches(context, ModuleOp::getOperationName());
  addToLaunches(toLaunches);
  if (failed(toLaunches.run(*kernels)))
    return failure();
  for (auto function : kernels->getOps<func::FuncOp>())
    wrapKernel(function);
  kernels->walk(sinkConstants);
  PassManager outline(context, ModuleOp::getOperationName());
  outline.addPass(createGpuKernelOutliningPass());
  if (failed(outline.run(*kernels)))
    return failure();

  LaunchReader reader(*kernels);
  for (const std::string &name : names)
    if (failed(reader.read(kernels->lookupSymbol<func::FuncOp>(name + ".body"),
                           name)))
      return failure();
  for (auto function :
       llvm::make_early_inc_range(kernels->getOps<func::FuncOp>()))
    function.erase();
  gpu::GPUModuleOp code = joinModules(*kernels);
  PassManager toNvvm(context, ModuleOp::getOperationName());
  addToNvvm(toNvvm);
  if (failed(toNvvm.run(*kernels)))
    return failure();

  OpBuilder b(context);
  code->setAttr(LLVM::LLVMDialect::getDataLayoutAttrName(),
                b.getStringAttr(getDeviceLayout(target, module.getLoc())));
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(code, llvmContext, "kernels");
  // no test: the pipeline leaves only operations that have a translation.
  if (!llvmModule)
    return module.emitError("kernels cannot be translated to LLVM IR");
  addNoAlias(*llvmModule);
  DeviceCode result;
  result.kernels = std::move(reader.kernels);
  if (failed(emitPtx(*llvmModule, target, module.getLoc(), result.ptx)))
    return failure();
  return result;
}
