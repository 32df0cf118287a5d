//===- DeviceMath.cpp - Math functions of device code ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What training kernels need (exp, log, tanh, erf in f32) has become arithmetic
// before (kernel-expand-math), the same as on the host: device and host agree,
// and a machine without CUDA compiles for one with it. What is left over (f64,
// trigonometry) comes from CUDA's libdevice.
//
//===----------------------------------------------------------------------===//

#include "DeviceMath.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Powers of a constant
//===----------------------------------------------------------------------===//

/// The integer that `value` is the conversion of, or null.
static llvm::Value *getInteger(llvm::Value *value) {
  if (isa<llvm::SIToFPInst, llvm::UIToFPInst>(value))
    return cast<llvm::Instruction>(value)->getOperand(0);
  return nullptr;
}

/// Adam's bias correction: beta^t, the product of beta^(2^k) over the bits k of
/// t, which are constants. For beta in (0, 1) all but some 25 of them are 0.
static void expandPower(llvm::CallInst *call) {
  auto *base = dyn_cast<llvm::ConstantFP>(call->getArgOperand(0));
  llvm::Value *exponent = getInteger(call->getArgOperand(1));
  if (!base || !exponent)
    return;
  double power = base->getValueAPF().convertToDouble();
  if (!(power > 0 && power < 1))
    return;
  llvm::IRBuilder<> b(call);
  llvm::Type *type = exponent->getType();
  llvm::Value *result = llvm::ConstantFP::get(call->getType(), 1.0);
  unsigned bit = 0;
  for (; power > 0 && bit + 1 < type->getIntegerBitWidth(); ++bit) {
    llvm::Value *mask = llvm::ConstantInt::get(type, uint64_t(1) << bit);
    llvm::Value *isSet = b.CreateIsNotNull(b.CreateAnd(exponent, mask));
    llvm::Value *more =
        b.CreateFMul(result, llvm::ConstantFP::get(call->getType(), power));
    result = b.CreateSelect(isSet, more, result);
    power *= power;
  }
  llvm::Value *isSmall =
      b.CreateIsNull(b.CreateLShr(exponent, llvm::ConstantInt::get(type, bit)));
  result = b.CreateSelect(isSmall, result,
                          llvm::ConstantFP::get(call->getType(), 0.0));
  call->replaceAllUsesWith(result);
  call->eraseFromParent();
}

//===----------------------------------------------------------------------===//
// libdevice
//===----------------------------------------------------------------------===//

/// Functions of libdevice that are one instruction; upstream's conversion to
/// NVVM calls them all the same.
static llvm::Intrinsic::ID getInstruction(StringRef function) {
  return llvm::StringSwitch<llvm::Intrinsic::ID>(function)
      .Case("__nv_ceil", llvm::Intrinsic::ceil)
      .Case("__nv_copysign", llvm::Intrinsic::copysign)
      .Case("__nv_fabs", llvm::Intrinsic::fabs)
      .Case("__nv_floor", llvm::Intrinsic::floor)
      .Case("__nv_fma", llvm::Intrinsic::fma)
      .Case("__nv_rint", llvm::Intrinsic::roundeven)
      .Case("__nv_sqrt", llvm::Intrinsic::sqrt)
      .Case("__nv_trunc", llvm::Intrinsic::trunc)
      .Default(llvm::Intrinsic::not_intrinsic);
}

/// Turns calls of `function`, of libdevice, into instructions if they are some.
static bool callInstruction(llvm::Function &function) {
  StringRef name = function.getName();
  llvm::Type *type = function.getReturnType();
  if (type->isFloatTy())
    name.consume_back("f");
  llvm::Intrinsic::ID id = getInstruction(name);
  if (id == llvm::Intrinsic::not_intrinsic)
    return false;
  function.replaceAllUsesWith(llvm::Intrinsic::getOrInsertDeclaration(
      function.getParent(), id, {type}));
  function.eraseFromParent();
  return true;
}

/// Where CUDA's toolkit may be: where the environment says, or else beside nvcc
/// and where installers put it.
static SmallVector<std::string> getToolkits() {
  SmallVector<std::string> places;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> value = llvm::sys::Process::GetEnv(variable))
      places.push_back(*value);
  if (!places.empty())
    return places;
  if (llvm::ErrorOr<std::string> nvcc = llvm::sys::findProgramByName("nvcc")) {
    StringRef folder = llvm::sys::path::parent_path(*nvcc);
    places.push_back(llvm::sys::path::parent_path(folder).str());
  }
  places.push_back("/usr/local/cuda");
  return places;
}

static LogicalResult linkLibdevice(llvm::Module &module, std::string function,
                                   Location loc) {
  SmallVector<std::string> places = getToolkits();
  for (const std::string &place : places) {
    SmallString<128> file(place);
    llvm::sys::path::append(file, "nvvm", "libdevice", "libdevice.10.bc");
    if (!llvm::sys::fs::exists(file))
      continue;
    llvm::SMDiagnostic error;
    std::unique_ptr<llvm::Module> library =
        llvm::parseIRFile(file, error, module.getContext());
    if (!library)
      return emitError(loc)
             << "cannot read " << file << ": " << error.getMessage();
    library->setTargetTriple(module.getTargetTriple());
    library->setDataLayout(module.getDataLayout());
    // no test: a library that can be read can be linked.
    if (llvm::Linker::linkModules(module, std::move(library),
                                  llvm::Linker::Flags::LinkOnlyNeeded))
      return emitError(loc) << "cannot link " << file;
    // Functions that are not kernels disappear where they are inlined.
    for (llvm::Function &definition : module)
      if (!definition.isDeclaration() &&
          definition.getCallingConv() != llvm::CallingConv::PTX_Kernel)
        definition.setLinkage(llvm::GlobalValue::InternalLinkage);
    return success();
  }
  return emitError(loc)
         << "the device kernels call " << function
         << " of CUDA's libdevice, but there is no nvvm/libdevice/"
            "libdevice.10.bc in "
         << llvm::join(places, ", ") << "; set CUDA_HOME to a CUDA toolkit";
}

LogicalResult zero::linkDeviceMath(llvm::Module &module, Location loc) {
  std::string missing;
  for (llvm::Function &function : llvm::make_early_inc_range(module)) {
    if (!function.isDeclaration() || !function.getName().starts_with("__nv_"))
      continue;
    if (function.getName() == "__nv_pow")
      for (llvm::User *user : llvm::make_early_inc_range(function.users()))
        expandPower(cast<llvm::CallInst>(user));
    // A declaration without calls would be looked for all the same.
    if (function.use_empty())
      function.eraseFromParent();
    else if (!callInstruction(function))
      missing = function.getName().str();
  }
  return missing.empty() ? success() : linkLibdevice(module, missing, loc);
}
