# training.py - Cases that train the test models and compare every number.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Against PyTorch, between stages, between rank counts, against the formulas."""
import formulas
import tensors
from harness import Failure, model, require

FORMS = {"ts_train": (1, 2, 4), "dynamo_noopt_dyn": (1, 2, 4), "dynamo_noopt": (1,)}
STAGES = (0, 1, 2, 3)
LOSS_TOLERANCE, WEIGHT_TOLERANCE = 1e-4, 1e-3


def close(name, got, want, tolerance=LOSS_TOLERANCE):
    require(len(got) == len(want), f"{len(got)} steps of {len(want)}")
    for step, (x, y) in enumerate(zip(got, want), 1):
        error = abs(x - y) / max(abs(y), 1e-6)
        require(error <= tolerance, f"step {step}: {name} {x} is not {y} (relative error {error:.1e})")


def close_weights(got, want, names):
    for name in names:
        require(name in got, f"saved weights lack {name}")
        error = tensors.relative_l2(got[name], want[name])
        require(error <= WEIGHT_TOLERANCE, f"final {name} differs by {error:.1e} (relative L2)")


def saved_names(m, final):
    """A tied parameter may be saved under any of its names."""
    tied = {n for group in m.reference["ties"] for n in group}
    return [n for n in final if n not in tied]


def close_to_pytorch(runner, name, form, optimizer, ranks, stage):
    m = model(name)
    run = runner.train(name, form, optimizer, ranks, stage, m.reference["batch"] // ranks)
    want = m.reference["runs"][f"{optimizer}_w{ranks}"]
    close("loss", run.column("loss"), want["losses"])
    close("grad_norm", run.column("grad_norm"), want["grad_norms"])
    final = tensors.load(m.folder / want["final"])
    close_weights(run.weights, final, saved_names(m, final))
    for group in m.reference["ties"]:
        found = [n for n in group if n in run.weights]
        require(found, f"saved weights have none of the tied {', '.join(group)}")
        source = next(n for n in group if n in final)
        close_weights({source: run.weights[found[0]]}, final, [source])


def same_bits(first, other, what):
    require(first.column("loss") == other.column("loss"), f"losses {what} differ")
    if first.bytes != other.bytes:
        odd = [k for k in first.weights if first.weights[k] != other.weights.get(k)]
        raise Failure(f"saved weights {what} differ in {', '.join(odd) or 'the header'}")


def stages_agree(runner, name, form, optimizer, ranks, batch):
    first = runner.train(name, form, optimizer, ranks, 0, batch)
    for stage in STAGES[1:]:
        other = runner.train(name, form, optimizer, ranks, stage, batch)
        same_bits(first, other, f"of stages 0 and {stage}")


def ranks_agree(runner, name, optimizer, ranks, stage, batch):
    """N ranks see the samples that one rank with N times the batch sees."""
    many = runner.train(name, "ts_train", optimizer, ranks, stage, batch)
    one = runner.train(name, "ts_train", optimizer, 1, 0, batch * ranks)
    close("loss", many.column("loss"), one.column("loss"))
    close("grad_norm", many.column("grad_norm"), one.column("grad_norm"))
    close_weights(many.weights, one.weights, one.weights)


def elements(m):
    init = tensors.load(m.folder / "init.safetensors")
    return sum(len(init[n][2]) // 4 for n in m.reference["trained"])


def sends_as_the_formula(runner, name, form, optimizer, ranks, stage):
    m = model(name)
    batch = m.reference["batch"] // ranks
    psi, gathered = elements(m), None
    if stage == 3:
        gathered = formulas.gathered_elements(runner.stage3(name, form, optimizer, ranks, batch))
        require(psi <= gathered <= 2 * psi, f"stage 3 gathers {gathered} elements for {psi} parameters")
    want = formulas.sent_bytes(psi, ranks, stage, gathered)
    for row in runner.train(name, form, optimizer, ranks, stage, batch).rows:
        for kind, expected in want.items():
            got = row["comm_bytes"][kind]
            require(abs(got - expected) < 1, f"step {row['step']}: {kind} sends {got} bytes, formula {expected}")


def peak_as_planned(runner, name, form, optimizer, ranks, stage):
    m = model(name)
    run = runner.train(name, form, optimizer, ranks, stage, m.reference["batch"] // ranks)
    for row in run.rows:
        for space, planned in row["planned_peak_bytes"].items():
            got = row["peak_bytes"][space]
            require(got == planned, f"step {row['step']}: {space} peak {got} bytes, planned {planned}")
        require(row["gathered_bytes"] == row["planned_gathered_bytes"],
                f"step {row['step']}: {row['gathered_bytes']} bytes gathered at once, planned {row['planned_gathered_bytes']}")
        require((stage == 3) == (row["gathered_bytes"] > 0), "parameters are gathered in stage 3 only")
    require(run.rows[0]["planned_peak_bytes"]["device"] > 0, "the plan uses no device memory")


def state_as_the_formula(runner, name, form, optimizer, ranks, stage, *flags):
    m = model(name)
    row = runner.train(name, form, optimizer, ranks, stage, m.reference["batch"] // ranks, *flags).rows[-1]
    held, want = sum(row["state_bytes"].values()), formulas.state_bytes(elements(m), optimizer, ranks, stage)
    # The schedule of stage 1 reduces and uses gradients as they come: less than the formula is alive at one time.
    early = formulas.SCALAR_BYTES * elements(m) if stage == 1 and not flags else 0
    least = want - early
    require(least - 0.01 < held < want + 0.01, f"state is {held} bytes without padding, formula {want}")
    padding = row["state_padding_bytes"]
    require(padding == 0 if stage == 0 or ranks == 1 else padding >= 0, f"{padding} bytes of padding")


def add_cases(cases, runner):
    for name in ("mlp", "cnn", "gpt2"):
        batch = model(name).reference["batch"]
        for form, all_ranks in FORMS.items():
            for optimizer in formulas.OPTIMIZER_BYTES:
                for ranks in all_ranks:
                    where = f"{name}/{form} {optimizer} ranks {ranks}"
                    for stage in STAGES:
                        args = (runner, name, form, optimizer, ranks, stage)
                        cases.add(f"pytorch {where} stage {stage}", close_to_pytorch, *args)
                        cases.add(f"peak {where} stage {stage}", peak_as_planned, *args)
                        cases.add(f"traffic {where} stage {stage}", sends_as_the_formula, *args)
                        cases.add(f"state {where} stage {stage}", state_as_the_formula, *args)
                    cases.add(f"stages {where}", stages_agree, runner, name, form, optimizer, ranks, batch // ranks)
        for ranks, stage in ((2, 3), (4, 1)):  # at another batch than it was exported at
            cases.add(f"pytorch {name}/dynamo_noopt adamw ranks {ranks} stage {stage}", close_to_pytorch,
                      runner, name, "dynamo_noopt", "adamw", ranks, stage)
    for name in ("mlp", "gpt2"):  # BatchNorm's statistics make the cnn depend on the ranks
        for ranks, batch in ((3, 2), (5, 2), (8, 1)):
            for stage in STAGES:
                cases.add(f"ranks {name} adamw ranks {ranks} stage {stage}", ranks_agree,
                          runner, name, "adamw", ranks, stage, batch)
            cases.add(f"stages {name} adamw ranks {ranks}", stages_agree, runner, name, "ts_train", "adamw", ranks, batch)
