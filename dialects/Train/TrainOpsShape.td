//===- TrainOpsShape.td - shapes and reductions ------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations that rearrange, select or reduce elements along axes.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSSHAPE_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSSHAPE_TD

include "dialects/Train/TrainDialect.td"

//===----------------------------------------------------------------------===//
// Shape operations
//===----------------------------------------------------------------------===//

def Train_ShapeOps : OpDocGroup {
  let summary = "Shape operations";
  let description = [{
    They move elements and compute nothing. All shapes and positions are
    attributes.
  }];
}

let opDocGroup = Train_ShapeOps in {

class Train_ShapeOp<string mnemonic, list<Trait> traits = []>
    : Train_InferOp<mnemonic, !listconcat(traits, [Differentiable])> {
  let results = (outs Train_AnyTensor:$result);
}

def Train_ReshapeOp : Train_ShapeOp<"reshape", [CostNothing]> {
  let summary = "Same elements in row-major order, another shape";
  let description = [{
    The number of elements stays the same.

    ```mlir
    %y = train.reshape %x : tensor<8x4x16xf32> to tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$input, DenseI64ArrayAttr:$shape);
  let assemblyFormat = [{
    $input attr-dict `:` custom<ShapeTypes>(type($input), type($result), $shape)
  }];
  let hasFolder = 1;
}

def Train_BroadcastOp : Train_ShapeOp<"broadcast", [CostNothing]> {
  let summary = "Repeat elements to a larger shape";
  let description = [{
    Repeats dimensions of 1 and adds leading dimensions, by numpy's rules, until
    the tensor has the given shape.

    ```mlir
    %y = train.broadcast %x : tensor<1x16xf32> to tensor<4x8x16xf32>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$input, DenseI64ArrayAttr:$shape);
  let assemblyFormat = [{
    $input attr-dict `:` custom<ShapeTypes>(type($input), type($result), $shape)
  }];
  let hasFolder = 1;
}

def Train_TransposeOp : Train_ShapeOp<"transpose", [CostNothing]> {
  let summary = "Permute dimensions";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of the operand.

    ```mlir
    %y = train.transpose %x [0, 2, 1]
        : (tensor<8x4x16xf32>) -> tensor<8x16x4xf32>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$input, DenseI64ArrayAttr:$permutation);
  let assemblyFormat = [{
    $input $permutation attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Train_SliceOp : Train_ShapeOp<"slice", [CostNothing]> {
  let summary = "Every stride-th element between start and limit";
  let description = [{
    One number per dimension; the limit is exclusive, `0 <= start <= limit <=
    size`, and strides are positive.

    ```mlir
    %y = train.slice %x starts [0, 0] limits [8, 64] strides [1, 2]
        : (tensor<8x64xf32>) -> tensor<8x32xf32>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$input, DenseI64ArrayAttr:$starts,
                       DenseI64ArrayAttr:$limits, DenseI64ArrayAttr:$strides);
  let assemblyFormat = [{
    $input `starts` $starts `limits` $limits `strides` $strides attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Train_ConcatOp : Train_ShapeOp<"concat", [SameOperandsElementType]> {
  let summary = "Join tensors along an axis";
  let description = [{
    The other dimensions are equal.

    ```mlir
    %y = train.concat %a, %b axis 1
        : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<8x6xf32>
    ```
  }];
  let arguments = (ins Variadic<Train_AnyTensor>:$inputs, I64Attr:$axis);
  let assemblyFormat = [{
    $inputs `axis` $axis attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Train_PadOp : Train_ShapeOp<"pad"> {
  let summary = "Surround and interleave with zeros";
  let description = [{
    Adds `low` zeros before and `high` zeros after each dimension and `interior`
    zeros between neighbours; none is negative. The gradient of `slice`.

    ```mlir
    %y = train.pad %x low [0, 1] high [0, 1] interior [0, 0]
        : (tensor<8x4xf32>) -> tensor<8x6xf32>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$input, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior);
  let assemblyFormat = [{
    $input `low` $low `high` $high `interior` $interior attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Train_GatherOp : Train_ShapeOp<"gather", [ComputedCost]> {
  let summary = "Select slices along an axis by index";
  let description = [{
    ONNX Gather, and the embedding lookup: the dimension `axis` of `data` is
    replaced by the dimensions of `indices`. A negative index counts from the
    end.

    ```mlir
    %y = train.gather %table, %tokens axis 0
        : (tensor<100x16xf32>, tensor<4x8xi64>) -> tensor<4x8x16xf32>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$data, Train_IndexTensor:$indices,
                       I64Attr:$axis);
  let assemblyFormat = [{
    $data `,` $indices `axis` $axis attr-dict `:`
    functional-type(operands, results)
  }];
}

def Train_GatherGradOp : Train_InferOp<"gather_grad", [
    Differentiable, ComputedCost
  ]> {
  let summary = "Gradient of gather by its data";
  let description = [{
    Adds each slice of `grad` to the slice of a zero tensor of `data_shape`
    that it was taken from, in the row-major order of `indices`.

    ```mlir
    %dtable = train.gather_grad %dy, %tokens axis 0 data_shape [100, 16]
        : (tensor<4x8x16xf32>, tensor<4x8xi64>) -> tensor<100x16xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_IndexTensor:$indices,
                       I64Attr:$axis, DenseI64ArrayAttr:$data_shape);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $grad `,` $indices `axis` $axis `data_shape` $data_shape attr-dict `:`
    functional-type(operands, results)
  }];
}

}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def Train_ReductionOps : OpDocGroup {
  let summary = "Reductions";
  let description = [{
    Combine the elements along `axes` (distinct and ascending); with `keepdims`
    the reduced dimensions stay as 1, otherwise they disappear. Without axes the
    operand is returned as it is.
  }];
}

let opDocGroup = Train_ReductionOps in {

class Train_ReduceOp<string mnemonic, Type tensor>
    : Train_InferOp<mnemonic, [Differentiable, CostPerElement<1>]> {
  let arguments = (ins tensor:$input, DenseI64ArrayAttr:$axes,
                       UnitAttr:$keepdims);
  let results = (outs tensor:$result);
  let assemblyFormat = [{
    $input `axes` $axes attr-dict `:` functional-type(operands, results)
  }];
}

def Train_ReduceSumOp : Train_ReduceOp<"reduce_sum", Train_NumberTensor> {
  let summary = "Sum along axes";
  let description = [{
    The sum of no elements is 0.

    ```mlir
    %y = train.reduce_sum %x axes [0]
        : (tensor<8x10xf32>) -> tensor<10xf32>
    ```
  }];
}

def Train_ReduceMeanOp : Train_ReduceOp<"reduce_mean", Train_FloatTensor> {
  let summary = "Mean along axes";
  let description = [{
    The sum divided by the number of elements.

    ```mlir
    %y = train.reduce_mean %x axes [1] {keepdims}
        : (tensor<8x10xf32>) -> tensor<8x1xf32>
    ```
  }];
}

def Train_ReduceMaxOp : Train_ReduceOp<"reduce_max", Train_NumberTensor> {
  let summary = "Largest element along axes";
  let description = [{
    Equal largest elements share the gradient evenly. The reduced dimensions are
    not empty.

    ```mlir
    %y = train.reduce_max %x axes [1]
        : (tensor<8x10xf32>) -> tensor<8xf32>
    ```
  }];
}

def Train_ReduceMinOp : Train_ReduceOp<"reduce_min", Train_NumberTensor> {
  let summary = "Smallest element along axes";
  let description = [{
    Equal smallest elements share the gradient evenly. The reduced dimensions
    are not empty.

    ```mlir
    %y = train.reduce_min %x axes [1]
        : (tensor<8x10xf32>) -> tensor<8xf32>
    ```
  }];
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSSHAPE_TD
