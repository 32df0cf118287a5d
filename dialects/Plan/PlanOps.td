//===- PlanOps.td - The plan dialect -----------------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One straight-line SPMD program, about one op per command of the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_PLAN_PLANOPS_TD
#define DIALECTS_PLAN_PLANOPS_TD

include "dialects/Plan/PlanInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Dialect
//===----------------------------------------------------------------------===//

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::mlir::plan";
  let summary = "an executable training step: arenas, buffers, commands";
  let description = [{
    `plan` is the last of the three dialects:

    ```
    train ── --zero-* ──▶ train + zero ── --plan-* ──▶ plan ── zero-compile ──▶ step.zplan
    ```

    A `plan.program` is one straight-line program that every rank runs. Memory
    is a few arenas; a `plan.buffer` is a range of bytes in one of them and a
    `plan.view` is a shape over a buffer. Commands (`plan.launch`, `plan.call`,
    the collectives, `plan.copy`, `plan.fill`) run in order on their stream;
    `plan.event`s order streams among each other. What the program says is what
    happens: nothing is allocated, chosen or reordered later.

    ```mlir
    plan.program @step ranks(4) {
      %dev = plan.arena device bytes(1152)
      %p = plan.buffer %dev[0] parameter : memref<8x8xf32>
      %g = plan.buffer %dev[256] gradient : memref<8x8xf32>
      %lr = plan.buffer %dev[512] input : memref<f32>
      plan.parameter "fc.weight" %p trained : memref<8x8xf32>
      plan.input "lr" %lr learning_rate : memref<f32>
      plan.all_reduce %g -> %g average elements [64] chunks [64]
        : memref<8x8xf32> -> memref<8x8xf32>
      plan.launch @sgd(%p, %g, %lr) writes [0]
        : memref<8x8xf32>, memref<8x8xf32>, memref<f32>
    }
    ```

    `plan.dispatch` is the one op at tensor level: a call of an outlined kernel
    in a step function that is not lowered yet.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Plan_Type<string name, string keyword> : TypeDef<Plan_Dialect, name> {
  let mnemonic = keyword;
}

def Plan_ArenaType : Plan_Type<"Arena", "arena"> {
  let summary = "memory of one space that a rank holds for the whole run";
  let description = [{
    ```mlir
    %dev = plan.arena device bytes(4096)   // %dev : !plan.arena
    ```
  }];
}

def Plan_EventType : Plan_Type<"Event", "event"> {
  let summary = "a point on a stream that commands of other streams wait for";
  let description = [{
    ```mlir
    %e = plan.event                        // %e : !plan.event
    plan.copy %a -> %b stream("copy") signal(%e) : memref<4xf32> -> memref<4xf32>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Plan_Enum<string name, string doc, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, doc, cases> {
  let cppNamespace = "::mlir::plan";
  let genSpecializedAttr = 0;
}
class Plan_EnumAttr<EnumInfo info, string keyword>
    : EnumAttr<Plan_Dialect, info, keyword> {
  let assemblyFormat = "`` $value"; // no second space before the keyword
}

// Where an arena lies.
def Plan_Space : Plan_Enum<"Space", "memory space of an arena", [
  I32EnumAttrCase<"Device", 0, "device">,   // the accelerator; the host backend's main memory
  I32EnumAttrCase<"Host", 1, "host">,       // pinned host memory
  I32EnumAttrCase<"Disk", 2, "disk">        // a file
]>;

// What a buffer holds; memory is reported by kind. Same numbers as zplan.fbs.
def Plan_Kind : Plan_Enum<"Kind", "what a buffer holds", [
  I32EnumAttrCase<"Parameter", 0, "parameter">,       // values at rest
  I32EnumAttrCase<"OptimizerState", 1, "state">,      // momentum, moments
  I32EnumAttrCase<"Gradient", 2, "gradient">,         // kept until the update
  I32EnumAttrCase<"Gathered", 3, "gathered">,         // a parameter gathered for use
  I32EnumAttrCase<"Activation", 4, "activation">,     // any other tensor of the step
  I32EnumAttrCase<"Input", 5, "input">,               // data, labels, hyperparameters
  I32EnumAttrCase<"Constant", 6, "constant">,         // filled when loaded
  I32EnumAttrCase<"Persistent", 7, "persistent">      // running statistics
]>;

def Plan_ParamRole : Plan_Enum<"ParamRole", "role of a named tensor that outlives the step", [
  I32EnumAttrCase<"Trained", 0, "trained">,           // updated by the optimizer
  I32EnumAttrCase<"Frozen", 1, "frozen">,             // never updated
  I32EnumAttrCase<"State", 2, "state">,               // of the optimizer
  I32EnumAttrCase<"Buffer", 3, "buffer">,             // updated by the step, per rank
  I32EnumAttrCase<"Accumulator", 4, "accumulator">    // gradients of micro-batches, zero between steps
]>;

def Plan_InputRole : Plan_Enum<"InputRole", "where an input's value comes from", [
  I32EnumAttrCase<"Data", 0, "data">,                 // the data set
  I32EnumAttrCase<"LearningRate", 1, "learning_rate">,
  I32EnumAttrCase<"Step", 2, "step">,                 // number of the step, from 1
  I32EnumAttrCase<"Seed", 3, "seed">,                 // of random numbers
  I32EnumAttrCase<"FirstSample", 4, "first_sample">   // number in the run of the rank's first
]>;

def Plan_AcrossRanks : Plan_Enum<"AcrossRanks", "how values of ranks become one", [
  I32EnumAttrCase<"Same", 0, "same">,                 // equal on all ranks
  I32EnumAttrCase<"Mean", 1, "mean">,
  I32EnumAttrCase<"Sum", 2, "sum">
]>;

def Plan_SpaceAttr : Plan_EnumAttr<Plan_Space, "space"> {
  let summary = "memory space: device, host or disk";
  let description = "Example: `plan.arena host bytes(64)`.";
}
def Plan_KindAttr : Plan_EnumAttr<Plan_Kind, "kind"> {
  let summary = "what a buffer holds";
  let description = "Example: `plan.buffer %dev[0] gradient : memref<4xf32>`.";
}
def Plan_ParamRoleAttr : Plan_EnumAttr<Plan_ParamRole, "param_role"> {
  let summary = "role of a parameter";
  let description = "Example: `plan.parameter \"w\" %p frozen : memref<4xf32>`.";
}
def Plan_InputRoleAttr : Plan_EnumAttr<Plan_InputRole, "input_role"> {
  let summary = "source of an input";
  let description = "Example: `plan.input \"x\" %x data : memref<8x4xf32>`.";
}
def Plan_AcrossRanksAttr : Plan_EnumAttr<Plan_AcrossRanks, "across_ranks"> {
  let summary = "combination of an output over ranks";
  let description = "Example: `plan.output \"loss\" %l mean : memref<f32>`.";
}

//===----------------------------------------------------------------------===//
// Kernels at tensor level
//===----------------------------------------------------------------------===//

class Plan_Op<string mnemonic, list<Trait> traits = []>
    : Op<Plan_Dialect, mnemonic, traits>;

def Plan_DispatchOp : Plan_Op<"dispatch", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "call of an outlined kernel on tensors";
  let description = [{
    Calls a `func.func` that carries `plan.kernel`. `tied[i]` names the operand
    whose storage result `i` takes over, -1 for none: an optimizer's update runs
    in place.

    ```mlir
    %p1, %m1 = plan.dispatch @sgd(%p, %g, %m, %lr) tied [0, 2]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
      -> (tensor<4xf32>, tensor<4xf32>)
    ```

    Constraints: the kernel exists and has the same type; one entry of `tied`
    per result; a tied operand has its result's type, and is tied once.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       Variadic<AnyRankedTensor>:$inputs,
                       DenseI64ArrayAttr:$tied);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `tied` $tied attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// The program and its memory
//===----------------------------------------------------------------------===//

def Plan_ProgramOp : Plan_Op<"program", [
    IsolatedFromAbove, NoTerminator, SingleBlock, Symbol, NoRegionArguments]> {
  let summary = "the program that every rank runs";
  let description = [{
    ```mlir
    plan.program @step ranks(4) {
      %dev = plan.arena device bytes(64)
      %b = plan.buffer %dev[0] activation : memref<16xf32>
      plan.fill %b : memref<16xf32>
    }
    ```

    `grid` is the shape of the ranks where it has more than one axis, row-major:
    state is sharded over the last axis and replicated over the others.
    `window`, set by `plan-allocate`, is the most bytes of gathered parameters
    that are alive at one time. `budget` is the device memory that the program
    was made for. `order` is a fingerprint of the commands of each stream and of
    what is done when each begins: ranks that run programs of one fingerprint
    cannot wait for each other forever, and an edit of the order is noticed.
    With `micro_batches`, the commands before `plan.micro_batch_end` run once for
    each micro-batch but the last, those after it once for the last one and the
    update.

    ```mlir
    plan.program @step ranks(32) grid [4, 8] budget(80000000000) { ... }
    ```

    Constraints: at least one rank; the grid's axes multiply to the ranks; the
    body holds plan ops only; `plan.micro_batch_end` is there exactly when there
    are several micro-batches.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$ranks,
                       OptionalAttr<DenseI64ArrayAttr>:$grid,
                       OptionalAttr<I64Attr>:$window,
                       OptionalAttr<I64Attr>:$budget,
                       OptionalAttr<I64Attr>:$order,
                       DefaultValuedAttr<I64Attr, "1">:$micro_batches);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `ranks` `(` $ranks `)` (`grid` $grid^)?
    (`window` `(` $window^ `)`)? (`budget` `(` $budget^ `)`)?
    (`order` `(` $order^ `)`)? (`micro_batches` `(` $micro_batches^ `)`)?
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// Sizes of the grid's axes: the ranks, where there is one axis.
    ::llvm::SmallVector<int64_t> getGridShape();
    /// Parts of state and views that name no other number: the last axis.
    int64_t getShards() { return getGridShape().back(); }
    /// Whether state may be cut in so many parts: over the last axis, or all.
    bool hasShards(int64_t count) {
      return count == getShards() || count == static_cast<int64_t>(getRanks());
    }
    /// Ranks that a collective over `axes` (empty: all) spans.
    int64_t getGroupSize(::llvm::ArrayRef<int64_t> axes);
  }];
  let hasVerifier = 1;
}

def Plan_ArenaOp : Plan_Op<"arena", [HasParent<"ProgramOp">]> {
  let summary = "memory of one space, held for the whole run";
  let description = [{
    `bytes` is what one rank holds and `lower_bound` the most bytes alive at one
    time; both are absent until `plan-allocate` has run. `budget` is the memory of
    this space that the program was made for; that of the device stands in the
    program.

    ```mlir
    %dev = plan.arena device bytes(86016) lower_bound(86000)
    %host = plan.arena host bytes(4096) lower_bound(4096) budget(1000000)
    ```

    Constraints: `bytes` is not negative.
  }];
  let arguments = (ins Plan_SpaceAttr:$space, OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<I64Attr>:$lower_bound,
                       OptionalAttr<I64Attr>:$budget);
  let results = (outs Plan_ArenaType:$arena);
  let assemblyFormat = [{
    $space (`bytes` `(` $bytes^ `)`)? (`lower_bound` `(` $lower_bound^ `)`)?
    (`budget` `(` $budget^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_BufferOp : Plan_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "a range of bytes in an arena";
  let description = [{
    The buffer starts at the byte offset in brackets (absent until
    `plan-allocate` has run) and is as large as its type, or `capacity` bytes
    where a collective pads it to whole chunks. `padding` counts the bytes that
    hold no element of the model, summed over all ranks.

    ```mlir
    %w = plan.buffer %dev[16384] gathered capacity(6144) : memref<10x128xf32>
    %s = plan.buffer %dev[22528] parameter padding(1024) : memref<3x128xf32>
    ```

    Constraints: static, contiguous type; offset and capacity lie in the arena;
    capacity holds the type.
  }];
  let arguments = (ins Plan_ArenaType:$arena, OptionalAttr<I64Attr>:$offset,
                       Plan_KindAttr:$kind, OptionalAttr<I64Attr>:$capacity,
                       OptionalAttr<I64Attr>:$padding);
  let results = (outs AnyStaticShapeMemRef:$buffer);
  let assemblyFormat = [{
    $arena (`[` $offset^ `]`)? $kind (`capacity` `(` $capacity^ `)`)?
    (`padding` `(` $padding^ `)`)?
    attr-dict `:` type($buffer)
  }];
  let extraClassDeclaration = [{
    /// Bytes of the buffer in its arena: the capacity, or the type's size.
    int64_t getBytes();
    /// The memory space of its arena.
    Space getSpace();
  }];
  let hasVerifier = 1;
}

def Plan_ViewOp : Plan_Op<"view", [HasParent<"ProgramOp">, Pure]> {
  let summary = "another shape over a buffer";
  let description = [{
    Starts `offset + r * rank_stride` elements into the source, where r is the
    rank's place on the last axis of the grid, or `rank % shards` where `shards`
    is given. The result may be strided (a transposed operand of a library call)
    and has no storage of its own.

    ```mlir
    // The own shard of a replicated parameter.
    %own = plan.view %w[0] rank_stride(2048) : memref<128x64xf32> to memref<32x64xf32>
    // A transposed operand.
    %t = plan.view %a[0] : memref<8x4xf32> to memref<4x8xf32, strided<[1, 4]>>
    ```

    Constraints: same element type; every element lies in the source's buffer;
    `shards` is the size of the last axis or the number of ranks.
  }];
  let arguments = (ins AnyStaticShapeMemRef:$source,
                       DefaultValuedAttr<I64Attr, "0">:$offset,
                       DefaultValuedAttr<I64Attr, "0">:$rank_stride,
                       OptionalAttr<I64Attr>:$shards);
  let results = (outs AnyStaticShapeMemRef:$result);
  let assemblyFormat = [{
    $source `[` $offset `]` (`rank_stride` `(` $rank_stride^ `)`)?
    (`shards` `(` $shards^ `)`)? attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Plan_ConstantOp : Plan_Op<"constant", [HasParent<"ProgramOp">]> {
  let summary = "contents of a buffer, written when the program is loaded";
  let description = [{
    ```mlir
    plan.constant %mask, dense<[true, false]> : tensor<2xi1> : memref<2xi1>
    ```

    Constraints: value and buffer have the same shape and element type.
  }];
  let arguments = (ins Arg<AnyStaticShapeMemRef, "", [MemWrite]>:$buffer, ElementsAttr:$value);
  let assemblyFormat = "$buffer `,` $value attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Plan_ParameterOp : Plan_Op<"parameter", [HasParent<"ProgramOp">]> {
  let summary = "a named tensor that outlives the step";
  let description = [{
    Binds a name to the buffer that holds it between steps. `shape` is the
    logical shape where the buffer holds a shard: the r-th rank of the grid's
    last axis has rows [r * rows of the buffer, …) of dimension 0, rows past the
    end are zero. With `shards`, r is `rank % shards` instead.

    ```mlir
    plan.parameter "fc2.weight" %s trained shape [10, 128] init("w.safetensors")
      : memref<3x128xf32>
    plan.parameter "fc2.weight.momentum" %m state of("fc2.weight") shape [10, 128]
      : memref<3x128xf32>
    ```

    A state without `of` belongs to the step itself, as the loss scale does; it
    may start from a `value`. An accumulator is zero between steps and is never
    saved; one without `of` is each rank's own.

    ```mlir
    plan.parameter "loss_scale" %s state value(dense<65536.0> : tensor<f32>) : memref<f32>
    plan.parameter "fc2.weight.grad" %g accumulator of("fc2.weight") shape [10, 128]
      : memref<3x128xf32>
    ```

    Constraints: only a state and an accumulator may have `of`; the shards cover
    the logical shape; `shards` is the size of the last axis or the number of
    ranks; at most one of `init`, `ones` and `value`, and none for an
    accumulator; a value has the logical shape and the element type.
  }];
  let arguments = (ins StrAttr:$name, AnyStaticShapeMemRef:$buffer,
                       Plan_ParamRoleAttr:$role, OptionalAttr<StrAttr>:$of,
                       OptionalAttr<DenseI64ArrayAttr>:$shape,
                       OptionalAttr<I64Attr>:$shards,
                       OptionalAttr<StrAttr>:$init_file,
                       OptionalAttr<StrAttr>:$init_tensor, UnitAttr:$ones,
                       OptionalAttr<ElementsAttr>:$value,
                       OptionalAttr<StrArrayAttr>:$tied);
  let assemblyFormat = [{
    $name $buffer $role (`of` `(` $of^ `)`)? (`shape` $shape^)?
    (`shards` `(` $shards^ `)`)? (`init` `(` $init_file^ (`,` $init_tensor^)? `)`)? (`ones` $ones^)?
    (`value` `(` $value^ `)`)? (`tied` $tied^)? attr-dict `:` type($buffer)
  }];
  let hasVerifier = 1;
}

def Plan_InputOp : Plan_Op<"input", [HasParent<"ProgramOp">]> {
  let summary = "a value the runtime writes before each step";
  let description = [{
    `bounds` are the least and greatest integer allowed, `ignore` one more that
    is (a label that does not count).

    ```mlir
    plan.input "labels" %y data bounds [0, 9] ignore(-100) : memref<8xi64>
    ```

    Constraints: `bounds` holds two integers in order, for integers only.
  }];
  let arguments = (ins StrAttr:$name, Arg<AnyStaticShapeMemRef, "", [MemWrite]>:$buffer,
                       Plan_InputRoleAttr:$role,
                       OptionalAttr<DenseI64ArrayAttr>:$bounds,
                       OptionalAttr<I64Attr>:$ignore);
  let assemblyFormat = [{
    $name $buffer $role (`bounds` $bounds^)? (`ignore` `(` $ignore^ `)`)?
    attr-dict `:` type($buffer)
  }];
  let hasVerifier = 1;
}

def Plan_OutputOp : Plan_Op<"output", [HasParent<"ProgramOp">]> {
  let summary = "a value the runtime reads after each step";
  let description = [{
    ```mlir
    plan.output "loss" %loss mean : memref<f32>
    ```
  }];
  let arguments = (ins StrAttr:$name, AnyStaticShapeMemRef:$buffer,
                       Plan_AcrossRanksAttr:$across);
  let assemblyFormat = "$name $buffer $across attr-dict `:` type($buffer)";
}

def Plan_EventOp : Plan_Op<"event", [HasParent<"ProgramOp">]> {
  let summary = "an event that orders streams";
  let description = [{
    ```mlir
    %e = plan.event
    plan.all_gather %s -> %w elements [64] chunks [16] stream("gather") signal(%e)
      : memref<4x4xf32> -> memref<16x4xf32>
    plan.launch @relu(%w, %a) writes [1] wait(%e) : memref<16x4xf32>, memref<16x4xf32>
    ```

    Constraints: signalled by exactly one command, before any command waits.
  }];
  let results = (outs Plan_EventType:$event);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

// What all commands share: a stream, events, a place in the order.
class Plan_Command<string mnemonic, list<Trait> traits = []>
    : Plan_Op<mnemonic, traits # [HasParent<"ProgramOp">, AttrSizedOperandSegments,
        MemoryEffects<[MemRead, MemWrite]>,
        DeclareOpInterfaceMethods<Plan_CommandOpInterface>]> {
  dag sync = (ins OptionalAttr<StrAttr>:$stream, Variadic<Plan_EventType>:$wait,
                  Optional<Plan_EventType>:$signal);
  string syncFormat = [{ (`stream` `(` $stream^ `)`)? (`wait` `(` $wait^ `)`)?
                         (`signal` `(` $signal^ `)`)? attr-dict }];
}

// A command on a list of buffers of which `writes` are written.
class Plan_CallLike<string mnemonic, list<Trait> traits = []>
    : Plan_Command<mnemonic, traits> {
  let arguments = !con((ins FlatSymbolRefAttr:$callee,
                            Variadic<AnyStaticShapeMemRef>:$buffers,
                            DenseI64ArrayAttr:$writes), sync);
  let assemblyFormat = "$callee `(` $buffers `)` `writes` $writes" # syncFormat #
    " (`:` type($buffers)^)?";
  let hasVerifier = 1;
}

def Plan_LaunchOp : Plan_CallLike<"launch", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a compiled kernel";
  let description = [{
    The kernel is a `func.func` with `plan.kernel`; its buffers are passed in
    order. `writes` lists those it writes. With `host` it runs on the host's
    processor, on buffers in host memory.

    ```mlir
    plan.launch @sgd(%p, %g, %m, %lr) writes [0, 2]
      : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>
    plan.launch @adamw(%ph, %gh, %mh) writes [0, 2] host stream("host") wait(%e)
      : memref<4xf32>, memref<4xf32>, memref<4xf32>
    ```

    Constraints: the kernel exists; indices in `writes` are in range; buffers are
    in the memory of the processor that runs it.
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$callee,
                            Variadic<AnyStaticShapeMemRef>:$buffers,
                            DenseI64ArrayAttr:$writes, UnitAttr:$host), sync);
  let assemblyFormat = "$callee `(` $buffers `)` `writes` $writes (`host` $host^)?"
    # syncFormat # " (`:` type($buffers)^)?";
}

def Plan_CallOp : Plan_CallLike<"call"> {
  let summary = "calls a library function";
  let description = [{
    `matmul`, `conv`, `conv_grad_input`, `conv_grad_weight`, `attention` and
    `attention_grad`, on strided buffers; the last buffers are the results.
    Settings of the function are attributes of the op. An attention with the
    attribute `ratio` takes two scalars of i64 in front of its results: the key
    of its dropout and the number of the first sample.

    ```mlir
    plan.call @matmul(%a, %b, %c) writes [2]
      : memref<8x4xf32>, memref<4x2xf32>, memref<8x2xf32>
    ```

    Constraints: indices in `writes` are in range.
  }];
}

// A collective over the ranks of some axes on a bucket of buffers.
class Plan_Collective<string mnemonic>
    : Plan_Command<mnemonic, [DeclareOpInterfaceMethods<Plan_CollectiveOpInterface>]> {
  let arguments = !con((ins Variadic<AnyStaticShapeMemRef>:$sources,
                            Variadic<AnyStaticShapeMemRef>:$targets,
                            UnitAttr:$average, DenseI64ArrayAttr:$elements,
                            DenseI64ArrayAttr:$chunks,
                            OptionalAttr<DenseI64ArrayAttr>:$axes,
                            OptionalAttr<StrAttr>:$label), sync);
  let assemblyFormat = [{ $sources `->` $targets (`average` $average^)?
      `elements` $elements `chunks` $chunks (`axes` $axes^)?
      (`label` `(` $label^ `)`)? }] # syncFormat #
    " `:` type($sources) `->` type($targets)";
  let hasVerifier = 1;
  code common = [{
    `axes` are the axes of the program's grid that it spans, all if absent: the
    ranks that agree on the other axes form a group each. `label` names what the
    bucket holds, for people.

    Constraints: as many targets, `elements` and `chunks` as sources; a chunk is
    not negative and chunks of a group cover the elements; `axes` are axes of
    the grid in ascending order.
  }];
}

def Plan_AllGatherOp : Plan_Collective<"all_gather"> {
  let summary = "every rank's chunks become the whole, on every rank";
  let description = [{
    The source of the r-th rank of a group holds elements
    [r * chunk, (r + 1) * chunk) of `elements`.

    ```mlir
    plan.all_gather %s -> %w elements [1280] chunks [384]
      : memref<3x128xf32> -> memref<10x128xf32>
    ```
  }] # common;
}

def Plan_ReduceScatterOp : Plan_Collective<"reduce_scatter"> {
  let summary = "sums over ranks; every rank keeps its chunk";
  let description = [{
    Terms are added in the order of ranks; `average` divides by their number.
    Elements of the target past the end are zero.

    ```mlir
    plan.reduce_scatter %g -> %d average elements [1280] chunks [384]
      : memref<10x128xf32> -> memref<3x128xf32>
    ```
  }] # common;
}

def Plan_AllReduceOp : Plan_Collective<"all_reduce"> {
  let summary = "sums over ranks; every rank gets the whole";
  let description = [{
    Same order of terms as `plan.reduce_scatter`, so the same bits.

    ```mlir
    plan.all_reduce %g -> %g average elements [1280] chunks [1280]
      : memref<10x128xf32> -> memref<10x128xf32>
    ```
  }] # common;
}

def Plan_CopyOp : Plan_Command<"copy"> {
  let summary = "copies a buffer";
  let description = [{
    Between arenas of different spaces it is a transfer: device to host and back,
    or host to disk and back. `label` names what moves, for people.

    ```mlir
    plan.copy %a -> %b : memref<4xf32> -> memref<4xf32>
    plan.copy %g -> %gh label("gradient of fc.weight") stream("to_host") signal(%e)
      : memref<4xbf16> -> memref<4xbf16>
    ```

    Constraints: same element type and number of elements.
  }];
  let arguments = !con((ins AnyStaticShapeMemRef:$source,
                            AnyStaticShapeMemRef:$target,
                            OptionalAttr<StrAttr>:$label), sync);
  let assemblyFormat = "$source `->` $target (`label` `(` $label^ `)`)?" # syncFormat # " `:` type($source) `->` type($target)";
  let hasVerifier = 1;
}

def Plan_FillOp : Plan_Command<"fill"> {
  let summary = "sets a buffer to zero";
  let description = [{
    ```mlir
    plan.fill %a : memref<4xf32>
    ```
  }];
  let arguments = !con((ins AnyStaticShapeMemRef:$target), sync);
  let assemblyFormat = "$target" # syncFormat # " `:` type($target)";
}

def Plan_MicroBatchEndOp : Plan_Op<"micro_batch_end", [HasParent<"ProgramOp">,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the end of the commands of one micro-batch";
  let description = [{
    What stands before runs `micro_batches - 1` times, each time with new data,
    what stands after it once. All streams are done here.

    ```mlir
    plan.program @step ranks(4) micro_batches(8) {
      ...
      plan.launch @accumulate(%acc, %dw) writes [0] : memref<4xf32>, memref<4xf32>
      plan.micro_batch_end
      ...
    }
    ```

    Constraint: once in a program of several micro-batches.
  }];
  let assemblyFormat = "attr-dict";
}

def Plan_ReleaseOp : Plan_Command<"release"> {
  let summary = "ends the life of a gathered parameter";
  let description = [{
    Costs nothing at run time: its bytes belong to others from here on, and a
    checking runtime poisons them.

    ```mlir
    plan.release %w : memref<4xf32>
    ```
  }];
  let arguments = !con((ins AnyStaticShapeMemRef:$buffer), sync);
  let assemblyFormat = "$buffer" # syncFormat # " `:` type($buffer)";
}

#endif // DIALECTS_PLAN_PLANOPS_TD
