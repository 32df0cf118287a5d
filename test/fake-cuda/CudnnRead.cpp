//===- CudnnRead.cpp - What descriptors describe --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See CudnnGraph.h.
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/CudnnGraph.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace fake_cuda::dnn;

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

const Attribute &Descriptor::get(cudnnBackendAttributeName_t name) const {
  auto found = attributes.find(name);
  if (found == attributes.end())
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   "a descriptor of type " + std::to_string(type) +
                       " lacks attribute " + std::to_string(name));
  return found->second;
}

const Descriptor &
Descriptor::descriptor(cudnnBackendAttributeName_t name) const {
  const Attribute &attribute = get(name);
  if (attribute.descriptors.size() != 1)
    throw DnnError(CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) +
                                               " is not one descriptor");
  return *attribute.descriptors.front();
}

std::vector<int64_t>
Descriptor::integers(cudnnBackendAttributeName_t name) const {
  const Attribute &attribute = get(name);
  if (attribute.count <= 0 || attribute.bytes.empty())
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   "attribute " + std::to_string(name) + " is empty");
  size_t width = attribute.bytes.size() / size_t(attribute.count);
  std::vector<int64_t> values(attribute.count);
  for (size_t i = 0; i < values.size(); ++i) // little endian
    std::memcpy(&values[i], &attribute.bytes[i * width], width);
  return values;
}

int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  return integers(name).front();
}

int64_t Descriptor::integer(cudnnBackendAttributeName_t name,
                            int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

double Descriptor::number(cudnnBackendAttributeName_t name) const {
  const Attribute &attribute = get(name);
  if (attribute.type == CUDNN_TYPE_FLOAT) {
    float value;
    std::memcpy(&value, attribute.bytes.data(), sizeof(value));
    return value;
  }
  if (attribute.type != CUDNN_TYPE_DOUBLE)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                   "attribute " + std::to_string(name) + " is no number");
  double value;
  std::memcpy(&value, attribute.bytes.data(), sizeof(value));
  return value;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

int64_t Tensor::count() const {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

int64_t Tensor::span() const {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    last += (sizes[i] - 1) * strides[i];
  return last + 1;
}

int64_t Tensor::elementBytes() const {
  switch (type) {
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_INT32:
    return 4;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_BOOLEAN:
    return 1;
  default:
    throw DnnError(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                   "fake cuDNN has no tensors of data type " +
                       std::to_string(type));
  }
}

static std::string describe(const Tensor &tensor) {
  std::string text = "tensor " + std::to_string(tensor.uid) + " [";
  for (int64_t size : tensor.sizes)
    text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "]";
}

/// Whether two indices of the tensor lie at one place.
static bool overlaps(const Tensor &tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < tensor.sizes.size(); ++i)
    if (tensor.sizes[i] > 1)
      dims.emplace_back(tensor.strides[i], tensor.sizes[i]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 1;
  for (auto [stride, size] : dims) {
    if (stride < reach)
      return true;
    reach = stride * (size - 1) + reach;
  }
  return false;
}

static Tensor readTensor(const Descriptor &descriptor) {
  Tensor tensor;
  tensor.uid = descriptor.integer(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.type =
      cudnnDataType_t(descriptor.integer(CUDNN_ATTR_TENSOR_DATA_TYPE));
  tensor.sizes = descriptor.integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  tensor.strides = descriptor.integers(CUDNN_ATTR_TENSOR_STRIDES);
  tensor.alignment = descriptor.integer(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  tensor.isVirtual = descriptor.integer(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0);
  tensor.byValue = descriptor.integer(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0);
  if (descriptor.has(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC))
    throw DnnError(CUDNN_STATUS_NOT_SUPPORTED, "ragged tensors");
  if (tensor.sizes.size() != tensor.strides.size() || tensor.sizes.size() > 8)
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   describe(tensor) + " has " +
                       std::to_string(tensor.strides.size()) + " strides");
  for (int64_t size : tensor.sizes)
    if (size < 1)
      throw DnnError(CUDNN_STATUS_BAD_PARAM, describe(tensor) + " is empty");
  // The frontend gives some virtual tensors strides that fit no memory.
  if (tensor.isVirtual && overlaps(tensor)) {
    int64_t stride = 1;
    for (size_t i = tensor.sizes.size(); i-- > 0; stride *= tensor.sizes[i])
      tensor.strides[i] = stride;
  }
  if (tensor.alignment < 1 || tensor.alignment % tensor.elementBytes())
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   describe(tensor) + " has an alignment of " +
                       std::to_string(tensor.alignment) + " bytes");
  return tensor;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
class Reader {
public:
  Graph read(const Descriptor &operationGraph);

private:
  size_t tensor(const Descriptor &operation, cudnnBackendAttributeName_t name);
  void operation(const Descriptor &descriptor);
  void convolution(const Descriptor &descriptor, Operation::Kind kind,
                   cudnnBackendAttributeName_t x, cudnnBackendAttributeName_t w,
                   cudnnBackendAttributeName_t y,
                   cudnnBackendAttributeName_t attributes,
                   cudnnBackendAttributeName_t alpha,
                   cudnnBackendAttributeName_t beta);
  void checkConvolution(const Operation &op, size_t x, size_t w, size_t y);
  void pointwise(const Descriptor &descriptor);
  void matmul(const Descriptor &descriptor);
  void reduction(const Descriptor &descriptor);
  void reshape(const Descriptor &descriptor);
  void add(Operation op);
  void sort();

  Graph graph;
  std::map<int64_t, size_t> numbers; // by uid
};
} // namespace

static void requireFloat(const Descriptor &descriptor,
                         cudnnBackendAttributeName_t name) {
  if (descriptor.integer(name) != CUDNN_DATA_FLOAT)
    throw DnnError(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                   "fake cuDNN computes in f32 alone");
}

size_t Reader::tensor(const Descriptor &operation,
                      cudnnBackendAttributeName_t name) {
  const Descriptor &descriptor = operation.descriptor(name);
  if (descriptor.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                   "attribute " + std::to_string(name) + " is no tensor");
  Tensor tensor = readTensor(descriptor);
  auto [entry, isNew] = numbers.try_emplace(tensor.uid, graph.tensors.size());
  if (isNew)
    graph.tensors.push_back(tensor);
  else if (graph.tensors[entry->second].sizes != tensor.sizes ||
           graph.tensors[entry->second].strides != tensor.strides ||
           graph.tensors[entry->second].type != tensor.type)
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   describe(tensor) + " has two descriptions");
  return entry->second;
}

void Reader::add(Operation op) {
  Tensor &output = graph.tensors[op.output];
  if (output.byValue || output.written)
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   describe(output) + " is written twice, or a constant");
  if (overlaps(output))
    throw DnnError(CUDNN_STATUS_BAD_PARAM,
                   describe(output) + " has two indices for one element");
  output.written = true;
  graph.operations.push_back(std::move(op));
}

void Reader::checkConvolution(const Operation &op, size_t x, size_t w,
                              size_t y) {
  const Tensor &in = graph.tensors[x], &weight = graph.tensors[w],
               &out = graph.tensors[y];
  size_t rank = in.sizes.size();
  if ((rank != 4 && rank != 5) || weight.sizes.size() != rank ||
      out.sizes.size() != rank || op.strides.size() != rank - 2 ||
      op.dilations.size() != rank - 2 || op.padsBegin.size() != rank - 2 ||
      op.padsEnd.size() != rank - 2)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "a convolution of " + describe(in) + " with " +
                       describe(weight));
  int64_t channels = weight.sizes[1];
  bool fits = in.sizes[1] % channels == 0 &&
              weight.sizes[0] % (in.sizes[1] / channels) == 0 &&
              out.sizes[0] == in.sizes[0] && out.sizes[1] == weight.sizes[0];
  for (size_t i = 0; fits && i < rank - 2; ++i) {
    int64_t window = op.dilations[i] * (weight.sizes[i + 2] - 1) + 1;
    int64_t room = in.sizes[i + 2] + op.padsBegin[i] + op.padsEnd[i] - window;
    fits = room >= 0 && room / op.strides[i] + 1 == out.sizes[i + 2];
  }
  if (!fits)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "a convolution of " + describe(in) + " with " +
                       describe(weight) + " is not " + describe(out));
}

void Reader::convolution(const Descriptor &descriptor, Operation::Kind kind,
                         cudnnBackendAttributeName_t x,
                         cudnnBackendAttributeName_t w,
                         cudnnBackendAttributeName_t y,
                         cudnnBackendAttributeName_t attributes,
                         cudnnBackendAttributeName_t alpha,
                         cudnnBackendAttributeName_t beta) {
  const Descriptor &window = descriptor.descriptor(attributes);
  requireFloat(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  if (window.integer(CUDNN_ATTR_CONVOLUTION_CONV_MODE) !=
          CUDNN_CROSS_CORRELATION ||
      descriptor.number(alpha) != 1 || descriptor.number(beta) != 0)
    throw DnnError(CUDNN_STATUS_NOT_SUPPORTED,
                   "fake cuDNN has cross-correlations with alpha 1 and beta 0");
  Operation op{};
  op.kind = kind;
  op.padsBegin = window.integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  op.padsEnd = window.integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  op.dilations = window.integers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  op.strides = window.integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  size_t in = tensor(descriptor, x), weight = tensor(descriptor, w),
         out = tensor(descriptor, y);
  checkConvolution(op, in, weight, out);
  op.inputs = kind == Operation::ConvForward ? std::vector<size_t>{in, weight}
              : kind == Operation::ConvData  ? std::vector<size_t>{weight, out}
                                             : std::vector<size_t>{in, out};
  op.output = kind == Operation::ConvForward ? out
              : kind == Operation::ConvData  ? in
                                             : weight;
  add(std::move(op));
}

/// Whether `input` is `output`'s size or 1 in each dimension.
static bool broadcasts(const Tensor &input, const Tensor &output) {
  if (input.sizes.size() != output.sizes.size())
    return input.count() == 1;
  for (size_t i = 0; i < input.sizes.size(); ++i)
    if (input.sizes[i] != 1 && input.sizes[i] != output.sizes[i])
      return false;
  return true;
}

void Reader::pointwise(const Descriptor &descriptor) {
  const Descriptor &attributes =
      descriptor.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  Operation op{};
  op.kind = Operation::Pointwise;
  op.mode = int(attributes.integer(CUDNN_ATTR_POINTWISE_MODE));
  op.axis = attributes.integer(CUDNN_ATTR_POINTWISE_AXIS, 0);
  op.scales[0] = descriptor.number(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1);
  op.scales[1] = descriptor.number(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2);
  for (auto name : {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                    CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                    CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
    if (descriptor.has(name))
      op.inputs.push_back(tensor(descriptor, name));
  op.output = tensor(descriptor, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  for (size_t input : op.inputs)
    if (!broadcasts(graph.tensors[input], graph.tensors[op.output]))
      throw DnnError(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                     describe(graph.tensors[input]) +
                         " does not broadcast to " +
                         describe(graph.tensors[op.output]));
  add(std::move(op));
}

void Reader::matmul(const Descriptor &descriptor) {
  requireFloat(descriptor.descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC),
               CUDNN_ATTR_MATMUL_COMP_TYPE);
  for (auto name : {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
                    CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
                    CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC})
    if (descriptor.has(name))
      throw DnnError(CUDNN_STATUS_NOT_SUPPORTED,
                     "fake cuDNN has no matmul of variable sizes");
  Operation op{};
  op.kind = Operation::Matmul;
  op.inputs = {tensor(descriptor, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
               tensor(descriptor, CUDNN_ATTR_OPERATION_MATMUL_BDESC)};
  op.output = tensor(descriptor, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  const Tensor &a = graph.tensors[op.inputs[0]],
               &b = graph.tensors[op.inputs[1]], &c = graph.tensors[op.output];
  size_t rank = c.sizes.size();
  bool fits = rank >= 2 && a.sizes.size() == rank && b.sizes.size() == rank &&
              a.sizes[rank - 2] == c.sizes[rank - 2] &&
              b.sizes[rank - 1] == c.sizes[rank - 1] &&
              a.sizes[rank - 1] == b.sizes[rank - 2];
  // A batch of b serves as many neighbouring ones of the result as fit.
  for (size_t i = 0; fits && i < rank - 2; ++i)
    fits = c.sizes[i] % a.sizes[i] == 0 && c.sizes[i] % b.sizes[i] == 0;
  if (!fits)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "a product of " + describe(a) + " and " + describe(b) +
                       " is not " + describe(c));
  add(std::move(op));
}

void Reader::reduction(const Descriptor &descriptor) {
  const Descriptor &attributes =
      descriptor.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  requireFloat(attributes, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  Operation op{};
  op.kind = Operation::Reduction;
  op.mode = int(attributes.integer(CUDNN_ATTR_REDUCTION_OPERATOR));
  if (op.mode != CUDNN_REDUCE_TENSOR_ADD && op.mode != CUDNN_REDUCE_TENSOR_MAX)
    throw DnnError(CUDNN_STATUS_NOT_SUPPORTED,
                   "fake cuDNN has no reduction " + std::to_string(op.mode));
  op.inputs = {tensor(descriptor, CUDNN_ATTR_OPERATION_REDUCTION_XDESC)};
  op.output = tensor(descriptor, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  const Tensor &in = graph.tensors[op.inputs[0]],
               &out = graph.tensors[op.output];
  bool fits = in.sizes.size() == out.sizes.size();
  for (size_t i = 0; fits && i < in.sizes.size(); ++i)
    fits = in.sizes[i] % out.sizes[i] == 0;
  if (!fits)
    throw DnnError(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   describe(in) + " does not reduce to " + describe(out));
  add(std::move(op));
}

void Reader::reshape(const Descriptor &descriptor) {
  Operation op{};
  op.kind = Operation::Reshape;
  op.inputs = {tensor(descriptor, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)};
  op.output = tensor(descriptor, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  const Tensor &in = graph.tensors[op.inputs[0]],
               &out = graph.tensors[op.output];
  if (in.span() != out.span() || in.count() != out.count())
    throw DnnError(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   describe(in) + " and " + describe(out) +
                       " are not the same memory");
  add(std::move(op));
}

void Reader::operation(const Descriptor &descriptor) {
  switch (descriptor.type) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    return convolution(descriptor, Operation::ConvForward,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    return convolution(descriptor, Operation::ConvData,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    return convolution(descriptor, Operation::ConvFilter,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    return pointwise(descriptor);
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    return matmul(descriptor);
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    return reduction(descriptor);
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    return reshape(descriptor);
  default:
    throw DnnError(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
                   "fake cuDNN has no operation of descriptor type " +
                       std::to_string(descriptor.type));
  }
}

/// Puts each operation after those whose results it reads.
void Reader::sort() {
  std::vector<Operation> sorted;
  std::set<size_t> pending;
  for (const Operation &op : graph.operations)
    pending.insert(op.output);
  std::vector<Operation> &left = graph.operations;
  while (!left.empty()) {
    auto next = std::find_if(left.begin(), left.end(), [&](const auto &op) {
      return std::none_of(op.inputs.begin(), op.inputs.end(),
                          [&](size_t input) { return pending.count(input); });
    });
    if (next == left.end())
      throw DnnError(CUDNN_STATUS_BAD_PARAM, "the operations form a cycle");
    pending.erase(next->output);
    sorted.push_back(std::move(*next));
    left.erase(next);
  }
  graph.operations = std::move(sorted);
}

Graph Reader::read(const Descriptor &operationGraph) {
  for (const DescriptorPtr &descriptor :
       operationGraph.get(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors)
    operation(*descriptor);
  for (const Tensor &tensor : graph.tensors)
    if (tensor.isVirtual && !tensor.written)
      throw DnnError(CUDNN_STATUS_BAD_PARAM,
                     describe(tensor) + " is virtual and never written");
  sort();
  // Something to check that it is there, and not shared.
  graph.workspaceBytes = 512 * graph.operations.size() + 64;
  return std::move(graph);
}

Graph Graph::read(const Descriptor &operationGraph) {
  return Reader().read(operationGraph);
}

bool Graph::isSingle() const {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor &tensor) {
    return tensor.isVirtual || tensor.type == CUDNN_DATA_FLOAT;
  });
}

std::string Graph::text() const {
  static const char *const names[] = {
      "conv",   "conv_grad_input", "conv_grad_weight", "pointwise",
      "matmul", "reduction",       "reshape"};
  std::string text;
  for (const Operation &op : operations)
    if (op.kind != Operation::Pointwise || op.mode != CUDNN_POINTWISE_IDENTITY)
      text += (text.empty() ? "" : "+") + std::string(names[op.kind]);
  return text;
}
