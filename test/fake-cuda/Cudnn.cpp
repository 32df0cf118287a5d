//===- Cudnn.cpp - The functions of a fake libcudnn.so.9 ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Handles, descriptors and execution. A descriptor that a call takes must be a
// live, finalized one; execution becomes work of the handle's stream, with the
// ranges of every tensor that it reads or writes.
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/CudnnGraph.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

using namespace fake_cuda;
using namespace fake_cuda::dnn;

struct cudnnContext {
  CUstream stream = nullptr;
};

//===----------------------------------------------------------------------===//
// Errors and objects
//===----------------------------------------------------------------------===//

static thread_local std::string lastError;

/// Calls `f`, whose DnnError becomes a status.
template <typename F>
static cudnnStatus_t guarded(const char *function, F f) {
  try {
    if (!injectedFault(function).empty())
      throw DnnError(CUDNN_STATUS_INTERNAL_ERROR, "an injected fault");
    f();
    return CUDNN_STATUS_SUCCESS;
  } catch (const DnnError &error) {
    lastError = std::string(function) + ": " + error.what();
    return error.status;
  }
}

namespace {
/// What cudnnBackendDescriptor_t points to.
struct Holder {
  DescriptorPtr descriptor;
};

/// All handles and descriptors that are alive.
struct Objects {
  std::mutex mutex;
  std::set<const void *> live;

  void add(const void *object) {
    std::lock_guard<std::mutex> lock(mutex);
    live.insert(object);
  }
  void remove(const void *object) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!live.erase(object))
      throw DnnError(CUDNN_STATUS_BAD_PARAM, "no such object, or destroyed");
  }
  void check(const void *object) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!live.count(object))
      throw DnnError(CUDNN_STATUS_BAD_PARAM, "no such object, or destroyed");
  }
};
} // namespace

static Objects &objects() {
  static Objects all;
  return all;
}

static DescriptorPtr &find(cudnnBackendDescriptor_t descriptor) {
  objects().check(descriptor);
  return static_cast<Holder *>(descriptor)->descriptor;
}

static const Descriptor &findFinal(cudnnBackendDescriptor_t descriptor,
                                   cudnnBackendDescriptorType_t type) {
  const Descriptor &found = *find(descriptor);
  if (found.type != type)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                   "a descriptor of type " + std::to_string(found.type) +
                       " instead of " + std::to_string(type));
  if (!found.finalized)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                   "a descriptor that is not finalized");
  return found;
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

template <typename T>
static Attribute makeAttribute(cudnnBackendAttributeType_t type,
                               const std::vector<T> &values) {
  Attribute attribute{type, int64_t(values.size()), {}, {}};
  attribute.bytes.resize(values.size() * sizeof(T));
  if (!values.empty())
    std::memcpy(attribute.bytes.data(), values.data(), attribute.bytes.size());
  return attribute;
}

/// An engine's configuration for the graph of `operations`.
static DescriptorPtr makeConfig(int64_t index, const DescriptorPtr &operations,
                                uint64_t workspaceBytes) {
  auto engine = std::make_shared<Descriptor>();
  engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  engine->finalized = true;
  engine->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {operations}};
  engine->attributes[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] =
      makeAttribute(CUDNN_TYPE_INT64, std::vector<int64_t>{index});
  std::vector<cudnnBackendNumericalNote_t> notes;
  if (index == TensorCoreEngine)
    notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  if (index == NondeterministicEngine)
    notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  engine->attributes[CUDNN_ATTR_ENGINE_NUMERICAL_NOTE] =
      makeAttribute(CUDNN_TYPE_NUMERICAL_NOTE, notes);
  engine->attributes[CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE] = makeAttribute(
      CUDNN_TYPE_BEHAVIOR_NOTE, std::vector<cudnnBackendBehaviorNote_t>{});
  auto config = std::make_shared<Descriptor>();
  config->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
  config->finalized = true;
  config->attributes[CUDNN_ATTR_ENGINECFG_ENGINE] = {
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {engine}};
  config->attributes[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES] = {
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, {}, {}};
  config->attributes[CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE] = makeAttribute(
      CUDNN_TYPE_INT64, std::vector<int64_t>{int64_t(workspaceBytes)});
  config->attributes[CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED] =
      makeAttribute(CUDNN_TYPE_INT32, std::vector<int32_t>{48 << 10});
  return config;
}

/// As cuDNN has no kernel for every graph: none for a convolution in three
/// dimensions and something after it.
static bool hasEngines(const Graph &graph) {
  return graph.operations.size() == 1 ||
         std::none_of(graph.operations.begin(), graph.operations.end(),
                      [&](const Operation &op) {
                        return op.kind == Operation::ConvForward &&
                               graph.tensors[op.output].sizes.size() > 4;
                      });
}

/// What heuristics say: a graph that nothing executes has no engines.
static void listEngines(Descriptor &heuristics) {
  const DescriptorPtr &operations =
      heuristics.get(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).descriptors.at(0);
  Attribute results{CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, {}, {}};
  try {
    Graph graph = Graph::read(*operations);
    uint64_t bytes = graph.workspaceBytes;
    if (hasEngines(graph))
      for (int64_t engine :
           {TensorCoreEngine, NondeterministicEngine, PlainEngine})
        results.descriptors.push_back(makeConfig(engine, operations, bytes));
  } catch (const DnnError &error) {
    lastError = error.what();
  }
  results.count = int64_t(results.descriptors.size());
  heuristics.attributes[CUDNN_ATTR_ENGINEHEUR_RESULTS] = results;
}

static void makePlan(Descriptor &plan) {
  const Descriptor &engine =
      plan.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
          .descriptor(CUDNN_ATTR_ENGINECFG_ENGINE);
  Graph graph =
      Graph::read(engine.descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
  graph.engine = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  plan.attributes[CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE] = makeAttribute(
      CUDNN_TYPE_INT64, std::vector<int64_t>{int64_t(graph.workspaceBytes)});
  plan.graph = std::make_shared<const Graph>(std::move(graph));
}

static void finalize(Descriptor &descriptor) {
  switch (descriptor.type) {
  case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    Graph::read(descriptor);
    descriptor.attributes[CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT] =
        makeAttribute(CUDNN_TYPE_INT64, std::vector<int64_t>{PlainEngine + 1});
    break;
  case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    listEngines(descriptor);
    break;
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    makePlan(descriptor);
    break;
  default:
    break;
  }
  descriptor.finalized = true;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

/// The bytes of a tensor at `address`, in as few ranges as its strides allow.
static void addAccesses(const Tensor &tensor, Address address,
                        std::vector<Access> &accesses) {
  std::vector<std::pair<int64_t, int64_t>> dims; // stride, size
  for (size_t i = 0; i < tensor.sizes.size(); ++i)
    if (tensor.sizes[i] > 1 && tensor.strides[i] != 0)
      dims.emplace_back(tensor.strides[i], tensor.sizes[i]);
  std::sort(dims.begin(), dims.end());
  int64_t run = 1;
  size_t inner = 0;
  for (; inner < dims.size() && dims[inner].first == run; ++inner)
    run *= dims[inner].second;
  dims.erase(dims.begin(), dims.begin() + inner);
  std::vector<int64_t> index(dims.size(), 0);
  while (true) {
    int64_t offset = 0;
    for (size_t i = 0; i < dims.size(); ++i)
      offset += index[i] * dims[i].first;
    accesses.push_back({address + offset * tensor.elementBytes(),
                        uint64_t(run * tensor.elementBytes()), tensor.written});
    size_t dim = 0;
    while (dim < dims.size() && ++index[dim] == dims[dim].second)
      index[dim++] = 0;
    if (dim == dims.size())
      return;
  }
}

namespace {
/// One execution, until it runs.
struct Execution {
  std::shared_ptr<const Graph> graph;
  std::vector<Address> addresses;     // of tensors in memory of the device
  std::vector<std::string> constants; // of tensors that are given by value
  Address workspace = 0;

  std::string run() const;
};
} // namespace

std::string Execution::run() const {
  Storage storage(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i)
    storage[i] = graph->tensors[i].byValue
                     ? const_cast<char *>(constants[i].data())
                 : addresses[i] ? hostAddress(addresses[i])
                                : nullptr;
  std::memset(hostAddress(workspace), 0xA5, graph->workspaceBytes);
  try {
    evaluate(*graph, storage);
  } catch (const DnnError &error) {
    return error.what();
  }
  return "";
}

static Address addressOf(const std::map<int64_t, Address> &given,
                         const Tensor &tensor) {
  auto found = given.find(tensor.uid);
  if (found == given.end() || !found->second)
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   "the variant pack has no address of tensor " +
                       std::to_string(tensor.uid));
  if (!tensor.byValue && found->second % tensor.alignment)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                   "the address of tensor " + std::to_string(tensor.uid) +
                       " is no multiple of " +
                       std::to_string(tensor.alignment));
  return found->second;
}

static void execute(CUstream stream, const Descriptor &plan,
                    const Descriptor &pack) {
  std::vector<int64_t> uids = pack.integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                       pointers =
                           pack.integers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (uids.size() != pointers.size())
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   "the variant pack has " + std::to_string(uids.size()) +
                       " numbers of tensors and " +
                       std::to_string(pointers.size()) + " addresses");
  std::map<int64_t, Address> given;
  for (size_t i = 0; i < uids.size(); ++i)
    given[uids[i]] = Address(pointers[i]);

  Execution execution;
  execution.graph = plan.graph;
  execution.workspace =
      Address(pack.integer(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  std::vector<Access> accesses = {
      {execution.workspace, plan.graph->workspaceBytes, true}};
  for (const Tensor &tensor : plan.graph->tensors) {
    Address address = tensor.isVirtual ? 0 : addressOf(given, tensor);
    execution.addresses.push_back(address);
    execution.constants.emplace_back();
    if (tensor.byValue)
      execution.constants.back().assign(
          reinterpret_cast<const char *>(address),
          size_t(tensor.span() * tensor.elementBytes()));
    else if (!tensor.isVirtual)
      addAccesses(tensor, address, accesses);
  }
  std::string text = plan.graph->text();
  log("cudnnBackendExecute(%s, %s)", text.c_str(), streamName(stream).c_str());
  if (enqueue(stream,
              {"cudnnBackendExecute (" + text + ")", std::move(accesses),
               [execution] { return execution.run(); }}) != CUDA_SUCCESS)
    throw DnnError(CUDNN_STATUS_EXECUTION_FAILED, "the stream refused it");
}

//===----------------------------------------------------------------------===//
// Functions of the library
//===----------------------------------------------------------------------===//

extern "C" {

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }

size_t cudnnGetCudartVersion(void) { return CUDA_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
    return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
  case CUDNN_STATUS_INTERNAL_ERROR:
    return "CUDNN_STATUS_INTERNAL_ERROR";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  default:
    return status >= CUDNN_STATUS_NOT_SUPPORTED &&
                   status < CUDNN_STATUS_INTERNAL_ERROR
               ? "CUDNN_STATUS_NOT_SUPPORTED"
               : "CUDNN_STATUS_BAD_PARAM";
  }
}

void cudnnGetLastErrorString(char *message, size_t room) {
  if (room > 0)
    std::snprintf(message, room, "%s", lastError.c_str());
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  return guarded("cudnnCreate", [&] {
    CUcontext context = nullptr;
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
      throw DnnError(CUDNN_STATUS_NOT_INITIALIZED,
                     "no context is current on this thread");
    *handle = new cudnnContext;
    objects().add(*handle);
    log("cudnnCreate()");
  });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return guarded("cudnnDestroy", [&] {
    objects().remove(handle);
    delete handle;
    log("cudnnDestroy()");
  });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return guarded("cudnnSetStream", [&] {
    objects().check(handle);
    handle->stream = reinterpret_cast<CUstream>(stream);
  });
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
  return guarded("cudnnGetStream", [&] {
    objects().check(handle);
    *stream = reinterpret_cast<cudaStream_t>(handle->stream);
  });
}

cudnnStatus_t
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                             cudnnBackendDescriptor_t *descriptor) {
  return guarded("cudnnBackendCreateDescriptor", [&] {
    auto *holder = new Holder{std::make_shared<Descriptor>()};
    holder->descriptor->type = type;
    objects().add(holder);
    *descriptor = holder;
  });
}

cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return guarded("cudnnBackendDestroyDescriptor", [&] {
    objects().remove(descriptor);
    delete static_cast<Holder *>(descriptor);
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return guarded("cudnnBackendFinalize", [&] { finalize(*find(descriptor)); });
}

static size_t bytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR:
    return 1;
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
  case CUDNN_TYPE_FRACTION:
    return 8;
  default: // enumerations, f32, i32
    return 4;
  }
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count, const void *values) {
  return guarded("cudnnBackendSetAttribute", [&] {
    Descriptor &target = *find(descriptor);
    if (target.finalized)
      throw DnnError(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
    if (count < 0 || (count > 0 && !values))
      throw DnnError(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no values");
    Attribute attribute{type, count, {}, {}};
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      auto *given = static_cast<const cudnnBackendDescriptor_t *>(values);
      for (int64_t i = 0; i < count; ++i) {
        if (!find(given[i])->finalized)
          throw DnnError(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                         "a descriptor that is not finalized");
        attribute.descriptors.push_back(find(given[i]));
      }
    } else if (count > 0) {
      auto *bytes = static_cast<const char *>(values);
      attribute.bytes.assign(bytes, bytes + count * bytesOf(type));
    }
    target.attributes[name] = std::move(attribute);
  });
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t room, int64_t *count,
                                       void *values) {
  return guarded("cudnnBackendGetAttribute", [&] {
    const Attribute attribute = find(descriptor)->get(name);
    if (attribute.type != type)
      throw DnnError(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                     "attribute " + std::to_string(name) + " is of type " +
                         std::to_string(attribute.type) + ", not " +
                         std::to_string(type));
    if (count)
      *count = attribute.count;
    int64_t copied = values ? std::min(room, attribute.count) : 0;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      auto *given = static_cast<cudnnBackendDescriptor_t *>(values);
      for (int64_t i = 0; i < copied; ++i)
        find(given[i]) = attribute.descriptors[i];
    } else if (copied > 0) {
      std::memcpy(values, attribute.bytes.data(), copied * bytesOf(type));
    }
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return guarded("cudnnBackendExecute", [&] {
    objects().check(handle);
    execute(handle->stream,
            findFinal(plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR),
            findFinal(pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  });
}

} // extern "C"
