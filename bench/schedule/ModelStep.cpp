//===- ModelStep.cpp - Steps of standard models --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ModelStep.h.
//
//===----------------------------------------------------------------------===//

#include "ModelStep.h"

using namespace mlir::zero;

LlamaShape mlir::zero::llama8b() {
  return {"llama3-8b", 32, 4096, 14336, 32, 8, 128256};
}
LlamaShape mlir::zero::llama70b() {
  return {"llama3-70b", 80, 8192, 28672, 64, 8, 128256};
}
LlamaShape mlir::zero::llama405b() {
  return {"llama3-405b", 126, 16384, 53248, 128, 8, 128256};
}

namespace {
constexpr int64_t kElement = 2; // bytes of bf16

/// A parameter: its shard, and its gradient's shard.
struct Param {
  std::string name;
  int64_t rows, columns; // of the product it is used in: columns -> rows
  int32_t unit;
  int32_t shard = -1, state = -1, gradientShard = -1;
  int32_t gather = -1; // the last one
  int32_t full = -1;   // what it gathered

  int64_t size() const { return rows * columns; }
};

/// Writes the tasks of a step.
class StepWriter {
public:
  StepWriter(const LlamaShape &shape, const CostModel &cost, int64_t ranks)
      : shape(shape), cost(cost), ranks(ranks), group(cost.group(ranks)) {
    graph.channels = {"compute", "all_gather", "reduce_scatter"};
  }

  StepGraph write();

private:
  /// Parameters and activations of one layer.
  struct Layer {
    Param attentionNorm, q, k, v, o, feedForwardNorm, gate, up, down;
    int32_t input = -1;
    // Of the forward pass inside: what the backward pass reads.
    int32_t normed, queries, keys, values, attended, middle, normed2, gated,
        upped, product, output;
  };

  int32_t buffer(int64_t elements, MemoryKind kind, int64_t bytes = kElement,
                 bool resident = false);
  int32_t activation(int64_t width) {
    return buffer(shape.tokens * width, MemoryKind::Activation);
  }
  Param param(const std::string &name, int64_t rows, int64_t columns);
  void gather(Param &param);
  void reduce(Param &param, int32_t gradient);
  void update(const Param &param);
  void kernel(const std::string &name, double passes,
              llvm::ArrayRef<int32_t> reads, llvm::ArrayRef<int32_t> writes);
  void product(const std::string &name, int64_t m, int64_t n, int64_t k,
               llvm::ArrayRef<int32_t> reads, llvm::ArrayRef<int32_t> writes);
  void attention(const std::string &name, double flopsFactor,
                 llvm::ArrayRef<int32_t> reads, llvm::ArrayRef<int32_t> writes);
  int32_t linear(Param &param, int32_t input);
  int32_t linearBackward(Param &param, int32_t input, int32_t gradient);
  int32_t norm(Param &param, int32_t input);
  int32_t normBackward(Param &param, int32_t input, int32_t gradient);
  Layer makeLayer(int32_t number);
  void gatherAll(Layer &layer);
  void forward(Layer &layer);
  int32_t backward(Layer &layer, int32_t gradient);

  const LlamaShape &shape;
  const CostModel &cost;
  int64_t ranks;
  RankGroup group;
  StepGraph graph;
  int32_t unit = 0;
};
} // namespace

int32_t StepWriter::buffer(int64_t elements, MemoryKind kind, int64_t bytes,
                           bool resident) {
  graph.buffers.push_back({elements * bytes, kind, resident});
  return graph.buffers.size() - 1;
}

Param StepWriter::param(const std::string &name, int64_t rows,
                        int64_t columns) {
  Param param{name, rows, columns, unit};
  int64_t shard = (param.size() + ranks - 1) / ranks;
  // fp32 master and two moments, and the bf16 copy that is gathered.
  param.state = buffer(3 * shard, MemoryKind::OptimizerState, 4, true);
  param.shard = buffer(shard, MemoryKind::Parameter, kElement, true);
  return param;
}

void StepWriter::gather(Param &param) {
  StepTask task;
  task.kind = TaskKind::AllGather;
  task.channel = 1;
  int64_t bytes = param.size() * kElement;
  task.seconds = cost.collective(task.kind, bytes, group);
  task.latency = cost.collectiveLatency(task.kind, group);
  task.sentBytes = ringBytes(task.kind, bytes, ranks);
  int32_t full = buffer(param.size(), MemoryKind::Gathered);
  task.reads = {param.shard};
  task.writes = {full};
  task.repeats = param.gather;
  task.unit = param.unit;
  task.label = param.name;
  param.full = full;
  param.gather = graph.tasks.size();
  graph.tasks.push_back(std::move(task));
}

void StepWriter::reduce(Param &param, int32_t gradient) {
  StepTask task;
  task.kind = TaskKind::ReduceScatter;
  task.channel = 2;
  int64_t bytes = param.size() * kElement;
  task.seconds = cost.collective(task.kind, bytes, group);
  task.latency = cost.collectiveLatency(task.kind, group);
  task.sentBytes = ringBytes(task.kind, bytes, ranks);
  param.gradientShard =
      buffer((param.size() + ranks - 1) / ranks, MemoryKind::Gradient);
  task.reads = {gradient};
  task.writes = {param.gradientShard};
  task.unit = param.unit;
  task.label = param.name;
  graph.tasks.push_back(std::move(task));
}

void StepWriter::update(const Param &param) {
  kernel("update " + param.name, 1,
         {param.state, param.gradientShard, param.shard},
         {param.state, param.shard});
}

/// A kernel bound by memory: `passes` over what it reads and writes.
void StepWriter::kernel(const std::string &name, double passes,
                        llvm::ArrayRef<int32_t> reads,
                        llvm::ArrayRef<int32_t> writes) {
  OpWork work;
  for (llvm::ArrayRef<int32_t> list : {reads, writes})
    for (int32_t used : list)
      work.bytes += passes * graph.buffers[used].bytes;
  StepTask task;
  task.seconds = cost.compute(work);
  task.reads.assign(reads.begin(), reads.end());
  task.writes.assign(writes.begin(), writes.end());
  task.unit = unit;
  task.label = name;
  graph.tasks.push_back(std::move(task));
}

/// (m x k) * (k x n).
void StepWriter::product(const std::string &name, int64_t m, int64_t n,
                         int64_t k, llvm::ArrayRef<int32_t> reads,
                         llvm::ArrayRef<int32_t> writes) {
  OpWork work;
  work.cls = OpWork::Matmul;
  work.type = "bf16";
  work.flops = 2.0 * m * n * k;
  work.bytes = double(kElement) * (m * k + k * n + m * n);
  work.m = m, work.n = n, work.k = k;
  kernel(name, 0, reads, writes);
  graph.tasks.back().seconds = cost.compute(work);
}

void StepWriter::attention(const std::string &name, double flopsFactor,
                           llvm::ArrayRef<int32_t> reads,
                           llvm::ArrayRef<int32_t> writes) {
  // Two products of tokens x tokens by head, half of them masked.
  OpWork work;
  work.cls = OpWork::Matmul;
  work.type = "bf16";
  work.flops = flopsFactor * 2.0 * shape.tokens * shape.tokens * shape.hidden;
  kernel(name, 0, reads, writes);
  graph.tasks.back().seconds =
      cost.compute(work) * cost.getMachine().matmulEfficiency /
      cost.getMachine().constant("attention_efficiency");
}

int32_t StepWriter::linear(Param &param, int32_t input) {
  int32_t output = activation(param.rows);
  product(param.name, shape.tokens, param.rows, param.columns,
          {input, param.full}, {output});
  return output;
}

/// Gradient of the input; the parameter's is reduced.
int32_t StepWriter::linearBackward(Param &param, int32_t input,
                                   int32_t gradient) {
  int32_t result = activation(param.columns);
  product(param.name + " input gradient", shape.tokens, param.columns,
          param.rows, {gradient, param.full}, {result});
  int32_t whole = buffer(param.size(), MemoryKind::Gradient);
  product(param.name + " gradient", param.rows, param.columns, shape.tokens,
          {gradient, input}, {whole});
  reduce(param, whole);
  return result;
}

int32_t StepWriter::norm(Param &param, int32_t input) {
  int32_t output = activation(shape.hidden);
  kernel(param.name, 1, {input, param.full}, {output});
  return output;
}

int32_t StepWriter::normBackward(Param &param, int32_t input,
                                 int32_t gradient) {
  int32_t result = activation(shape.hidden);
  int32_t whole = buffer(param.size(), MemoryKind::Gradient);
  kernel(param.name + " gradient", 1, {input, gradient, param.full},
         {result, whole});
  reduce(param, whole);
  return result;
}

StepWriter::Layer StepWriter::makeLayer(int32_t number) {
  unit = number;
  std::string prefix = "layers." + std::to_string(number) + ".";
  int64_t hidden = shape.hidden, ff = shape.feedForward;
  int64_t kv = hidden / shape.heads * shape.kvHeads;
  Layer layer{};
  layer.attentionNorm = param(prefix + "attention_norm", hidden, 1);
  layer.q = param(prefix + "q", hidden, hidden);
  layer.k = param(prefix + "k", kv, hidden);
  layer.v = param(prefix + "v", kv, hidden);
  layer.o = param(prefix + "o", hidden, hidden);
  layer.feedForwardNorm = param(prefix + "ffn_norm", hidden, 1);
  layer.gate = param(prefix + "gate", ff, hidden);
  layer.up = param(prefix + "up", ff, hidden);
  layer.down = param(prefix + "down", hidden, ff);
  return layer;
}

void StepWriter::gatherAll(Layer &layer) {
  for (Param *param :
       {&layer.attentionNorm, &layer.q, &layer.k, &layer.v, &layer.o,
        &layer.feedForwardNorm, &layer.gate, &layer.up, &layer.down})
    gather(*param);
}

void StepWriter::forward(Layer &layer) {
  int64_t hidden = shape.hidden, ff = shape.feedForward;
  layer.normed = norm(layer.attentionNorm, layer.input);
  layer.queries = linear(layer.q, layer.normed);
  layer.keys = linear(layer.k, layer.normed);
  layer.values = linear(layer.v, layer.normed);
  kernel("rope", 1, {layer.queries, layer.keys}, {layer.queries, layer.keys});
  layer.attended = activation(hidden);
  attention("attention", 1, {layer.queries, layer.keys, layer.values},
            {layer.attended});
  int32_t projected = linear(layer.o, layer.attended);
  layer.middle = activation(hidden);
  kernel("add", 1, {layer.input, projected}, {layer.middle});
  layer.normed2 = norm(layer.feedForwardNorm, layer.middle);
  layer.gated = linear(layer.gate, layer.normed2);
  layer.upped = linear(layer.up, layer.normed2);
  layer.product = activation(ff);
  kernel("silu mul", 1, {layer.gated, layer.upped}, {layer.product});
  int32_t downed = linear(layer.down, layer.product);
  layer.output = activation(hidden);
  kernel("add", 1, {layer.middle, downed}, {layer.output});
}

/// Computes the layer again, and then backwards. Returns the gradient of its
/// input.
int32_t StepWriter::backward(Layer &layer, int32_t gradient) {
  unit = layer.q.unit;
  gatherAll(layer);
  forward(layer);
  int64_t hidden = shape.hidden, ff = shape.feedForward;
  int64_t kv = hidden / shape.heads * shape.kvHeads;
  int32_t product = linearBackward(layer.down, layer.product, gradient);
  int32_t gated = activation(ff), upped = activation(ff);
  kernel("silu mul gradient", 1, {product, layer.gated, layer.upped},
         {gated, upped});
  int32_t a = linearBackward(layer.gate, layer.normed2, gated);
  int32_t b = linearBackward(layer.up, layer.normed2, upped);
  kernel("add", 1, {a, b}, {a});
  int32_t c = normBackward(layer.feedForwardNorm, layer.middle, a);
  kernel("add", 1, {c, gradient}, {c});
  int32_t attended = linearBackward(layer.o, layer.attended, c);
  int32_t queries = activation(hidden), keys = activation(kv),
          values = activation(kv);
  attention("attention gradient", 2.5,
            {attended, layer.attended, layer.queries, layer.keys, layer.values},
            {queries, keys, values});
  kernel("rope gradient", 1, {queries, keys}, {queries, keys});
  int32_t q = linearBackward(layer.q, layer.normed, queries);
  int32_t k = linearBackward(layer.k, layer.normed, keys);
  int32_t v = linearBackward(layer.v, layer.normed, values);
  kernel("add", 1, {q, k, v}, {q});
  int32_t d = normBackward(layer.attentionNorm, layer.input, q);
  kernel("add", 1, {d, c}, {d});
  return d;
}

StepGraph StepWriter::write() {
  std::vector<Layer> layers;
  for (int64_t number = 0; number != shape.layers; ++number)
    layers.push_back(makeLayer(number));
  unit = shape.layers;
  Param embedding = param("embedding", shape.hidden, shape.vocabulary);
  unit = shape.layers + 1;
  Param finalNorm = param("norm", shape.hidden, 1);
  Param head = param("head", shape.vocabulary, shape.hidden);

  unit = embedding.unit;
  int32_t ids = buffer(shape.tokens, MemoryKind::Input, 8, true);
  gather(embedding);
  int32_t value = activation(shape.hidden);
  kernel("embedding", 0, {ids, embedding.full}, {value});
  for (Layer &layer : layers) {
    unit = layer.q.unit;
    gatherAll(layer);
    layer.input = value;
    forward(layer);
    value = layer.output;
  }
  unit = head.unit;
  gather(finalNorm);
  gather(head);
  int32_t last = value;
  int32_t normed = norm(finalNorm, value);
  int32_t logits = linear(head, normed);
  int32_t loss = buffer(1, MemoryKind::Persistent, 4, true);
  kernel("cross entropy", 2, {logits, ids}, {logits, loss});
  int32_t gradient = linearBackward(head, normed, logits);
  gradient = normBackward(finalNorm, last, gradient);
  for (size_t number = layers.size(); number-- != 0;)
    gradient = backward(layers[number], gradient);
  unit = embedding.unit;
  int32_t whole = buffer(embedding.size(), MemoryKind::Gradient);
  kernel("embedding gradient", 1, {gradient, ids}, {whole});
  reduce(embedding, whole);

  for (Layer &layer : layers)
    for (Param *param :
         {&layer.attentionNorm, &layer.q, &layer.k, &layer.v, &layer.o,
          &layer.feedForwardNorm, &layer.gate, &layer.up, &layer.down})
      update(*param);
  for (Param *param : {&embedding, &finalNorm, &head})
    update(*param);
  return std::move(graph);
}

StepGraph mlir::zero::llamaStep(const LlamaShape &shape, const CostModel &cost,
                                int64_t ranks) {
  return StepWriter(shape, cost, ranks).write();
}
