//===- ZeroDialect.td - the zero dialect and its resources -*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect of partitioned training: what is split over the ranks, when it
// is moved and when its life ends. Nothing here computes.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_TD
#define ZERO_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Zero_Dialect : Dialect {
  let name = "zero";
  let cppNamespace = "::mlir::zero";
  let summary = "State, shards and collectives of partitioned training";
  let description = [{
    The `zero` dialect holds what ZeRO (the Zero Redundancy Optimizer) decides,
    and only that: which rank owns which piece of the training state, when a
    collective moves it and when a gathered copy dies. The compute around it
    may be in any dialect on tensors (`train`, `linalg`, `arith`, `tosa`, ...).

    ```
      train / linalg / ...  ──zero-annotate──▶ + grid, units
                            ──zero-partition─▶ + shards, collectives
                            ──zero-bucket────▶ one variadic op per bucket
                            ──zero-release───▶ + ends of life
                            ──zero-verify────▶ the rules of this page hold
    ```

    State is named by symbols, one a line, so that a model with thousands of
    tensors stays readable; a step function reads and assigns them:

    ```mlir
    shard.grid @dp(shape = 4)
    zero.param @fc1.weight : !zero.sharded<10x64xf32, @dp, dim = 0> init("mlp.safetensors") unit("fc1")
    zero.state @fc1.weight.momentum of @fc1.weight : !zero.sharded<10x64xf32, @dp, dim = 0> zeros

    func.func @step(%x: tensor<8x64xf32> {zero.input = "x"}, ...) {
      %s = zero.read @fc1.weight : !zero.sharded<10x64xf32, @dp, dim = 0>
      %w = zero.all_gather %s on @dp : (!zero.sharded<10x64xf32, @dp, dim = 0>) -> tensor<10x64xf32>
      ... = train.matmul %x, %w ...
      zero.release %w : tensor<10x64xf32>
      ...
      %g = zero.reduce_scatter %dw average on @dp : (tensor<10x64xf32>) -> tensor<3x64xf32>
      %l = zero.local %s on @dp : !zero.sharded<10x64xf32, @dp, dim = 0> -> tensor<3x64xf32>
      %n = train.sgd %l, %g, %lr ...
      zero.assign @fc1.weight, %n : tensor<3x64xf32>
    ```

    **Chunks.** A dimension of d rows over N ranks is cut in chunks of
    ceil(d/N) rows; the last chunks are shorter or empty. The local tensor has
    ceil(d/N) rows on every rank (one program for all), zero where there is no
    data:

    ```
      10 rows over 4 ranks:  rank 0: 0 1 2 | rank 1: 3 4 5 | rank 2: 6 7 8 | rank 3: 9 . .
       2 rows over 4 ranks:  rank 0: 0     | rank 1: 1     | rank 2: .     | rank 3: .
    ```

    **Effects.** A gather reads the resource `Parameter` and allocates its
    result. CSE therefore does not merge the gather of the backward pass into
    that of the forward pass, and loop-invariant code motion does not hoist
    one: either would keep a gathered parameter alive where the plan says it is
    gone. An unused gather is still erased. `zero.read` reads the resource and
    `zero.assign` writes it, so no read crosses an assignment. The `_start`
    forms also write the resource `Communicator`, which gives all ranks one
    order of collectives.

    **Function attributes.** Arguments of a step function carry `zero.input`
    (data: differs between ranks) or `zero.hyper` (the same on all ranks), with
    the name as value; results carry `zero.output` with a name and
    `zero.across`: how the ranks' values make the value of the whole step,
    `"mean"`, `"sum"` or `"same"`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::shard::ShardDialect"];
  let extraClassDeclaration = [{
    void registerTypes();
  }];
}

// The training state behind the symbols, as a side-effect resource.
def Zero_ParameterResource : Resource<"::mlir::zero::ParameterResource">;
// The order of collectives on one communicator.
def Zero_CommunicatorResource : Resource<"::mlir::zero::CommunicatorResource">;

#endif // ZERO_DIALECT_TD
