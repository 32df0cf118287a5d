//===- ZeroTypes.td - types of the zero dialect ------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The type of state at rest, the type of a collective in flight, and the
// memory spaces.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TYPES_TD
#define ZERO_TYPES_TD

include "dialects/Zero/ZeroDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/EnumAttr.td"

def Zero_Memory : I32Enum<"Memory", "where state at rest lives", [
    I32EnumCase<"Device", 0, "device">,
    I32EnumCase<"Host", 1, "host">,
    I32EnumCase<"Disk", 2, "disk">]> {
  let cppNamespace = "::mlir::zero";
}

def Zero_MemoryAttr : EnumAttr<Zero_Dialect, Zero_Memory, "memory"> {
  let summary = "memory space: device, host or disk";
  let description = "Example: `zero.transfer %g from device to host : (tensor<4xf32>) -> tensor<4xf32>`.";
}

class Zero_Type<string name, string typeMnemonic> : TypeDef<Zero_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Zero_ShardedType : Zero_Type<"Sharded", "sharded"> {
  let summary = "state at rest, split over the ranks of a grid";
  let description = [{
    A tensor of which each rank holds one chunk. The logical shape is kept; the
    dimension `dim` is cut in chunks of ceil(d/N) rows over the N ranks of the
    grid's `axes` (default `[0]`). `mem` says where the chunks live: `device`
    (default), `host` or `disk`. Types that differ only in `mem` are joined by
    `zero.transfer`. With `axes = []` nothing is cut and each rank holds the
    whole tensor: state that is not partitioned but lies outside device memory.

    Example:

    ```mlir
    !zero.sharded<10x64xf32, @dp, dim = 0>
    !zero.sharded<10x64xf32, @hsdp, axes = [1], dim = 0, mem = host>
    !zero.sharded<10x64xf32, @dp, axes = [], dim = 0, mem = host>
    ```

    A tensor encoding would not do: upstream passes drop encodings. A flat 1-D
    buffer would not do either: it loses the parameter's shape, which
    checkpoints, norms and layer-wise optimizers need.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t", "logical shape">:$shape,
    "::mlir::Type":$elementType,
    "::mlir::FlatSymbolRefAttr":$grid,
    ArrayRefParameter<"int64_t", "grid axes that split">:$axes,
    "int64_t":$dim,
    "::mlir::zero::Memory":$mem
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$logical,
      "::mlir::FlatSymbolRefAttr":$grid, CArg<"int64_t", "0">:$dim,
      CArg<"::mlir::zero::Memory", "::mlir::zero::Memory::Device">:$mem,
      CArg<"::llvm::ArrayRef<int64_t>", "{0}">:$axes), [{
      return $_get(logical.getContext(), logical.getShape(),
                   logical.getElementType(), grid, axes, dim, mem);
    }]>
  ];
  let extraClassDeclaration = [{
    /// The whole tensor, as compute sees it once gathered.
    ::mlir::RankedTensorType getLogicalType() const {
      return ::mlir::RankedTensorType::get(getShape(), getElementType());
    }
    /// What one of `ranks` ranks holds: ceil(d/ranks) rows, padding included.
    ::mlir::RankedTensorType getLocalType(int64_t ranks) const;
    /// The same chunk in another memory space.
    ShardedType withMemory(::mlir::zero::Memory mem) const;
  }];
}

def Zero_FutureType : Zero_Type<"Future", "future"> {
  let summary = "the results of a collective or transfer in flight";
  let description = [{
    What a `_start` op yields: the values listed will exist once `zero.wait`
    has returned. A future is awaited exactly once.

    Example: `!zero.future<tensor<128x64xf32>, tensor<128xf32>>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Type", "awaited types">:$types);
  let assemblyFormat = "`<` $types `>`";
  let genVerifyDecl = 1;
}

#endif // ZERO_TYPES_TD
