//===- EmitPtx.cpp - LLVM IR to PTX ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Optimizes device kernels with LLVM and prints them as PTX, which the driver
// of the machine that runs them assembles.
//
//===----------------------------------------------------------------------===//

#include "EmitPtx.h"
#include "DeviceMath.h"
#include "EmitObject.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::zero;

static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

/// As on the host a product and a sum are contracted only where a kernel says
/// so (math.fma): the bits of a result do not depend on what LLVM made of the
/// code around it, so shards of any size and the host agree on them.
static std::unique_ptr<llvm::TargetMachine>
createMachine(const KernelTarget &target, Location loc) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  std::string error;
  llvm::Triple triple(kTriple);
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine;
  if (backend)
    machine.reset(backend->createTargetMachine(
        triple, target.gpu, "", options, llvm::Reloc::PIC_, std::nullopt,
        llvm::CodeGenOptLevel::Aggressive));
  // no test: LLVM was built without this processor family.
  if (!machine)
    emitError(loc) << "cannot compile for " << target.gpu << ": " << error;
  return machine;
}

std::string zero::getDeviceLayout(const KernelTarget &target, Location loc) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, loc);
  return machine ? machine->createDataLayout().getStringRepresentation() : "";
}

/// Whether nothing is stored through `pointer`. Kernels make an integer of it
/// only to test its alignment.
static bool isOnlyRead(llvm::Value *pointer,
                       llvm::SmallPtrSetImpl<llvm::Value *> &seen) {
  if (!seen.insert(pointer).second)
    return true;
  return llvm::all_of(pointer->users(), [&](llvm::User *user) {
    if (isa<llvm::LoadInst, llvm::PtrToIntInst, llvm::ICmpInst>(user))
      return true;
    return isa<llvm::GetElementPtrInst, llvm::AddrSpaceCastInst, llvm::PHINode,
               llvm::SelectInst>(user) &&
           isOnlyRead(user, seen);
  });
}

/// LLVM takes a pointer that becomes an integer for one that anything may be
/// stored through. What is read alone, of buffers that do not overlap, may be
/// loaded by way of the read-only cache (ld.global.nc).
static void markReadOnly(llvm::Module &module) {
  for (llvm::Function &function : module) {
    if (function.getCallingConv() != llvm::CallingConv::PTX_Kernel)
      continue;
    for (llvm::Argument &argument : function.args()) {
      llvm::SmallPtrSet<llvm::Value *, 16> seen;
      if (isOnlyRead(&argument, seen))
        argument.addAttr(llvm::Attribute::ReadOnly);
    }
  }
}

LogicalResult zero::emitPtx(llvm::Module &module, const KernelTarget &target,
                            Location loc, std::string &ptx) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, loc);
  if (!machine)
    return failure();
  module.setTargetTriple(llvm::Triple(kTriple));
  module.setDataLayout(machine->createDataLayout());
  if (failed(linkDeviceMath(module, loc)))
    return failure();
  optimizeKernels(module, *machine);
  markReadOnly(module);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  // no test: every NVPTX machine prints PTX.
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return emitError(loc, "LLVM cannot print PTX");
  passes.run(module);
  ptx = text.str().str();
  return success();
}
