//===- Convolution.cpp - Convolutions by cuDNN ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library functions "conv", "conv_grad_input" and "conv_grad_weight" in one
// to three spatial dimensions. cuDNN knows two or three: one becomes two, the
// first of them 1. It reads the groups from the channels of input and weight.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/cuda/DnnGraph.h"

#include <algorithm>

using namespace zrt;
using namespace zrt::cuda;

using Dims = std::vector<int64_t>;
using Tensor = DnnGraph::Tensor;

namespace {
/// The attributes of a call.
struct Window {
  explicit Window(const CallSite &site);

  /// The attributes of an operation of cuDNN.
  template <typename Attributes>
  Attributes as() const {
    return Attributes()
        .set_pre_padding(padsBegin)
        .set_post_padding(padsEnd)
        .set_stride(strides)
        .set_dilation(dilations);
  }

  Dims strides, dilations, padsBegin, padsEnd;
  int64_t group;
};

/// A view with at least two spatial dimensions.
struct Shape {
  explicit Shape(const View &view) : sizes(view.sizes), strides(view.strides) {
    if (sizes.size() != 3)
      return;
    sizes.insert(sizes.begin() + 2, 1);
    strides.insert(strides.begin() + 2, sizes[3] * strides[2]);
  }
  Dims sizes, strides;
};
} // namespace

Window::Window(const CallSite &site) {
  size_t spatial = site.operands[0].view.sizes.size() - 2;
  auto list = [&](const char *name, size_t count, int64_t least) {
    Dims values = site.command.ints(name);
    if (values.size() != count)
      fail(ZRT_ERROR_FORMAT, "attribute ", name, " has ", values.size(),
           " values instead of ", count);
    for (int64_t value : values)
      if (value < least || value > INT32_MAX)
        fail(ZRT_ERROR_FORMAT, "attribute ", name, " has the value ", value);
    return values;
  };
  strides = list("strides", spatial, 1);
  dilations = list("dilations", spatial, 1);
  Dims pads = list("pads", 2 * spatial, 0);
  padsBegin.assign(pads.begin(), pads.begin() + spatial);
  padsEnd.assign(pads.begin() + spatial, pads.end());
  group = list("group", 1, 1)[0];
  if (spatial != 1)
    return;
  strides.insert(strides.begin(), 1);
  dilations.insert(dilations.begin(), 1);
  padsBegin.insert(padsBegin.begin(), 0);
  padsEnd.insert(padsEnd.begin(), 0);
}

static bool hasBias(const CallSite &site) {
  return site.command.callee == "conv" && site.operands.size() == 4;
}

/// Checks what cuDNN would report in other words, or not at all.
static void checkOperands(const CallSite &site) {
  const std::string &callee = site.command.callee;
  size_t count = site.operands.size();
  if (count != 3 && !hasBias(site))
    fail(ZRT_ERROR_FORMAT, "a ", callee, " has 3 operands",
         callee == "conv" ? " (4 with a bias)" : "", ", not ", count);
  size_t rank = site.operands[0].view.sizes.size();
  for (const CallOperand &operand : site.operands) {
    size_t own = operand.view.sizes.size();
    bool isBias = hasBias(site) && &operand == &site.operands[2];
    if (isBias ? own != 1 : own != rank || rank < 3 || rank > 5)
      fail(ZRT_ERROR_FORMAT,
           "a convolution takes tensors of 3 to 5 equal numbers of dimensions, "
           "and a bias of one, not ",
           rank, " and ", own);
    if (operand.type != site.operands[0].type)
      fail(ZRT_ERROR_FORMAT, "a convolution takes operands of one type, not ",
           dtypeName(site.operands[0].type), " and ", dtypeName(operand.type));
  }
}

static Tensor input(DnnGraph &graph, const CallSite &site, size_t operand) {
  Shape shape(site.operands[operand].view);
  return graph.input(operand, shape.sizes, shape.strides);
}

static void output(DnnGraph &graph, const CallSite &site, const Tensor &tensor,
                   size_t operand) {
  Shape shape(site.operands[operand].view);
  graph.output(tensor, operand, shape.sizes, shape.strides);
}

/// The result plus the bias, which has one element a channel.
static Tensor addBias(DnnGraph &graph, const CallSite &site,
                      const Tensor &result) {
  const View &bias = site.operands[2].view;
  Dims sizes(Shape(site.operands[3].view).sizes.size(), 1), strides = sizes;
  sizes[1] = bias.sizes[0];
  strides[0] = bias.sizes[0] * bias.strides[0];
  strides[1] = bias.strides[0];
  return graph.graph().pointwise(result, graph.input(2, sizes, strides),
                                 fe::Pointwise_attributes().set_mode(
                                     cudnn_frontend::PointwiseMode_t::ADD));
}

static Tensor convolve(DnnGraph &graph, const CallSite &site) {
  Tensor x = input(graph, site, 0), w = input(graph, site, 1);
  return graph.graph().conv_fprop(x, w,
                                  Window(site).as<fe::Conv_fprop_attributes>());
}

static std::shared_ptr<DnnGraph> buildForward(const CallSite &site) {
  auto graph = std::make_shared<DnnGraph>(site);
  Tensor y = convolve(*graph, site);
  output(*graph, site, hasBias(site) ? addBias(*graph, site, y) : y,
         site.operands.size() - 1);
  graph->plan(/*deterministic=*/true);
  return graph;
}

/// The two halves of a convolution with a bias: into scratch memory, and out of
/// it.
static std::shared_ptr<DnnGraph> buildProduct(const CallSite &site) {
  auto graph = std::make_shared<DnnGraph>(site);
  graph->scratchOutput(convolve(*graph, site), 3,
                       Shape(site.operands[3].view).sizes);
  graph->plan(/*deterministic=*/true);
  return graph;
}

static std::shared_ptr<DnnGraph> buildSum(const CallSite &site) {
  auto graph = std::make_shared<DnnGraph>(site);
  Tensor product = graph->scratchInput(3, Shape(site.operands[3].view).sizes);
  output(*graph, site, addBias(*graph, site, product), 3);
  graph->plan(/*deterministic=*/true);
  return graph;
}

static std::shared_ptr<DnnGraph> buildGradInput(const CallSite &site) {
  auto graph = std::make_shared<DnnGraph>(site);
  Tensor dy = input(*graph, site, 0), w = input(*graph, site, 1);
  Tensor dx = graph->graph().conv_dgrad(
      dy, w, Window(site).as<fe::Conv_dgrad_attributes>());
  output(*graph, site, dx, 2);
  graph->plan(/*deterministic=*/true);
  return graph;
}

static std::shared_ptr<DnnGraph> buildGradWeight(const CallSite &site) {
  auto graph = std::make_shared<DnnGraph>(site);
  Tensor dy = input(*graph, site, 0), x = input(*graph, site, 1);
  Tensor dw = graph->graph().conv_wgrad(
      dy, x, Window(site).as<fe::Conv_wgrad_attributes>());
  output(*graph, site, dw, 2);
  graph->plan(/*deterministic=*/true);
  return graph;
}

namespace {
/// A convolution and then its bias, where cuDNN has no kernel for both.
class BiasedConvolution final : public LibraryCall {
public:
  explicit BiasedConvolution(const CallSite &site)
      : product(findDnnGraph(site, "conv without bias",
                             [&] { return buildProduct(site); })),
        sum(findDnnGraph(site, "bias of conv", [&] { return buildSum(site); })),
        addresses(addressesOf(site)),
        productBytes((bytesOf(site.operands[3]) + 255) / 256 * 256) {}

  uint64_t workspaceBytes() const override {
    return productBytes +
           std::max(product->workspaceBytes(), sum->workspaceBytes());
  }
  void run(CUstream stream, CUdeviceptr workspace) override {
    std::vector<CUdeviceptr> all = addresses;
    all.push_back(workspace);
    product->run(stream, all, workspace + productBytes);
    sum->run(stream, all, workspace + productBytes);
  }

private:
  static uint64_t bytesOf(const CallOperand &operand) {
    return uint64_t(*elementCount(operand.view.sizes)) *
           elementBytes(operand.type);
  }

  std::shared_ptr<const DnnGraph> product, sum;
  std::vector<CUdeviceptr> addresses;
  uint64_t productBytes;
};
} // namespace

static std::unique_ptr<LibraryCall> makeForward(const CallSite &site) {
  auto build = [&] { return buildForward(site); };
  if (!hasBias(site))
    return std::make_unique<DnnCall>(findDnnGraph(site, "conv", build), site);
  try {
    return std::make_unique<DnnCall>(findDnnGraph(site, "conv", build), site);
  } catch (const Error &) {
    return std::make_unique<BiasedConvolution>(site);
  }
}

std::unique_ptr<LibraryCall> cuda::makeConvolution(const CallSite &site) {
  checkOperands(site);
  const std::string &callee = site.command.callee;
  if (callee == "conv")
    return makeForward(site);
  auto build = [&] {
    return callee == "conv_grad_input" ? buildGradInput(site)
                                       : buildGradWeight(site);
  };
  return std::make_unique<DnnCall>(findDnnGraph(site, callee, build), site);
}
