#!/usr/bin/env python3
# export_models.py - Exports the two models of the demo with PyTorch.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes digits-cnn.onnx and char-gpt.onnx beside this script.

Also an example of how to export a model that one wants to train: in training
mode, without constant folding, and with a symbolic batch, so that every
parameter keeps its name and BatchNorm its training form.
Needs torch 2.9.1, transformers 4.51.3 and onnx 1.23.2.
"""
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

HERE = pathlib.Path(__file__).resolve().parent


class DigitsCnn(nn.Module):
    """A small residual network for 8x8 grey images."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.down = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.head = nn.Linear(32, 10)

    def forward(self, image):
        x = F.relu(self.bn1(self.stem(image)))
        x = F.relu(x + self.bn2(self.conv(x)))
        x = F.adaptive_avg_pool2d(F.relu(self.down(F.max_pool2d(x, 2))), 1)
        return self.head(torch.flatten(x, 1))


class CharGpt(nn.Module):
    """GPT-2 over 64 characters; the output matrix is tied to the embedding."""

    def __init__(self):
        super().__init__()
        self.gpt = GPT2LMHeadModel(GPT2Config(
            vocab_size=64, n_positions=64, n_embd=64, n_layer=2, n_head=4,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))

    def forward(self, tokens):
        return self.gpt(input_ids=tokens, use_cache=False).logits


def export(model, name, example, file, axes):
    torch.onnx.export(
        model.train(), (example,), str(HERE / file), dynamo=False, opset_version=17,
        training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
        input_names=[name], output_names=["logits"], dynamic_axes={name: axes, "logits": axes})


if __name__ == "__main__":
    torch.manual_seed(0)
    export(DigitsCnn(), "image", torch.randn(4, 1, 8, 8), "digits-cnn.onnx", {0: "batch"})
    export(CharGpt(), "tokens", torch.zeros(4, 64, dtype=torch.int64), "char-gpt.onnx", {0: "batch", 1: "seq"})
