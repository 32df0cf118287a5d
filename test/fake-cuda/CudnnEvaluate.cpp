//===- CudnnEvaluate.cpp - Operation graphs, executed ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each tensor is an array of f32 over its whole span, in the layout of its
// strides; what an operation writes is rounded to the tensor's type, as between
// the stages of a fused kernel. Sums are taken in f64 and rounded once.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/NarrowFloat.h"
#include "test/fake-cuda/CudnnGraph.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fake_cuda::dnn;

using Index = std::vector<int64_t>;
using Values = std::vector<float>;

/// Calls `f` with each index below `sizes`, the last dimension fastest.
template <typename F>
static void forEach(const Index &sizes, F f) {
  Index index(sizes.size(), 0);
  while (true) {
    f(index);
    size_t dim = sizes.size();
    while (dim > 0 && ++index[dim - 1] == sizes[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return;
  }
}

/// Where the element at `index` lies; sizes of 1 repeat.
static int64_t offsetOf(const Tensor &tensor, const Index &index) {
  if (tensor.sizes.size() != index.size())
    return 0; // a scalar
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i)
    offset += tensor.sizes[i] == 1 ? 0 : index[i] * tensor.strides[i];
  return offset;
}

static float load(cudnnDataType_t type, const char *from) {
  uint16_t half;
  float single;
  int32_t integer;
  switch (type) {
  case CUDNN_DATA_BFLOAT16:
    std::memcpy(&half, from, 2);
    return zrt::BFloat16{half}.widen();
  case CUDNN_DATA_HALF:
    std::memcpy(&half, from, 2);
    return zrt::Half{half}.widen();
  case CUDNN_DATA_INT32:
    std::memcpy(&integer, from, 4);
    return float(integer);
  case CUDNN_DATA_BOOLEAN:
    return *from ? 1.0f : 0.0f;
  default:
    std::memcpy(&single, from, 4);
    return single;
  }
}

static void store(cudnnDataType_t type, float value, char *to) {
  uint16_t half = zrt::BFloat16::round(value).bits;
  int32_t integer = 0;
  switch (type) {
  case CUDNN_DATA_HALF:
    half = zrt::Half::round(value).bits;
    [[fallthrough]];
  case CUDNN_DATA_BFLOAT16:
    std::memcpy(to, &half, 2);
    return;
  case CUDNN_DATA_INT32:
    integer = int32_t(value);
    std::memcpy(to, &integer, 4);
    return;
  case CUDNN_DATA_BOOLEAN:
    *to = value != 0;
    return;
  default:
    std::memcpy(to, &value, 4);
  }
}

static float roundTo(cudnnDataType_t type, float value) {
  char bytes[4];
  store(type, value, bytes);
  return load(type, bytes);
}

/// What a tensor core reads of an f32: 10 bits behind the point.
static float roundToTf32(float value) {
  uint32_t bits = zrt::bitsOf(value);
  return zrt::floatOf((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu);
}

namespace {
class Evaluator {
public:
  Evaluator(const Graph &graph, const Storage &storage)
      : graph(graph), storage(storage), values(graph.tensors.size()) {}
  void run();

private:
  const Tensor &tensor(size_t number) const { return graph.tensors[number]; }
  const Values &read(size_t number);
  void write(size_t number, const std::vector<double> &result);
  void convolution(const Operation &op);
  void pointwise(const Operation &op);
  void matmul(const Operation &op);
  void reduction(const Operation &op);
  void reshape(const Operation &op);

  const Graph &graph;
  const Storage &storage;
  std::vector<Values> values;
};
} // namespace

const Values &Evaluator::read(size_t number) {
  Values &result = values[number];
  if (!result.empty())
    return result;
  const Tensor &source = tensor(number);
  result.resize(source.span());
  bool toTf32 = graph.engine == TensorCoreEngine && graph.isSingle();
  forEach(source.sizes, [&](const Index &index) {
    int64_t offset = offsetOf(source, index);
    float value =
        load(source.type, storage[number] + offset * source.elementBytes());
    result[offset] = toTf32 ? roundToTf32(value) : value;
  });
  return result;
}

void Evaluator::write(size_t number, const std::vector<double> &result) {
  const Tensor &target = tensor(number);
  Values &own = values[number];
  own.resize(target.span());
  forEach(target.sizes, [&](const Index &index) {
    int64_t offset = offsetOf(target, index);
    own[offset] = roundTo(target.type, float(result[offset]));
    if (!target.isVirtual)
      store(target.type, own[offset],
            storage[number] + offset * target.elementBytes());
  });
}

/// Visits every product of the convolution, whichever of its three tensors is
/// the sum.
void Evaluator::convolution(const Operation &op) {
  size_t x, w, y;
  if (op.kind == Operation::ConvForward)
    x = op.inputs[0], w = op.inputs[1], y = op.output;
  else if (op.kind == Operation::ConvData)
    w = op.inputs[0], y = op.inputs[1], x = op.output;
  else
    x = op.inputs[0], y = op.inputs[1], w = op.output;
  const Values &first = read(op.inputs[0]), &second = read(op.inputs[1]);
  const Tensor &in = tensor(x), &weight = tensor(w), &out = tensor(y);
  std::vector<double> sum(tensor(op.output).span());
  int64_t filters = weight.sizes[0] / (in.sizes[1] / weight.sizes[1]);
  Index window(weight.sizes.begin() + 1, weight.sizes.end());
  forEach(out.sizes, [&](const Index &o) {
    int64_t outOffset = offsetOf(out, o);
    int64_t firstChannel = o[1] / filters * weight.sizes[1];
    forEach(window, [&](const Index &r) {
      int64_t inOffset =
          o[0] * in.strides[0] + (firstChannel + r[0]) * in.strides[1];
      int64_t weightOffset =
          o[1] * weight.strides[0] + r[0] * weight.strides[1];
      for (size_t i = 1; i < r.size(); ++i) {
        int64_t position = o[i + 1] * op.strides[i - 1] +
                           r[i] * op.dilations[i - 1] - op.padsBegin[i - 1];
        if (position < 0 || position >= in.sizes[i + 1])
          return;
        inOffset += position * in.strides[i + 1];
        weightOffset += r[i] * weight.strides[i + 1];
      }
      if (op.kind == Operation::ConvForward)
        sum[outOffset] += double(first[inOffset]) * second[weightOffset];
      else if (op.kind == Operation::ConvData)
        sum[inOffset] += double(first[weightOffset]) * second[outOffset];
      else
        sum[weightOffset] += double(first[inOffset]) * second[outOffset];
    });
  });
  write(op.output, sum);
}

static float apply(int mode, float x, float b, float t) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_SUB:
    return x - b;
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_DIV:
    return x / b;
  case CUDNN_POINTWISE_MAX:
    return std::max(x, b);
  case CUDNN_POINTWISE_MIN:
    return std::min(x, b);
  case CUDNN_POINTWISE_EXP:
    return std::exp(x);
  case CUDNN_POINTWISE_LOG:
    return std::log(x);
  case CUDNN_POINTWISE_IDENTITY:
    return x;
  case CUDNN_POINTWISE_CMP_EQ:
    return x == b;
  case CUDNN_POINTWISE_CMP_NEQ:
    return x != b;
  case CUDNN_POINTWISE_CMP_GT:
    return x > b;
  case CUDNN_POINTWISE_CMP_GE:
    return x >= b;
  case CUDNN_POINTWISE_CMP_LT:
    return x < b;
  case CUDNN_POINTWISE_CMP_LE:
    return x <= b;
  case CUDNN_POINTWISE_LOGICAL_AND:
    return x != 0 && b != 0;
  case CUDNN_POINTWISE_LOGICAL_OR:
    return x != 0 || b != 0;
  case CUDNN_POINTWISE_LOGICAL_NOT:
    return x == 0;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return t != 0 ? x : b;
  default:
    throw DnnError(CUDNN_STATUS_NOT_SUPPORTED,
                   "fake cuDNN has no pointwise mode " + std::to_string(mode));
  }
}

void Evaluator::pointwise(const Operation &op) {
  const Tensor &target = tensor(op.output);
  std::vector<double> result(target.span());
  std::vector<const Values *> inputs;
  if (op.mode != CUDNN_POINTWISE_GEN_INDEX)
    for (size_t input : op.inputs)
      inputs.push_back(&read(input));
  forEach(target.sizes, [&](const Index &index) {
    float operands[3] = {};
    for (size_t i = 0; i < inputs.size(); ++i)
      operands[i] = (*inputs[i])[offsetOf(tensor(op.inputs[i]), index)];
    for (size_t i = 0; i < 2; ++i)
      operands[i] *= float(op.scales[i]);
    result[offsetOf(target, index)] =
        op.mode == CUDNN_POINTWISE_GEN_INDEX
            ? float(index[op.axis])
            : apply(op.mode, operands[0], operands[1], operands[2]);
  });
  write(op.output, result);
}

/// Of `batch`, a position in the result's; each of the operand's serves a run
/// of neighbours.
static int64_t batchOffset(const Tensor &operand, const Tensor &result,
                           const Index &batch) {
  int64_t offset = 0;
  for (size_t i = 0; i < batch.size(); ++i)
    offset +=
        batch[i] / (result.sizes[i] / operand.sizes[i]) * operand.strides[i];
  return offset;
}

void Evaluator::matmul(const Operation &op) {
  const Tensor &a = tensor(op.inputs[0]), &b = tensor(op.inputs[1]),
               &c = tensor(op.output);
  const Values &left = read(op.inputs[0]), &right = read(op.inputs[1]);
  size_t rank = c.sizes.size();
  std::vector<double> result(c.span());
  forEach(c.sizes, [&](const Index &index) {
    Index batch(index.begin(), index.end() - 2);
    int64_t ai =
        batchOffset(a, c, batch) + index[rank - 2] * a.strides[rank - 2];
    int64_t bi =
        batchOffset(b, c, batch) + index[rank - 1] * b.strides[rank - 1];
    double sum = 0;
    for (int64_t k = 0; k < a.sizes[rank - 1]; ++k)
      sum += double(left[ai + k * a.strides[rank - 1]]) *
             right[bi + k * b.strides[rank - 2]];
    result[offsetOf(c, index)] = sum;
  });
  write(op.output, result);
}

void Evaluator::reduction(const Operation &op) {
  const Tensor &in = tensor(op.inputs[0]), &out = tensor(op.output);
  const Values &input = read(op.inputs[0]);
  bool isMax = op.mode == CUDNN_REDUCE_TENSOR_MAX;
  std::vector<double> result(out.span(), isMax ? -HUGE_VAL : 0.0);
  forEach(in.sizes, [&](const Index &index) {
    int64_t offset = batchOffset(out, in, index);
    double value = input[offsetOf(in, index)];
    result[offset] =
        isMax ? std::max(result[offset], value) : result[offset] + value;
  });
  write(op.output, result);
}

/// The same memory under other sizes and strides.
void Evaluator::reshape(const Operation &op) {
  const Values &input = read(op.inputs[0]);
  write(op.output, std::vector<double>(input.begin(), input.end()));
}

void Evaluator::run() {
  for (const Operation &op : graph.operations) {
    switch (op.kind) {
    case Operation::ConvForward:
    case Operation::ConvData:
    case Operation::ConvFilter:
      convolution(op);
      break;
    case Operation::Pointwise:
      pointwise(op);
      break;
    case Operation::Matmul:
      matmul(op);
      break;
    case Operation::Reduction:
      reduction(op);
      break;
    case Operation::Reshape:
      reshape(op);
      break;
    }
  }
}

void fake_cuda::dnn::evaluate(const Graph &graph, const Storage &storage) {
  Evaluator(graph, storage).run();
}
