// Which rule counts for what: patterns, order, shares.
// RUN: zero-opt %s --zero-offload='rules=optimizer=disk,optimizer@a*=host,optimizer@ab=device' --zero-verify | FileCheck %s --check-prefix=LAST
// RUN: zero-opt %s --zero-offload=rules=optimizer=host:0.5 --zero-verify | FileCheck %s --check-prefix=HALF
// RUN: zero-opt %s --zero-offload=rules=optimizer=disk,optimizer=host:0.3 --zero-verify | FileCheck %s --check-prefix=MIXED
// RUN: zero-opt %s --zero-offload=rules=optimizer=host:0 --zero-verify | FileCheck %s --check-prefix=NOTHING
// RUN: zero-opt %s --zero-offload --zero-verify | FileCheck %s --check-prefix=NOTHING

// LAST: zero.state @aa.m {{.*}} mem = host>
// LAST: zero.state @ab.m of @ab : !zero.sharded<8xf32, @dp, dim = 0> zeros
// LAST: zero.state @big.m {{.*}} mem = disk>

// Of a rank's 12 elements 6 may go: 2 of @aa and 2 of @ab, not 8 more of @big.
// HALF: zero.state @aa.m {{.*}} mem = host>
// HALF: zero.state @ab.m {{.*}} mem = host>
// HALF: zero.state @big.m of @big : !zero.sharded<32xf32, @dp, dim = 0> zeros

// The rest stays as the rule before says.
// MIXED: zero.state @aa.m {{.*}} mem = host>
// MIXED: zero.state @ab.m {{.*}} mem = disk>
// MIXED: zero.state @big.m {{.*}} mem = disk>

// NOTHING-NOT: zero.transfer

// LAST: zero.on_host
// LAST: zero.on_host
// LAST-NOT: zero.on_host
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @aa : !zero.sharded<8xf32, @dp, dim = 0>
  zero.param @ab : !zero.sharded<8xf32, @dp, dim = 0>
  zero.param @big : !zero.sharded<32xf32, @dp, dim = 0>
  zero.param @plain : !zero.sharded<8xf32, @dp, dim = 0>
  zero.state @aa.m of @aa : !zero.sharded<8xf32, @dp, dim = 0> zeros
  zero.state @ab.m of @ab : !zero.sharded<8xf32, @dp, dim = 0> zeros
  zero.state @big.m of @big : !zero.sharded<32xf32, @dp, dim = 0> zeros
  func.func @step(%x: tensor<8xf32> {zero.input = "x"}, %y: tensor<32xf32> {zero.input = "y"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %aa = zero.read @aa : !zero.sharded<8xf32, @dp, dim = 0>
    %ab = zero.read @ab : !zero.sharded<8xf32, @dp, dim = 0>
    %big = zero.read @big : !zero.sharded<32xf32, @dp, dim = 0>
    %plain = zero.read @plain : !zero.sharded<8xf32, @dp, dim = 0>
    %g = zero.reduce_scatter %x average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %h = zero.reduce_scatter %x average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %i = zero.reduce_scatter %y average on @dp : (tensor<32xf32>) -> tensor<8xf32>
    %j = zero.reduce_scatter %x average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %aal = zero.local %aa on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %aam = zero.read @aa.m : !zero.sharded<8xf32, @dp, dim = 0>
    %aaml = zero.local %aam on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %aan, %aamn = train.sgd %aal, %g, %aaml, %lr {momentum = 0.9 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
    zero.assign @aa, %aan : tensor<2xf32>
    zero.assign @aa.m, %aamn : tensor<2xf32>
    %abl = zero.local %ab on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %abm = zero.read @ab.m : !zero.sharded<8xf32, @dp, dim = 0>
    %abml = zero.local %abm on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %abn, %abmn = train.sgd %abl, %h, %abml, %lr {momentum = 0.9 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
    zero.assign @ab, %abn : tensor<2xf32>
    zero.assign @ab.m, %abmn : tensor<2xf32>
    %bigl = zero.local %big on @dp : !zero.sharded<32xf32, @dp, dim = 0> -> tensor<8xf32>
    %bigm = zero.read @big.m : !zero.sharded<32xf32, @dp, dim = 0>
    %bigml = zero.local %bigm on @dp : !zero.sharded<32xf32, @dp, dim = 0> -> tensor<8xf32>
    %bign, %bigmn = train.sgd %bigl, %i, %bigml, %lr {momentum = 0.9 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    zero.assign @big, %bign : tensor<8xf32>
    zero.assign @big.m, %bigmn : tensor<8xf32>
    %plainl = zero.local %plain on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %plainn = train.sgd %plainl, %j, %lr : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    zero.assign @plain, %plainn : tensor<2xf32>
    return
  }
}
