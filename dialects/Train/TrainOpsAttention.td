//===- TrainOpsAttention.td - attention --------------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scaled dot-product attention as one operation, for targets whose library has
// it. Importers make the products and the softmax that it stands for.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSATTENTION_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSATTENTION_TD

include "dialects/Train/TrainDialect.td"

def Train_AttentionOps : OpDocGroup {
  let summary = "Attention";
  let description = [{
    Attention whose probabilities are never stored: the backward pass computes
    them again from the logarithms of their sums. `train-raise-attention` finds
    them, `train-decompose-attention` gives back what they stand for.

    `query` is [B, H, S, D], `key` [B, G, T, D] and `value` [B, G, T, E], where
    G divides H: each head of `key` and `value` serves H / G neighbouring ones
    of `query`. The scores [B, H, S, T] are the products of queries and keys
    times `scale`, plus `mask` where given, which broadcasts to them; with
    `causal`, query i sees only keys 0 to i.
  }];
}

let opDocGroup = Train_AttentionOps in {

def Train_AttentionOp : Train_InferOp<"attention", [
    Differentiable, ComputedCost]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    The softmax of the scores times `value`: [B, H, S, E]. `logsumexp`
    [B, H, S], f32 (f64 where the rest is), is the logarithm of the sum of the
    exponentials of each query's scores.

    ```mlir
    %y, %lse = train.attention %q, %k, %v scale 2.5e-01 causal
        : (tensor<2x12x64x16xbf16>, tensor<2x12x64x16xbf16>,
           tensor<2x12x64x16xbf16>)
        -> (tensor<2x12x64x16xbf16>, tensor<2x12x64xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$query, Train_FloatTensor:$key,
                       Train_FloatTensor:$value,
                       Optional<Train_FloatTensor>:$mask,
                       F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$logsumexp);
  let assemblyFormat = [{
    operands `scale` $scale (`causal` $causal^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Train_AttentionGradOp : Train_InferOp<"attention_grad", [ComputedCost]> {
  let summary = "Gradients of attention";
  let description = [{
    The gradients by `query`, `key` and `value` of an attention with these
    operands and attributes; `grad` is the gradient by its result, `result` and
    `logsumexp` are what it returned.

    ```mlir
    %dq, %dk, %dv = train.attention_grad %dy, %q, %k, %v, %y, %lse
        scale 2.5e-01 causal
        : (tensor<2x12x64x16xbf16>, tensor<2x12x64x16xbf16>,
           tensor<2x12x64x16xbf16>, tensor<2x12x64x16xbf16>,
           tensor<2x12x64x16xbf16>, tensor<2x12x64xf32>)
        -> (tensor<2x12x64x16xbf16>, tensor<2x12x64x16xbf16>,
            tensor<2x12x64x16xbf16>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$query,
                       Train_FloatTensor:$key, Train_FloatTensor:$value,
                       Train_FloatTensor:$result, Train_FloatTensor:$logsumexp,
                       Optional<Train_FloatTensor>:$mask,
                       F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Train_FloatTensor:$query_grad,
                      Train_FloatTensor:$key_grad,
                      Train_FloatTensor:$value_grad);
  let assemblyFormat = [{
    operands `scale` $scale (`causal` $causal^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSATTENTION_TD
