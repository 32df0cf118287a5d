//===- Passes.td - the scheduling passes -------------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// They take a partitioned step and decide when each collective begins and when
// the step waits for it, under a memory budget and against a machine's cost
// model. Compute is moved at most; what is computed stays the same bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_PASSES_TD
#define ZERO_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

defvar Schedule_MemoryOption = Option<"memory", "memory", "int64_t",
  "::mlir::zero::kUnsetMemory",
  "Budget in bytes of one rank; -1 for the machine's memory where a machine is "
  "named, else for no limit">;
defvar Schedule_MachineOption = Option<"machine", "machine", "std::string", "\"\"",
  "A machine preset by name, or a machine file (it ends in .json); this-cpu "
  "unless given">;
defvar Schedule_Statistics = [
  Statistic<"numStarted", "num-started", "collectives that run beside compute">,
  Statistic<"numDropped", "num-dropped", "gathers of the backward pass dropped">,
  Statistic<"numMerged", "num-merged", "collectives merged into another">];

class Schedule_Pass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::mlir::zero::ZeroDialect"];
  let statistics = Schedule_Statistics;
}

def ZeroPrefetchPass : Schedule_Pass<"zero-prefetch"> {
  let summary = "begin collectives before they are needed, just in time";
  let description = [{
    Splits collectives in `_start` and `zero.wait`. A gather begins as late as
    it can while it is still done when it is needed, where memory allows that;
    a reduction begins when its gradient is complete and is awaited as late as
    nothing is lost. Compute keeps its order, every gather stays.

    ```mlir
    %w1 = zero.all_gather %s1 ...
    %h1 = train.matmul %x, %w1 ...
    %w2 = zero.all_gather %s2 ...
    %h2 = train.matmul %h1, %w2 ...
    // zero-prefetch
    %w1 = zero.all_gather %s1 ...
    %f2 = zero.all_gather_start %s2 ...
    %h1 = train.matmul %x, %w1 ...
    %w2 = zero.wait %f2
    %h2 = train.matmul %h1, %w2 ...
    ```
  }];
  let options = [Schedule_MemoryOption, Schedule_MachineOption];
}

def ZeroKeepGatheredPass : Schedule_Pass<"zero-keep-gathered"> {
  let summary = "keep gathered parameters from forward to backward where memory allows";
  let description = [{
    Drops gathers of the backward pass: its uses see what the forward pass has
    gathered, which is released after the last of them. Which ones is decided by
    the time that is saved for the memory that is held. Needs no other pass; the
    collectives that stay are not begun earlier. Where the state is cut over both
    axes of a grid, a chunk over the last axis may stay instead of the whole
    (`zero.reshard`), and the second gather is then over that axis.

    ```mlir
    %w = zero.all_gather %s ...
    %h = train.matmul %x, %w ...
    zero.release %w
    ...
    %v = zero.all_gather %s ...
    %dx = train.matmul %dh, %v ...
    zero.release %v
    // zero-keep-gathered
    %w = zero.all_gather %s ...
    %h = train.matmul %x, %w ...
    ...
    %dx = train.matmul %dh, %w ...
    zero.release %w
    ```
  }];
  let options = [Schedule_MemoryOption, Schedule_MachineOption];
}

def ZeroReorderPass : Schedule_Pass<"zero-reorder"> {
  let summary = "move compute among equals, to free memory and to have gradients early";
  let description = [{
    Chooses the order of ops that do not depend on each other: gradients of
    parameters before gradients of activations where that lets a reduction begin
    earlier, and updates as soon as their gradient is reduced.

    ```mlir
    %dx = train.matmul %dy, %w ...
    %dw = train.matmul %x, %dy {transpose_a} ...
    %g = zero.reduce_scatter %dw average ...
    // zero-reorder
    %dw = train.matmul %x, %dy {transpose_a} ...
    %g = zero.reduce_scatter %dw average ...
    %dx = train.matmul %dy, %w ...
    ```
  }];
  let options = [Schedule_MachineOption];
}

def ZeroSchedulePass : Schedule_Pass<"zero-schedule"> {
  let summary = "decide order, buckets, starts, waits and what stays gathered, together";
  let description = [{
    Does what `zero-prefetch`, `zero-keep-gathered` and `zero-reorder` do, and
    merges collectives of neighbouring units, in one decision: the fastest
    schedule found whose memory stays within the budget, never slower than any
    of them alone. Each part can be turned off.

    `zero.transfer` and `zero.on_host` are begun and awaited as collectives are,
    on channels of their own: `to_host`, `to_device`, `disk_read`, `disk_write`
    and `host`. Host memory has a budget of its own: what is read from disk is
    read just in time, and no further ahead than that allows.

    The module gets `zero.planned_peak` (bytes of one rank on its device),
    `zero.planned_host_peak` (in host memory, where there are any) and
    `zero.planned_seconds`. Remarks of the category `zero-schedule` say why a
    collective is exposed, why a parameter stays gathered, and how far the step
    is from its lower bound. Where nothing fits, one error says how many bytes
    are missing, what the largest tensors are, and what would help.

    ```mlir
    %w1 = zero.all_gather %s1 ...
    %h1 = train.matmul %x, %w1 ...
    zero.release %w1
    %w2 = zero.all_gather %s2 ...
    %h2 = train.matmul %h1, %w2 ...
    // zero-schedule
    %w1 = zero.all_gather %s1 ...
    %f2 = zero.all_gather_start %s2 ...
    %h1 = train.matmul %x, %w1 ...
    zero.release %w1
    %w2 = zero.wait %f2
    %h2 = train.matmul %h1, %w2 ...
    ```
  }];
  let options = [
    Schedule_MemoryOption, Schedule_MachineOption,
    Option<"hostMemory", "host-memory", "int64_t",
      "::mlir::zero::kUnsetMemory",
      "Budget in bytes of host memory of one rank; -1 for its part of the "
      "machine's where a machine is named, else for no limit">,
    Option<"prefetch", "prefetch", "bool", "true",
      "Begin collectives before they are needed">,
    Option<"keepGathered", "keep-gathered", "bool", "true",
      "Drop gathers of the backward pass">,
    Option<"reorder", "reorder", "bool", "true", "Move compute among equals">,
    Option<"bucket", "bucket", "bool", "true", "Merge collectives">,
    Option<"bucketBytes", "bucket-bytes", "int64_t",
      "::mlir::zero::kDefaultScheduleBucketBytes",
      "Largest bucket that is made here, in bytes of whole tensors">];
}

def TrainRematPass : Pass<"train-remat", "::mlir::ModuleOp"> {
  let summary = "compute values of the forward pass again in the backward pass";
  let description = [{
    Decides which values that the backward pass reads are kept and which are
    computed again just before their first use there (activation
    checkpointing). Runs before `zero-partition`, which then gathers a layer's
    parameters once for what is computed again and for its gradients.

    | mode | computed again |
    |---|---|
    | `none` | nothing |
    | `selective` | what lowers the peak and needs no product with a parameter: attention's scores and probabilities, norms, activation functions |
    | `full` | all but what later layers read, for each `unit`; the last layer keeps everything |
    | `budget` | what lowers the peak of the step's values (without state, inputs and constants) to `bytes` for the fewest seconds of `machine`; where nothing does, what lowers it most |

    Copies carry `zero.recomputed`, which keeps `cse` from merging them with
    what they repeat. Ops with side effects and ops that read buffers (running
    statistics) are never repeated. Numbers stay the same bit for bit.

    ```mlir
    %a = train.gelu %h                      // forward
    %y = train.matmul %a, %w
    ...
    %dw = train.matmul %a, %dy {transpose_a} // backward
    // train-remat{mode=selective}
    %a = train.gelu %h
    %y = train.matmul %a, %w
    ...
    %b = train.gelu %h {zero.recomputed}
    %dw = train.matmul %b, %dy {transpose_a}
    ```
  }];
  let options = [
    Option<"mode", "mode", "::mlir::zero::RematMode",
      "::mlir::zero::RematMode::Selective", "What is computed again",
      [{::llvm::cl::values(
        clEnumValN(::mlir::zero::RematMode::None, "none", "nothing"),
        clEnumValN(::mlir::zero::RematMode::Selective, "selective",
          "what is cheap and large"),
        clEnumValN(::mlir::zero::RematMode::Full, "full",
          "all inside of layers"),
        clEnumValN(::mlir::zero::RematMode::Budget, "budget",
          "what a budget needs"))}]>,
    Option<"bytes", "bytes", "int64_t", "::mlir::zero::kUnsetMemory",
      "Mode budget: most bytes of values at one time">,
    Option<"stage", "stage", "int64_t", "3",
      "ZeRO stage that follows: from stage 2 on gradients do not stay">,
    Schedule_MachineOption];
  let statistics = [
    Statistic<"numRecomputed", "num-recomputed", "ops computed again">];
}

def ZeroChooseOffloadPass : Pass<"zero-choose-offload", "::mlir::ModuleOp"> {
  let summary = "offload what a budget needs, the least cost first";
  let description = [{
    Chooses the rules of `zero-offload` for a partitioned step that is not
    scheduled, and applies them. State, gradients and activations of a layer go
    together. They are ordered by the seconds they add to the busiest of
    compute, the links and the host's processor for each byte of device memory
    that they free; parts of this order, from nothing to everything, and all of
    one kind are scheduled, and the fastest that fits is taken. Without a budget
    nothing moves.

    Where host memory does not suffice and there is a disk, what keeps the disk
    busy for the fewest seconds goes there.

    The module gets `zero.offload_rules` and, as a sentence,
    `zero.offload_choice`, which is also a remark of the category
    `zero-choose-offload`. `zero-compile --offload auto` does the same with
    whole plans.

    ```mlir
    module attributes {zero.stage = 2 : i64} {
    zero.state @h.0.w.exp_avg of @h.0.w : !zero.sharded<64x64xf32, @dp, dim = 0> zeros
    // zero-choose-offload{memory=100000}
    module attributes {zero.stage = 2 : i64,
      zero.offload_rules = ["optimizer@h.0.w=host"],
      zero.offload_choice = "offloading m, v of layer 0 saves 16.0 KiB, costs 3.0 % of the step"} {
    zero.state @h.0.w.exp_avg of @h.0.w : !zero.sharded<64x64xf32, @dp, dim = 0, mem = host> zeros
    ```
  }];
  let options = [
    Schedule_MemoryOption, Schedule_MachineOption,
    Option<"hostMemory", "host-memory", "int64_t", "::mlir::zero::kUnsetMemory",
      "Most bytes of one rank that live in host memory; -1 for no limit">,
    Option<"disk", "disk", "bool", "false", "There is a disk to use">];
  let dependentDialects = ["::mlir::zero::ZeroDialect"];
}

#endif // ZERO_SCHEDULE_PASSES_TD
