# schedule.py - Cases about schedules, memory budgets and grids.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A schedule changes when things happen and what is alive, and not one bit of a result."""
import json

import formulas
from bad_input import one_line_error
from harness import model, require
from training import STAGES, close, close_weights, elements, same_bits, state_as_the_formula

FORM = "ts_train"
# Beside the default, which is all of them together.
SCHEDULES = ("none", "prefetch", "keep", "reorder", "bucket", "joint")
# Parts of the memory that the default schedule takes.
BUDGETS = (0.001, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 1.0, 1.5)


def share(name, ranks):
    return model(name).reference["batch"] // ranks


def schedules_agree(runner, name, optimizer, ranks, stage, schedule):
    key = (name, FORM, optimizer, ranks, stage, share(name, ranks))
    same_bits(runner.train(*key), runner.train(*key, "--zero-schedule", schedule), f"with and without '{schedule}'")


def peak_of(run):
    """Device bytes: what was touched is what was planned."""
    for row in run.rows:
        require(row["peak_bytes"] == row["planned_peak_bytes"],
                f"step {row['step']}: peak {row['peak_bytes']}, planned {row['planned_peak_bytes']}")
    return run.rows[-1]["peak_bytes"]["device"]


def budget_is_kept(runner, name, ranks, stage):
    """At every budget: it runs within it with the same bits, or says why it cannot."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    free = runner.train(*key)
    most, fits, refused = peak_of(free), [], []
    for part in BUDGETS:
        budget = int(most * part)
        done, run = runner.try_train(*key, "--memory", budget)
        if run is None:
            one_line_error(done, "bytes", str(budget))
            refused.append(budget)
            continue
        require(peak_of(run) <= budget, f"peak {peak_of(run)} over the budget {budget}")
        same_bits(free, run, f"with {budget} bytes")
        fits.append(budget)
    require(most in fits, f"does not fit its own {most} bytes")
    require(refused and max(refused) < min(fits), f"{max(refused, default=0)} does not fit, {min(fits)} does")


def planned(runner, name, ranks, stage, budget, *flags):
    """(bytes, seconds) of the plan within `budget`, or None."""
    it = model(name)
    done = runner.tools.call("zero-plan", it.folder / f"{FORM}.onnx", "--loss", it.reference["loss"], "--optimizer",
                             "adamw", *it.dims(FORM, share(name, ranks)), "--ranks", ranks, "--zero-stage", stage,
                             "--memory", budget, "--json", *flags)
    if done.returncode:
        require(f"more than the budget of {budget};" in done.stderr, f"no reason: {done.stderr.strip()[:200]}")
        return None
    plan = json.loads(done.stdout)["plans"][0]
    return plan["arena_bytes"], plan["seconds"]["step"]


def time_never_rises(runner, name, ranks, stage):
    """More memory never gives a plan that takes longer."""
    most, _ = planned(runner, name, ranks, stage, 10**12)
    plans = [planned(runner, name, ranks, stage, int(most * (0.95 + part / 100))) for part in range(21)]
    plans = [p for p in plans + [planned(runner, name, ranks, stage, 10**12)] if p]
    seconds = [p[1] for p in plans]
    require(len(plans) > 2 and seconds == sorted(seconds, reverse=True), f"seconds by budget: {seconds}")


def full_device_runs(runner, name, ranks, stage):
    """The plan fills 98 % of the budget that it was made for."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    most = peak_of(runner.train(*key))
    done, run = runner.try_train(*key, "--memory", most * 100 // 98)
    require(run is not None, f"exits {done.returncode}: {done.stderr.strip()[:200]}")
    require(peak_of(run) <= most * 100 // 98, f"peak {peak_of(run)}")


def grid_agrees(runner, name, optimizer, grid, stage):
    """R x S ranks see what one rank with as many samples sees."""
    ranks = grid[0] * grid[1]
    batch = model(name).reference["batch"] // ranks
    flags = "--zero-grid", f"{grid[0]}x{grid[1]}"
    many = runner.train(name, FORM, optimizer, ranks, stage, batch, *flags)
    one = runner.train(name, FORM, optimizer, 1, 0, batch * ranks)
    close("loss", many.column("loss"), one.column("loss"))
    close("grad_norm", many.column("grad_norm"), one.column("grad_norm"))
    close_weights(many.weights, one.weights, one.weights)
    peak_of(many)
    whole = runner.train(name, FORM, optimizer, ranks, 0, batch, *flags)
    same_bits(many, whole, f"at stage 0 on a grid of {flags[1]}")
    if 1 in grid:  # a reduction in two parts, of which one does nothing
        same_bits(many, runner.train(name, FORM, optimizer, ranks, stage, batch), f"on a grid of {flags[1]}")


def grid_sends_as_the_formula(runner, name, grid, stage):
    """Gathers and scatters inside the shard axis, the reduced shard across the replicas."""
    replicas, shards = grid
    ranks, psi = replicas * shards, elements(model(name))
    run = runner.train(name, FORM, "adamw", ranks, stage, share(name, ranks), "--zero-grid", f"{replicas}x{shards}")
    want = formulas.sent_bytes(psi, shards, stage, gathered=psi)
    reduced = psi if stage == 0 else psi / shards
    over = ranks if stage == 0 else replicas
    want["all_reduce"] = 2 * formulas.SCALAR_BYTES * reduced * (over - 1) / over
    if stage == 3:  # how often it gathers is the schedule's choice
        del want["all_gather"]
    for row in run.rows:
        for kind, expected in want.items():
            got = row["comm_bytes"][kind]
            require(abs(got - expected) < 1, f"step {row['step']}: {kind} sends {got} bytes, formula {expected}")


def all_axes_agree(runner, name, optimizer, grid, stage):
    """State cut over both axes gives what state cut over one gives; chunks kept for the backward change no bit."""
    ranks = grid[0] * grid[1]
    key = (name, FORM, optimizer, ranks, stage, share(name, ranks))
    flags = "--zero-grid", f"{grid[0]}x{grid[1]}", "--zero-shard", "all"
    free, inner = runner.train(*key, *flags), runner.train(*key, *flags[:2])
    same_bits(inner, free, f"with state cut over one axis and both of {flags[1]}")
    most, fits = peak_of(free), 0
    for part in BUDGETS:
        _, run = runner.try_train(*key, *flags, "--memory", int(most * part))
        if run is not None:
            same_bits(free, run, f"with {int(most * part)} bytes")
            fits += 1
    require(fits, "fits no budget")


def trace_shows_the_step(runner, name, ranks, stage):
    """Predicted and measured, each command of the plan once on each rank shown, in the plan's order."""
    stem = runner.tools.scratch / f"trace-{name}-n{ranks}-s{stage}"
    trace, report = f"{stem}.json", f"{stem}.html"
    run = runner.train(name, FORM, "adamw", ranks, stage, share(name, ranks), "--trace", trace, "--report", report)
    events = json.loads(open(trace).read())["traceEvents"]
    heads = [e["args"] for e in events if e["name"] == "zero_timeline"]
    require([h["source"] for h in heads] == ["predicted", "measured"], f"timelines {[h['source'] for h in heads]}")
    for head in heads:
        require(head["planned_peak"] == peak_of(run), f"planned peak {head['planned_peak']}")
        require(0 <= head["exposed_seconds"] <= head["step_seconds"], f"exposed {head['exposed_seconds']} s")
    commands = {}
    for event in events:
        if event["ph"] == "X":
            commands.setdefault(event["pid"], []).append(event["args"]["command"])
    require(len(commands) == ranks + 1, f"{len(commands)} processes")
    first = sorted(next(iter(commands.values())))
    require(first == list(range(len(first))) and first, "a command is missing or shown twice")
    require(all(sorted(c) == first for c in commands.values()), "ranks show different commands")
    text = open(report).read()
    require(text.startswith("<!DOCTYPE html>") and "http://" not in text.replace("http://www.w3.org", ""),
            "the report is not one self-contained file")


def add_cases(cases, runner):
    for name, optimizer, ranks, stages in (("mlp", "adamw", 3, (1, 2, 3)), ("cnn", "sgd", 2, (2, 3)),
                                           ("gpt2", "adamw", 2, (1, 3)), ("gpt2", "adamw", 4, (2, 3))):
        for stage in stages:
            for schedule in SCHEDULES:
                cases.add(f"schedule {schedule} {name} {optimizer} ranks {ranks} stage {stage}", schedules_agree,
                          runner, name, optimizer, ranks, stage, schedule)
    for name, ranks in (("mlp", 3), ("gpt2", 2)):
        cases.add(f"state {name} ranks {ranks} stage 1 unscheduled", state_as_the_formula,
                  runner, name, FORM, "adamw", ranks, 1, "--zero-schedule", "none")
    for name, ranks, stage in (("mlp", 2, 3), ("cnn", 2, 2), ("gpt2", 2, 3), ("gpt2", 4, 1)):
        cases.add(f"budget {name} ranks {ranks} stage {stage}", budget_is_kept, runner, name, ranks, stage)
        cases.add(f"planned time {name} ranks {ranks} stage {stage}", time_never_rises, runner, name, ranks, stage)
        cases.add(f"full device {name} ranks {ranks} stage {stage}", full_device_runs, runner, name, ranks, stage)
        cases.add(f"trace {name} ranks {ranks} stage {stage}", trace_shows_the_step, runner, name, ranks, stage)
    for name in ("mlp", "gpt2"):  # BatchNorm's statistics make the cnn depend on the ranks
        for grid in ((2, 2), (2, 1), (1, 2)):
            for stage in STAGES:
                where = f"{name} grid {grid[0]}x{grid[1]} stage {stage}"
                if grid == (2, 2):
                    cases.add(f"all axes {where}", all_axes_agree, runner, name, "adamw", grid, stage)
                cases.add(f"grid {where}", grid_agrees, runner, name, "adamw", grid, stage)
                cases.add(f"grid traffic {where}", grid_sends_as_the_formula, runner, name, grid, stage)
