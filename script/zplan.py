# zplan.py - Reads a .zplan and says how much state a rank holds.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the demo and the end-to-end tests; flatc does the reading."""
import json
import pathlib
import subprocess

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "runtime" / "zplan.fbs"
STATE_KINDS = ("Parameter", "Gradient", "OptimizerState")


def read(plan, scratch):
    """The plan as the JSON that its schema gives; SCRATCH is a folder to write to."""
    subprocess.run(["flatc", "--json", "--raw-binary", "--strict-json", "--defaults-json",
                    "-o", str(scratch), str(SCHEMA), "--", str(plan)], check=True, capture_output=True)
    return json.loads((pathlib.Path(scratch) / f"{pathlib.Path(plan).stem}.json").read_text())


def state_bytes(plan):
    """(bytes, padding bytes in them) of parameters, gradients and optimizer state on one rank."""
    state = [b for b in plan["buffers"] if b["kind"] in STATE_KINDS]
    return sum(b["bytes"] for b in state), sum(b["padding_bytes"] for b in state)


def state_formula(parameters, optimizer_bytes, ranks, stage):
    """The ZeRO paper's bytes in fp32: 4 of parameter, 4 of gradient, the optimizer's."""
    whole, part = {0: (8 + optimizer_bytes, 0), 1: (8, optimizer_bytes),
                   2: (4, 4 + optimizer_bytes), 3: (0, 8 + optimizer_bytes)}[stage]
    return whole * parameters + part * parameters / ranks


def sent_formula(parameters, ranks, stage):
    """Bytes that a rank sends in a step in fp32, by collective, in the ring model."""
    share = 4 * parameters * (ranks - 1) / ranks
    if stage == 0:
        return {"all_gather": 0, "reduce_scatter": 0, "all_reduce": 2 * share}
    return {"all_gather": (2 if stage == 3 else 1) * share, "reduce_scatter": share, "all_reduce": 0}
