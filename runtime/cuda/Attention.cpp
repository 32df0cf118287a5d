//===- Attention.cpp - Attention by cuDNN ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library functions "attention" (query, key, value, perhaps a mask; result,
// logsumexp) and "attention_grad" (gradient by the result, query, key, value,
// result, logsumexp, perhaps the mask; gradients by query, key and value), as
// the operations of the same names in the train dialect.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/cuda/DnnGraph.h"

using namespace zrt;
using namespace zrt::cuda;

using Dims = std::vector<int64_t>;
using Tensor = DnnGraph::Tensor;

namespace {
/// What a call has beside tensors.
struct Settings {
  explicit Settings(const CallSite &site);
  double scale = 0;
  bool causal;
  bool masked;
};
} // namespace

static bool isGrad(const CallSite &site) {
  return site.command.callee == "attention_grad";
}

Settings::Settings(const CallSite &site)
    : causal(!site.command.ints("causal").empty() &&
             site.command.ints("causal").front() != 0) {
  size_t operands = isGrad(site) ? 9 : 5, count = site.operands.size();
  if (count != operands && count != operands + 1)
    fail(ZRT_ERROR_FORMAT, "an ", site.command.callee, " has ", operands,
         " operands (", operands + 1, " with a mask), not ", count);
  masked = count > operands;
  const Attr *found = nullptr;
  for (const Attr &attr : site.command.attrs)
    if (attr.name == "scale")
      found = &attr;
  if (!found || found->floats.size() != 1)
    fail(ZRT_ERROR_FORMAT, "an ", site.command.callee,
         " has no attribute scale");
  scale = found->floats.front();
}

/// Everything but the logarithms is in one narrow type and has four dimensions.
static void checkOperands(const CallSite &site, size_t logsumexp) {
  for (size_t i = 0; i < site.operands.size(); ++i) {
    const CallOperand &operand = site.operands[i];
    bool narrow =
        operand.type == fb::DType_BF16 || operand.type == fb::DType_F16;
    bool fits =
        i == logsumexp
            ? operand.type == fb::DType_F32 && operand.view.sizes.size() == 3
            : narrow && operand.type == site.operands[0].type &&
                  operand.view.sizes.size() == 4;
    if (!fits)
      fail(ZRT_ERROR_FORMAT, "operand ", i, " of ", site.command.callee, " is ",
           dtypeName(operand.type), " with ", operand.view.sizes.size(),
           " dimensions; cuDNN takes bf16 and f16 "
           "with 4, and logarithms in f32 with 3");
  }
}

/// [batch, heads, queries] as cuDNN has it, with a last dimension of 1.
static Dims column(Dims dims) {
  dims.push_back(1);
  return dims;
}

static std::shared_ptr<DnnGraph> buildForward(const CallSite &site) {
  Settings settings(site);
  size_t result = settings.masked ? 4 : 3, logsumexp = result + 1;
  checkOperands(site, logsumexp);
  auto graph = std::make_shared<DnnGraph>(site);
  auto attributes = fe::SDPA_attributes()
                        .set_name("attention")
                        .set_generate_stats(true)
                        .set_attn_scale(float(settings.scale));
  // The other, newer one has no backward pass that goes with it.
  attributes.set_implementation(
      cudnn_frontend::AttentionImplementation_t::COMPOSITE);
  if (settings.causal)
    attributes.set_causal_mask(true);
  if (settings.masked)
    attributes.set_bias(graph->input(3));
  Tensor query = graph->input(0), key = graph->input(1),
         value = graph->input(2);
  auto [output, stats] = graph->graph().sdpa(query, key, value, attributes);
  graph->output(output, result);
  const View &view = site.operands[logsumexp].view;
  graph->output(stats, logsumexp, column(view.sizes), column(view.strides));
  graph->plan(/*deterministic=*/true);
  return graph;
}

/// The gradients by the queries are sums over blocks of keys. Their order is
/// not fixed: cuDNN's kernels that fix it keep the probabilities, or exist on
/// few devices.
static std::shared_ptr<DnnGraph> buildBackward(const CallSite &site) {
  Settings settings(site);
  constexpr size_t logsumexp = 5;
  checkOperands(site, logsumexp);
  auto graph = std::make_shared<DnnGraph>(site);
  auto attributes = fe::SDPA_backward_attributes()
                        .set_name("attention_grad")
                        .set_attn_scale(float(settings.scale));
  if (settings.causal)
    attributes.set_causal_mask(true);
  if (settings.masked)
    attributes.set_bias(graph->input(6));
  Tensor grad = graph->input(0), query = graph->input(1), key = graph->input(2),
         value = graph->input(3), result = graph->input(4);
  const View &view = site.operands[logsumexp].view;
  Tensor stats =
      graph->input(logsumexp, column(view.sizes), column(view.strides));
  std::array<Tensor, 3> grads = graph->graph().sdpa_backward(
      query, key, value, result, grad, stats, attributes);
  size_t first = settings.masked ? 7 : 6;
  for (size_t i = 0; i < grads.size(); ++i)
    graph->output(grads[i], first + i);
  graph->plan(/*deterministic=*/false);
  return graph;
}

std::unique_ptr<LibraryCall> cuda::makeAttention(const CallSite &site) {
  auto build = [&] {
    return isGrad(site) ? buildBackward(site) : buildForward(site);
  };
  return std::make_unique<DnnCall>(
      findDnnGraph(site, site.command.callee, build), site);
}
