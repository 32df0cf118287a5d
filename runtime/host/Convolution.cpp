//===- Convolution.cpp - Convolutions and their gradients -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library functions "conv", "conv_grad_input" and "conv_grad_weight" in one
// to three spatial dimensions, on plain tensors. Operands in bf16 and f16 are
// widened as a whole.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/host/LibraryCall.h"

using namespace zrt;

using dnnl::memory;

namespace {
/// Attributes of a convolution in the library's form.
struct Window {
  memory::dims strides, dilations, padsBegin, padsEnd;
  int64_t group = 1;
};

/// Builds the steps of one call. The library chooses the layout it is fastest
/// with; a tensor that has another one is reordered on the way.
class ConvolutionBuilder {
public:
  ConvolutionBuilder(const Command &command,
                     const std::vector<fb::DType> &types,
                     const dnnl::engine &engine)
      : command(command), types(types), engine(engine) {}
  LibraryCall build();

private:
  void readWindow();
  size_t spatialDims() const {
    return command.operands[0].view.sizes.size() - 2;
  }
  Stored stored(size_t operand) const;
  View viewInF32(size_t operand) const;
  Place inF32(size_t operand);
  memory::desc tensor(size_t operand) const;
  memory::desc weights(size_t operand) const;
  void forward();
  void gradInput();
  void gradWeight();
  dnnl::convolution_forward::primitive_desc
  forwardDesc(const memory::desc &x, const memory::desc &w,
              const memory::desc *bias, const memory::desc &y) const;
  PrimitiveArg input(int id, size_t operand, const memory::desc &held,
                     const memory::desc &wanted);
  void run(const dnnl::primitive &primitive, const memory::desc &scratchpad,
           std::vector<PrimitiveArg> args, int outputId,
           const memory::desc &held, const memory::desc &produced);
  void reorder(const memory::desc &from, Place fromPlace,
               const memory::desc &to, Place toPlace);

  const Command &command;
  const std::vector<fb::DType> &types;
  const dnnl::engine &engine;
  LibraryCall call;
  Window window;
};
} // namespace

/// The same tensor in whatever layout the library likes best.
static memory::desc anyLayout(const memory::desc &desc) {
  return {desc.dims(), memory::data_type::f32, memory::format_tag::any};
}

/// An operand; its view's offset has become part of its address.
Stored ConvolutionBuilder::stored(size_t operand) const {
  View view = command.operands[operand].view;
  view.offset = 0;
  return {view, {Place::OperandBase, operand, 0, {}}, types[operand]};
}

/// The operand's elements where the library reads or writes them.
View ConvolutionBuilder::viewInF32(size_t operand) const {
  const View &view = command.operands[operand].view;
  return types[operand] == fb::DType_F32 ? view : contiguousView(view.sizes);
}

/// The place of an operand that is read, after it was widened.
Place ConvolutionBuilder::inF32(size_t operand) {
  Stored from = stored(operand);
  if (from.type == fb::DType_F32)
    return from.place;
  Stored wide{viewInF32(operand), {}, fb::DType_F32};
  wide.place = call.scratch(*elementCount(wide.view.sizes) * sizeof(float));
  call.addCopy(from, wide);
  return wide.place;
}

void ConvolutionBuilder::readWindow() {
  size_t rank = command.operands[0].view.sizes.size();
  for (const Operand &operand : command.operands) {
    bool bias =
        command.operands.size() == 4 && &operand == &command.operands[2];
    if (!bias && (operand.view.sizes.size() != rank || rank < 3 || rank > 5))
      fail(ZRT_ERROR_FORMAT,
           "a convolution takes tensors of 3 to 5 equal "
           "numbers of dimensions, not ",
           rank, " and ", operand.view.sizes.size());
  }
  size_t spatial = spatialDims();
  auto list = [&](const char *name, size_t count, int64_t least) {
    std::vector<int64_t> values = command.ints(name);
    if (values.size() != count)
      fail(ZRT_ERROR_FORMAT, "attribute ", name, " has ", values.size(),
           " values instead of ", count);
    for (int64_t value : values)
      if (value < least || value > INT32_MAX)
        fail(ZRT_ERROR_FORMAT, "attribute ", name, " has the value ", value);
    return values;
  };
  window.strides = list("strides", spatial, 1);
  window.dilations = list("dilations", spatial, 1);
  for (int64_t &dilation : window.dilations)
    --dilation; // the library counts the gap
  std::vector<int64_t> pads = list("pads", 2 * spatial, 0);
  window.padsBegin.assign(pads.begin(), pads.begin() + spatial);
  window.padsEnd.assign(pads.begin() + spatial, pads.end());
  window.group = list("group", 1, 1)[0];
}

memory::desc ConvolutionBuilder::tensor(size_t operand) const {
  View view = viewInF32(operand);
  return {view.sizes, memory::data_type::f32, view.strides};
}

/// Weights with their groups as a dimension of its own.
memory::desc ConvolutionBuilder::weights(size_t operand) const {
  View view = viewInF32(operand);
  if (window.group > 1) {
    if (view.sizes[0] % window.group)
      fail(ZRT_ERROR_FORMAT, view.sizes[0], " output channels do not divide ",
           "into ", window.group, " groups");
    view.sizes[0] /= window.group;
    view.sizes.insert(view.sizes.begin(), window.group);
    view.strides.insert(view.strides.begin(), view.sizes[1] * view.strides[0]);
  }
  return {view.sizes, memory::data_type::f32, view.strides};
}

void ConvolutionBuilder::reorder(const memory::desc &from, Place fromPlace,
                                 const memory::desc &to, Place toPlace) {
  dnnl::reorder::primitive_desc desc(engine, from, engine, to, primitiveAttr());
  call.addPrimitive(
      dnnl::reorder(desc), desc.scratchpad_desc(),
      {{DNNL_ARG_FROM, from, fromPlace}, {DNNL_ARG_TO, to, toPlace}});
}

PrimitiveArg ConvolutionBuilder::input(int id, size_t operand,
                                       const memory::desc &held,
                                       const memory::desc &wanted) {
  Place place = inF32(operand);
  if (held != wanted) {
    Place packed = call.scratch(wanted.get_size());
    reorder(held, place, wanted, packed);
    place = packed;
  }
  return {id, wanted, place};
}

void ConvolutionBuilder::run(const dnnl::primitive &primitive,
                             const memory::desc &scratchpad,
                             std::vector<PrimitiveArg> args, int outputId,
                             const memory::desc &held,
                             const memory::desc &produced) {
  size_t operand = command.operands.size() - 1;
  Stored target = stored(operand), wide = target;
  bool narrow = target.type != fb::DType_F32;
  if (narrow)
    wide = {viewInF32(operand), call.scratch(held.get_size()), fb::DType_F32};
  bool same = held == produced;
  Place place = same ? wide.place : call.scratch(produced.get_size());
  args.push_back({outputId, produced, place});
  call.addPrimitive(primitive, scratchpad, std::move(args));
  if (!same)
    reorder(produced, place, held, wide.place);
  if (narrow)
    call.addCopy(wide, target);
}

dnnl::convolution_forward::primitive_desc
ConvolutionBuilder::forwardDesc(const memory::desc &x, const memory::desc &w,
                                const memory::desc *bias,
                                const memory::desc &y) const {
  using Forward = dnnl::convolution_forward;
  auto kind = dnnl::prop_kind::forward_training;
  auto algorithm = dnnl::algorithm::convolution_direct;
  Forward::desc desc =
      bias ? Forward::desc(kind, algorithm, anyLayout(x), anyLayout(w), *bias,
                           anyLayout(y), window.strides, window.dilations,
                           window.padsBegin, window.padsEnd)
           : Forward::desc(kind, algorithm, anyLayout(x), anyLayout(w),
                           anyLayout(y), window.strides, window.dilations,
                           window.padsBegin, window.padsEnd);
  return {desc, primitiveAttr(), engine};
}

void ConvolutionBuilder::forward() {
  bool hasBias = command.operands.size() == 4;
  memory::desc x = tensor(0), w = weights(1), y = tensor(hasBias ? 3 : 2);
  memory::desc bias;
  if (hasBias) {
    if (!isContiguous(command.operands[2].view))
      fail(ZRT_ERROR_FORMAT, "the bias is strided");
    bias = memory::desc(command.operands[2].view.sizes, memory::data_type::f32,
                        memory::format_tag::a);
  }
  auto desc = forwardDesc(x, w, hasBias ? &bias : nullptr, y);
  std::vector<PrimitiveArg> args = {
      input(DNNL_ARG_SRC, 0, x, desc.src_desc()),
      input(DNNL_ARG_WEIGHTS, 1, w, desc.weights_desc())};
  if (hasBias)
    args.push_back({DNNL_ARG_BIAS, bias, inF32(2)});
  run(dnnl::convolution_forward(desc), desc.scratchpad_desc(), std::move(args),
      DNNL_ARG_DST, y, desc.dst_desc());
}

void ConvolutionBuilder::gradInput() {
  memory::desc dy = tensor(0), w = weights(1), dx = tensor(2);
  using Backward = dnnl::convolution_backward_data;
  Backward::primitive_desc desc(
      Backward::desc(dnnl::algorithm::convolution_direct, anyLayout(dx),
                     anyLayout(w), anyLayout(dy), window.strides,
                     window.dilations, window.padsBegin, window.padsEnd),
      primitiveAttr(), engine, forwardDesc(dx, w, nullptr, dy));
  std::vector<PrimitiveArg> args = {
      input(DNNL_ARG_DIFF_DST, 0, dy, desc.diff_dst_desc()),
      input(DNNL_ARG_WEIGHTS, 1, w, desc.weights_desc())};
  run(Backward(desc), desc.scratchpad_desc(), std::move(args),
      DNNL_ARG_DIFF_SRC, dx, desc.diff_src_desc());
}

void ConvolutionBuilder::gradWeight() {
  memory::desc dy = tensor(0), x = tensor(1), dw = weights(2);
  using Backward = dnnl::convolution_backward_weights;
  Backward::primitive_desc desc(
      Backward::desc(dnnl::algorithm::convolution_direct, anyLayout(x),
                     anyLayout(dw), anyLayout(dy), window.strides,
                     window.dilations, window.padsBegin, window.padsEnd),
      primitiveAttr(), engine, forwardDesc(x, dw, nullptr, dy));
  std::vector<PrimitiveArg> args = {
      input(DNNL_ARG_DIFF_DST, 0, dy, desc.diff_dst_desc()),
      input(DNNL_ARG_SRC, 1, x, desc.src_desc())};
  run(Backward(desc), desc.scratchpad_desc(), std::move(args),
      DNNL_ARG_DIFF_WEIGHTS, dw, desc.diff_weights_desc());
}

LibraryCall ConvolutionBuilder::build() {
  bool isForward = command.callee == "conv";
  size_t count = command.operands.size();
  if (count != 3 && !(isForward && count == 4))
    fail(ZRT_ERROR_FORMAT, "a ", command.callee, " has 3 operands",
         isForward ? " (4 with a bias)" : "", ", not ", count);
  readWindow();
  if (isForward)
    forward();
  else if (command.callee == "conv_grad_input")
    gradInput();
  else
    gradWeight();
  return std::move(call);
}

LibraryCall zrt::makeConvolution(const Command &command,
                                 const std::vector<fb::DType> &types,
                                 const dnnl::engine &engine) {
  return ConvolutionBuilder(command, types, engine).build();
}
