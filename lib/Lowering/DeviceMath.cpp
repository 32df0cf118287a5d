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
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
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
static bool expandPower(llvm::CallInst *call) {
  auto *base = dyn_cast<llvm::ConstantFP>(call->getArgOperand(0));
  llvm::Value *exponent = getInteger(call->getArgOperand(1));
  if (!base || !exponent || !call->getType()->isDoubleTy())
    return false;
  double power = base->getValueAPF().convertToDouble();
  if (!(power > 0 && power < 1))
    return false;
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
  return true;
}

//===----------------------------------------------------------------------===//
// libdevice
//===----------------------------------------------------------------------===//

/// The name in libm of a function that NVPTX has no instruction for, without
/// the "f" of f32; empty for any other.
static StringRef getMathName(const llvm::Function &function) {
  switch (function.getIntrinsicID()) {
  case llvm::Intrinsic::not_intrinsic: {
    StringRef name = function.getName();
    if (!function.isDeclaration() || name.starts_with("__nv_"))
      return "";
    if (function.getReturnType()->isFloatTy())
      name.consume_back("f");
    return name;
  }
  case llvm::Intrinsic::exp:
    return "exp";
  case llvm::Intrinsic::exp2:
    return "exp2";
  case llvm::Intrinsic::log:
    return "log";
  case llvm::Intrinsic::log2:
    return "log2";
  case llvm::Intrinsic::log10:
    return "log10";
  case llvm::Intrinsic::pow:
    return "pow";
  case llvm::Intrinsic::powi:
    return "powi";
  case llvm::Intrinsic::sin:
    return "sin";
  case llvm::Intrinsic::cos:
    return "cos";
  case llvm::Intrinsic::tan:
    return "tan";
  case llvm::Intrinsic::acos:
    return "acos";
  case llvm::Intrinsic::asin:
    return "asin";
  case llvm::Intrinsic::atan:
    return "atan";
  case llvm::Intrinsic::atan2:
    return "atan2";
  case llvm::Intrinsic::sinh:
    return "sinh";
  case llvm::Intrinsic::cosh:
    return "cosh";
  case llvm::Intrinsic::tanh:
    return "tanh";
  default:
    return "";
  }
}

/// Makes what calls a function of libm call libdevice's. Returns the name of
/// one of them, or nothing if there is none.
static std::string callLibdevice(llvm::Module &module) {
  std::string last;
  for (llvm::Function &function : llvm::make_early_inc_range(module)) {
    StringRef name = getMathName(function);
    if (name.empty())
      continue;
    last = ("__nv_" + name + (function.getReturnType()->isFloatTy() ? "f" : ""))
               .str();
    llvm::FunctionCallee callee =
        module.getOrInsertFunction(last, function.getFunctionType());
    function.replaceAllUsesWith(callee.getCallee());
    function.eraseFromParent();
  }
  return last;
}

/// Where CUDA's toolkit may be.
static SmallVector<std::string> getToolkits() {
  SmallVector<std::string> places;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> value = llvm::sys::Process::GetEnv(variable))
      places.push_back(*value);
  places.push_back("/usr/local/cuda");
  return places;
}

static LogicalResult linkLibdevice(llvm::Module &module, StringRef function,
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
    if (llvm::Linker::linkModules(module, std::move(library),
                                  llvm::Linker::Flags::LinkOnlyNeeded))
      return emitError(loc) << "cannot link " << file;
    return success();
  }
  return emitError(loc)
         << "the device kernels call " << function
         << " of CUDA's libdevice, but there is no nvvm/libdevice/"
            "libdevice.10.bc in "
         << llvm::join(places, ", ") << "; set CUDA_HOME to a CUDA toolkit";
}

LogicalResult zero::linkDeviceMath(llvm::Module &module, Location loc) {
  SmallVector<llvm::CallInst *> powers;
  for (llvm::Function &function : module)
    if (function.getIntrinsicID() == llvm::Intrinsic::pow)
      for (llvm::User *user : function.users())
        powers.push_back(cast<llvm::CallInst>(user));
  for (llvm::CallInst *power : powers)
    expandPower(power);
  // A declaration without calls would be looked for all the same.
  for (llvm::Function &function : llvm::make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
  std::string function = callLibdevice(module);
  return function.empty() ? success() : linkLibdevice(module, function, loc);
}
