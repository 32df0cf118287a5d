//===- TrainOpsRandom.td - random numbers ------------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random numbers that depend on where they are drawn, and on nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSRANDOM_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSRANDOM_TD

include "dialects/Train/TrainDialect.td"

def Train_RandomOps : OpDocGroup {
  let summary = "Random numbers";
  let description = [{
    Numbers from a counter (Philox4x32-10; Salmon et al., "Parallel random
    numbers: as easy as 1, 2, 3", SC 2011): a pure function of the seed, the
    step, the place in the model, the sample's number in the whole run, and the
    element's offset inside the sample. So N ranks draw what one rank draws,
    with any number of micro-batches, after a restart, and where a value is
    computed again instead of kept.

    `random_key` is the place in the model at a step. Sample s of the run draws
    the words of Philox with this key and the counters (b mod 2^32, b / 2^32, s
    mod 2^32, s / 2^32), b = 0, 1, …; each has four. `first_sample` is the number
    of the first sample of the tensor. Its dimension `along` holds `samples`
    samples: with more rows than samples each has as many neighbouring rows.
    Without `along` no dimension holds samples, and all ranks draw the same, as
    for one sample of number 0.
  }];
}

/// Attributes that say which elements belong to which sample.
class Train_RandomOp<string mnemonic, list<Trait> traits>
    : Train_InferOp<mnemonic, traits> {
  string samplesFormat = "(`samples` $samples^ `along` $along)?";
  let hasVerifier = 1;
}

let opDocGroup = Train_RandomOps in {

def Train_RandomKeyOp : Train_InferOp<"random_key", [CostPerElement<100>]> {
  let summary = "The key of a place in the model at a step";
  let description = [{
    The first two words of Philox with the key `seed` and the counter (step mod
    2^32, step / 2^32, `site`, 0).

    ```mlir
    %key = train.random_key %seed, %step site 3
        : (tensor<i64>, tensor<i64>) -> tensor<i64>
    ```
    Constraint: `site` is in [0, 2^32).
  }];
  let arguments = (ins Train_StepScalar:$seed, Train_StepScalar:$step,
                       I64Attr:$site);
  let results = (outs Train_StepScalar:$key);
  let assemblyFormat = 
      "operands `site` $site attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_RandomUniformOp
    : Train_RandomOp<"random_uniform", [
    BroadcastElementwise, CostPerElement<100>]> {
  let summary = "Numbers uniform in [0, 1)";
  let description = [{
    Element e of a sample is the word e of the sample, without its last eight
    bits, over 2^32: a multiple of 2^-24. In bf16 and f16 it is cut to the bits
    that the type has below 1.

    ```mlir
    %u = train.random_uniform %key, %first shape [8, 64] type f32 samples 8 along 0
        : (tensor<i64>, tensor<i64>) -> tensor<8x64xf32>
    ```
    Constraints: `samples` divides the dimension `along`.
  }];
  let arguments = (ins Train_StepScalar:$key, Train_StepScalar:$first_sample,
                       DenseI64ArrayAttr:$shape, TypeAttr:$element,
                       OptionalAttr<I64Attr>:$samples,
                       OptionalAttr<I64Attr>:$along);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands `shape` $shape `type` $element " #
                       samplesFormat #
      " attr-dict `:` functional-type(operands, results)";
}

def Train_RandomNormalOp
    : Train_RandomOp<"random_normal", [
    BroadcastElementwise, CostPerElement<100, 3>]> {
  let summary = "Numbers of the standard normal distribution";
  let description = [{
    Element e of a sample is sqrt(-2 log(1 - u)) cos(2 pi v) (Box and Muller),
    where u and v are the words 2e and 2e + 1 of the sample as in
    `random_uniform`.

    ```mlir
    %z = train.random_normal %key, %first shape [8, 64] type f32 samples 8 along 0
        : (tensor<i64>, tensor<i64>) -> tensor<8x64xf32>
    ```
    Constraints: `samples` divides the dimension `along`.
  }];
  let arguments = (ins Train_StepScalar:$key, Train_StepScalar:$first_sample,
                       DenseI64ArrayAttr:$shape, TypeAttr:$element,
                       OptionalAttr<I64Attr>:$samples,
                       OptionalAttr<I64Attr>:$along);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands `shape` $shape `type` $element " #
                       samplesFormat #
      " attr-dict `:` functional-type(operands, results)";
}

def Train_DropoutOp : Train_RandomOp<"dropout", [
    Differentiable, BroadcastElementwise, CostPerElement<100>]> {
  let summary = "Zeros in random places";
  let description = [{
    `input` / (1 - `ratio`) where `random_uniform` of the same key and samples
    is at least `ratio`, in f32 (f64 where the input is), and 0 elsewhere. The
    gradient is the same operation on the gradient by the result: nothing is
    kept for it.

    ```mlir
    %y = train.dropout %x, %key, %first ratio 1.0e-01 samples 8 along 0
        : (tensor<8x64xf32>, tensor<i64>, tensor<i64>) -> tensor<8x64xf32>
    ```
    Constraints: 0 <= `ratio` < 1; `samples` divides the dimension `along`.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_StepScalar:$key,
                       Train_StepScalar:$first_sample, F64Attr:$ratio,
                       OptionalAttr<I64Attr>:$samples,
                       OptionalAttr<I64Attr>:$along);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands `ratio` $ratio " # samplesFormat #
      " attr-dict `:` functional-type(operands, results)";
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSRANDOM_TD
