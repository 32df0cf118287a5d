//===- TrainOpsElementwise.td - elementwise operations ------*- tablegen -*-==//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations whose result elements are scalar functions of operand elements:
// unary, binary with numpy broadcasting, comparisons, logic, select and the
// gradient helpers of activations.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSELEMENTWISE_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSELEMENTWISE_TD

include "dialects/Train/TrainDialect.td"

//===----------------------------------------------------------------------===//
// Unary operations
//===----------------------------------------------------------------------===//

def Train_UnaryOps : OpDocGroup {
  let summary = "Unary operations";
  let description = [{
    One operand; the result has its type unless said otherwise. All carry the
    upstream `Elementwise` trait and `BroadcastElementwise`.
  }];
}

let opDocGroup = Train_UnaryOps in {

class Train_UnaryOp<string mnemonic, Type tensor, list<Trait> traits = [],
                    int flops = 1, int transcendentals = 0>
    : Train_Op<mnemonic, !listconcat(traits, [
        Elementwise, BroadcastElementwise, SameOperandsAndResultType,
        CostPerElement<flops, transcendentals>])> {
  let arguments = (ins tensor:$input);
  let results = (outs tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Train_NegOp : Train_UnaryOp<"neg", Train_NumberTensor, [Differentiable]> {
  let summary = "Negation";
  let description = [{
    `-x`.

    ```mlir
    %y = train.neg %x : tensor<8x10xf32>
    ```
  }];
}

def Train_AbsOp : Train_UnaryOp<"abs", Train_NumberTensor, [Differentiable]> {
  let summary = "Absolute value";
  let description = [{
    `|x|`. Its derivative at 0 is 0.

    ```mlir
    %y = train.abs %x : tensor<8x10xf32>
    ```
  }];
}

def Train_SignOp : Train_UnaryOp<"sign", Train_NumberTensor, [Differentiable]> {
  let summary = "Sign";
  let description = [{
    -1, 0 or 1. Not a number stays not a number. Its derivative is 0.

    ```mlir
    %y = train.sign %x : tensor<8x10xf32>
    ```
  }];
}

def Train_ExpOp : Train_UnaryOp<"exp", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Exponential";
  let description = [{
    `e^x`.

    ```mlir
    %y = train.exp %x : tensor<8x10xf32>
    ```
  }];
}

def Train_Expm1Op : Train_UnaryOp<"expm1", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Exponential less one";
  let description = [{
    `e^x - 1`, exact near 0.

    ```mlir
    %y = train.expm1 %x : tensor<8x10xf32>
    ```
  }];
}

def Train_LogOp : Train_UnaryOp<"log", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Natural logarithm";
  let description = [{
    `ln x`.

    ```mlir
    %y = train.log %x : tensor<8x10xf32>
    ```
  }];
}

def Train_Log1pOp : Train_UnaryOp<"log1p", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Logarithm of one more";
  let description = [{
    `ln(1 + x)`, exact near 0.

    ```mlir
    %y = train.log1p %x : tensor<8x10xf32>
    ```
  }];
}

def Train_SqrtOp : Train_UnaryOp<"sqrt", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Square root";
  let description = [{
    `x^0.5`.

    ```mlir
    %y = train.sqrt %x : tensor<8x10xf32>
    ```
  }];
}

def Train_RsqrtOp : Train_UnaryOp<"rsqrt", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Reciprocal square root";
  let description = [{
    `x^-0.5`.

    ```mlir
    %y = train.rsqrt %x : tensor<8x10xf32>
    ```
  }];
}

def Train_ReciprocalOp : Train_UnaryOp<"reciprocal", Train_FloatTensor, [Differentiable]> {
  let summary = "Reciprocal";
  let description = [{
    `1 / x`.

    ```mlir
    %y = train.reciprocal %x : tensor<8x10xf32>
    ```
  }];
}

def Train_ErfOp : Train_UnaryOp<"erf", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Gauss error function";
  let description = [{
    `2/sqrt(pi)` times the integral of `e^(-t*t)` from 0 to x.

    ```mlir
    %y = train.erf %x : tensor<8x10xf32>
    ```
  }];
}

def Train_TanhOp : Train_UnaryOp<"tanh", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Hyperbolic tangent";
  let description = [{
    `tanh x`.

    ```mlir
    %y = train.tanh %x : tensor<8x10xf32>
    ```
  }];
}

def Train_SigmoidOp : Train_UnaryOp<"sigmoid", Train_FloatTensor, [Differentiable], 3, 1> {
  let summary = "Logistic function";
  let description = [{
    `1 / (1 + e^-x)`.

    ```mlir
    %y = train.sigmoid %x : tensor<8x10xf32>
    ```
  }];
}

def Train_ReluOp : Train_UnaryOp<"relu", Train_FloatTensor, [Differentiable]> {
  let summary = "Rectified linear unit";
  let description = [{
    `max(x, 0)`; not a number stays not a number. Its derivative at 0 is 0.

    ```mlir
    %y = train.relu %x : tensor<8x10xf32>
    ```
  }];
}

def Train_SinOp : Train_UnaryOp<"sin", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Sine";
  let description = [{
    `sin x`, x in radians.

    ```mlir
    %y = train.sin %x : tensor<8x10xf32>
    ```
  }];
}

def Train_CosOp : Train_UnaryOp<"cos", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Cosine";
  let description = [{
    `cos x`, x in radians.

    ```mlir
    %y = train.cos %x : tensor<8x10xf32>
    ```
  }];
}

def Train_TanOp : Train_UnaryOp<"tan", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Tangent";
  let description = [{
    `tan x`, x in radians.

    ```mlir
    %y = train.tan %x : tensor<8x10xf32>
    ```
  }];
}

def Train_AsinOp : Train_UnaryOp<"asin", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Inverse sine";
  let description = [{
    The angle between `-pi/2` and `pi/2` whose sine is x.

    ```mlir
    %y = train.asin %x : tensor<8x10xf32>
    ```
  }];
}

def Train_AcosOp : Train_UnaryOp<"acos", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Inverse cosine";
  let description = [{
    The angle between 0 and `pi` whose cosine is x.

    ```mlir
    %y = train.acos %x : tensor<8x10xf32>
    ```
  }];
}

def Train_AtanOp : Train_UnaryOp<"atan", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Inverse tangent";
  let description = [{
    The angle between `-pi/2` and `pi/2` whose tangent is x.

    ```mlir
    %y = train.atan %x : tensor<8x10xf32>
    ```
  }];
}

def Train_SinhOp : Train_UnaryOp<"sinh", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Hyperbolic sine";
  let description = [{
    `(e^x - e^-x) / 2`.

    ```mlir
    %y = train.sinh %x : tensor<8x10xf32>
    ```
  }];
}

def Train_CoshOp : Train_UnaryOp<"cosh", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Hyperbolic cosine";
  let description = [{
    `(e^x + e^-x) / 2`.

    ```mlir
    %y = train.cosh %x : tensor<8x10xf32>
    ```
  }];
}

def Train_AsinhOp : Train_UnaryOp<"asinh", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Inverse hyperbolic sine";
  let description = [{
    `ln(x + sqrt(x^2 + 1))`.

    ```mlir
    %y = train.asinh %x : tensor<8x10xf32>
    ```
  }];
}

def Train_AcoshOp : Train_UnaryOp<"acosh", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Inverse hyperbolic cosine";
  let description = [{
    `ln(x + sqrt(x^2 - 1))`; not a number below 1.

    ```mlir
    %y = train.acosh %x : tensor<8x10xf32>
    ```
  }];
}

def Train_AtanhOp : Train_UnaryOp<"atanh", Train_FloatTensor, [Differentiable], 1, 1> {
  let summary = "Inverse hyperbolic tangent";
  let description = [{
    `ln((1 + x) / (1 - x)) / 2`; not a number outside of [-1, 1].

    ```mlir
    %y = train.atanh %x : tensor<8x10xf32>
    ```
  }];
}

def Train_FloorOp : Train_UnaryOp<"floor", Train_FloatTensor, [Differentiable]> {
  let summary = "Round down";
  let description = [{
    The largest integer not above x. Its derivative is 0.

    ```mlir
    %y = train.floor %x : tensor<8x10xf32>
    ```
  }];
}

def Train_CeilOp : Train_UnaryOp<"ceil", Train_FloatTensor, [Differentiable], 1, 0> {
  let summary = "Round up";
  let description = [{
    The smallest integer not below x. Its derivative is 0.

    ```mlir
    %y = train.ceil %x : tensor<8x10xf32>
    ```
  }];
}

def Train_RoundOp : Train_UnaryOp<"round", Train_FloatTensor, [Differentiable], 1, 0> {
  let summary = "Round to the nearest";
  let description = [{
    The nearest integer; of two that are equally near the even one. Its
    derivative is 0.

    ```mlir
    %y = train.round %x : tensor<8x10xf32>
    ```
  }];
}

def Train_SoftplusOp : Train_UnaryOp<"softplus", Train_FloatTensor, [Differentiable], 4, 2> {
  let summary = "Smooth rectifier";
  let description = [{
    `ln(1 + e^x)`, without overflow.

    ```mlir
    %y = train.softplus %x : tensor<8x10xf32>
    ```
  }];
}

def Train_NotOp : Train_UnaryOp<"not", Train_BitsTensor> {
  let summary = "Negation of bits";
  let description = [{
    True where the operand is false; of integers every bit is turned.

    ```mlir
    %y = train.not %x : tensor<8xi1>
    ```
  }];
}

def Train_GeluOp : Train_UnaryOp<"gelu", Train_FloatTensor, [Differentiable], 8, 1> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `0.5 * x * (1 + erf(x / sqrt(2)))`, or with `approximate = "tanh"`
    `0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))`.

    ```mlir
    %y = train.gelu %x : tensor<8x10xf32>
    %z = train.gelu %x {approximate = "tanh"} : tensor<8x10xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$input,
                       DefaultValuedStrAttr<StrAttr, "none">:$approximate);
  let hasVerifier = 1;
}

def Train_IsNanOp : Train_InferOp<"is_nan", [
    Elementwise, BroadcastElementwise, CostPerElement<1>]> {
  let summary = "Test for not a number";
  let description = [{
    True where the operand is not a number.

    ```mlir
    %y = train.is_nan %x : (tensor<8xf32>) -> tensor<8xi1>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$input);
  let results = (outs Train_BoolTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Train_CastOp : Train_InferOp<"cast", [
    Elementwise, BroadcastElementwise, Differentiable, CostPerElement<1>]> {
  let summary = "Change of element type";
  let description = [{
    Converts every element to the type `to`: floats to integers by truncation,
    to the nearest bound where they lie outside and to 0 where they are not a
    number; integers to narrower ones by their low bits; to booleans by
    comparison with 0, booleans to 0 and 1. The gradient passes between float
    types by the reverse cast.

    Floats of 8 and 4 bits and integers of 4 and 2 bits exist for this operation
    and for those that move elements. To floats of 8 bits a value is rounded to
    the nearest, ties to even; one beyond the largest becomes the largest, or
    with `overflows` what the type has for it: infinity, else not a number. To
    `f8E8M0FNU`, powers of two, it is rounded by `round_scale`: `up`, `down` or
    `nearest`.

    ```mlir
    %y = train.cast %x : tensor<8xi1> to tensor<8xf32>
    %z = train.cast %x {overflows} : tensor<8xf32> to tensor<8xf8E5M2>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$input, TypeAttr:$to, UnitAttr:$overflows,
                       DefaultValuedStrAttr<StrAttr, "up">:$round_scale);
  let results = (outs Train_AnyTensor:$result);
  let assemblyFormat = [{
    $input attr-dict `:` custom<CastTypes>(type($input), type($result), $to)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Train_BitcastOp : Train_InferOp<"bitcast", [
    Elementwise, BroadcastElementwise, CostPerElement<1>]> {
  let summary = "Bits as another element type";
  let description = [{
    The bits of every element, read as the type `to`, which has as many.

    ```mlir
    %y = train.bitcast %x : tensor<8xf32> to tensor<8xi32>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$input, TypeAttr:$to);
  let results = (outs Train_AnyTensor:$result);
  let assemblyFormat = [{
    $input attr-dict `:` custom<CastTypes>(type($input), type($result), $to)
  }];
  let hasVerifier = 1;
}

}

//===----------------------------------------------------------------------===//
// Binary operations
//===----------------------------------------------------------------------===//

def Train_BinaryOps : OpDocGroup {
  let summary = "Binary operations";
  let description = [{
    Two operands broadcast by numpy's rules: shapes are aligned at their last
    dimension, and a dimension of 1 (or a missing one) repeats.
  }];
}

let opDocGroup = Train_BinaryOps in {

/// Operands of one element type, broadcast; `result` is the kind of result.
class Train_BroadcastingOp<string mnemonic, Type operand, Type result,
                        list<Trait> traits = [], int flops = 1,
                        int transcendentals = 0>
    : Train_InferOp<mnemonic, !listconcat(traits, [
        SameOperandsElementType, BroadcastElementwise,
        CostPerElement<flops, transcendentals>])> {
  let arguments = (ins operand:$lhs, operand:$rhs);
  let results = (outs result:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    custom<BroadcastTypes>(type($lhs), type($rhs), type($result))
  }];
}

class Train_BinaryOp<string mnemonic, Type tensor, list<Trait> traits = [],
                     int flops = 1, int transcendentals = 0>
    : Train_BroadcastingOp<mnemonic, tensor, tensor, traits, flops,
                           transcendentals>;

class Train_CompareOp<string mnemonic, Type tensor>
    : Train_BroadcastingOp<mnemonic, tensor, Train_BoolTensor>;

def Train_AddOp : Train_BinaryOp<"add", Train_NumberTensor, [Differentiable]> {
  let summary = "Sum";
  let description = [{
    `a + b`.

    ```mlir
    %y = train.add %a, %b : tensor<8x10xf32>
    %z = train.add %a, %c
        : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    ```
  }];
}

def Train_SubOp : Train_BinaryOp<"sub", Train_NumberTensor, [Differentiable]> {
  let summary = "Difference";
  let description = [{
    `a - b`.

    ```mlir
    %y = train.sub %a, %b : tensor<8x10xf32>
    %z = train.sub %a, %c
        : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    ```
  }];
}

def Train_MulOp : Train_BinaryOp<"mul", Train_NumberTensor, [Differentiable]> {
  let summary = "Product";
  let description = [{
    `a * b`.

    ```mlir
    %y = train.mul %a, %b : tensor<8x10xf32>
    %z = train.mul %a, %c
        : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    ```
  }];
}

def Train_DivOp : Train_BinaryOp<"div", Train_NumberTensor, [Differentiable]> {
  let summary = "Quotient";
  let description = [{
    `a / b`; integers truncate towards zero, and give 0 where b is 0.

    ```mlir
    %y = train.div %a, %b : tensor<8x10xf32>
    %z = train.div %a, %c
        : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    ```
  }];
}

def Train_PowOp : Train_BinaryOp<"pow", Train_FloatTensor, [Differentiable], 3, 2> {
  let summary = "Power";
  let description = [{
    `a ^ b`. The derivative by the base is `b * a^(b-1)`, and 0 where b is 0;
    by the exponent it is `a^b * ln a`, and 0 where a is 0 and b is not negative
    (PyTorch's rules).

    ```mlir
    %y = train.pow %a, %b : tensor<8x10xf32>
    %z = train.pow %a, %c
        : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    ```
  }];
}

def Train_MaxOp : Train_BinaryOp<"max", Train_NumberTensor, [Differentiable]> {
  let summary = "Larger of two";
  let description = [{
    `a` where `a > b`, else `b`; not a number wins. Where the operands are equal
    each gets half of the gradient.

    ```mlir
    %y = train.max %a, %b : tensor<8x10xf32>
    %z = train.max %a, %c
        : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    ```
  }];
}

def Train_MinOp : Train_BinaryOp<"min", Train_NumberTensor, [Differentiable]> {
  let summary = "Smaller of two";
  let description = [{
    `a` where `a < b`, else `b`; not a number wins. Where the operands are equal
    each gets half of the gradient.

    ```mlir
    %y = train.min %a, %b : tensor<8x10xf32>
    %z = train.min %a, %c
        : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    ```
  }];
}

def Train_ModOp : Train_BinaryOp<"mod", Train_NumberTensor, [Differentiable]> {
  let summary = "Remainder";
  let description = [{
    Floats: the sign of the dividend (C's `fmod`). Integers: the sign of the
    divisor (Python's `%`), and 0 where b is 0. This is ONNX Mod with fmod = 1
    and 0.

    ```mlir
    %y = train.mod %a, %b : tensor<8x10xf32>
    %z = train.mod %a, %c
        : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    ```
  }];
}

def Train_AndOp : Train_BinaryOp<"and", Train_BitsTensor> {
  let summary = "Conjunction of bits";
  let description = [{
    Conjunction of booleans, or of the bits of integers.

    ```mlir
    %y = train.and %a, %b : tensor<8xi1>
    ```
  }];
}

def Train_OrOp : Train_BinaryOp<"or", Train_BitsTensor> {
  let summary = "Disjunction of bits";
  let description = [{
    Disjunction of booleans, or of the bits of integers.

    ```mlir
    %y = train.or %a, %b : tensor<8xi1>
    ```
  }];
}

def Train_XorOp : Train_BinaryOp<"xor", Train_BitsTensor> {
  let summary = "Exclusive or of bits";
  let description = [{
    Exclusive or of booleans, or of the bits of integers.

    ```mlir
    %y = train.xor %a, %b : tensor<8xi1>
    ```
  }];
}

def Train_ShiftLeftOp : Train_BinaryOp<"shift_left", Train_IntegerTensor> {
  let summary = "Shift to the left";
  let description = [{
    The bits of `a`, moved by `b` to the left; zeros come in from the right. A shift by
    the width or more, or by a negative number, moves all bits out.

    ```mlir
    %y = train.shift_left %a, %b : tensor<8xui8>
    ```
  }];
}

def Train_ShiftRightOp : Train_BinaryOp<"shift_right", Train_IntegerTensor> {
  let summary = "Shift to the right";
  let description = [{
    The bits of `a`, moved by `b` to the right; zeros come in from the left,
    copies of the sign where the integers have one. A shift by
    the width or more, or by a negative number, moves all bits out.

    ```mlir
    %y = train.shift_right %a, %b : tensor<8xui8>
    ```
  }];
}

def Train_EqualOp : Train_CompareOp<"equal", Train_AnyTensor> {
  let summary = "Comparison a == b";
  let description = [{
    True where `a == b`. A comparison with not a number is false.

    ```mlir
    %y = train.equal %a, %b : (tensor<8xf32>, tensor<f32>) -> tensor<8xi1>
    ```
  }];
}

def Train_LessOp : Train_CompareOp<"less", Train_NumberTensor> {
  let summary = "Comparison a < b";
  let description = [{
    True where `a < b`. A comparison with not a number is false.

    ```mlir
    %y = train.less %a, %b : (tensor<8xf32>, tensor<f32>) -> tensor<8xi1>
    ```
  }];
}

def Train_LessEqualOp : Train_CompareOp<"less_equal", Train_NumberTensor> {
  let summary = "Comparison a <= b";
  let description = [{
    True where `a <= b`. A comparison with not a number is false.

    ```mlir
    %y = train.less_equal %a, %b : (tensor<8xf32>, tensor<f32>) -> tensor<8xi1>
    ```
  }];
}

def Train_GreaterOp : Train_CompareOp<"greater", Train_NumberTensor> {
  let summary = "Comparison a > b";
  let description = [{
    True where `a > b`. A comparison with not a number is false.

    ```mlir
    %y = train.greater %a, %b : (tensor<8xf32>, tensor<f32>) -> tensor<8xi1>
    ```
  }];
}

def Train_GreaterEqualOp : Train_CompareOp<"greater_equal", Train_NumberTensor> {
  let summary = "Comparison a >= b";
  let description = [{
    True where `a >= b`. A comparison with not a number is false.

    ```mlir
    %y = train.greater_equal %a, %b : (tensor<8xf32>, tensor<f32>) -> tensor<8xi1>
    ```
  }];
}

def Train_WhereOp : Train_InferOp<"where", [
    BroadcastElementwise, Differentiable, CostPerElement<1>,
    AllElementTypesMatch<["on_true", "on_false", "result"]>]> {
  let summary = "Elementwise choice";
  let description = [{
    `on_true` where the condition holds, else `on_false`; all three broadcast.
    The gradient goes to the chosen side only.

    ```mlir
    %y = train.where %c, %a, %b
        : (tensor<8x10xi1>, tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xf32>
    ```
  }];
  let arguments = (ins Train_BoolTensor:$condition, Train_AnyTensor:$on_true,
                       Train_AnyTensor:$on_false);
  let results = (outs Train_AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

}

//===----------------------------------------------------------------------===//
// Gradients of activations
//===----------------------------------------------------------------------===//

def Train_ActivationGradOps : OpDocGroup {
  let summary = "Gradients of activations";
  let description = [{
    Elementwise helpers of the backward pass; the other activations compose
    theirs from the operations above.
  }];
}

let opDocGroup = Train_ActivationGradOps in {

def Train_ReluGradOp : Train_Op<"relu_grad", [
    Elementwise, BroadcastElementwise, SameOperandsAndResultType,
    CostPerElement<1>]> {
  let summary = "Gradient of relu";
  let description = [{
    `grad` where the result of the relu is positive, else 0.

    ```mlir
    %dx = train.relu_grad %dy, %y : tensor<8x10xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$output);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$grad `,` $output attr-dict `:` type($grad)";
}

def Train_GeluGradOp : Train_Op<"gelu_grad", [
    Elementwise, BroadcastElementwise, SameOperandsAndResultType,
    CostPerElement<16, 2>]> {
  let summary = "Gradient of gelu";
  let description = [{
    `grad` times the derivative of `gelu` (of the same `approximate`) at `input`.

    ```mlir
    %dx = train.gelu_grad %dy, %x {approximate = "tanh"} : tensor<8x10xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$input,
                       DefaultValuedStrAttr<StrAttr, "none">:$approximate);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$grad `,` $input attr-dict `:` type($grad)";
  let hasVerifier = 1;
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSELEMENTWISE_TD
