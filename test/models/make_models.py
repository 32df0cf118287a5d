#!/usr/bin/env python3
# make_models.py - Makes the small models of this folder with PyTorch.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports the test models to ONNX and trains each with PyTorch as the reference.

    make_models.py [NAME...]

For each model, in a folder of its name beside this script:
  FORM.onnx             one file for each way to export it (see FORMS)
  data.safetensors      STEPS batches of BATCH samples
  init.safetensors      parameters and buffers before the first step
  final_RUN.safetensors the same after the last step of RUN (sgd_w1, adamw_w4, ...)
  reference.json        losses and gradient norms of each run
The run OPT_wN splits each batch over N ranks as data parallelism does:
gradients are averaged, BatchNorm statistics are each rank's own and its running
statistics are averaged at the end. Models without such statistics
compute the same for every N, so only w1 keeps its parameters.

Needs torch 2.9.1, transformers 4.51.3 (newer ones: no TorchScript
export of GPT-2), onnx 1.23.2, onnxscript and safetensors.
"""
import argparse
import json
import pathlib
import warnings

import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
SEED, STEPS, BATCH = 20, 10, 8
OPTIMIZERS = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=1e-3, weight_decay=0.01),
}
HYPER = {
    "sgd": {"optimizer": "sgd", "lr": 0.05, "momentum": 0.9},
    "adamw": {"optimizer": "adamw", "lr": 1e-3, "weight-decay": 0.01},
}


class Mlp(nn.Module):
    """Row counts 30 and 10 divide by few rank counts: uneven and empty shards."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(20, 30), nn.Linear(30, 30), nn.Linear(30, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Cnn(nn.Module):
    """Convolutions with and without bias, BatchNorm, both pools, one residual.

    No bias before BatchNorm: its gradient would be rounding noise."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.down = nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.head = nn.Linear(12, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.stem(x))), 2)
        x = F.relu(x + self.bn2(self.conv(x)))
        x = F.adaptive_avg_pool2d(F.relu(self.down(x)), 1)
        return self.head(torch.flatten(x, 1))


class Gpt2(nn.Module):
    """Hugging Face's GPT-2, tiny; its output matrix is tied to the embedding."""

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(GPT2Config(
            vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def images(shape):
    """Ten classes, each a fixed pattern under noise: something to learn."""
    patterns = torch.randn(10, *shape, generator=torch.Generator().manual_seed(7))

    def batch(g):
        y = torch.randint(0, 10, (BATCH,), generator=g)
        return torch.randn(BATCH, *shape, generator=g) + patterns[y], y

    return batch


def tokens(length, vocab):
    def batch(g):
        x = torch.randint(0, vocab // 8, (BATCH, length), generator=g)
        return x, x.clone()

    return batch


# name: (class, input name, batch function, loss, whether BatchNorm makes ranks differ)
MODELS = {
    "mlp": (Mlp, "x", images((20,)), "cross-entropy", False),
    "cnn": (Cnn, "x", images((3, 8, 8)), "cross-entropy", True),
    "gpt2": (Gpt2, "input_ids", tokens(16, 64), "causal-lm", False),
}
# ts_train: the TorchScript exporter, in training mode, symbolic batch.
# dynamo_noopt: torch.export at a fixed batch; dynamo_noopt_dyn: symbolic.
FORMS = ("ts_train", "dynamo_noopt", "dynamo_noopt_dyn")


def build(name):
    torch.manual_seed(SEED)
    model = MODELS[name][0]()
    g = torch.Generator().manual_seed(SEED + 1)
    with torch.no_grad():  # equal 1-D parameters would be merged by exporters
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(0.02 * torch.randn(p.shape, generator=g))
    return model.train()


def batches(name):
    g = torch.Generator().manual_seed(SEED + 2)
    return [MODELS[name][2](g) for _ in range(STEPS)]


def loss_of(kind, logits, labels):
    if kind == "causal-lm":
        logits, labels = logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1)
    return F.cross_entropy(logits, labels)


def export(name, form, path):
    _, arg, _, kind, _ = MODELS[name]
    model, x = build(name), batches(name)[0][0]
    axes = {0: "batch", 1: "seq"} if kind == "causal-lm" else {0: "batch"}
    names = dict(input_names=[arg], output_names=["logits"])
    if form == "ts_train":
        torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING,
                          dynamic_axes={arg: axes, "logits": axes}, **names)
    else:
        dims = {i: torch.export.Dim(n, min=2, max=4096 if i == 0 else 32) for i, n in axes.items()}
        dynamic = (dims,) if form.endswith("_dyn") else None
        torch.onnx.export(model.eval(), (x,), path, dynamo=True, optimize=False,
                          dynamic_shapes=dynamic, verbose=False, **names)
        drop_traces(path)


def drop_traces(path):
    """Python stack traces are half of such a file and name the machine's folders."""
    model = onnx.load(path, load_external_data=False)
    for owner in [*model.graph.node, *(n for f in model.functions for n in f.node)]:
        kept = [(p.key, p.value) for p in owner.metadata_props if "stack_trace" not in p.key]
        del owner.metadata_props[:]
        for key, value in kept:
            owner.metadata_props.add(key=key, value=value)
    onnx.save(model, path)


def train(name, optimizer, world):
    kind, model = MODELS[name][3], build(name)
    step = OPTIMIZERS[optimizer](list(model.parameters()))
    ranks = [{k: b.clone() for k, b in model.named_buffers()} for _ in range(world)]
    losses, norms = [], []
    for x, y in batches(name):
        step.zero_grad()
        total, part = 0.0, BATCH // world
        for r in range(world):
            load(model, ranks[r])
            rows = slice(r * part, (r + 1) * part)
            loss = loss_of(kind, model(x[rows]), y[rows])
            (loss / world).backward()
            total += loss.item() / world
            ranks[r] = {k: b.clone() for k, b in model.named_buffers()}
        losses.append(total)
        norms.append(torch.stack([p.grad.double().norm() for p in model.parameters()]).norm().item())
        step.step()
    load(model, {k: mean([r[k] for r in ranks]) for k in ranks[0]})
    return model, losses, norms


def load(model, buffers):
    with torch.no_grad():
        for k, b in model.named_buffers():
            b.copy_(buffers[k])


def mean(values):
    return torch.stack(values).mean(0) if values[0].is_floating_point() else values[0]


def parameters(model):
    """Parameters and float buffers by name, a tied one once."""
    tensors = dict(model.named_parameters())
    tensors |= {k: b for k, b in model.named_buffers() if b.is_floating_point() and k in model.state_dict()}
    return {k: t.detach().clone().contiguous() for k, t in tensors.items()}


def ties(model):
    names = {}
    for k, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(k)
    return [n for n in names.values() if len(n) > 1]


def make(name):
    _, arg, _, kind, by_rank = MODELS[name]
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    for form in FORMS:
        export(name, form, str(folder / f"{form}.onnx"))
    data = batches(name)
    tensors = {arg: torch.cat([x for x, _ in data])}
    if kind != "causal-lm":
        tensors["labels"] = torch.cat([y for _, y in data])
    save_file(tensors, folder / "data.safetensors")
    model = build(name)
    save_file(parameters(model), folder / "init.safetensors")
    reference = dict(
        torch=torch.__version__, loss=kind, input=arg, steps=STEPS, batch=BATCH, ties=ties(model),
        trained=[k for k, _ in model.named_parameters()], hyper=HYPER, runs={})
    for optimizer in OPTIMIZERS:
        for world in (1, 2, 4):
            run = f"{optimizer}_w{world}"
            model, losses, norms = train(name, optimizer, world)
            if world == 1 or by_rank:
                save_file(parameters(model), folder / f"final_{run}.safetensors")
            reference["runs"][run] = dict(
                losses=losses, grad_norms=norms,
                final=f"final_{run if by_rank else optimizer + '_w1'}.safetensors")
    (folder / "reference.json").write_text(json.dumps(reference, indent=1) + "\n")


def add_runs(reference, folder, optimizers, train):
    """Trains on one rank with each; writes the final parameters and reference.json."""
    for optimizer in optimizers:
        model, losses, norms = train(optimizer)
        final = f"final_{optimizer}_w1.safetensors"
        save_file(parameters(model), folder / final)
        reference["runs"][f"{optimizer}_w1"] = dict(losses=losses, grad_norms=norms, final=final)
    (folder / "reference.json").write_text(json.dumps(reference, indent=1) + "\n")


def run(description, models, make):
    """The command line of a script that makes models."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(models))
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in parser.parse_args().names or models:
        make(name)
        print(f"made {name}")


if __name__ == "__main__":
    run(__doc__, MODELS, make)
