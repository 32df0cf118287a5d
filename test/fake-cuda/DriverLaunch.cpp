//===- DriverLaunch.cpp - Modules and kernels -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Driver.h"
#include "test/fake-cuda/Environment.h"

#include <cstring>

using namespace fake_cuda;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// Where the caller wants the text of an error.
static void writeJitLog(const std::string &text, unsigned count,
                        CUjit_option *options, void **values) {
  char *buffer = nullptr;
  size_t room = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      buffer = static_cast<char *>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      room = reinterpret_cast<size_t>(values[i]);
  }
  if (buffer && room)
    snprintf(buffer, room, "%s", text.c_str());
}

static CUresult loadModule(const char *function, CUmodule *made,
                           const void *image, unsigned count,
                           CUjit_option *options, void **values) {
  if (CUresult error = enter(function, Needs::Context, ""))
    return error;
  CUcontext context = currentContext();
  std::string error;
  std::unique_ptr<Module> module =
      Module::parse(static_cast<const char *>(image), context->device,
                    environment().capability, error);
  if (!module) {
    writeJitLog(error, count, options, values);
    return refuse(CUDA_ERROR_INVALID_PTX, function, error);
  }
  *made = new CUmod_st{context, std::move(module), {}};
  modules().add(*made);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return loadModule("cuModuleLoadData", module, image, 0, nullptr, nullptr);
}

FAKE_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                                        unsigned count, CUjit_option *options,
                                        void **values) {
  return loadModule("cuModuleLoadDataEx", module, image, count, options,
                    values);
}

FAKE_EXPORT CUresult cuModuleUnload(CUmodule module) {
  if (CUresult error = enter("cuModuleUnload", Needs::Context, ""))
    return error;
  if (!modules().has(module))
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload",
                  "no such module");
  // Its kernels may still run.
  Engine::get().waitAll(module->context->device);
  modules().remove(module);
  delete module;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                         const char *name) {
  if (CUresult error = enter("cuModuleGetFunction", Needs::Context, name))
    return error;
  if (!modules().has(module))
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuModuleGetFunction",
                  "no such module");
  const Function *found = module->module->function(name);
  if (!found)
    return refuse(CUDA_ERROR_NOT_FOUND, "cuModuleGetFunction",
                  std::string("the module has no kernel ") + name);
  std::unique_ptr<CUfunc_st> &slot = module->functions[name];
  if (!slot)
    slot.reset(new CUfunc_st{module, found,
                             (48 << 10) -
                                 static_cast<int>(found->staticSharedBytes())});
  *function = slot.get();
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes,
                                          CUmodule module, const char *name) {
  if (CUresult error = enter("cuModuleGetGlobal", Needs::Context, name))
    return error;
  Window window;
  if (!modules().has(module) || !module->module->variable(name, window))
    return refuse(CUDA_ERROR_NOT_FOUND, "cuModuleGetGlobal",
                  std::string("no module, or no variable ") + name);
  if (pointer)
    *pointer = window.begin;
  if (bytes)
    *bytes = window.bytes;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuFuncGetAttribute(int *value,
                                        CUfunction_attribute attribute,
                                        CUfunction function) {
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = static_cast<int>(function->function->staticSharedBytes());
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = static_cast<int>(function->function->localBytes());
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = static_cast<int>(function->function->maxThreads());
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->maxDynamicShared;
    return CUDA_SUCCESS;
  default:
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "cuFuncGetAttribute",
                  "attribute " + std::to_string(attribute) + " is not known");
  }
}

FAKE_EXPORT CUresult cuFuncSetAttribute(CUfunction function,
                                        CUfunction_attribute attribute,
                                        int value) {
  if (CUresult error =
          enter("cuFuncSetAttribute", Needs::Context,
                function->function->name() + ", " + std::to_string(value)))
    return error;
  constexpr int mostShared = 227 << 10;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "cuFuncSetAttribute",
                  "attribute " + std::to_string(attribute) + " is not known");
  if (value < 0 ||
      value + static_cast<int>(function->function->staticSharedBytes()) >
          mostShared)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuFuncSetAttribute",
                  std::to_string(value) + " bytes of shared memory");
  function->maxDynamicShared = value;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The arguments, as the block of parameters that the kernel reads.
static std::vector<char> parameterBlock(const Function &function,
                                        void **arguments) {
  std::vector<char> block;
  size_t index = 0;
  for (const Function::Parameter &parameter : function.parameters()) {
    block.resize(parameter.offset + parameter.bytes);
    std::memcpy(block.data() + parameter.offset, arguments[index++],
                parameter.bytes);
  }
  return block;
}

/// What a launch may not be; "".
static std::string wrongShape(const CUfunc_st &function, Dim grid, Dim block,
                              unsigned shared) {
  uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || !threads)
    return "the grid or the block is empty";
  if (grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffff)
    return "the grid is too large";
  if (threads > function.function->maxThreads() || block.z > 64)
    return std::to_string(threads) + " threads a block, it may have " +
           std::to_string(function.function->maxThreads());
  if (static_cast<int>(shared) > function.maxDynamicShared)
    return std::to_string(shared) +
           " bytes of dynamic shared memory, allowed are " +
           std::to_string(function.maxDynamicShared);
  return "";
}

/// Runs the kernel, then notes all that it touched.
static std::string runKernel(const Function &function, int device, Dim grid,
                             Dim block, unsigned shared,
                             const std::vector<char> &parameters) {
  AccessRecorder recorder(device);
  std::string error =
      function.launch(grid, block, shared, parameters.data(), recorder);
  if (!error.empty())
    return error;
  for (const Range &range : recorder.takeReads())
    if (error.empty())
      error = noteAccess({range.begin, range.end - range.begin, false});
  for (const Range &range : recorder.takeWrites())
    if (error.empty())
      error = noteAccess({range.begin, range.end - range.begin, true});
  return error;
}

static std::string dimText(Dim dim) {
  return std::to_string(dim.x) + "x" + std::to_string(dim.y) + "x" +
         std::to_string(dim.z);
}

static std::string argumentsText(const Function &function, void **arguments) {
  std::string text;
  size_t index = 0;
  for (const Function::Parameter &parameter : function.parameters()) {
    void *argument = arguments[index++];
    text += text.empty() ? "" : ", ";
    Address address = 0;
    if (parameter.bytes == sizeof address)
      std::memcpy(&address, argument, sizeof address);
    text += parameter.bytes == sizeof address
                ? addressName(address)
                : std::to_string(parameter.bytes) + " bytes";
  }
  return text;
}

static CUresult launch(const char *called, CUfunction function, Dim grid,
                       Dim block, unsigned shared, CUstream handle,
                       void **arguments, void **extra) {
  const Function &code = *function->function;
  std::string text = code.name() + ", " + dimText(grid) + ", " +
                     dimText(block) + ", " + std::to_string(shared) + ", " +
                     streamName(handle);
  if (arguments && !environment().log.empty())
    text += ", [" + argumentsText(code, arguments) + "]";
  if (CUresult error = enter(called, Needs::Context, text))
    return error;
  CUstream stream = streamOf(handle);
  if (!stream || !modules().has(function->module) ||
      stream->context != function->module->context)
    return refuse(CUDA_ERROR_INVALID_HANDLE, called,
                  "no such stream, or its device is not the kernel's");
  if (extra || (!arguments && !code.parameters().empty()))
    return refuse(CUDA_ERROR_INVALID_VALUE, called,
                  "arguments are only known as an array of pointers");
  std::string wrong = wrongShape(*function, grid, block, shared);
  if (!wrong.empty())
    return refuse(CUDA_ERROR_INVALID_VALUE, called,
                  "kernel " + code.name() + ": " + wrong);
  auto node = std::make_shared<Node>();
  node->work.name = "kernel " + code.name();
  int device = stream->context->device;
  node->work.run = [&code, device, grid, block, shared,
                    parameters = parameterBlock(code, arguments)] {
    return runKernel(code, device, grid, block, shared, parameters);
  };
  return put(stream, node, called);
}

FAKE_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gridX,
                                    unsigned gridY, unsigned gridZ,
                                    unsigned blockX, unsigned blockY,
                                    unsigned blockZ, unsigned shared,
                                    CUstream stream, void **arguments,
                                    void **extra) {
  return launch("cuLaunchKernel", function, {gridX, gridY, gridZ},
                {blockX, blockY, blockZ}, shared, stream, arguments, extra);
}

FAKE_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config,
                                      CUfunction function, void **arguments,
                                      void **extra) {
  if (config->numAttrs != 0)
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "cuLaunchKernelEx",
                  "attributes are not known");
  return launch("cuLaunchKernelEx", function,
                {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes, config->hStream, arguments, extra);
}
