//===- TrainOpsControl.td - loops --------------------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop over the steps of a sequence: what recurrent layers are.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSCONTROL_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSCONTROL_TD

include "dialects/Train/TrainDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Train_ControlOps : OpDocGroup {
  let summary = "Loops";
  let description = [{
    A loop stands in the IR once, however many steps it has, and so does its
    derivative: a loop in the other direction.
  }];
}

let opDocGroup = Train_ControlOps in {

def Train_ScanOp : Train_InferOp<"scan", [
    AttrSizedOperandSegments, IsolatedFromAbove, SingleBlock, Differentiable,
    ComputedCost]> {
  let summary = "A region run over the leading axis of tensors";
  let description = [{
    Runs its body `steps` times. The body's arguments are, in this order, what
    the step before yielded (in the first step the operands `init`), the entry
    of each tensor of `over` for this step (without its leading axis), and the
    operands `with`, which are the same in all steps. It yields the carried
    values of the next step and then any others; of these the result has all
    steps, along a new leading axis. The results are the last carried values
    and then those stacked ones.

    With `reverse` the first step takes the last entry of each tensor and gives
    the last entry of each stacked result.

    The derivative is a scan in the other direction, which takes the carried
    values that each step began with: a forward scan that is differentiated
    stacks them. It sums the gradients by the operands `with` from step to step.

    ```mlir
    // A recurrent layer: %h is its state, %x what a step sees.
    %last, %all = train.scan init(%h0) over(%xs) with(%w) steps 16
        : (tensor<4x8xf32>, tensor<16x4x8xf32>, tensor<8x8xf32>)
        -> (tensor<4x8xf32>, tensor<16x4x8xf32>) {
    ^bb0(%h: tensor<4x8xf32>, %x: tensor<4x8xf32>, %u: tensor<8x8xf32>):
      %p = train.matmul %h, %u : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %s = train.add %x, %p : tensor<4x8xf32>
      %next = train.tanh %s : tensor<4x8xf32>
      train.yield %next, %next : tensor<4x8xf32>, tensor<4x8xf32>
    }
    ```

    Constraints:
    - there is at least one step;
    - the leading axis of each tensor of `over` has as many entries;
    - the body's arguments have the types that follow from the operands;
    - the body yields the types of `init` first;
    - the operations of the body have no effects: state is read and assigned
      outside.
  }];
  let arguments = (ins Variadic<Train_AnyTensor>:$inits,
                       Variadic<Train_AnyTensor>:$scanned,
                       Variadic<Train_AnyTensor>:$captured, I64Attr:$steps,
                       UnitAttr:$reverse);
  let results = (outs Variadic<Train_AnyTensor>:$results);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inits,
      "::mlir::ValueRange":$scanned, "::mlir::ValueRange":$captured,
      "int64_t":$steps, "bool":$reverse,
      "std::unique_ptr<::mlir::Region>":$body)>];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = [{
    (`init` `(` $inits^ `)`)? (`over` `(` $scanned^ `)`)?
    (`with` `(` $captured^ `)`)? `steps` $steps (`reverse` $reverse^)?
    attr-dict-with-keyword `:` functional-type(operands, results) $bodyRegion
  }];
  let extraClassDeclaration = [{
    /// The body's arguments by what they stand for.
    ::mlir::Block::BlockArgListType getCarriedArguments() {
      return getBody()->getArguments().take_front(getInits().size());
    }
    ::mlir::Block::BlockArgListType getScannedArguments() {
      return getBody()->getArguments().slice(getInits().size(),
                                            getScanned().size());
    }
    ::mlir::Block::BlockArgListType getCapturedArguments() {
      return getBody()->getArguments().take_back(getCaptured().size());
    }

    /// The last carried values, and what is stacked.
    ::mlir::ResultRange getFinals() {
      return getResults().take_front(getInits().size());
    }
    ::mlir::ResultRange getStacked() {
      return getResults().drop_front(getInits().size());
    }

    /// The end of the body and its two kinds of operands.
    YieldOp getYield();
    ::mlir::OperandRange getYieldedCarried();
    ::mlir::OperandRange getYieldedStacked();
  }];
}

def Train_YieldOp : Op<Train_Dialect, "yield", [
    Pure, ReturnLike, Terminator, HasParent<"ScanOp">]> {
  let summary = "What a step of a train.scan yields";
  let description = [{
    The carried values of the next step, then what is stacked.

    ```mlir
    train.yield %next, %next : tensor<4x8xf32>, tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Variadic<Train_AnyTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

} // opDocGroup

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSCONTROL_TD
