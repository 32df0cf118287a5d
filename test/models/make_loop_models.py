#!/usr/bin/env python3
# make_loop_models.py - Makes a mixture of experts and a recurrent model with PyTorch.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What make_models.py makes, of models in which the data or loops say what is computed:

    make_loop_models.py [NAME...]

moe is Hugging Face's Mixtral block (transformers 4: a loop over the experts, each with the
list of its tokens), recurrent an LSTM in both directions and a GRU. Needs what
make_models.py needs, but for transformers.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

import make_models as base

HIDDEN, LENGTH, EXPERTS, CHOICES = 16, 6, 4, 2


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3 = nn.Linear(HIDDEN, 24, bias=False), nn.Linear(HIDDEN, 24, bias=False)
        self.w2 = nn.Linear(24, HIDDEN, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Mixture(nn.Module):
    """As MixtralSparseMoeBlock.forward has it."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def forward(self, states):
        batch, length, width = states.shape
        states = states.view(-1, width)
        weights = F.softmax(self.gate(states), dim=1, dtype=torch.float)
        weights, chosen = torch.topk(weights, CHOICES, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        weights = weights.to(states.dtype)
        result = torch.zeros((batch * length, width), dtype=states.dtype, device=states.device)
        mask = F.one_hot(chosen, num_classes=EXPERTS).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            choice, token = torch.where(mask[i])
            current = states[None, token].reshape(-1, width)
            current = expert(current) * weights[token, choice, None]
            result.index_add_(0, token, current.to(states.dtype))
        return result.reshape(batch, length, width)


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm = nn.Linear(8, HIDDEN), nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(Mixture() for _ in range(2))
        self.head = nn.Linear(HIDDEN, 10)

    def forward(self, x):
        x = self.up(x)
        for layer in self.layers:
            x = x + layer(self.norm(x))
        return self.head(x.mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 12, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(24, 12, batch_first=True)
        self.head = nn.Linear(12, 10)

    def forward(self, x):
        return self.head(self.gru(self.lstm(x)[0])[0][:, -1])


MODELS = {"moe": Moe, "recurrent": Recurrent}
OPTIMIZERS = ("sgd", "adamw")


def build(name):
    torch.manual_seed(base.SEED)
    return MODELS[name]().train()


def batches():
    g, batch = torch.Generator().manual_seed(base.SEED + 2), base.images((LENGTH, 8))
    return [batch(g) for _ in range(base.STEPS)]


def export(name, path):
    axes = {"x": {0: "batch"}, "logits": {0: "batch"}}
    torch.onnx.export(build(name), (batches()[0][0],), path, dynamo=False, opset_version=17, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING, dynamic_axes=axes, input_names=["x"],
                      output_names=["logits"])


def train(name, optimizer):
    model = build(name)
    step = base.OPTIMIZERS[optimizer](list(model.parameters()))
    losses, norms = [], []
    for x, y in batches():
        step.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.stack([p.grad.double().norm() for p in model.parameters()]).norm().item())
        step.step()
    return model, losses, norms


def make(name):
    folder = base.HERE / name
    folder.mkdir(exist_ok=True)
    export(name, str(folder / "ts_train.onnx"))
    data = batches()
    save_file({"x": torch.cat([x for x, _ in data]), "labels": torch.cat([y for _, y in data])},
              folder / "data.safetensors")
    save_file(base.parameters(build(name)), folder / "init.safetensors")
    reference = dict(torch=torch.__version__, loss="cross-entropy", input="x", steps=base.STEPS, batch=base.BATCH,
                     ties=[], trained=[k for k, _ in build(name).named_parameters()], hyper=base.HYPER, runs={})
    base.add_runs(reference, folder, OPTIMIZERS, lambda optimizer: train(name, optimizer))


if __name__ == "__main__":
    base.run(__doc__, MODELS, make)
