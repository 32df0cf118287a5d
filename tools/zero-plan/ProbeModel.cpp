//===- ProbeModel.cpp - The model that calibration times ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ProbeModel.h.
//
//===----------------------------------------------------------------------===//

#include "ProbeModel.h"

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero;

namespace {
class ProbeBuilder {
public:
  ProbeBuilder(ModuleOp module, const ProbeShape &shape)
      : shape(shape), symbols(OpBuilder::atBlockBegin(module.getBody())),
        b(module.getLoc(), OpBuilder::atBlockEnd(module.getBody())) {}

  void run();

private:
  RankedTensorType f32(ArrayRef<int64_t> dims) {
    return RankedTensorType::get(dims, b.getF32Type());
  }
  Value param(const Twine &name, ArrayRef<int64_t> dims, bool ones = false);
  Value reshape(Value value, ArrayRef<int64_t> dims) {
    return train::ReshapeOp::create(b, value, b.getDenseI64ArrayAttr(dims));
  }
  Value transpose(Value value, ArrayRef<int64_t> order) {
    return train::TransposeOp::create(b, value, b.getDenseI64ArrayAttr(order));
  }
  Value linear(const Twine &name, Value value, int64_t from, int64_t to);
  Value layerNorm(const Twine &name, Value value);
  Value headsOf(Value packed, int64_t part);
  Value attention(const Twine &name, Value value);
  Value block(int64_t layer, Value value);

  const ProbeShape &shape;
  OpBuilder symbols;
  ImplicitLocOpBuilder b;
};
} // namespace

Value ProbeBuilder::param(const Twine &name, ArrayRef<int64_t> dims,
                          bool ones) {
  std::string symbol = name.str();
  auto op = ParamOp::create(symbols, b.getLoc(), symbol, f32(dims));
  op.setOnes(ones);
  op.setZeros(!ones);
  return ReadOp::create(b, f32(dims), symbol);
}

/// Rows of `from` numbers to rows of `to`.
Value ProbeBuilder::linear(const Twine &name, Value value, int64_t from,
                           int64_t to) {
  Value rows = reshape(value, {shape.batch * shape.sequence, from});
  Value weight = param(name + ".weight", {to, from});
  Value bias = param(name + ".bias", {to});
  Value product =
      train::GemmOp::create(b, rows, weight, bias, UnitAttr(), b.getUnitAttr());
  return reshape(product, {shape.batch, shape.sequence, to});
}

Value ProbeBuilder::layerNorm(const Twine &name, Value value) {
  Value scale = param(name + ".weight", {shape.width}, /*ones=*/true);
  Value bias = param(name + ".bias", {shape.width});
  return train::LayerNormOp::create(b, value, scale, bias,
                                    b.getI64IntegerAttr(2),
                                    b.getF64FloatAttr(1e-5))
      ->getResult(0);
}

/// One of query, key and value as batch x heads x sequence x head size.
Value ProbeBuilder::headsOf(Value packed, int64_t part) {
  int64_t begin = part * shape.width;
  Value own = train::SliceOp::create(
      b, packed, b.getDenseI64ArrayAttr({0, 0, begin}),
      b.getDenseI64ArrayAttr(
          {shape.batch, shape.sequence, begin + shape.width}),
      b.getDenseI64ArrayAttr({1, 1, 1}));
  Value split = reshape(own, {shape.batch, shape.sequence, shape.heads,
                              shape.width / shape.heads});
  return transpose(split, {0, 2, 1, 3});
}

Value ProbeBuilder::attention(const Twine &name, Value value) {
  Value packed = linear(name + ".qkv", value, shape.width, 3 * shape.width);
  Value query = headsOf(packed, 0), key = headsOf(packed, 1);
  Value scores =
      train::MatmulOp::create(b, query, key, UnitAttr(), b.getUnitAttr());
  float scale = 1 / std::sqrt(float(shape.width) / shape.heads);
  Value factor =
      arith::ConstantOp::create(b, DenseElementsAttr::get(f32({}), scale));
  Value weights = train::SoftmaxOp::create(
      b, train::MulOp::create(b, scores, factor), b.getI64IntegerAttr(3));
  Value mixed = train::MatmulOp::create(b, weights, headsOf(packed, 2),
                                        UnitAttr(), UnitAttr());
  Value joined = reshape(transpose(mixed, {0, 2, 1, 3}),
                         {shape.batch, shape.sequence, shape.width});
  return linear(name + ".out", joined, shape.width, shape.width);
}

Value ProbeBuilder::block(int64_t layer, Value value) {
  std::string name = "h." + std::to_string(layer);
  Value attended = attention(name, layerNorm(name + ".ln_1", value));
  value = train::AddOp::create(b, value, attended);
  Value wide = linear(name + ".up", layerNorm(name + ".ln_2", value),
                      shape.width, 4 * shape.width);
  Value active = train::GeluOp::create(b, wide, b.getStringAttr("none"));
  Value narrow = linear(name + ".down", active, 4 * shape.width, shape.width);
  return train::AddOp::create(b, value, narrow);
}

void ProbeBuilder::run() {
  auto tokens =
      RankedTensorType::get({shape.batch, shape.sequence}, b.getI64Type());
  auto logits = f32({shape.batch, shape.sequence, shape.vocabulary});
  auto function =
      func::FuncOp::create(b, "forward", b.getFunctionType({tokens}, {logits}));
  function.setArgAttr(0, kInputAttr, b.getStringAttr("tokens"));
  function.setResultAttr(0, kOutputAttr, b.getStringAttr("logits"));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value value = train::GatherOp::create(
      b, param("embedding", {shape.vocabulary, shape.width}),
      function.getArgument(0), b.getI64IntegerAttr(0));
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    value = block(layer, value);
  value = layerNorm("ln_f", value);
  Value head = param("head", {shape.vocabulary, shape.width});
  Value rows = reshape(value, {shape.batch * shape.sequence, shape.width});
  Value product =
      train::MatmulOp::create(b, rows, head, UnitAttr(), b.getUnitAttr());
  func::ReturnOp::create(b, reshape(product, logits.getShape()));
}

OwningOpRef<ModuleOp> mlir::zero::buildProbeModel(MLIRContext &context,
                                                  const ProbeShape &shape) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  ProbeBuilder(*module, shape).run();
  return module;
}
