#!/usr/bin/env python3
# make_more_models.py - Makes a BERT- and a Llama-like model with PyTorch.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What make_models.py makes, of models that have other operators, inputs and losses:

    make_more_models.py [NAME...]

bert has three inputs (tokens, a mask of padding, types of tokens), llama grouped heads and
rotated positions. The form ts_loss of either has the loss as an output, and its labels as
an input; dynamo is torch.export's graph after the exporter's optimizer, at a fixed batch,
and dynamo_op23 the same in opset 23, which has Attention and RMSNormalization.
Needs what make_models.py needs, but for transformers.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

import make_models as base

HIDDEN, HEADS, VOCAB, LENGTH = 32, 4, 48, 12


class BertLayer(nn.Module):
    """Norms after the sums; the scale divides the scores, the mask is added."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 64), nn.Linear(64, HIDDEN)

    def forward(self, x, mask):
        def heads(y):
            return y.view(y.shape[0], y.shape[1], HEADS, HIDDEN // HEADS).transpose(1, 2)

        q, k, v = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        scores = q @ k.transpose(-1, -2) / math.sqrt(HIDDEN // HEADS) + mask
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(x.shape)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.types = nn.Embedding(VOCAB, HIDDEN, padding_idx=0), nn.Embedding(2, HIDDEN)
        self.positions = nn.Embedding(LENGTH, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(BertLayer() for _ in range(2))
        self.pooler, self.head = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 10)

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.words(input_ids) + self.types(token_type_ids)
        x = self.norm(x + self.positions(torch.arange(input_ids.shape[1], device=x.device)))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(torch.tanh(self.pooler(x[:, 0])))


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class LlamaLayer(nn.Module):
    """Two heads of keys and values for four of queries; SwiGLU."""

    def __init__(self):
        super().__init__()
        half = HIDDEN // 2
        self.q, self.o = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.k, self.v = nn.Linear(HIDDEN, half, bias=False), nn.Linear(HIDDEN, half, bias=False)
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()
        self.gate, self.up = nn.Linear(HIDDEN, 64, bias=False), nn.Linear(HIDDEN, 64, bias=False)
        self.down = nn.Linear(64, HIDDEN, bias=False)

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x, cos, sin):
        def heads(y):
            return y.view(y.shape[0], y.shape[1], -1, HIDDEN // HEADS).transpose(1, 2)

        y = self.norm1(x)
        q, k, v = self.rotate(heads(self.q(y)), cos, sin), self.rotate(heads(self.k(y)), cos, sin), heads(self.v(y))
        k, v = (t[:, :, None].expand(-1, -1, 2, -1, -1).reshape(q.shape) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(2))
        self.norm, self.head = RmsNorm(), nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(self, input_ids):
        size = HIDDEN // HEADS
        rates = 1.0 / 10000 ** (torch.arange(0, size, 2).float() / size)
        angles = torch.arange(input_ids.shape[1]).float()[:, None] * rates
        angles = torch.cat((angles, angles), -1)
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        return self.head(self.norm(x))


class WithLoss(nn.Module):
    """The model with its loss as the output."""

    def __init__(self, model, kind):
        super().__init__()
        self.model, self.kind = model, kind

    def forward(self, *inputs):
        return base.loss_of(self.kind, self.model(*inputs[:-1]), inputs[-1])


def padded(g):
    """Sentences of unequal lengths; the class is a matter of the first words."""
    ids = torch.randint(1, VOCAB, (base.BATCH, LENGTH), generator=g)
    lengths = torch.randint(4, LENGTH + 1, (base.BATCH, 1), generator=g)
    mask = (torch.arange(LENGTH) < lengths).long()
    types = (torch.arange(LENGTH) >= lengths // 2).long() * mask
    return (ids * mask, mask, types), ids[:, 0] % 10


def tokens(g):
    ids = torch.randint(0, VOCAB // 6, (base.BATCH, LENGTH), generator=g)
    return (ids,), ids.clone()


# name: (class, names of the inputs, batch function, loss)
MODELS = {
    "bert": (Bert, ("input_ids", "attention_mask", "token_type_ids"), padded, "cross-entropy"),
    "llama": (Llama, ("input_ids",), tokens, "causal-lm"),
}
FORMS = {"bert": ("ts_train", "ts_loss", "dynamo"), "llama": ("ts_train", "ts_loss", "dynamo", "dynamo_op23")}


def build(name):
    torch.manual_seed(base.SEED)
    model = MODELS[name][0]()
    g = torch.Generator().manual_seed(base.SEED + 1)
    with torch.no_grad():  # equal 1-D parameters would be merged by exporters
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(0.02 * torch.randn(p.shape, generator=g))
    return model.train()


def batches(name):
    g = torch.Generator().manual_seed(base.SEED + 2)
    return [MODELS[name][2](g) for _ in range(base.STEPS)]


def export(name, form, path):
    _, args, _, kind = MODELS[name]
    x, y = batches(name)[0]
    names = dict(input_names=list(args), output_names=["logits"])
    if form.startswith("dynamo"):
        opset = {"opset_version": 23} if form == "dynamo_op23" else {}
        torch.onnx.export(build(name).eval(), x, path, dynamo=True, verbose=False, external_data=False, **opset, **names)
        base.drop_traces(path)
        return
    model = build(name)
    if form == "ts_loss":
        model, x = WithLoss(model, kind), (*x, y)
        names = dict(input_names=[*args, "labels"], output_names=["loss"])
    axes = {arg: {0: "batch"} for arg in (*names["input_names"], *names["output_names"]) if arg != "loss"}
    torch.onnx.export(model, x, path, dynamo=False, opset_version=17, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING, dynamic_axes=axes, **names)


def train(name, optimizer):
    kind, model = MODELS[name][3], build(name)
    step = base.OPTIMIZERS[optimizer](list(model.parameters()))
    losses, norms = [], []
    for x, y in batches(name):
        step.zero_grad()
        loss = base.loss_of(kind, model(*x), y)
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.stack([p.grad.double().norm() for p in model.parameters()]).norm().item())
        step.step()
    return model, losses, norms


def make(name):
    _, args, _, kind = MODELS[name]
    folder = base.HERE / name
    folder.mkdir(exist_ok=True)
    for form in FORMS[name]:
        export(name, form, str(folder / f"{form}.onnx"))
    data = batches(name)
    arrays = {arg: torch.cat([x[i] for x, _ in data]) for i, arg in enumerate(args)}
    arrays["labels"] = torch.cat([y for _, y in data])
    save_file(arrays, folder / "data.safetensors")
    save_file(base.parameters(build(name)), folder / "init.safetensors")
    with torch.no_grad():
        logits = build(name).eval()(*data[0][0])
    save_file({"logits": logits.contiguous()}, folder / "logits.safetensors")
    reference = dict(torch=torch.__version__, loss=kind, input=args[0], steps=base.STEPS, batch=base.BATCH, ties=[],
                     trained=[k for k, _ in build(name).named_parameters()], hyper=base.HYPER, runs={})
    base.add_runs(reference, folder, base.OPTIMIZERS, lambda optimizer: train(name, optimizer))


if __name__ == "__main__":
    base.run(__doc__, MODELS, make)
