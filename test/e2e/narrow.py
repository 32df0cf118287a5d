# narrow.py - Cases that train in bf16 and f16.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Narrow types change numbers once, in the ops: not with the stage, the schedule or the grid."""
from harness import model, require
from schedule import SCHEDULES
from training import STAGES, same_bits

FORM, OPTIMIZER = "ts_train", "adamw"
# Relative distance of the losses to those of f32: what 8 and 11 bits leave.
LOSS_TOLERANCE = {"bf16": 2e-2, "fp16": 5e-3}


def runs(runner, name, precision, ranks, batch, stage, *flags):
    return runner.train(name, FORM, OPTIMIZER, ranks, stage, batch, "--precision", precision, *flags)


def stages_agree(runner, *key):
    first = runs(runner, *key, 0)
    for stage in STAGES[1:]:
        same_bits(first, runs(runner, *key, stage), f"of stages 0 and {stage}")


def schedules_agree(runner, *key):
    for stage in STAGES:
        first = runs(runner, *key, stage)
        for schedule in SCHEDULES:
            same_bits(first, runs(runner, *key, stage, "--zero-schedule", schedule), f"of stage {stage} with '{schedule}'")


def grids_agree(runner, *key):
    for stage in STAGES[1:]:
        first = runs(runner, *key, 0, "--zero-grid", "2x2")
        same_bits(first, runs(runner, *key, stage, "--zero-grid", "2x2"), f"of stages 0 and {stage} on 2x2")


def close_to_f32(runner, name, precision, ranks, batch):
    wide = runner.train(name, FORM, OPTIMIZER, ranks, 0, batch).column("loss")
    narrow = runs(runner, name, precision, ranks, batch, 0).column("loss")
    require(narrow != wide, f"losses in {precision} are those of f32")
    for step, (x, y) in enumerate(zip(narrow, wide), 1):
        error = abs(x - y) / abs(y)
        require(error <= LOSS_TOLERANCE[precision], f"step {step}: loss {x} is not {y} (relative error {error:.1e})")


def add_cases(cases, runner):
    for name, all_ranks in (("mlp", (1, 2, 3, 4)), ("gpt2", (1, 2, 3, 4)), ("cnn", (2,))):
        for precision in LOSS_TOLERANCE:
            for ranks in all_ranks:
                key = (runner, name, precision, ranks, max(model(name).reference["batch"] // ranks, 1))
                where = f"{name} {precision} ranks {ranks}"
                cases.add(f"narrow stages {where}", stages_agree, *key)
                cases.add(f"narrow close to f32 {where}", close_to_f32, *key)
    for name in ("mlp", "gpt2"):
        key = (runner, name, "bf16", 4, max(model(name).reference["batch"] // 4, 1))
        cases.add(f"narrow schedules {name}", schedules_agree, *key)
        cases.add(f"narrow grids {name}", grids_agree, *key)
