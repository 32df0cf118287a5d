//===- EmitObject.cpp - LLVM IR to an ELF shared object -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Optimizes and emits kernels for one processor with LLVM and links them with
// the system's linker.
//
//===----------------------------------------------------------------------===//

#include "EmitObject.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace mlir::zero;

static constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

/// Ampere, Hopper, Blackwell. Their PTX runs on later ones too.
static constexpr llvm::StringLiteral kGpus[] = {"sm_80", "sm_90", "sm_100"};

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

static const llvm::Target *lookupTarget(std::string &error) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(kTriple), error);
}

KernelTarget KernelTarget::host() {
  KernelTarget target;
  target.cpu = llvm::sys::getHostCPUName().str();
  for (auto &feature : llvm::sys::getHostCPUFeatures())
    if (feature.second)
      target.features.push_back(feature.first().str());
  llvm::sort(target.features);
  return target;
}

FailureOr<KernelTarget> KernelTarget::named(llvm::StringRef cpu, Location loc) {
  if (cpu == "native")
    return host();
  std::string error;
  const llvm::Target *backend = lookupTarget(error);
  // no test: LLVM was built without this processor family.
  if (!backend)
    return emitError(loc) << "cannot compile for x86-64: " << error;
  llvm::Triple triple(kTriple);
  std::unique_ptr<llvm::MCSubtargetInfo> generic(
      backend->createMCSubtargetInfo(triple, "x86-64", ""));
  if (!generic->isCPUStringValid(cpu))
    return emitError(loc) << "unknown x86-64 processor '" << cpu
                          << "'; expected a name of LLVM such as 'x86-64-v3', "
                             "'znver4' or 'native'";
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      backend->createMCSubtargetInfo(triple, cpu, ""));
  KernelTarget target;
  target.cpu = cpu.str();
  for (const llvm::SubtargetFeatureKV &feature :
       info->getEnabledProcessorFeatures())
    target.features.push_back(feature.Key);
  return target;
}

FailureOr<KernelTarget> KernelTarget::parse(llvm::StringRef text,
                                            Location loc) {
  llvm::StringRef name = text;
  if (name == "host")
    return host();
  if (name.consume_front("host:"))
    return named(name, loc);
  if (name.consume_front("cuda:") && llvm::is_contained(kGpus, name)) {
    KernelTarget target = host();
    target.gpu = name.str();
    return target;
  }
  return emitError(loc) << "unknown target '" << text
                        << "', expected host, host:CPU, cuda:"
                        << llvm::join(ArrayRef(kGpus), ", cuda:");
}

std::string KernelTarget::str() const {
  return gpu.empty() ? "host:" + cpu : "cuda:" + gpu;
}

static std::string featureString(const KernelTarget &target) {
  std::string text;
  for (const std::string &feature : target.features)
    text += (text.empty() ? "+" : ",+") + feature;
  return text;
}

/// Kernels stay strict IEEE: a product and a sum are never contracted, so that
/// the vector body and the scalar tail of a loop give the same bits.
static std::unique_ptr<llvm::TargetMachine>
createMachine(const KernelTarget &target, Location loc) {
  std::string error;
  const llvm::Target *backend = lookupTarget(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine;
  if (backend)
    machine.reset(backend->createTargetMachine(
        llvm::Triple(kTriple), target.cpu, featureString(target), options,
        llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  // no test: LLVM was built without this processor family.
  if (!machine)
    emitError(loc) << "cannot compile for x86-64: " << error;
  return machine;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Makes `body`, a function of pointers and maybe the ends of a range, internal
/// and adds the entry `void name(void **buffers)` or
/// `void name(void **buffers, int64_t begin, int64_t end)` that calls it.
static void addEntry(llvm::Module &module, llvm::Function &body,
                     StringRef name) {
  body.setLinkage(llvm::GlobalValue::InternalLinkage);
  // Inlining would turn noalias arguments into metadata, which costs compile
  // time and vectorizes less.
  body.addFnAttr(llvm::Attribute::NoInline);
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::getUnqual(context);
  SmallVector<llvm::Type *> types = {pointer};
  for (llvm::Argument &arg : body.args()) {
    if (arg.getType()->isPointerTy())
      arg.addAttr(llvm::Attribute::NoAlias);
    else
      types.push_back(arg.getType());
  }
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), types,
                                       /*isVarArg=*/false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                       name, module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", entry));
  SmallVector<llvm::Value *> operands;
  unsigned buffers = body.arg_size() - (types.size() - 1);
  for (unsigned i = 0; i < buffers; ++i)
    operands.push_back(b.CreateLoad(
        pointer, b.CreateConstInBoundsGEP1_64(pointer, entry->getArg(0), i)));
  for (llvm::Argument &end : llvm::drop_begin(entry->args()))
    operands.push_back(&end);
  b.CreateCall(&body, operands);
  b.CreateRetVoid();
}

static LogicalResult prepareFunctions(llvm::Module &module,
                                      ArrayRef<std::string> names,
                                      const KernelTarget &target,
                                      Location loc) {
  llvm::TargetLibraryInfoImpl library(module.getTargetTriple());
  for (const std::string &name : names) {
    // Calls of that function would end up in the kernel.
    llvm::LibFunc function;
    if (library.getLibFunc(name, function))
      return emitError(loc) << "kernel '" << name
                            << "' has the name of a function of libc or libm";
    addEntry(module, *module.getFunction(name + ".body"), name);
  }
  bool wide = llvm::is_contained(target.features, "avx512f");
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", featureString(target));
    function.addFnAttr("prefer-vector-width", wide ? "512" : "256");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // A short copy that became memcpy counts as one instruction: the loops
    // around it would be unrolled without end.
    function.addFnAttr("no-builtins");
  }
  return success();
}

void zero::optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

static LogicalResult emitObject(llvm::Module &module,
                                llvm::TargetMachine &machine, Location loc,
                                llvm::SmallVectorImpl<char> &object) {
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  // no test: every x86-64 machine emits objects.
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return emitError(loc, "LLVM cannot emit an object file for x86-64");
  passes.run(module);
  return success();
}

//===----------------------------------------------------------------------===//
// Linker
//===----------------------------------------------------------------------===//

static FailureOr<std::string> findLinker(Location loc) {
  for (const char *name : {"ld", "ld.lld", "ld.lld-22", "ld.gold"})
    if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(name))
      return *path;
  return emitError(loc, "no linker: expected ld (binutils) or ld.lld in PATH");
}

/// A file that is removed when it goes out of scope.
static std::error_code createTemporary(StringRef suffix,
                                       SmallVectorImpl<char> &path, int &fd,
                                       llvm::FileRemover &remover) {
  std::error_code error =
      llvm::sys::fs::createTemporaryFile("zero-kernels", suffix, fd, path);
  if (!error)
    remover.setFile(Twine(StringRef(path.data(), path.size())));
  return error;
}

/// The text of `file` without its line ends, for a message of one line.
static std::string readOneLine(StringRef file) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  std::string text = buffer ? (*buffer)->getBuffer().trim().str() : "";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

static LogicalResult link(ArrayRef<char> object, Location loc,
                          std::string &sharedObject) {
  FailureOr<std::string> linker = findLinker(loc);
  if (failed(linker))
    return failure();
  llvm::SmallString<128> input, output, log;
  llvm::FileRemover removeInput, removeOutput, removeLog;
  int inputFd, outputFd, logFd;
  for (auto [suffix, path, fd, remover] :
       {std::tuple("o", &input, &inputFd, &removeInput),
        std::tuple("so", &output, &outputFd, &removeOutput),
        std::tuple("log", &log, &logFd, &removeLog)})
    // no test: the machine's temporary folder is full or not writable.
    if (std::error_code error = createTemporary(suffix, *path, *fd, *remover))
      return emitError(loc)
             << "cannot create a temporary file: " << error.message();
  llvm::raw_fd_ostream(outputFd, /*shouldClose=*/true);
  llvm::raw_fd_ostream(logFd, /*shouldClose=*/true);
  llvm::raw_fd_ostream stream(inputFd, /*shouldClose=*/true);
  stream.write(object.data(), object.size());
  stream.close();
  if (stream.has_error()) {
    std::error_code error = stream.error();
    stream.clear_error();
    return emitError(loc) << "cannot write " << input << ": "
                          << error.message();
  }

  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(
      *linker, {*linker, "-shared", "-z", "noexecstack", "-o", output, input},
      std::nullopt, redirects, 0, 0, &message);
  if (status != 0)
    return emitError(loc) << *linker << " cannot link the kernels: " << message
                          << readOneLine(log);
  auto buffer = llvm::MemoryBuffer::getFile(output);
  if (!buffer)
    return emitError(loc) << "cannot read " << output << ": "
                          << buffer.getError().message();
  sharedObject = (*buffer)->getBuffer().str();
  return success();
}

LogicalResult zero::emitSharedObject(llvm::Module &module,
                                     ArrayRef<std::string> names,
                                     const KernelTarget &target, Location loc,
                                     std::string &sharedObject) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, loc);
  if (!machine)
    return failure();
  module.setTargetTriple(llvm::Triple(kTriple));
  module.setDataLayout(machine->createDataLayout());
  if (failed(prepareFunctions(module, names, target, loc)))
    return failure();
  optimizeKernels(module, *machine);
  llvm::SmallVector<char, 0> object;
  if (failed(emitObject(module, *machine, loc, object)))
    return failure();
  return link(object, loc, sharedObject);
}
