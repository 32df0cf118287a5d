//===- TrainOps.td - operations of the train dialect -------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collects the operation families, one file each.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPS_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPS_TD

include "dialects/Train/TrainOpsElementwise.td"
include "dialects/Train/TrainOpsAttention.td"
include "dialects/Train/TrainOpsContraction.td"
include "dialects/Train/TrainOpsControl.td"
include "dialects/Train/TrainOpsShape.td"
include "dialects/Train/TrainOpsIndex.td"
include "dialects/Train/TrainOpsNorm.td"
include "dialects/Train/TrainOpsReduction.td"
include "dialects/Train/TrainOpsRandom.td"
include "dialects/Train/TrainOpsTraining.td"
include "dialects/Train/TrainOpsStep.td"

#endif // ZERO_DIALECTS_TRAIN_TRAINOPS_TD
