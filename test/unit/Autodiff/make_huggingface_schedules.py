#!/usr/bin/env python3
# make_huggingface_schedules.py - A table of learning rates of Hugging Face's schedules.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs transformers.get_scheduler, and writes data/huggingface_schedules.json.

    make_huggingface_schedules.py        needs torch and transformers

{"cases": [{name, system, schedule, lr, params, rates}, ...]}, one case a line:
rates[k] is what update k uses, with one scheduler.step() after each update;
`params` are the numbers of #train.schedule beside `lr`.
"""
import json
import pathlib
import warnings

import torch
from transformers import get_scheduler

STEPS = 48
CASES = [
    ("constant", 1e-3, {}),
    ("constant_with_warmup", 1e-3, {"warmup": 7}),
    ("constant_with_warmup", 3e-4, {"warmup": 0}),
    ("linear", 1e-3, {"warmup": 5, "total": 40}),
    ("linear", 3e-4, {"total": 30}),
    ("linear", 3e-4, {"warmup": 20, "total": 10}),
    ("cosine", 1e-3, {"warmup": 5, "total": 40}),
    ("cosine", 2e-3, {"total": 60, "num_cycles": 1.5}),
    ("polynomial", 1e-3, {"warmup": 5, "total": 40}),
    ("polynomial", 1e-3, {"warmup": 3, "total": 45, "power": 2.5, "lr_end": 1e-5}),
]


def rates(kind, lr, params):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    extra = {k: v for k, v in params.items() if k not in ("warmup", "total")}
    schedule = get_scheduler(kind, optimizer, num_warmup_steps=params.get("warmup", 0),
                             num_training_steps=params.get("total"), scheduler_specific_kwargs=extra)
    seen = []
    for _ in range(STEPS):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return seen


def main():
    warnings.filterwarnings("ignore")
    cases = [json.dumps(dict(name=f"{n:02} {kind}", system="huggingface", schedule=kind, lr=lr, params=params,
                             rates=rates(kind, lr, params))) for n, (kind, lr, params) in enumerate(CASES)]
    text = ",\n".join(cases)
    path = pathlib.Path(__file__).resolve().parent / "data" / "huggingface_schedules.json"
    path.write_text(f'{{"cases": [\n{text}\n]}}\n')


if __name__ == "__main__":
    main()
