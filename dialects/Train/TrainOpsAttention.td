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

    With `dropout_key` the probabilities [B, H, S, T] go through `dropout` of
    this key, `first_sample` and `ratio` before they meet the values: B holds
    `samples` samples, or without `samples` no dimension does. What it draws is
    what `train.dropout ... along 0` of a tensor of that shape draws.
  }];
}

/// What attention and its gradient share.
class Train_AttentionBase<string mnemonic, list<Trait> traits>
    : Train_InferOp<mnemonic, traits # [AttrSizedOperandSegments,
                                        ComputedCost]> {
  let hasVerifier = 1;
  dag optionalOperands = (ins Optional<Train_FloatTensor>:$mask,
                              Optional<Train_StepScalar>:$dropout_key,
                              Optional<Train_StepScalar>:$first_sample,
                              F64Attr:$scale, UnitAttr:$causal,
                              OptionalAttr<F64Attr>:$ratio,
                              OptionalAttr<I64Attr>:$samples);
  string settingsFormat = [{
    (`,` $mask^)? `scale` $scale (`causal` $causal^)?
    (`dropout` $dropout_key^ `,` $first_sample `ratio` $ratio)?
    (`samples` $samples^)? attr-dict `:` functional-type(operands, results)
  }];
}

let opDocGroup = Train_AttentionOps in {

def Train_AttentionOp : Train_AttentionBase<"attention", [Differentiable]> {
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
    %z, %lse2 = train.attention %q, %k, %v, %mask scale 2.5e-01
        dropout %seed, %first ratio 1.0e-01 samples 2
        : (tensor<2x12x64x16xbf16>, tensor<2x12x64x16xbf16>,
           tensor<2x12x64x16xbf16>, tensor<2x1x1x64xbf16>, tensor<i64>,
           tensor<i64>)
        -> (tensor<2x12x64x16xbf16>, tensor<2x12x64xf32>)
    ```
    Constraints: `dropout_key`, `first_sample` and `ratio` are all there or all
    absent; 0 <= `ratio` < 1; `samples`, only with them, divides the batch.
  }];
  let arguments = !con((ins Train_FloatTensor:$query, Train_FloatTensor:$key,
                            Train_FloatTensor:$value), optionalOperands);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$logsumexp);
  let assemblyFormat = "$query `,` $key `,` $value " # settingsFormat;
}

def Train_AttentionGradOp : Train_AttentionBase<"attention_grad", []> {
  let summary = "Gradients of attention";
  let description = [{
    The gradients by `query`, `key` and `value` of an attention with these
    operands and attributes; `grad` is the gradient by its result, `result` and
    `logsumexp` are what it returned. Dropout draws its numbers again.

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
  let arguments = !con((ins Train_FloatTensor:$grad, Train_FloatTensor:$query,
                            Train_FloatTensor:$key, Train_FloatTensor:$value,
                            Train_FloatTensor:$result,
                            Train_FloatTensor:$logsumexp), optionalOperands);
  let results = (outs Train_FloatTensor:$query_grad,
                      Train_FloatTensor:$key_grad,
                      Train_FloatTensor:$value_grad);
  let assemblyFormat =
      "$grad `,` $query `,` $key `,` $value `,` $result `,` $logsumexp " #
      settingsFormat;
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSATTENTION_TD
