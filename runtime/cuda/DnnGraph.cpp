//===- DnnGraph.cpp - Operations that cuDNN plans as one ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See DnnGraph.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/DnnGraph.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/Status.h"

#include <algorithm>
#include <dlfcn.h>

using namespace zrt;
using namespace zrt::cuda;

using cudnn_frontend::DataType_t;
using cudnn_frontend::NumericalNote_t;

// The frontend finds cuDNN's functions in this library.
void *cudnn_frontend::cudnn_dlhandle = nullptr;

/// It is linked to this one: no other is loaded.
static void findLibrary() {
  static void *const library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    fail(ZRT_ERROR_EXECUTION, "cuDNN is not loaded: ", dlerror());
  cudnn_frontend::cudnn_dlhandle = library;
}

static DataType_t dataType(fb::DType type) {
  switch (type) {
  case fb::DType_F32:
    return DataType_t::FLOAT;
  case fb::DType_BF16:
    return DataType_t::BFLOAT16;
  case fb::DType_F16:
    return DataType_t::HALF;
  default:
    fail(ZRT_ERROR_FORMAT, "elements of type ", dtypeName(type),
         "; cuDNN calls take f32, bf16 and f16");
  }
}

/// The largest power of two up to 16 that divides the address.
static int64_t alignmentOf(CUdeviceptr address) {
  return int64_t((address | 16) & ~((address | 16) - 1));
}

/// What the library said, on one line.
static std::string oneLine(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos;)
    text.replace(at, 1, "; ");
  return text.empty() ? "no reason given" : text;
}

DnnGraph::DnnGraph(const CallSite &site)
    : callee(site.command.callee), operands(site.operands),
      handle(site.libraries.dnn()) {
  findLibrary();
  operations.set_compute_data_type(DataType_t::FLOAT)
      .set_intermediate_data_type(DataType_t::FLOAT)
      .set_sm_version(site.libraries.capability)
      .set_cuda_graph_retention(cudnn_frontend::CudaGraphRetention_t::NONE);
}

void DnnGraph::check(cudnn_frontend::error_t status, const char *what) const {
  if (status.is_bad())
    fail(ZRT_ERROR_EXECUTION, "cuDNN does not take this ", callee, " (", what,
         "): ", oneLine(status.get_message()));
}

bool DnnGraph::isSingle() const {
  return std::all_of(
      operands.begin(), operands.end(),
      [](const CallOperand &operand) { return operand.type == fb::DType_F32; });
}

void DnnGraph::describe(fe::Tensor_attributes &tensor, size_t operand,
                        std::vector<int64_t> sizes,
                        std::vector<int64_t> strides) const {
  tensor.set_uid(int64_t(operand) + 1)
      .set_dim(std::move(sizes))
      .set_stride(std::move(strides))
      .set_data_type(dataType(operands[operand].type))
      .set_alignment(alignmentOf(operands[operand].address));
}

DnnGraph::Tensor DnnGraph::input(size_t operand, std::vector<int64_t> sizes,
                                 std::vector<int64_t> strides) {
  fe::Tensor_attributes tensor;
  describe(tensor, operand, std::move(sizes), std::move(strides));
  return operations.tensor(tensor);
}

DnnGraph::Tensor DnnGraph::input(size_t operand) {
  const View &view = operands[operand].view;
  return input(operand, view.sizes, view.strides);
}

void DnnGraph::output(const Tensor &tensor, size_t operand,
                      std::vector<int64_t> sizes,
                      std::vector<int64_t> strides) {
  describe(*tensor, operand, std::move(sizes), std::move(strides));
  tensor->set_output(true);
}

void DnnGraph::output(const Tensor &tensor, size_t operand) {
  const View &view = operands[operand].view;
  output(tensor, operand, view.sizes, view.strides);
}

DnnGraph::Tensor DnnGraph::scratchInput(size_t operand,
                                        const std::vector<int64_t> &sizes) {
  fe::Tensor_attributes tensor;
  describe(tensor, operand, sizes, contiguousView(sizes).strides);
  tensor.set_uid(int64_t(operands.size()) + 1).set_alignment(16);
  return operations.tensor(tensor);
}

void DnnGraph::scratchOutput(const Tensor &tensor, size_t operand,
                             const std::vector<int64_t> &sizes) {
  output(tensor, operand, sizes, contiguousView(sizes).strides);
  tensor->set_uid(int64_t(operands.size()) + 1).set_alignment(16);
}

void DnnGraph::plan(bool deterministic) {
  using Mode = cudnn_frontend::HeurMode_t;
  try {
    check(operations.validate(), "checking it");
    check(operations.build_operation_graph(handle), "describing it");
    check(operations.create_execution_plans({Mode::A, Mode::FALLBACK}),
          "looking for an algorithm");
    std::vector<NumericalNote_t> refused;
    if (deterministic)
      refused.push_back(NumericalNote_t::NONDETERMINISTIC);
    if (isSingle())
      refused.insert(refused.end(), {NumericalNote_t::TENSOR_CORE,
                                     NumericalNote_t::DOWN_CONVERT_INPUTS});
    operations.deselect_numeric_notes(refused);
    check(operations.check_support(), "choosing an algorithm");
    check(operations.build_plans(), "planning it");
  } catch (const Error &) {
    throw;
  } catch (const std::exception &error) {
    fail(ZRT_ERROR_EXECUTION, "cuDNN does not take this ", callee, ": ",
         oneLine(error.what()));
  }
  int64_t bytes = 0;
  check(operations.get_workspace_size(bytes), "asking for its workspace");
  ownBytes = uint64_t(bytes - operations.chosen().getWorkspaceSize());
}

static uint64_t alignUp(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

uint64_t DnnGraph::workspaceBytes() const {
  return alignUp(ownBytes) + uint64_t(operations.chosen().getWorkspaceSize());
}

namespace {
/// The addresses of one execution.
class VariantPack {
public:
  VariantPack() {
    checkDnn(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                                          &descriptor),
             "cudnnBackendCreateDescriptor");
  }
  ~VariantPack() { cudnnBackendDestroyDescriptor(descriptor); }
  VariantPack(const VariantPack &) = delete;
  VariantPack &operator=(const VariantPack &) = delete;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           size_t count, const void *values) {
    checkDnn(cudnnBackendSetAttribute(descriptor, name, type, int64_t(count),
                                      values),
             "cudnnBackendSetAttribute");
  }
  cudnnBackendDescriptor_t finish() {
    checkDnn(cudnnBackendFinalize(descriptor), "cudnnBackendFinalize");
    return descriptor;
  }

private:
  cudnnBackendDescriptor_t descriptor = nullptr;
};
} // namespace

void DnnGraph::run(CUstream stream, const std::vector<CUdeviceptr> &addresses,
                   CUdeviceptr workspace) const {
  const auto &slots = operations.varpack_template;
  std::vector<void *> pointers = slots.template_ptrs;
  for (int slot : slots.user_slots)
    pointers[slot] =
        reinterpret_cast<void *>(addresses.at(slots.all_uids[slot] - 1));
  for (auto [slot, offset] : slots.workspace_slots)
    pointers[slot] = reinterpret_cast<void *>(workspace + offset);
  void *engine = reinterpret_cast<void *>(workspace + alignUp(ownBytes));

  VariantPack pack;
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
           slots.all_uids.size(), slots.all_uids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           pointers.size(), pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &engine);
  checkDnn(cudnnSetStream(handle, reinterpret_cast<cudaStream_t>(stream)),
           "cudnnSetStream");
  checkDnn(cudnnBackendExecute(handle, operations.chosen().get_raw_desc(),
                               pack.finish()),
           "cudnnBackendExecute (" + callee + ")");
}

DnnCall::DnnCall(std::shared_ptr<const DnnGraph> callGraph,
                 const CallSite &site)
    : graph(std::move(callGraph)), addresses(addressesOf(site)) {}

uint64_t DnnCall::workspaceBytes() const { return graph->workspaceBytes(); }

void DnnCall::run(CUstream stream, CUdeviceptr workspace) {
  graph->run(stream, addresses, workspace);
}

std::vector<CUdeviceptr> cuda::addressesOf(const CallSite &site) {
  std::vector<CUdeviceptr> addresses;
  for (const CallOperand &operand : site.operands)
    addresses.push_back(operand.address);
  return addresses;
}

std::shared_ptr<const DnnGraph>
cuda::findDnnGraph(const CallSite &site, const std::string &name,
                   const std::function<std::shared_ptr<DnnGraph>()> &build) {
  std::ostringstream key;
  key << std::hexfloat << "cudnn " << name << ':';
  auto write = [&](const auto &numbers) {
    for (auto number : numbers)
      key << number << ',';
    key << ';';
  };
  for (const CallOperand &operand : site.operands) {
    key << dtypeName(operand.type) << ' ' << alignmentOf(operand.address)
        << ' ';
    write(operand.view.sizes);
    write(operand.view.strides);
  }
  for (const Attr &attr : site.command.attrs) {
    key << attr.name << '=';
    write(attr.ints);
    write(attr.floats);
  }
  std::shared_ptr<void> &entry = site.libraries.cache[key.str()];
  if (!entry)
    entry = build();
  return std::static_pointer_cast<const DnnGraph>(entry);
}
