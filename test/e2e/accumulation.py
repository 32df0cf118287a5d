# accumulation.py - Cases about what micro-batches and narrow types send and hold.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes by collective against the closed forms, to the byte, with g micro-batches.

Elements a rank sends in a step, of P parameters on N ranks, times (N-1)/N: stage 1 reduces
the sum once and gathers once, 2P; stage 2 scatters each micro-batch's gradient, (g+1)P; stage 3
also gathers in each, 3gP less what stays gathered from forward to backward. On a grid of R
replicas of S shards the shards of the sum are reduced between replicas once a step.
"""
import formulas
from harness import model, require
from references import run_of
from training import elements

STAGES = (0, 1, 2, 3)


def sent(psi, ranks, stage, micro, narrow):
    """Bytes by collective; of stage 3 the gathers are at most these."""
    part = (ranks - 1) / ranks * psi
    wide, gathers = 4 * part, (2 if narrow else 4) * part
    if stage == 0:
        return {"all_gather": 0, "reduce_scatter": 0, "all_reduce": 2 * wide}
    if stage == 1:
        return {"all_gather": gathers, "reduce_scatter": wide, "all_reduce": 0}
    return {"all_gather": gathers if stage == 2 else 2 * micro * gathers, "reduce_scatter": micro * wide, "all_reduce": 0}


def compare(rows, want, stage, micro):
    for row in rows:
        for kind, expected in want.items():
            got, where = row["comm_bytes"][kind], f"step {row['step']}: {kind}"
            if stage == 3 and kind == "all_gather":
                # Each forward gathers everything; a backward what it does not find.
                require(expected / 2 - 1 < got < expected + 1, f"{where} sends {got} bytes, at most {expected}")
                require(got < expected * (1 - 0.01 / micro), f"{where} sends {got} bytes: nothing stayed gathered")
            else:
                require(abs(got - expected) < 1, f"{where} sends {got} bytes, formula {expected}")


def sends_as_the_formula(trainer, name, stage):
    run = run_of(name)
    want = sent(elements(model(run["model"])), run["ranks"], stage, run["accumulate"], run["system"] != "torch")
    compare(trainer.train(name, stage).rows, want, stage, run["accumulate"])


def replicas_reduce_once(trainer, name, stage):
    """On a grid of 2x2: the shard of the sum crosses the replicas once, however many micro-batches."""
    run = run_of(name)
    psi, micro = elements(model(run["model"])), run["accumulate"]
    want = sent(psi, 2, stage, micro, False)
    want["all_reduce"] = 2 * formulas.SCALAR_BYTES * (psi / 2 if stage else psi) * (1 / 2 if stage else 3 / 4)
    compare(trainer.train(name, stage, "--zero-grid", "2x2").rows, want, stage, micro)


def holds_as_the_formula(trainer, name, stage):
    """Sums of gradients are cut into shards at stages 2 and 3: no rank holds them whole."""
    run = run_of(name)
    psi = elements(model(run["model"]))
    row = trainer.train(name, stage).rows[-1]
    held, want = sum(row["state_bytes"].values()), formulas.state_bytes(psi, run["optimizer"], run["ranks"], stage)
    require(abs(held - want) < 1, f"state is {held} bytes without padding, formula {want}")
    require(row["peak_bytes"] == row["planned_peak_bytes"], f"peak {row['peak_bytes']}, planned {row['planned_peak_bytes']}")


def stages_agree(trainer, name, first, second):
    """Stages that reduce at the same time train the same weights, bit for bit."""
    one, other = (trainer.train(name, stage, "--clip", 0.5) for stage in (first, second))
    require(one.bytes == other.bytes, f"stages {first} and {second} train other weights")
    require(one.column("loss") == other.column("loss"), f"stages {first} and {second} have other losses")


def add_cases(cases, trainer):
    for name in ("accumulate 2 mlp ranks 2", "accumulate 4 mlp ranks 2", "accumulate 2 mlp ranks 4",
                 "accumulate 2 gpt2 ranks 2", "accumulate 4 gpt2 ranks 2", "accumulate 2 cnn ranks 2"):
        for stage in STAGES:
            cases.add(f"accumulation traffic {name} stage {stage}", sends_as_the_formula, trainer, name, stage)
            cases.add(f"accumulation state {name} stage {stage}", holds_as_the_formula, trainer, name, stage)
        for first, second in ((0, 1), (2, 3)):
            cases.add(f"accumulation stages {name} {first} {second}", stages_agree, trainer, name, first, second)
    for name in ("bf16 mlp ranks 2", "bf16 gpt2 ranks 2", "bf16 accumulated mlp", "bf16 accumulated gpt2"):
        for stage in STAGES:
            cases.add(f"precision traffic {name} stage {stage}", sends_as_the_formula, trainer, name, stage)
    for name in ("accumulate 2 mlp ranks 4", "accumulate 2 gpt2 ranks 4"):
        for stage in (0, 2, 3):
            cases.add(f"accumulation grid traffic {name} stage {stage}", replicas_reduce_once, trainer, name, stage)
