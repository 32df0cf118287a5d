#!/usr/bin/env python3
# make_runs.py - Reference training runs of PyTorch: precision, accumulation, clipping, groups, schedules.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the models of test/models with PyTorch as each run of runs.py says.

    make_runs.py [--only TEXT]

Writes runs.json beside this script: by name of the run, for each step the loss
(mean over ranks and micro-batches), the norm of the gradient before clipping,
and where it varies the learning rate, the loss scale and whether the step was
skipped; `final`, by parameter: the L2 norm of its change over the run, and the
change's product with cos(1), cos(2), ... The parameters start from
init.safetensors and the samples are those of data.safetensors, in zero-run's
order: micro-batch k of step s on rank r of N takes the B samples from
((s*A + k)*N + r)*B on.

system says what computed a run:
  torch     plain eager PyTorch in f32, the ranks one after the other
  fsdp2     fully_shard with MixedPrecisionPolicy over gloo on the CPU, one process a rank
  autocast  torch.autocast, the parameters in f32
  fp16      a half-precision copy of an f32 master, the gradient unscaled in f32, and
            DeepSpeed's loss scaler, whose model in scaler.py make_tables.py compares with
            the real class. The same loop in bf16 is compared with fsdp2 here, to 1e-3.

Needs torch 2.9.1, transformers 5.24 and safetensors.
"""
import argparse
import fnmatch
import json
import math
import os
import pathlib
import sys
import warnings

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "models"
sys.path[:0] = [str(HERE), str(MODELS)]
import make_models  # noqa: E402
import runs as the_runs  # noqa: E402
import scaler  # noqa: E402

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class BatchNorm(torch.nn.BatchNorm2d):
    """Running statistics stay f32 beside narrow weights, as FSDP2 leaves them."""

    def forward(self, x):
        self.num_batches_tracked.add_(1)
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight.float(), self.bias.float(), True,
                            self.momentum, self.eps)


def build(run):
    model = make_models.build(run["model"])
    model.load_state_dict(load_file(MODELS / run["model"] / "init.safetensors"), strict=False)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.__class__ = BatchNorm
        if hasattr(module, "config"):
            module.config._attn_implementation = "eager"
    for name, p in model.named_parameters():
        p.requires_grad_(not any(fnmatch.fnmatchcase(name, f) for f in run.get("freeze", ())))
    return model.train()


class Samples:
    def __init__(self, run):
        data = load_file(MODELS / run["model"] / "data.safetensors")
        self.run, self.x = run, data[make_models.MODELS[run["model"]][1]]
        self.y = data.get("labels", self.x)

    def batch(self, step, micro, rank):
        run = self.run
        first = ((step * run["accumulate"] + micro) * run["ranks"] + rank) * run["batch"]
        rows = [(first + i) % len(self.x) for i in range(run["batch"])]
        x = self.x[rows]
        return (x * the_runs.factor(run, step) if x.is_floating_point() else x), self.y[rows]


def optimizer(run, named):
    """Groups as zero-run has them: the first pattern that a name matches decides."""
    base = {"lr": run["lr"], "weight_decay": run.get("weight_decay", 0.0)}
    groups = {}
    for name, p in named.items():
        own = dict(base)
        for pattern, change in run.get("groups", ()):
            if fnmatch.fnmatchcase(name, pattern) or (pattern == "auto" and p.dim() <= 1):
                own.update(change)
                break
        groups.setdefault(tuple(own.items()), []).append(p)
    groups = [dict(own, params=ps) for own, ps in groups.items()]
    if run["optimizer"] == "sgd":
        return torch.optim.SGD(groups, momentum=run["momentum"])
    return torch.optim.AdamW(groups) if run["optimizer"] == "adamw" else torch.optim.Adam(groups)


def scheduler(run, opt):
    if "schedule" not in run:
        return None
    kind, params = run["schedule"]
    rest, lr = {k: v for k, v in params.items() if k != "warmup"}, torch.optim.lr_scheduler
    if "warmup" not in params:
        return getattr(lr, kind)(opt, **rest)
    first = lr.LinearLR(opt, end_factor=1.0, **params["warmup"])
    return lr.SequentialLR(opt, [first, getattr(lr, kind)(opt, **rest)], [params["warmup"]["total_iters"]])


def loss_of(run, model, x, y, kind=None):
    if run["system"] == "autocast":
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(x)
    else:
        logits = model(x.to(kind) if kind and x.is_floating_point() else x)
    return make_models.loss_of(make_models.MODELS[run["model"]][3], logits.float(), y)


def final(run, start, end):
    found = {}
    for name in start:
        change = (end[name].double() - start[name].double()).flatten()
        ramp = torch.arange(1, change.numel() + 1, dtype=torch.float64).cos()
        found[name] = [float(f"{v:.7g}") for v in (change.norm().item(), (change @ ramp).item())]
    return found


def clip(run, params):
    norm = torch.stack([p.grad.double().norm() for p in params]).norm().item()
    if "clip" in run:
        torch.nn.utils.clip_grad_norm_(params, run["clip"])
    if "clip_value" in run:
        torch.nn.utils.clip_grad_value_(params, run["clip_value"])
    return norm


def weights(model):
    """Trained and frozen parameters and running statistics by name."""
    found = {k: p.detach().clone() for k, p in model.named_parameters()}
    return found | {k: b.detach().clone() for k, b in model.named_buffers()
                    if b.is_floating_point() and "running" in k}


class Loop:
    """All ranks in one process, one after the other: f32, or a narrow copy of f32 masters."""

    def __init__(self, run, kind=None):
        self.run, self.kind, self.samples = run, kind, Samples(run)
        self.model, self.masters = build(run), None
        self.start = weights(self.model)
        trained = {k: p for k, p in self.model.named_parameters() if p.requires_grad}
        self.masters = {k: p.detach().clone().float() for k, p in trained.items()}
        self.narrow = trained
        self.opt = optimizer(run, self.masters)
        self.schedule = scheduler(run, self.opt)
        for p in self.model.parameters():
            if kind:
                p.data = p.data.to(kind)
        self.buffers = [self.statistics() for _ in range(run["ranks"])]
        self.given = run.get("scaler")
        self.overflows, self.rows = [], []

    def statistics(self):
        return {k: b.clone() for k, b in self.model.named_buffers()}

    def scale(self):
        if self.given is None:
            return 1.0
        if not isinstance(self.given, dict):
            return self.given
        return scaler.scales(self.given, scaler.letters(self.given, self.overflows))[-1]

    def gradients(self, step, scale):
        run, sums, total = self.run, {k: 0 for k in self.narrow}, 0.0
        for rank in range(run["ranks"]):
            make_models.load(self.model, self.buffers[rank])
            own = {k: 0 for k in self.narrow}
            for micro in range(run["accumulate"]):
                self.model.zero_grad()
                loss = loss_of(run, self.model, *self.samples.batch(step, micro, rank), self.kind)
                (loss * (scale / run["accumulate"])).backward()
                total += loss.item() / run["accumulate"] / run["ranks"]
                own = {k: own[k] + p.grad.float() for k, p in self.narrow.items()}
            sums = {k: sums[k] + own[k] for k in sums}
            self.buffers[rank] = self.statistics()
        return total, {k: g / run["ranks"] for k, g in sums.items()}

    def step(self, step):
        scale = self.scale()
        loss, grads = self.gradients(step, scale)
        overflow = self.given is not None and not all(torch.isfinite(g).all() for g in grads.values())
        row = dict(loss=loss, lr=self.opt.param_groups[0]["lr"], loss_scale=scale, overflow=overflow)
        for k, p in self.masters.items():
            p.grad = grads[k] / scale
        row["grad_norm"] = None if overflow else clip(self.run, list(self.masters.values()))
        if not overflow:
            self.opt.step()
            if self.schedule:
                self.schedule.step()
        for k, p in self.narrow.items():
            p.data = self.masters[k].to(p.dtype)
        self.overflows.append(overflow)
        self.rows.append(row)

    def train(self):
        for step in range(self.run["steps"]):
            self.step(step)
        make_models.load(self.model, {k: make_models.mean([r[k] for r in self.buffers]) for k in self.buffers[0]})
        return self.rows, final(self.run, self.start, weights(self.model) | self.masters)


def fsdp_rank(rank, run, out):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29541")
    dist.init_process_group("gloo", rank=rank, world_size=run["ranks"])
    model = build(run)
    start = weights(model)
    types = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=TYPES.get(run.get("reduce"), torch.float32))
    fully_shard(model, mesh=init_device_mesh("cpu", (run["ranks"],)), mp_policy=types)
    named = {k: p for k, p in model.named_parameters() if p.requires_grad}
    opt, samples, rows = optimizer(run, named), Samples(run), []
    schedule = scheduler(run, opt)
    for step in range(run["steps"]):
        opt.zero_grad()
        total = torch.zeros(())
        for micro in range(run["accumulate"]):
            loss = loss_of(run, model, *samples.batch(step, micro, rank))
            (loss / run["accumulate"]).backward()
            total += loss.detach() / run["accumulate"]
        dist.all_reduce(total)
        row = dict(loss=total.item() / run["ranks"], lr=opt.param_groups[0]["lr"], loss_scale=1.0, overflow=False)
        norm = torch.nn.utils.clip_grad_norm_(list(named.values()), run.get("clip", math.inf)).full_tensor()
        row["grad_norm"] = norm.item()
        if "clip_value" in run:
            torch.nn.utils.clip_grad_value_(list(named.values()), run["clip_value"])
        opt.step()
        if schedule:
            schedule.step()
        rows.append(row)
    end = {k: (p.full_tensor() if hasattr(p, "full_tensor") else p).detach() for k, p in weights(model).items()}
    for k in end:
        if "running" in k:
            dist.all_reduce(end[k])
            end[k] /= run["ranks"]
    if rank == 0:
        torch.save((rows, final(run, start, end)), out)
    dist.destroy_process_group()


def by_fsdp(run):
    import tempfile

    import torch.multiprocessing as processes

    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "rows")
        processes.spawn(fsdp_rank, (run, out), run["ranks"])
        rows, end = torch.load(out)
    if run.get("reduce", "f32") == "f32":
        again, _ = Loop(run, torch.bfloat16).train()
        for key in ("loss", "grad_norm"):
            worst = max(abs(a[key] - b[key]) / b[key] for a, b in zip(rows, again))
            if worst > 1e-3:
                raise SystemExit(f"the loop in bf16 and FSDP2 differ in {key}: {worst:.1e}")
    return rows, end


def rounded(values):
    return [None if v is None or not math.isfinite(v) else float(f"{v:.8g}") for v in values]


def made(run):
    run = dict(the_runs.DEFAULTS, **run)
    if run["system"] == "fsdp2":
        rows, end = by_fsdp(run)
    else:
        rows, end = Loop(run, TYPES.get(run["system"])).train()
    found = {key: rounded([row[key] for row in rows]) for key in ("loss", "grad_norm")}
    if "schedule" in run:
        found["lr"] = [row["lr"] for row in rows]
    if run.get("scaler"):
        found["loss_scale"] = [row["loss_scale"] for row in rows]
        found["overflow"] = "".join("x" if row["overflow"] else "." for row in rows)
    found["final"] = end
    return found


def write(path, known):
    lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in the_runs.RUNS if name in known]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="only runs whose name contains TEXT")
    only, path = parser.parse_args().only, HERE / "runs.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    for name, run in the_runs.RUNS.items():
        if only in name:
            known[name] = made(run)
            found = known[name]
            print(name, found["loss"][0], found["loss"][-1], found["grad_norm"][0], found.get("overflow", ""), flush=True)
            write(path, known)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    main()
