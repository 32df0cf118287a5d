//===- PlanInterfaces.td - Interfaces of the plan dialect --*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_PLAN_PLANINTERFACES_TD
#define DIALECTS_PLAN_PLANINTERFACES_TD

include "mlir/IR/OpBase.td"

def Plan_CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let description = [{
    An op that the runtime executes: it reads some buffers and writes others,
    on one stream, after the events it waits for. Allocation, verification and
    export need to know no more of a command than this interface says.

    ```mlir
    plan.launch @sgd(%p, %g, %lr) writes [0] : memref<4xf32>, memref<4xf32>, memref<f32>
    // reads: %p, %g, %lr; writes: %p
    ```
  }];
  let cppNamespace = "::mlir::plan";
  let methods = [
    InterfaceMethod<"Buffers whose contents the command uses.",
      "::llvm::SmallVector<::mlir::Value>", "getReadBuffers">,
    InterfaceMethod<"Buffers the command writes (some may be read as well).",
      "::llvm::SmallVector<::mlir::Value>", "getWrittenBuffers">,
    InterfaceMethod<"The stream it runs on.",
      "::llvm::StringRef", "getStreamName", (ins),
      [{ return $_op.getStream().value_or(kComputeStream); }]>,
    InterfaceMethod<"Puts it on another stream.",
      "void", "setStreamName", (ins "::llvm::StringRef":$name),
      [{ $_op.setStream(name); }]>,
    InterfaceMethod<"Events that must have happened before it begins.",
      "::mlir::OperandRange", "getWaitEvents", (ins),
      [{ return $_op.getWait(); }]>,
    InterfaceMethod<"The event that its end is, or null.",
      "::mlir::Value", "getSignalEvent", (ins),
      [{ return $_op.getSignal(); }]>,
    InterfaceMethod<"Makes it wait for one more event.",
      "void", "addWaitEvent", (ins "::mlir::Value":$event),
      [{ $_op.getWaitMutable().append(event); }]>,
    InterfaceMethod<"Removes the event it waits for at `index`.",
      "void", "eraseWaitEvent", (ins "unsigned":$index),
      [{ $_op.getWaitMutable().erase(index); }]>,
    InterfaceMethod<"Makes its end `event`, or no event if that is null.",
      "void", "setSignalEvent", (ins "::mlir::Value":$event),
      [{
        if (event)
          $_op.getSignalMutable().assign(event);
        else
          $_op.getSignalMutable().clear();
      }]>
  ];
}

def Plan_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let description = [{
    A command in which the ranks of some grid axes take part: every rank issues
    it, and none is done before all have.

    ```mlir
    plan.all_reduce %g -> %g average elements [64] chunks [64] axes [0]
      label("fc.weight") : memref<8x8xf32> -> memref<8x8xf32>
    ```
  }];
  let cppNamespace = "::mlir::plan";
  let methods = [
    InterfaceMethod<"Buffers that hold what a rank puts in.",
      "::mlir::OperandRange", "getSourceBuffers", (ins),
      [{ return $_op.getSources(); }]>,
    InterfaceMethod<"Buffers for what a rank gets out.",
      "::mlir::OperandRange", "getTargetBuffers", (ins),
      [{ return $_op.getTargets(); }]>,
    InterfaceMethod<"Elements of the whole tensors.",
      "::llvm::ArrayRef<int64_t>", "getWholeElements", (ins),
      [{ return $_op.getElements(); }]>,
    InterfaceMethod<"Elements of a rank's part of them.",
      "::llvm::ArrayRef<int64_t>", "getChunkElements", (ins),
      [{ return $_op.getChunks(); }]>,
    InterfaceMethod<"Grid axes that it spans; empty for all.",
      "::llvm::ArrayRef<int64_t>", "getSpannedAxes", (ins),
      [{ return $_op.getAxes().value_or(::llvm::ArrayRef<int64_t>()); }]>,
    InterfaceMethod<"What the bucket holds, for people.",
      "::llvm::StringRef", "getBucketLabel", (ins),
      [{ return $_op.getLabel().value_or(""); }]>
  ];
}

#endif // DIALECTS_PLAN_PLANINTERFACES_TD
