//===- TrainDialect.td - the train dialect -----------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect itself, the tensor types its operations take and the base
// classes of the operation families.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINDIALECT_TD
#define ZERO_DIALECTS_TRAIN_TRAINDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Train/TrainInterfaces.td"
include "dialects/Zero/ZeroInterfaces.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::mlir::train";
  let summary = "The compute graph of one training step";
  let description = [{
    ONNX semantics reduced to a small core on statically shaped builtin
    tensors: what a model computes, its loss, its backward pass and its
    optimizer updates, before anything is said about ranks or memory.

    ```
    model.onnx --zero-import--> train --train-step--> train
                                        (loss, backward, update)
               --zero-* passes--> train + zero --plan-* passes--> plan
    ```

    Invariants:
    - every type is a statically shaped, ranked builtin tensor of f16, bf16,
      f32, f64, i1 (booleans), a signless integer, which has a sign, or an
      unsigned one (`ui8`); dimensions may be 0. Narrower types are only cast
      and moved;
    - every operation is free of side effects on values and knows its result
      types from its operands and attributes (`InferTypeOpInterface`);
    - axes are normalized: `0 <= axis < rank`;
    - an operation that has a derivative says so by the `Differentiable`
      interface, which builds it from operations of this dialect;
    - scalars are rank-0 tensors and constants are `arith.constant`.

    ```mlir
    func.func @forward(%x: tensor<8x64xf32>, %w: tensor<10x64xf32>,
                       %b: tensor<10xf32>) -> tensor<8x10xf32> {
      %h = train.gemm %x, %w, %b {transpose_b}
          : (tensor<8x64xf32>, tensor<10x64xf32>, tensor<10xf32>)
          -> tensor<8x10xf32>
      %y = train.relu %h : tensor<8x10xf32>
      return %y : tensor<8x10xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Train_FloatTensor : StaticShapeTensorOf<[F16, BF16, F32, F64]>;
def Train_BoolTensor : StaticShapeTensorOf<[I1]>;
def Train_IndexTensor : StaticShapeTensorOf<[I8, I16, I32, I64]>;

defvar Train_Integers = [I8, I16, I32, I64, UI8, UI16, UI32, UI64];
defvar Train_Numbers = !listconcat([F16, BF16, F32, F64], Train_Integers);
/// Types without arithmetic.
defvar Train_TinyNumbers = [F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU,
                            F4E2M1FN, I<4>, I<2>, UI<4>, UI<2>];
def Train_IntegerTensor : StaticShapeTensorOf<Train_Integers>;
/// What arithmetic is defined on: everything except booleans.
def Train_NumberTensor : StaticShapeTensorOf<Train_Numbers>;
def Train_BitsTensor : StaticShapeTensorOf<!listconcat([I1], Train_Integers)>;
def Train_AnyTensor
    : StaticShapeTensorOf<!listconcat(Train_Numbers, [I1], Train_TinyNumbers)>;

def Train_FloatScalar
    : Type<And<[Train_FloatTensor.predicate, HasAnyRankOfPred<[0]>]>,
           "rank-0 tensor of f16, bf16, f32 or f64",
           "::mlir::RankedTensorType">;
def Train_BoolScalar
    : Type<And<[Train_BoolTensor.predicate, HasAnyRankOfPred<[0]>]>,
           "tensor<i1>", "::mlir::RankedTensorType">;
def Train_StepScalar : Type<And<[StaticShapeTensorOf<[I64]>.predicate,
                                 HasAnyRankOfPred<[0]>]>,
                            "tensor<i64>", "::mlir::RankedTensorType">;

//===----------------------------------------------------------------------===//
// Base classes
//===----------------------------------------------------------------------===//

/// The operation is a scalar function of its operands' elements: element i of
/// every result depends only on i and on the elements of the operands that
/// numpy's broadcast rules pair with i. Lowering and fusion ask for this trait instead
/// of listing operations.
def BroadcastElementwise : NativeOpTrait<"BroadcastElementwise"> {
  let cppNamespace = "::mlir::train";
}

def Differentiable : DeclareOpInterfaceMethods<Train_Differentiable>;

/// What the operation has to do (the zero dialect's `Cost`): computed by the
/// operation, so much per element of its largest operand or result, or nothing
/// where it only changes the layout.
def ComputedCost : DeclareOpInterfaceMethods<Zero_Cost>;
class CostPerElementTrait<int flops, int transcendentals>
    : ParamNativeOpTrait<"CostPerElement", flops # ", " # transcendentals> {
  let cppNamespace = "::mlir::zero";
}
class CostPerElement<int flops, int transcendentals = 0>
    : TraitList<[CostPerElementTrait<flops, transcendentals>, Zero_Cost]>;
def CostNothingTrait : NativeOpTrait<"CostNothing"> {
  let cppNamespace = "::mlir::zero";
}
def CostNothing : TraitList<[CostNothingTrait, Zero_Cost]>;

/// An operation of the dialect; its result types follow from its operands and
/// attributes by `inferReturnTypes`.
class Train_Op<string mnemonic, list<Trait> traits = []>
    : Op<Train_Dialect, mnemonic, !listconcat([Pure], traits)>;

class Train_InferOp<string mnemonic, list<Trait> traits = []>
    : Train_Op<mnemonic, !listconcat(traits, [InferTypeOpAdaptor])>;

#endif // ZERO_DIALECTS_TRAIN_TRAINDIALECT_TD
