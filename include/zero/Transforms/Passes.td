//===- Passes.td - the ZeRO passes -------------------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which the pipeline runs them. They look at zero ops, use-def
// chains, upstream traits and interfaces, and at nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TRANSFORMS_PASSES_TD
#define ZERO_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ZeroOutlineStatePass : Pass<"zero-outline-state", "::mlir::ModuleOp"> {
  let summary = "turn arguments with zero.role into parameter symbols";
  let description = [{
    Brings a step function of any front end into the form that the other passes
    read. Attributes of its arguments and results say what they are:

    | on an argument | meaning | becomes |
    |---|---|---|
    | `zero.role = "param"` | a trained parameter | `zero.param` + `zero.read` |
    | `zero.role = "frozen"` | a parameter that is not trained | the same, `frozen` |
    | `zero.role = "buffer"` | updated by the step, one per rank | the same, `buffer` |
    | `zero.role = "state"`, `zero.of = "w"` | optimizer state of parameter `w` | `zero.state` + `zero.read` |
    | `zero.role = "input"` | data, differs between ranks | stays, `zero.input` |
    | `zero.role = "hyper"` | same on all ranks | stays, `zero.hyper` |

    | on a result | meaning | becomes |
    |---|---|---|
    | `zero.role = "param"`, `"state"` or `"buffer"`, `zero.of = "w"` | new value of `w` | `zero.assign` |
    | `zero.role = "output"` | a value for the caller | stays, `zero.output`, `zero.across` |

    `zero.name` names an argument or output (default `arg0`, `output0`, by
    position); `zero.unit` gives a parameter its layer, `zero.across` an
    output's meaning over ranks (default `"mean"`). A function that has no
    argument with `zero.role` is left alone; in others, an argument without it
    is an input and a result without it an output. A state starts as zeros, a
    parameter as the caller says.

    ```mlir
    func.func @step(%w: tensor<10x4xf32> {zero.role = "param", zero.name = "w"},
                    %x: tensor<8x4xf32> {zero.role = "input", zero.name = "x"})
        -> (tensor<10x4xf32> {zero.role = "param", zero.of = "w"}) {
      ...
      return %new : tensor<10x4xf32>
    }
    // becomes
    zero.param @w : tensor<10x4xf32>
    func.func @step(%x: tensor<8x4xf32> {zero.input = "x"}) {
      %w = zero.read @w : tensor<10x4xf32>
      ...
      zero.assign @w, %new : tensor<10x4xf32>
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::zero::ZeroDialect"];
  let statistics = [
    Statistic<"numSymbols", "num-symbols", "arguments that became symbols">];
}

def ZeroAnnotatePass : Pass<"zero-annotate", "::mlir::ModuleOp"> {
  let summary = "declare the grid and give every parameter its unit";
  let description = [{
    Adds `shard.grid @dp` where the module has no grid (8 ranks unless told
    otherwise, with a remark), and sets `unit` on parameters that have none,
    from the name: up to the first number between dots, otherwise without the
    last part.

    ```mlir
    zero.param @h.0.attn.weight : tensor<64x64xf32>
    zero.param @fc1.bias : tensor<64xf32>
    // zero-annotate{ranks=4}
    shard.grid @dp(shape = 4)
    zero.param @h.0.attn.weight : tensor<64x64xf32> unit("h.0")
    zero.param @fc1.bias : tensor<64xf32> unit("fc1")
    ```
  }];
  let options = [
    Option<"ranks", "ranks", "int64_t", "::mlir::zero::kUnsetRanks",
      "Number of ranks; -1 keeps the module's grid, or makes one of 8 ranks">,
    ListOption<"grid", "grid", "int64_t",
      "Shape of the grid instead of a number of ranks">];
  let dependentDialects = ["::mlir::zero::ZeroDialect"];
  let statistics = [
    Statistic<"numUnits", "num-units", "parameters that were given a unit">];
}

def ZeroPartitionPass : Pass<"zero-partition", "::mlir::ModuleOp"> {
  let summary = "split the training state over the ranks, one collective a tensor";
  let description = [{
    Takes a step as `zero-import --loss` or `zero-outline-state` leaves it and
    a grid, and makes it the step of one rank.

    On a grid of two axes, replicas by shards (hybrid sharding), the state is
    cut over the last axis, each replica of it holding the whole: gathers and
    `reduce_scatter` are over that axis, and an `all_reduce` of the own chunk
    over the other one follows. Stage 0 reduces over both at once. With
    `shard-axes=all` the state is cut over both axes, as on a grid of one axis,
    and a gathered parameter may be resharded to the last axis between forward
    and backward (`zero-keep-gathered`).

    | stage | gradients | states | parameters |
    |---|---|---|---|
    | 0 | `all_reduce` after the backward | whole | whole |
    | 1 | `reduce_scatter` after the backward | sharded | updated on the own shard, then `all_gather` |
    | 2 | `reduce_scatter` as soon as complete | sharded | as 1 |
    | 3 | as 2 | sharded | sharded; `all_gather` before the unit's first use in forward, and again in backward |

    All reductions average. Rank-0 tensors are never sharded. Buffers are left
    alone. Frozen parameters are sharded in stage 3 like others. A unit that the
    backward needs before any other unit is gathered once (`keep-adjacent`).

    With several micro-batches (`train-accumulate`), stages 0 and 1 reduce the
    accumulated gradients once a step; stages 2 and 3 `reduce_scatter` those of
    each micro-batch, whose accumulators are sharded, and on a grid of two axes
    `all_reduce` the accumulated chunks once.

    What is a gradient: the gradient operand of an `OptimizerUpdate`; where an
    update is written in elementwise ops, the one value depending on the data
    that enters the elementwise ops between state and assignment. These ops are
    remade on shapes of the shard. An `ElementSum` (gradient norm) of gradients
    sums the reduced ones. Where they are shards, one `all_reduce` adds up the
    ranks' parts; if it does nothing but leave the step, the output becomes
    `zero.across = "sum"` instead. What is computed from it (a factor that clips)
    stands behind the last reduction and may enter updates.

    What the parameter is assigned may be a cast of the update's result, which
    then replaces a state (a master copy); gathers are of what is assigned.

    ```mlir
    %dw = train.matmul ...                          : tensor<10x4xf32>
    %n = train.sgd %w, %dw, %lr
    zero.assign @w, %n : tensor<10x4xf32>
    // zero-partition{stage=1}, 4 ranks
    %g = zero.reduce_scatter %dw average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
    %l = zero.local %w on @dp : tensor<10x4xf32> -> tensor<3x4xf32>
    %n = train.sgd %l, %g, %lr
    %f = zero.all_gather %n on @dp : (tensor<3x4xf32>) -> tensor<10x4xf32>
    zero.assign @w, %f : tensor<10x4xf32>
    ```

    Values read before they are assigned, one block per step function, and
    updates that use no other value of this rank's data are required.
  }];
  let options = [
    Option<"stage", "stage", "int64_t", "3", "ZeRO stage, 0 to 3">,
    Option<"keepAdjacent", "keep-adjacent", "bool", "true",
      "Stage 3: keep a unit gathered from its last use in forward to its first "
      "in backward where no other unit is used in between">,
    Option<"shardAxes", "shard-axes", "::mlir::zero::ShardAxes",
      "::mlir::zero::ShardAxes::Inner",
      "Axes of a grid of two that the state is cut over",
      [{::llvm::cl::values(
        clEnumValN(::mlir::zero::ShardAxes::Inner, "inner",
          "the last; a copy for each place on the first"),
        clEnumValN(::mlir::zero::ShardAxes::All, "all", "both"))}]>];
  let dependentDialects = ["::mlir::zero::ZeroDialect",
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numSharded", "num-sharded", "symbols that became sharded">,
    Statistic<"numGathers", "num-gathers", "all_gathers inserted">,
    Statistic<"numReductions", "num-reductions", "reductions inserted">,
    Statistic<"numKept", "num-kept", "units kept gathered for the backward">];
}

def ZeroBucketPass : Pass<"zero-bucket", "::mlir::ModuleOp"> {
  let summary = "merge collectives of one unit into buckets";
  let description = [{
    Merges collectives of one kind, over the same ranks, of one element type and
    of the same unit, into one variadic op, up to `bytes` of whole tensors each.
    A bucket of reductions stands where its last gradient is complete. The
    gathers of a unit in stage 3 are one bucket whatever their size, where the
    first stood. Nothing is merged across a use of a member's result, except
    that sums over replicas follow the sums over shards as a bucket of their own.

    ```mlir
    %gb = zero.reduce_scatter %db average on @dp : (tensor<10xf32>) -> tensor<3xf32>
    %dw = train.matmul ...
    %gw = zero.reduce_scatter %dw average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
    // zero-bucket
    %dw = train.matmul ...
    %g:2 = zero.reduce_scatter %db, %dw average on @dp
      : (tensor<10xf32>, tensor<10x4xf32>) -> (tensor<3xf32>, tensor<3x4xf32>)
    ```
  }];
  let options = [
    Option<"bytes", "bytes", "int64_t", "::mlir::zero::kDefaultBucketBytes",
      "Largest bucket in bytes; 0 for no limit">];
  let dependentDialects = ["::mlir::zero::ZeroDialect"];
  let statistics = [
    Statistic<"numMerged", "num-merged", "collectives merged into another">,
    Statistic<"numBuckets", "num-buckets", "buckets of more than one tensor">];
}

def ZeroReleasePass : Pass<"zero-release", "::mlir::ModuleOp"> {
  let summary = "end the life of gathered parameters after their last use";
  let description = [{
    Adds `zero.release` after the last use of each parameter gathered from a
    shard at rest, views included. A view is the result of an op that is
    `ViewLike`, or that has no effect, is not elementwise and makes one tensor
    of one tensor (reshape, transpose, slice). Values that end together are
    released by one op.

    ```mlir
    %w = zero.all_gather %s on @dp ...
    %t = tensor.collapse_shape %w ...
    %y = linalg.dot ins(%t, %x ...)
    // zero-release adds
    zero.release %w : tensor<10x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::zero::ZeroDialect"];
  let statistics = [
    Statistic<"numReleased", "num-released", "values released">];
}

def ZeroOffloadPass : Pass<"zero-offload", "::mlir::ModuleOp"> {
  let summary = "let state, gradients and activations live outside device memory";
  let description = [{
    Takes a partitioned step that is not scheduled and moves what the rules say
    to host memory or disk. A rule is `KIND[@GLOB]=device|host|disk[:RATIO]`; of
    several for one value the last counts. The step computes the same bits.

    | kind | a name is | what moves, and what it costs |
    |---|---|---|
    | `optimizer` | that of a parameter | moments and masters; the update runs in `zero.on_host`: the gradient goes down, the new parameter up |
    | `gradients` | that of a parameter | the accumulator, which is added to on the host; the reduced gradient between its reduction and the update |
    | `parameters` | that of a parameter | the parameter at rest; it comes up before each gather or, where it is whole, in forward and again in backward |
    | `activations` | that of the op that makes it, after its layer: `h.0.gelu` | down after its last use in forward, up before its first in backward |

    From a disk, and to it, a value goes through host memory. A `RATIO` from 0
    to 1 is a share of the bytes that match: whole tensors in the order of the
    step, each that still fits in; the rest stays as the rules before say.
    Tensors of rank 0 stay on the device. An update without state (SGD without
    momentum) moves to the host where its parameter is named, and with a
    parameter that lives there.

    Updates of one bucket of reductions run as one `zero.on_host`, as soon as
    its gradients are there. All copies are synchronous `zero.transfer`s, one a
    bucket; `zero-schedule` turns them into starts and waits.

    ```mlir
    %g = zero.reduce_scatter %dw average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
    %s = zero.read @w.momentum : !zero.sharded<10x4xf32, @dp, dim = 0>
    %m = zero.local %s on @dp : !zero.sharded<10x4xf32, @dp, dim = 0> -> tensor<3x4xf32>
    %n, %v = train.sgd %l, %g, %m, %lr ...
    // zero-offload{rules=optimizer=host}
    %gh = zero.transfer %g from device to host : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %s = zero.read @w.momentum : !zero.sharded<10x4xf32, @dp, dim = 0, mem = host>
    %m = zero.local %s on @dp : !zero.sharded<10x4xf32, @dp, dim = 0, mem = host> -> tensor<3x4xf32>
    %nh, %v = zero.on_host (%p = %lh, %d = %gh, %k = %m, %r = %lrh) : ... {
      %a, %b = train.sgd %p, %d, %k, %r ...
      zero.yield %a, %b : tensor<3x4xf32>, tensor<3x4xf32>
    }
    %n = zero.transfer %nh from host to device : (tensor<3x4xf32>) -> tensor<3x4xf32>
    ```
  }];
  let options = [
    ListOption<"rules", "rules", "std::string",
      "Rules as in optimizer=host, parameters@h.*=disk or "
      "optimizer=host:0.5; the last that matches counts">];
  let dependentDialects = ["::mlir::zero::ZeroDialect"];
  let statistics = [
    Statistic<"numMoved", "num-moved", "tensors that live elsewhere">];
}

def ZeroVerifyPass : Pass<"zero-verify", "::mlir::ModuleOp"> {
  let summary = "check the rules of a partitioned step";
  let description = [{
    Changes nothing and fails where a rule is broken:

    - every future is awaited exactly once, and the state that a collective
      reads is not assigned while it is in flight;
    - what is gathered from state at rest is released, or leaves the step;
      nothing uses it, or a view of it, after its release, and nothing releases
      it twice; a collective uses its operands until it is awaited;
    - what a trained parameter or a state is assigned does not depend on one
      rank's data except through reductions that average, exactly once over
      each axis of the grid (after `zero-partition`), nor do outputs that are
      the same across ranks;
    - compute uses values in device memory only;
    - gradients are divided by the number of micro-batches exactly once, by the
      `train.loss_seed` that they begin with, and updates take the sums over
      all micro-batches, which are reduced alike; accumulators are zero again
      after the step, and between micro-batches nothing else changes but
      buffers.

    In a `plan.program`:

    - every event is signalled once, before it is awaited, and awaited;
    - a command of another stream begins no sooner than compute reaches it;
    - of two uses of a buffer, one of them a write, one is done before the other
      begins, by their stream or by events;
    - nothing is read before it is written or after its release;
    - no event reaches from one micro-batch into the next;
    - buffers that live at the same time share no byte;
    - commands, and so collectives, have the order that the program was made
      with;
    - the device arena is within the budget.
  }];
}

#endif // ZERO_TRANSFORMS_PASSES_TD
