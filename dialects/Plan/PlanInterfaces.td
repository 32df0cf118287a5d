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
      "::llvm::SmallVector<::mlir::Value>", "getWrittenBuffers">
  ];
}

#endif // DIALECTS_PLAN_PLANINTERFACES_TD
