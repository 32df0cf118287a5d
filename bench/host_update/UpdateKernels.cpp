//===- UpdateKernels.cpp - The updates that are measured ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See UpdateKernels.h.
//
//===----------------------------------------------------------------------===//

#include "UpdateKernels.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "zero/Lowering/Kernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include <cstdlib>

using namespace zero_bench;

/// N is the number of parameters, H half of it.
static const char *const kKernels = R"(
#at = affine_map<(d0) -> (d0)>
func.func @triad(%b: tensor<$Hxf64>, %c: tensor<$Hxf64>) -> tensor<$Hxf64>
    attributes {plan.kernel, plan.host} {
  %s = arith.constant 3.0 : f64
  %e = tensor.empty() : tensor<$Hxf64>
  %a = linalg.generic {indexing_maps = [#at, #at, #at],
                       iterator_types = ["parallel"]}
      ins(%b, %c : tensor<$Hxf64>, tensor<$Hxf64>) outs(%e : tensor<$Hxf64>) {
    ^bb0(%x: f64, %y: f64, %z: f64):
      %p = arith.mulf %y, %s : f64
      %q = arith.addf %x, %p : f64
      linalg.yield %q : f64
  } -> tensor<$Hxf64>
  return %a : tensor<$Hxf64>
}
)";

static const char *const kAdamKernel = R"(
func.func @$OP_f32(%p: $F, %g: $F, %m: $F, %v: $F, %lr: tensor<f32>,
                   %s: tensor<i64>) -> ($F, $F, $F)
    attributes {plan.kernel, plan.host, plan.tied = array<i64: 0, 2, 3>} {
  %n:3 = train.$OP %p, %g, %m, %v, %lr, %s
      {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
       weight_decay = 0.01 : f64}
      : ($F, $F, $F, $F, tensor<f32>, tensor<i64>) -> ($F, $F, $F)
  return %n#0, %n#1, %n#2 : $F, $F, $F
}
func.func @$OP_mixed(%p: $F, %g: $B, %m: $F, %v: $F, %lr: tensor<f32>,
                     %s: tensor<i64>) -> ($F, $F, $F, $B)
    attributes {plan.kernel, plan.host, plan.tied = array<i64: 0, 2, 3, -1>} {
  %n:3 = train.$OP %p, %g, %m, %v, %lr, %s
      {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
       weight_decay = 0.01 : f64}
      : ($F, $B, $F, $F, tensor<f32>, tensor<i64>) -> ($F, $F, $F)
  %c = train.cast %n#0 : $F to $B
  return %n#0, %n#1, %n#2, %c : $F, $F, $F, $B
}
)";

static const char *const kSgdKernel = R"(
func.func @sgd_f32(%p: $F, %g: $F, %m: $F, %lr: tensor<f32>) -> ($F, $F)
    attributes {plan.kernel, plan.host, plan.tied = array<i64: 0, 2>} {
  %n:2 = train.sgd %p, %g, %m, %lr
      {momentum = 0.9 : f64, weight_decay = 0.01 : f64}
      : ($F, $F, $F, tensor<f32>) -> ($F, $F)
  return %n#0, %n#1 : $F, $F
}
func.func @sgd_mixed(%p: $F, %g: $B, %m: $F, %lr: tensor<f32>) -> ($F, $F, $B)
    attributes {plan.kernel, plan.host, plan.tied = array<i64: 0, 2, -1>} {
  %n:2 = train.sgd %p, %g, %m, %lr
      {momentum = 0.9 : f64, weight_decay = 0.01 : f64}
      : ($F, $B, $F, tensor<f32>) -> ($F, $F)
  %c = train.cast %n#0 : $F to $B
  return %n#0, %n#1, %c : $F, $F, $B
}
)";

std::vector<UpdateKernel> zero_bench::getUpdateKernels() {
  using Operands = std::vector<Array>;
  Operands adam = {Array::Parameter, Array::Gradient, Array::First,
                   Array::Second,    Array::Rate,     Array::Step};
  Operands sgd = {Array::Parameter, Array::Gradient, Array::First, Array::Rate};
  auto withCast = [](Operands operands) {
    operands.push_back(Array::Cast);
    return operands;
  };
  return {{"triad", {Array::B, Array::C, Array::A}, 2, 24, 8},
          {"adamw_f32", adam, 1, 28, 0},
          {"adamw_mixed", withCast(adam), 1, 28, 2},
          {"adam_f32", adam, 1, 28, 0},
          {"adam_mixed", withCast(adam), 1, 28, 2},
          {"sgd_f32", sgd, 1, 20, 0},
          {"sgd_mixed", withCast(sgd), 1, 20, 2}};
}

/// `text` with the types and numbers of its placeholders.
static std::string fill(std::string text, const std::string &op,
                        int64_t parameters) {
  std::string count = std::to_string(parameters);
  for (const auto &[key, value] :
       {std::pair<std::string, std::string>("$OP", op),
        {"$H", std::to_string(parameters / 2)},
        {"$F", "tensor<" + count + "xf32>"},
        {"$B", "tensor<" + count + "xbf16>"}})
    for (size_t at = 0; (at = text.find(key, at)) != std::string::npos;)
      text.replace(at, key.size(), value);
  return text;
}

std::string zero_bench::compileUpdateKernels(int64_t parameters,
                                             const std::string &cpu) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::linalg::LinalgDialect, mlir::plan::PlanDialect,
                  mlir::tensor::TensorDialect, mlir::train::TrainDialect>();
  mlir::zero::registerKernelDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      fill(kKernels, "", parameters) + fill(kAdamKernel, "adamw", parameters) +
          fill(kAdamKernel, "adam", parameters) +
          fill(kSgdKernel, "", parameters),
      &context);
  auto target =
      mlir::zero::KernelTarget::named(cpu, mlir::UnknownLoc::get(&context));
  std::string object;
  if (!module || mlir::failed(target) ||
      mlir::failed(mlir::zero::compileKernels(*module, *target, object)))
    std::exit(1);
  return object;
}
