# recompute.py - Cases about values that the backward pass computes again.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recomputation changes memory and time, and not one bit of a result."""
from bad_input import one_line_error
from harness import require
from schedule import FORM, peak_of, planned, share
from training import STAGES, same_bits

# Parts of the memory that the plan without recomputation and budget takes.
BUDGETS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.93, 0.96, 1.0, 1.2)


def recomputing_agrees(runner, name, optimizer, ranks, stage, remat):
    key = (name, FORM, optimizer, ranks, stage, share(name, ranks))
    run = runner.train(*key, "--remat", remat)
    same_bits(runner.train(*key), run, f"with and without --remat {remat}")
    peak_of(run)


def fits_where_nothing_else_does(runner, name, ranks, stage):
    """With the budget as the reason: the same bits, within it, in less memory than any plan without."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    free = runner.train(*key)
    most, only, both = peak_of(free), [], []
    for part in BUDGETS:
        budget = int(most * part)
        done, run = runner.try_train(*key, "--memory", budget, "--remat", "auto")
        plain, without = runner.try_train(*key, "--memory", budget)
        if without is None:
            one_line_error(plain, "bytes", "recomputation")
        if run is None:
            one_line_error(done, "bytes", str(budget))
            require(without is None, f"{budget} bytes fit only without recomputation")
            continue
        require(peak_of(run) <= budget, f"peak {peak_of(run)} over the budget {budget}")
        same_bits(free, run, f"with {budget} bytes")
        (only if without is None else both).append(budget)
    require(both, f"does not fit its own {most} bytes")
    return only


def saves_memory(runner, name, ranks, stage):
    require(fits_where_nothing_else_does(runner, name, ranks, stage), "recomputation never made a budget fit")


def time_never_rises(runner, name, ranks, stage):
    """More memory never gives a plan that takes longer, and recomputation never makes a plan slower."""
    flags = "--remat", "auto"
    most, _ = planned(runner, name, ranks, stage, 10**12, *flags)
    plans = []
    for part in (30, 50, 60, 70, 80, 85, 90, 92, 94, 96, 98, 100):
        budget = int(most * part / 100)
        ours, without = planned(runner, name, ranks, stage, budget, *flags), planned(runner, name, ranks, stage, budget)
        require(not without or (ours and ours[1] <= without[1]), f"{budget} bytes: {ours}, without {without}")
        plans += [ours] if ours else []
    seconds = [p[1] for p in plans]
    require(len(plans) > 2 and seconds == sorted(seconds, reverse=True), f"seconds by budget: {seconds}")


def add_cases(cases, runner):
    for name, optimizer, ranks in (("mlp", "adamw", 1), ("mlp", "adamw", 3), ("cnn", "sgd", 2), ("cnn", "adamw", 4),
                                   ("gpt2", "adamw", 1), ("gpt2", "adamw", 2), ("gpt2", "sgd", 4)):
        for stage in STAGES:
            for remat in ("selective", "full"):
                cases.add(f"recompute {remat} {name} {optimizer} ranks {ranks} stage {stage}", recomputing_agrees,
                          runner, name, optimizer, ranks, stage, remat)
    for name, ranks, stage in (("mlp", 2, 3), ("cnn", 2, 2)):
        cases.add(f"recompute budget {name} ranks {ranks} stage {stage}", fits_where_nothing_else_does, runner, name,
                  ranks, stage)
    for ranks, stage in ((2, 3), (4, 1), (1, 0)):
        cases.add(f"recompute budget gpt2 ranks {ranks} stage {stage}", saves_memory, runner, "gpt2", ranks, stage)
        cases.add(f"recompute time gpt2 ranks {ranks} stage {stage}", time_never_rises, runner, "gpt2", ranks, stage)
