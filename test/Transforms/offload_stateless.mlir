// An update without state goes to the host where a rule names its parameter, or
// where that lives elsewhere, and not because all are meant: that is warned of.
// RUN: zero-opt %s --zero-offload=rules=optimizer=host --zero-verify 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: zero-opt %s --zero-offload=rules=optimizer@a=host --zero-verify | FileCheck %s --check-prefix=NAMED
// RUN: zero-opt %s --zero-offload=rules=optimizer=host,parameters@b=host --zero-verify | FileCheck %s --check-prefix=WITH
// ALL: warning: offload of the optimizer moves nothing: @a and others have no state; a rule that names parameters runs their updates on the host
// ALL-NOT: zero.transfer
// NAMED: zero.on_host
// NAMED-NOT: zero.on_host
// NAMED: zero.assign @a
// WITH: zero.on_host
// WITH: zero.assign @b, %hosted
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @a : !zero.sharded<8xf32, @dp, dim = 0>
  zero.param @b : !zero.sharded<8xf32, @dp, dim = 0>
  func.func @step(%x: tensor<8xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %a = zero.read @a : !zero.sharded<8xf32, @dp, dim = 0>
    %b = zero.read @b : !zero.sharded<8xf32, @dp, dim = 0>
    %g = zero.reduce_scatter %x average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %h = zero.reduce_scatter %x average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %al = zero.local %a on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %an = train.sgd %al, %g, %lr : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    zero.assign @a, %an : tensor<2xf32>
    %bl = zero.local %b on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %bn = train.sgd %bl, %h, %lr : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    zero.assign @b, %bn : tensor<2xf32>
    return
  }
}
