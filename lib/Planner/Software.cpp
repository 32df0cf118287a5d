//===- Software.cpp - What runs a step -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Software.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/Software.h"

#include <vector>

using namespace llvm;
using namespace mlir::zero;

/// This compiler: fused kernels, a plan that launches itself, collectives on
/// channels of their own.
static Software makeZero() {
  Software s;
  s.name = "zero";
  s.meaning = "this compiler";
  s.elementwise = 0.8;
  s.lossPasses = 3;
  s.update = 1;
  s.reduceBytes = 2;
  return s;
}

/// PyTorch without a compiler: a kernel an op. Its launches take
/// `layerSeconds`; everything that is fitted is fitted on published steps.
static Software makeEager(StringRef name, StringRef meaning) {
  Software s;
  s.name = name;
  s.meaning = meaning;
  s.elementwise = 2.1;
  s.lossPasses = 8.65;
  s.update = 1.05;
  s.layerSeconds = 0.000877;
  s.batchSeconds = 0.0105;
  s.updateLayerSeconds = 0.000388;
  s.fullRecompute = 0.783;
  s.oneCommunicator = true;
  s.keepOuter = true;
  return s;
}

static std::vector<Software> makeAll() {
  std::vector<Software> all;
  all.push_back(makeZero());

  Software foundry = makeEager(
      "llm-foundry", "MosaicML llm-foundry: FSDP1, FlashAttention 1, GPT");
  foundry.elementwise = 1.52;
  foundry.attention = 0.544;
  foundry.f8Products = 0.704;
  foundry.reduceBytes = 2;
  foundry.gatherInForward = true;
  all.push_back(foundry);

  Software fsdp1 = makeEager("fsdp1", "PyTorch FSDP1, eager, Llama");
  fsdp1.reduceBytes = 2;
  all.push_back(fsdp1);

  Software yafsdp = fsdp1;
  yafsdp.name = "yafsdp";
  yafsdp.meaning = "YaFSDP, eager, Llama";
  yafsdp.oneCommunicator = false;
  all.push_back(yafsdp);

  Software fsdp2 = makeEager("fsdp2", "PyTorch FSDP2 (torchtitan), eager");
  fsdp2.selectiveProducts = 0.5;
  all.push_back(fsdp2);

  Software compiled = fsdp2;
  compiled.name = "fsdp2-compile";
  compiled.meaning = "PyTorch FSDP2 (torchtitan), torch.compile";
  compiled.elementwise = 0.8;
  compiled.lossPasses = 5;
  compiled.layerSeconds = 2e-4;
  all.push_back(compiled);

  Software fms = compiled;
  fms.name = "fms-fsdp";
  fms.meaning = "IBM fms-fsdp: FSDP1, torch.compile, a quarter of the layers "
                "recomputed";
  fms.reduceBytes = 2;
  fms.selectiveProducts = fms.selectiveAttention = 0.25;
  all.push_back(fms);

  Software megatron = makeEager("megatron-deepspeed",
                                "Megatron-DeepSpeed: ZeRO-1, fused kernels, "
                                "attention in three steps");
  megatron.elementwise = 0.144;
  megatron.attention = 0;
  megatron.attentionPasses = 10.8;
  megatron.reduceBytes = 2;
  megatron.overlap = false;
  all.push_back(megatron);
  return all;
}

ArrayRef<Software> mlir::zero::knownSoftware() {
  static const std::vector<Software> all = makeAll();
  return all;
}

const Software *mlir::zero::findSoftware(StringRef name) {
  for (const Software &software : knownSoftware())
    if (software.name == name)
      return &software;
  return nullptr;
}
