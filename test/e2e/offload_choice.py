# offload_choice.py - Cases about what is offloaded where nobody says it.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The choice is as fast as any switch for a whole kind, keeps to its budgets, and gains from memory; nothing where all fits."""
from harness import require
from schedule import planned

# What all-or-nothing switches do: nothing, one kind, all state.
SWITCHES = ((), ("optimizer=host",), ("parameters=host",), ("activations=host",), ("optimizer=host", "parameters=host"))


def flags_of(rules):
    return [word for rule in rules for word in ("--offload", rule)]


def never_slower(runner, name, ranks, stage, parts):
    """Over budgets: fits wherever a switch does, never slower than it, and never slower with more memory."""
    most, _ = planned(runner, name, ranks, stage, 10**12)
    plans, needed = [], 0
    for part in parts:
        budget = int(most * part / 100)
        ours = planned(runner, name, ranks, stage, budget, "--offload", "auto")
        nothing = planned(runner, name, ranks, stage, budget)
        if nothing:  # the host is the device: nothing is gained
            require(ours == nothing, f"{budget} bytes: {ours}, without offload {nothing}")
            continue
        needed += bool(ours)
        for rules in SWITCHES[1:]:
            switch = planned(runner, name, ranks, stage, budget, *flags_of(rules))
            require(not switch or (ours and ours[1] <= switch[1] * (1 + 1e-9)),
                    f"{budget} bytes: {ours}, with {rules} {switch}")
        plans += [ours] if ours else []
    seconds = [p[1] for p in plans]
    require(needed and seconds == sorted(seconds, reverse=True), f"seconds by budget: {seconds}")


def add_cases(cases, runner):
    for name, ranks, stage, parts in (("mlp", 2, 3, (50, 75, 100)), ("cnn", 2, 2, (80, 100)), ("gpt2", 2, 2, (60, 100))):
        cases.add(f"offload choice {name} ranks {ranks} stage {stage}", never_slower, runner, name, ranks, stage, parts)
