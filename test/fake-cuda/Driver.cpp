//===- Driver.cpp - Devices, contexts and errors --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/DriverGraph.h"
#include "test/fake-cuda/Environment.h"

#include <atomic>
#include <cstring>

using namespace fake_cuda;

static std::atomic<bool> initialized;
static thread_local std::vector<CUcontext> contextStack;

namespace {
struct Contexts {
  std::mutex mutex;
  std::vector<std::unique_ptr<CUctx_st>> primary;
};
} // namespace

static Contexts &contexts() {
  static Contexts *contexts = [] {
    auto *made = new Contexts;
    for (int device = 0; device < environment().devices; ++device) {
      made->primary.push_back(std::make_unique<CUctx_st>());
      made->primary.back()->device = device;
    }
    return made;
  }();
  return *contexts;
}

static bool isDevice(int device) {
  return device >= 0 && device < environment().devices;
}

CUcontext fake_cuda::currentContext() {
  return contextStack.empty() ? nullptr : contextStack.back();
}

CUcontext fake_cuda::contextOf(int device) {
  return contexts().primary[device].get();
}

static void setCurrent(CUcontext context) {
  if (contextStack.empty())
    contextStack.push_back(nullptr);
  contextStack.back() = context;
  setLogDevice(context ? context->device : -1);
}

CUresult fake_cuda::refuse(CUresult code, const char *function,
                           const std::string &why) {
  fprintf(stderr, "fake-cuda: error: %s: %s\n", function, why.c_str());
  return code;
}

static CUresult injected(const char *function) {
  std::string fault = injectedFault(function);
  if (fault.empty())
    return CUDA_SUCCESS;
  if (fault == "memory")
    return CUDA_ERROR_OUT_OF_MEMORY;
  return CUDA_ERROR_UNKNOWN;
}

CUresult fake_cuda::enter(const char *function, Needs needs,
                          const std::string &arguments) {
  log("%s(%s)", function, arguments.c_str());
  if (Engine::inHostFunction())
    return refuse(CUDA_ERROR_NOT_PERMITTED, function,
                  "called in a host function of a stream");
  if (needs >= Needs::Driver && !initialized)
    return refuse(CUDA_ERROR_NOT_INITIALIZED, function, "called before cuInit");
  if (needs == Needs::Context) {
    CUcontext context = currentContext();
    if (!context)
      return refuse(CUDA_ERROR_INVALID_CONTEXT, function,
                    "no context is current in this thread");
    if (context->users == 0)
      return refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, function,
                    "the context was released");
  }
  if (CUresult fault = injected(function))
    return fault;
  return stickyError().empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

template <typename T>
static T &forever() {
  static T *object = new T;
  return *object;
}

Handles<CUstream> &fake_cuda::streams() { return forever<Handles<CUstream>>(); }
Handles<CUevent> &fake_cuda::events() { return forever<Handles<CUevent>>(); }
Handles<CUmodule> &fake_cuda::modules() { return forever<Handles<CUmodule>>(); }
Handles<CUgraph> &fake_cuda::graphs() { return forever<Handles<CUgraph>>(); }
Handles<CUgraphExec> &fake_cuda::graphExecs() {
  return forever<Handles<CUgraphExec>>();
}

static void count(std::string &text, size_t number, const char *what) {
  if (number == 0)
    return;
  text += (text.empty() ? "" : ", ") + std::to_string(number) + " " + what +
          (number == 1 ? "" : "s");
}

static std::string leaksAtExit() {
  std::string text;
  count(text, streams().size(), "stream");
  count(text, events().size(), "event");
  count(text, modules().size(), "module");
  count(text, graphs().size(), "graph");
  count(text, graphExecs().size(), "executable graph");
  size_t users = 0;
  for (const auto &context : contexts().primary)
    users += context->users;
  count(text, users, "retained context");
  for (const std::string &allocation : Registry::get().leaks())
    text += (text.empty() ? "" : ", ") + allocation;
  std::string work = Engine::get().unfinished();
  if (!work.empty())
    text +=
        (text.empty() ? "" : ", ") + std::string("unfinished work: ") + work;
  return text;
}

//===----------------------------------------------------------------------===//
// Driver and devices
//===----------------------------------------------------------------------===//

FAKE_EXPORT CUresult cuInit(unsigned flags) {
  if (CUresult error = enter("cuInit", Needs::Nothing, ""))
    return error;
  if (flags != 0)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuInit", "flags are not 0");
  if (environment().devices == 0)
    return CUDA_ERROR_NO_DEVICE;
  if (!initialized.exchange(true))
    addExitCheck(leaksAtExit);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDeviceGetCount(int *count) {
  if (CUresult error = enter("cuDeviceGetCount", Needs::Driver, ""))
    return error;
  *count = environment().devices;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (CUresult error =
          enter("cuDeviceGet", Needs::Driver, std::to_string(ordinal)))
    return error;
  if (!isDevice(ordinal))
    return refuse(CUDA_ERROR_INVALID_DEVICE, "cuDeviceGet",
                  "there is no device " + std::to_string(ordinal));
  *device = ordinal;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  if (CUresult error = enter("cuDeviceGetName", Needs::Driver, ""))
    return error;
  if (!isDevice(device) || length < 1)
    return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, length, "Fake GPU");
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid, 0, sizeof *uuid);
  uuid->bytes[0] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDeviceGetPCIBusId(char *id, int length,
                                         CUdevice device) {
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  snprintf(id, length, "0000:%02x:00.0", device);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *bytes = environment().memory;
  return CUDA_SUCCESS;
}

/// Values of an H100, as far as somebody asks for them; -1: nobody does.
static int attributeValue(CUdevice_attribute attribute) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return environment().capability / 10;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return environment().capability % 10;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return 4;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return 64;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    return 0x7fffffff;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    return 65535;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    return 2048;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return 48 << 10;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return 227 << 10;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    return 228 << 10;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    return 1980000;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    return 2619000;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    return 5120;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    return 50 << 20;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    return 3;
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    return 1;
  case CU_DEVICE_ATTRIBUTE_INTEGRATED:
  case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
  case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
  case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT:
  case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
  case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
  case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    return 0;
  default:
    return -1;
  }
}

FAKE_EXPORT CUresult cuDeviceGetAttribute(int *value,
                                          CUdevice_attribute attribute,
                                          CUdevice device) {
  if (CUresult error = enter("cuDeviceGetAttribute", Needs::Driver,
                             std::to_string(attribute)))
    return error;
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
    *value = device;
  else
    *value = attributeValue(attribute);
  if (*value >= 0)
    return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_VALUE, "cuDeviceGetAttribute",
                "attribute " + std::to_string(attribute) + " is not known");
}

FAKE_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device,
                                           CUdevice peer) {
  *can = isDevice(device) && isDevice(peer) && device != peer;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

FAKE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context,
                                              CUdevice device) {
  if (CUresult error = enter("cuDevicePrimaryCtxRetain", Needs::Driver,
                             std::to_string(device)))
    return error;
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard<std::mutex> lock(contexts().mutex);
  *context = contextOf(device);
  ++(*context)->users;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  log("cuDevicePrimaryCtxRelease(%d)", device);
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard<std::mutex> lock(contexts().mutex);
  CUcontext context = contextOf(device);
  if (context->users == 0)
    return refuse(CUDA_ERROR_INVALID_CONTEXT, "cuDevicePrimaryCtxRelease",
                  "nobody retains the context");
  --context->users;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device,
                                                   unsigned flags) {
  return enter("cuDevicePrimaryCtxSetFlags", Needs::Driver,
               std::to_string(device) + ", " + std::to_string(flags));
}

FAKE_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device,
                                                unsigned *flags, int *active) {
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = contextOf(device)->users > 0;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  // Logged where the device's calls are.
  if (context)
    setCurrent(context);
  if (CUresult error =
          enter("cuCtxSetCurrent", Needs::Driver, context ? "" : "null"))
    return error;
  setCurrent(context);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = currentContext();
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (CUresult error = enter("cuCtxPushCurrent", Needs::Driver, ""))
    return error;
  contextStack.push_back(nullptr);
  setCurrent(context);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  if (contextStack.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (context)
    *context = contextStack.back();
  contextStack.pop_back();
  CUcontext now = currentContext();
  setLogDevice(now ? now->device : -1);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  CUcontext context = currentContext();
  if (!context)
    return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuCtxSynchronize() {
  if (CUresult error = enter("cuCtxSynchronize", Needs::Context, ""))
    return error;
  if (CUresult error = refuseInCapture("cuCtxSynchronize"))
    return error;
  Engine::get().waitAll(currentContext()->device);
  return stickyError().empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

FAKE_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (CUresult error = enter("cuCtxGetStreamPriorityRange", Needs::Context, ""))
    return error;
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) {
  return enter("cuCtxEnablePeerAccess", Needs::Context, "");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

namespace {
struct ErrorText {
  CUresult code;
  const char *name;
  const char *words;
};
} // namespace

#define ERROR_TEXT(CODE, WORDS)                                                \
  { CODE, #CODE, WORDS }
static const ErrorText errorTexts[] = {
    ERROR_TEXT(CUDA_SUCCESS, "no error"),
    ERROR_TEXT(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR_TEXT(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR_TEXT(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR_TEXT(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR_TEXT(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR_TEXT(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR_TEXT(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ERROR_TEXT(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR_TEXT(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR_TEXT(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR_TEXT(CUDA_ERROR_ILLEGAL_ADDRESS,
               "an illegal memory access was encountered"),
    ERROR_TEXT(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR_TEXT(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR_TEXT(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR_TEXT(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR_TEXT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
               "part or all of the requested memory range is already mapped"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
               "operation not permitted when stream is capturing"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
               "operation failed due to a previous error during capture"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
               "capturing stream has unjoined work"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
               "dependency created on uncaptured work in another stream"),
    ERROR_TEXT(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef ERROR_TEXT

static const ErrorText *errorText(CUresult code) {
  for (const ErrorText &text : errorTexts)
    if (text.code == code)
      return &text;
  return nullptr;
}

FAKE_EXPORT CUresult cuGetErrorName(CUresult code, const char **name) {
  const ErrorText *text = errorText(code);
  *name = text ? text->name : nullptr;
  return text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE_EXPORT CUresult cuGetErrorString(CUresult code, const char **words) {
  const ErrorText *text = errorText(code);
  *words = text ? text->words : nullptr;
  return text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
