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

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace mlir::zero;

/// A name that PTX allows and nothing else has, as close to `name` as can be:
/// profilers show it.
static std::string makeEntryName(StringRef name, llvm::StringSet<> &taken) {
  std::string entry = name.str();
  for (char &c : entry)
    if (!llvm::isAlnum(c))
      c = '_';
  if (entry.empty() || llvm::isDigit(entry.front()))
    entry = "k" + entry;
  std::string unique = entry;
  for (unsigned count = 1; !taken.insert(unique).second; ++count)
    unique = entry + "_" + std::to_string(count);
  return unique;
}

/// Makes `body` an entry.
static DeviceKernel addEntry(llvm::Function &body, StringRef name,
                             llvm::StringSet<> &taken) {
  DeviceKernel kernel;
  kernel.name = name.str();
  DeviceLaunch &launch = kernel.launches.emplace_back();
  launch.entry = makeEntryName(name, taken);
  body.setName(launch.entry);
  body.setCallingConv(llvm::CallingConv::PTX_Kernel);
  body.addFnAttr("nvvm.maxntid", "1");
  for (llvm::Argument &arg : body.args()) {
    arg.addAttr(llvm::Attribute::NoAlias);
    launch.arguments.push_back(arg.getArgNo());
  }
  return kernel;
}

FailureOr<DeviceCode> zero::compileDeviceKernels(ModuleOp module,
                                                 const KernelTarget &target) {
  loadKernelDialects(module.getContext());
  SmallVector<std::string> names;
  auto ofDevice = [](func::FuncOp kernel) {
    return !kernel->hasAttr(kHostKernelAttr);
  };
  OwningOpRef<ModuleOp> kernels = cloneKernels(module, ofDevice, names);
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  addKernelsToBuffers(pm);
  addKernelsToLLVM(pm, /*expandHalf=*/false);
  if (failed(pm.run(*kernels)))
    return failure();
  OpBuilder b(module.getContext());
  (*kernels)->setAttr(
      LLVM::LLVMDialect::getDataLayoutAttrName(),
      b.getStringAttr(getDeviceLayout(target, module.getLoc())));
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(*kernels, llvmContext, "kernels");
  // no test: the pipeline leaves only operations that have a translation.
  if (!code)
    return module.emitError("kernels cannot be translated to LLVM IR");
  DeviceCode result;
  llvm::StringSet<> taken;
  for (const std::string &name : names)
    result.kernels.push_back(
        addEntry(*code->getFunction(name + ".body"), name, taken));
  if (failed(emitPtx(*code, target, module.getLoc(), result.ptx)))
    return failure();
  return result;
}
