#!/usr/bin/env python3
# make_tables.py - Tables of learning rates and loss scales of PyTorch and DeepSpeed.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the real schedulers and the real loss scaler, and writes what they do.

    make_tables.py [OUTPUT_DIR]          default: test/unit/Autodiff/data

schedules.json: {"cases": [{name, system, schedule, lr, params, rates}, ...]}
  rates[k] is the learning rate that update k uses (k = 0 is the first), when the
  optimizer is made with `lr`, and the scheduler steps once after each update that
  was not skipped, as DeepSpeed's engine and PyTorch's examples do. DeepSpeed's
  `params` are those of its JSON. PyTorch's `params` are the scheduler's arguments;
  with "warmup" it is SequentialLR of LinearLR(start_factor, total_iters) and the
  schedule, with the milestone at total_iters.

loss_scales.txt: one line a sequence: initial scale, window, hysteresis,
  consecutive (0 or 1), minimum, then the steps, each a letter, `12.` being twelve:
    .  no overflow, scale as before        +  no overflow, scale doubles after it
    h  overflow, only hysteresis falls     -  overflow, scale becomes max(scale/2, minimum)
    !  overflow at the minimum: DeepSpeed ends the run; the line goes on with the scale unchanged
  The model of the rule in scaler.py is compared with the real class at each step.

Needs torch 2.9.1 and deepspeed 0.19.8 (DS_ACCELERATOR=cpu).
"""
import json
import logging
import pathlib
import random
import sys
import warnings

import torch
from deepspeed.runtime import lr_schedules as ds
from deepspeed.runtime.fp16 import loss_scaler
from torch.optim import lr_scheduler as pt

import scaler

HERE = pathlib.Path(__file__).resolve().parent
STEPS, SEED, SEQUENCES = 48, 23, 1000

DEEPSPEED = [
    ("WarmupLR", 1e-3, {}),
    ("WarmupLR", 3e-4, {"warmup_num_steps": 10}),
    ("WarmupLR", 3e-4, {"warmup_num_steps": 1}),
    ("WarmupLR", 1e-3, {"warmup_min_lr": 1e-5, "warmup_max_lr": 2e-3, "warmup_num_steps": 20, "warmup_type": "linear"}),
    ("WarmupLR", 1e-3, {"warmup_min_lr": 1e-5, "warmup_max_lr": 2e-3, "warmup_num_steps": 20, "warmup_type": "log"}),
    ("WarmupDecayLR", 1e-3, {"total_num_steps": 40, "warmup_num_steps": 8}),
    ("WarmupDecayLR", 1e-3, {"total_num_steps": 40, "warmup_num_steps": 8, "warmup_type": "linear",
                             "warmup_max_lr": 5e-3, "warmup_min_lr": 1e-4}),
    ("WarmupDecayLR", 1e-3, {"total_num_steps": 10, "warmup_num_steps": 20, "warmup_type": "linear"}),
    ("WarmupCosineLR", 2e-3, {"total_num_steps": 40, "warmup_num_steps": 8}),
    ("WarmupCosineLR", 2e-3, {"total_num_steps": 40, "warmup_num_steps": 8, "warmup_type": "linear",
                              "warmup_min_ratio": 0.1, "cos_min_ratio": 0.05}),
    ("WarmupCosineLR", 2e-3, {"total_num_steps": 5, "warmup_num_steps": 12}),
    ("LRRangeTest", 1e-3, {}),
    ("LRRangeTest", 1e-3, {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 5,
                           "lr_range_test_step_rate": 2.5}),
    ("LRRangeTest", 1e-3, {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 5,
                           "lr_range_test_step_rate": 2.5, "lr_range_test_staircase": True}),
    ("OneCycle", 1e-3, {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-2, "cycle_first_step_size": 10}),
    ("OneCycle", 1e-3, {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-2, "cycle_first_step_size": 10,
                        "cycle_second_step_size": 20, "decay_step_size": 5, "decay_lr_rate": 0.5}),
    ("OneCycle", 1e-3, {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-2, "cycle_first_step_size": 12,
                        "cycle_second_step_size": 9, "cycle_first_stair_count": 4, "cycle_second_stair_count": 3,
                        "decay_step_size": 7, "decay_lr_rate": 0.25}),
    ("OneCycle", 1e-3, {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-2, "cycle_first_step_size": 7,
                        "cycle_first_stair_count": 3, "decay_step_size": 0, "decay_lr_rate": 0.25}),
]

WARMUP = {"start_factor": 0.1, "total_iters": 6}
PYTORCH = [
    ("ConstantLR", 1e-3, {"factor": 1.0, "total_iters": 0}),
    ("ConstantLR", 1e-3, {"factor": 0.25, "total_iters": 7}),
    ("ConstantLR", 1e-3, {"factor": 1.0, "total_iters": 0, "warmup": WARMUP}),
    ("LinearLR", 1e-3, {"start_factor": 1 / 3, "end_factor": 1.0, "total_iters": 5}),
    ("LinearLR", 1e-3, {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 40}),
    ("LinearLR", 1e-3, {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 30, "warmup": WARMUP}),
    ("CosineAnnealingLR", 2e-3, {"T_max": 47}),
    ("CosineAnnealingLR", 2e-3, {"T_max": 41, "eta_min": 1e-4, "warmup": WARMUP}),
    ("PolynomialLR", 1e-3, {"total_iters": 40, "power": 1.0}),
    ("PolynomialLR", 1e-3, {"total_iters": 40, "power": 2.0}),
    ("PolynomialLR", 1e-3, {"total_iters": 30, "power": 0.5, "warmup": {"start_factor": 1 / 3, "total_iters": 4}}),
]


def optimizer(lr):
    return torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=lr)


def rates(make, lr):
    """What the updates use; OneCycle also moves the first beta."""
    opt = optimizer(lr)
    schedule, seen, betas = make(opt), [], []
    for _ in range(STEPS):
        seen.append(opt.param_groups[0]["lr"])
        betas.append(opt.param_groups[0]["betas"][0])
        opt.step()
        schedule.step()
    return seen, betas


def pytorch(kind, params):
    rest = {k: v for k, v in params.items() if k != "warmup"}

    def make(opt):
        if "warmup" not in params:
            return getattr(pt, kind)(opt, **rest)
        first = pt.LinearLR(opt, end_factor=1.0, **params["warmup"])
        return pt.SequentialLR(opt, [first, getattr(pt, kind)(opt, **rest)], [params["warmup"]["total_iters"]])

    return make


def case(system, kind, lr, params, make):
    seen, betas = rates(make, lr)
    made = dict(name=f"{kind} {len(seen)}", system=system, schedule=kind, lr=lr, params=params, rates=seen)
    if len(set(betas)) > 1:
        made["beta1"] = betas
    return made


def schedules():
    cases = [case("deepspeed", kind, lr, params, lambda opt: getattr(ds, kind)(opt, **params))
             for kind, lr, params in DEEPSPEED]
    cases += [case("pytorch", kind, lr, params, pytorch(kind, params)) for kind, lr, params in PYTORCH]
    for n, made in enumerate(cases):
        made["name"] = f"{n:02} {made['schedule']}"
    return cases


def settings(g):
    """Small windows and scales near the minimum, so that every rule acts in a short sequence."""
    init, consecutive = 2.0 ** g.randint(0, 20), g.random() < 0.4
    least = g.choice((1, 1, 1, 2, 3, 16, 100, 1 if consecutive else 0.25))
    return dict(init_scale=init, scale_window=g.choice((1, 2, 3, 4, 5, 7, 10, 16)), delayed_shift=g.randint(1, 4),
                consecutive_hysteresis=consecutive, min_scale=float(min(init, least)))


def overflows(g):
    """Clean and overflowing stretches, each with its own rate."""
    steps = []
    while len(steps) < g.randint(24, 72):
        rate = g.choice((0.0, 0.02, 0.1, 0.3, 0.7, 1.0))
        steps += [g.random() < rate for _ in range(g.randint(2, 16))]
    return steps


def real_scales(given, steps):
    """The scale in use at each step, and whether the class would have ended the run there."""
    real = loss_scaler.DynamicLossScaler(**given, raise_error_at_min_scale=True)
    quiet = loss_scaler.DynamicLossScaler(**given, raise_error_at_min_scale=False)
    seen, ends = [], []
    for overflow in steps:
        seen.append(quiet.cur_scale)
        real.__dict__.update({k: v for k, v in quiet.__dict__.items() if k != "raise_error_at_min_scale"})
        try:
            real.update_scale(overflow)
            ends.append(False)
        except Exception:
            ends.append(True)
        quiet.update_scale(overflow)
    return seen, ends


def line(given, steps):
    seen, ends = real_scales(given, steps)
    letters = scaler.letters(given, steps)
    if scaler.scales(given, letters)[:-1] != seen or [c == "!" for c in letters] != ends:
        raise SystemExit(f"scaler.py and DeepSpeed differ: {given} {steps}")
    head = (given["init_scale"], given["scale_window"], given["delayed_shift"],
            int(given["consecutive_hysteresis"]), given["min_scale"])
    return " ".join(f"{v:g}" if v < 1e6 else str(int(v)) for v in head) + " " + scaler.pack(letters)


def loss_scales():
    g = random.Random(SEED)
    lines = [line(dict(init_scale=65536.0, scale_window=1000, delayed_shift=2, consecutive_hysteresis=False,
                       min_scale=1.0), steps)
             for steps in ([False] * 2100, [True] * 20, [True] + [False] * 1005 + [True] * 3)]
    while len(lines) < SEQUENCES:
        lines.append(line(settings(g), overflows(g)))
    return lines


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "unit" / "Autodiff" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    cases = schedules()
    text = ",\n".join(json.dumps(c) for c in cases)
    (folder / "schedules.json").write_text(f'{{"cases": [\n{text}\n]}}\n')
    lines = loss_scales()
    (folder / "loss_scales.txt").write_text("\n".join(lines) + "\n")
    print(f"{len(cases)} schedules, {len(lines)} sequences of loss scales")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.INFO)
    ds.logger.disabled = loss_scaler.logger.disabled = True
    loss_scaler.dist.get_rank = lambda: 0  # there is no process group
    main()
