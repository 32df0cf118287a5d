//===- OffloadTest.cpp - rules and candidates of offload ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rules in words, and the bytes of what can be moved.
//
//===----------------------------------------------------------------------===//

#include "zero/Transforms/Offload.h"

#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::zero;

TEST(OffloadRuleTest, PrintsWhatItReads) {
  for (StringRef text :
       {"optimizer=host", "parameters=disk", "gradients=device",
        "activations@h.0.gelu=host", "optimizer@h.*=host:0.5",
        "parameters@a=b=disk", "optimizer@onnx::MatMul_1=host:0"}) {
    std::string error;
    FailureOr<OffloadRule> rule = parseOffloadRule(text, error);
    ASSERT_TRUE(succeeded(rule)) << error;
    EXPECT_EQ(printOffloadRule(*rule), text);
  }
}

TEST(OffloadRuleTest, SaysWhatIsWrong) {
  for (StringRef text : {"", "host", "weights=host", "optimizer=", "=host",
                         "optimizer=host:", "optimizer=host:-0.1",
                         "optimizer=host:nan", "optimizer@[=host"}) {
    std::string error;
    EXPECT_TRUE(failed(parseOffloadRule(text, error))) << text.str();
    EXPECT_NE(error.find("offload rule '" + text.str() + "'"),
              std::string::npos)
        << error;
  }
}

static constexpr const char *kStep = R"mlir(
module attributes {zero.stage = 2 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<10x4xbf16> unit("a")
  zero.state @w.master of @w : !zero.sharded<10x4xf32, @dp, dim = 0> zeros
  func.func @step(%x: tensor<2x10xbf16> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) -> (tensor<2x4xbf16> {zero.output = "z"}) {
    %w = zero.read @w : tensor<10x4xbf16>
    %y = train.matmul %x, %w : (tensor<2x10xbf16>, tensor<10x4xbf16>) -> tensor<2x4xbf16>
    %z = train.relu %y : tensor<2x4xbf16>
    %dy = train.relu_grad %y, %y : tensor<2x4xbf16>
    %dw = train.matmul %x, %dy {transpose_a} : (tensor<2x10xbf16>, tensor<2x4xbf16>) -> tensor<10x4xbf16>
    %g = zero.reduce_scatter %dw average on @dp : (tensor<10x4xbf16>) -> tensor<3x4xbf16>
    %s = zero.read @w.master : !zero.sharded<10x4xf32, @dp, dim = 0>
    %l = zero.local %s on @dp : !zero.sharded<10x4xf32, @dp, dim = 0> -> tensor<3x4xf32>
    %n = train.sgd %l, %g, %lr : (tensor<3x4xf32>, tensor<3x4xbf16>, tensor<f32>) -> tensor<3x4xf32>
    %h = train.cast %n : tensor<3x4xf32> to tensor<3x4xbf16>
    zero.assign @w.master, %n : tensor<3x4xf32>
    %f = zero.all_gather %h on @dp : (tensor<3x4xbf16>) -> tensor<10x4xbf16>
    zero.assign @w, %f : tensor<10x4xbf16>
    return %z : tensor<2x4xbf16>
  }
}
)mlir";

/// A rank holds 3 of 10 rows of the master, and the whole parameter: 2 bytes an
/// element of its rows go down, 2 come up.
TEST(OffloadCandidateTest, CountsWhatARankHoldsAndMoves) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, shard::ShardDialect,
                      train::TrainDialect, ZeroDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kStep, &context);
  ASSERT_TRUE(module);
  FailureOr<std::vector<OffloadCandidate>> found =
      findOffloadCandidates(*module);
  ASSERT_TRUE(succeeded(found));
  std::vector<std::string> lines;
  for (const OffloadCandidate &candidate : *found)
    lines.push_back(stringifyOffloadKind(candidate.kind).str() + " " +
                    candidate.name + " of " + candidate.unit + ": " +
                    std::to_string(candidate.bytes) + " down " +
                    std::to_string(candidate.toHostBytes) + " up " +
                    std::to_string(candidate.toDeviceBytes));
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "optimizer w of a: 48 down 24 up 24",
                       "gradients w of a: 24 down 24 up 24",
                       "parameters w of a: 80 down 80 up 80",
                       "activations a.matmul of a: 16 down 16 up 16"}));
}
