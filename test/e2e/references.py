# references.py - Cases that train as PyTorch did in reference/runs.json.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Precision, loss scales, accumulation, clipping, groups and schedules against PyTorch."""
import functools
import json
import math
import pathlib
import sys

import tensors
from harness import Failure, Once, Run, last_line, model, require

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "reference"))
import runs as the_runs  # noqa: E402

FORM = "ts_train"
STAGES = (0, 1, 2, 3)
# Relative errors: of a loss, of a gradient norm, and of the change of a parameter over the
# run (its L2 norm, and its product with a fixed vector, over that norm). f32 runs differ by the
# order of sums. Narrow runs differ because each system rounds to 8 or 11 bits at other places
# inside an op; such differences are as large as one rounding and do not grow over these runs.
TOLERANCES = {
    "torch": (1e-5, 1e-4, 1e-3),
    "fsdp2": (1e-3, 1e-2, 5e-2),
    "autocast": (2e-3, 2e-2, 1e-1),
    "fp16": (1e-4, 5e-3, 2e-2),
}
# A rate of the plan is an f32 that rounds the scheduler's f64: one unit in the last place.
RATE_ULPS = 1
# The change of a parameter whose gradient is rounding noise follows the noise.
NOISE = 1e-4
# A third of it, the bias of the keys, has no gradient but noise, which Adam makes steps of: only
# the length of its change is compared where noise is large.
NOISY = "attn.c_attn.bias"


@functools.cache
def reference():
    return json.loads((HERE / "reference" / "runs.json").read_text())


def run_of(name):
    return dict(the_runs.DEFAULTS, **the_runs.RUNS[name])


def schedule_flag(kind, numbers):
    """--lr-schedule of a schedule of PyTorch's."""
    numbers, warmup = dict(numbers), numbers.get("warmup")
    if warmup:
        numbers.update(warmup=warmup["total_iters"], warmup_start_factor=repr(warmup["start_factor"]))
    return ["--lr-schedule", kind + ":" + ",".join(f"{k}={v}" for k, v in numbers.items())]


def scaling_flags(given):
    if not isinstance(given, dict):
        return ["--loss-scale", given]
    return ["--loss-scale", "dynamic", "--initial-scale-power", int(math.log2(given["init_scale"])),
            "--loss-scale-window", given["scale_window"], "--loss-scale-hysteresis", given["delayed_shift"],
            "--loss-scale-min", f"{given['min_scale']:g}"]


def group_flags(pattern, change, run):
    """A group of torch says all its values; one of zero-run leaves what it does not say to later ones."""
    if pattern == "auto":
        return ["--no-decay", "auto"]
    change = {"weight_decay": run["weight_decay"], **change}
    return ["--group", f"{pattern}:" + ",".join(f"{k.replace('_', '-')}={v}" for k, v in change.items())]


def optimizer_flags(run):
    flags = ["--optimizer", run["optimizer"], "--lr", run["lr"], "--weight-decay", run["weight_decay"]]
    if run["optimizer"] == "sgd":
        flags += ["--momentum", run["momentum"]]
    for pattern, change in run.get("groups", ()):
        flags += group_flags(pattern, change, run)
    if "schedule" in run:
        flags += schedule_flag(*run["schedule"])
    return flags


def step_flags(run):
    """What the compiler is told of a run."""
    flags = optimizer_flags(run)
    for key in ("clip", "clip_value"):
        if key in run:
            flags += [f"--{key.replace('_', '-')}", run[key]]
    for pattern in run.get("freeze", ()):
        flags += ["--freeze", pattern]
    if run["accumulate"] > 1:
        flags += ["--accumulate", run["accumulate"]]
    precision = {"fsdp2": "bf16", "autocast": "bf16", "fp16": "fp16"}.get(run["system"])
    if precision:
        flags += ["--precision", precision]
    if "reduce" in run:
        flags += ["--reduce-type", run["reduce"]]
    return flags + (scaling_flags(run["scaler"]) if run.get("scaler") else [])


def large_samples(run, path):
    """The samples of every step, some of them multiplied."""
    data, rows = model(run["model"]).data, run["batch"] * run["ranks"] * run["accumulate"]
    made = {}
    for name, (dtype, shape, raw) in data.items():
        size, parts = len(raw) // shape[0], []
        for step in range(run["steps"]):
            part = b"".join(raw[i * size:(i + 1) * size]
                            for i in ((step * rows + k) % shape[0] for k in range(rows)))
            if dtype == "F32":
                values = tensors.floats((dtype, shape, part))
                part = type(values)("f", [v * the_runs.factor(run, step) for v in values]).tobytes()
            parts.append(part)
        made[name] = (dtype, [rows * run["steps"], *shape[1:]], b"".join(parts))
    tensors.save(path, made)


class Trainer:
    """Trains the runs of reference/runs.py with zero-run, each configuration once."""

    def __init__(self, tools):
        self.tools, self.runs = tools, Once()
        self.folder = tools.scratch / "references"
        self.folder.mkdir()

    def train(self, name, stage, *flags):
        return self.runs.get((name, stage, *flags), lambda: self._train(name, stage, *flags))

    def _train(self, name, stage, *flags):
        run, m = run_of(name), model(run_of(name)["model"])
        stem = "".join(c if c.isalnum() else "-" for c in " ".join(map(str, (name, stage, *flags))))
        metrics, weights = (self.folder / f"{stem}.{end}" for end in ("jsonl", "safetensors"))
        data = m.folder / "data.safetensors"
        if "large" in run:
            data = self.folder / f"{stem}.data"
            large_samples(run, data)
        ranks = [] if "--zero-grid" in flags else ["--ranks", run["ranks"]]
        done = self.tools.call("zero-run", m.folder / f"{FORM}.onnx", "--loss", m.reference["loss"], *step_flags(run),
                               *ranks, "--zero-stage", stage, "--batch", run["batch"], *m.dims(FORM, run["batch"]),
                               "--weights", m.folder / "init.safetensors", "--data", data, "--steps", run["steps"],
                               "--metrics", metrics, "--save-weights", weights, "--log-every", 0, *flags,
                               ZRT_CHECK="1", ZRT_POISON="1")
        if done.returncode:
            raise Failure(f"zero-run exits {done.returncode}: {last_line(done)}")
        return Run(metrics, weights)


def close(what, got, want, tolerance):
    """Step by step; what the reference has no number for is not compared."""
    require(len(got) == len(want), f"{len(got)} steps of {len(want)}")
    for step, (x, y) in enumerate(zip(got, want), 1):
        if y is None:
            continue
        require(x is not None and math.isfinite(x), f"step {step}: {what} is {x}, not {y}")
        error = abs(x - y) / max(abs(y), 1e-12)
        require(error <= tolerance, f"step {step}: {what} {x} is not {y} (relative error {error:.1e})")


def change_of(before, after):
    a, b = tensors.floats(before), tensors.floats(after)
    difference = [y - x for x, y in zip(a, b)]
    return (math.sqrt(sum(d * d for d in difference)),
            sum(d * math.cos(i) for i, d in enumerate(difference, 1)))


def close_changes(run, got, want, tolerance):
    """Of each parameter: how far it went, and where to."""
    m = model(run["model"])
    init = tensors.load(m.folder / "init.safetensors")
    tied = {n: group for group in m.reference["ties"] for n in group}
    for name, (length, along) in want.items():
        found = next((n for n in tied.get(name, [name]) if n in got), None)
        require(found, f"saved weights lack {name}")
        source = next(n for n in tied.get(name, [name]) if n in init)
        norm, product = change_of(init[source], got[found])
        if length == 0:
            require(norm == 0, f"{name} is frozen and changed by {norm}")
            continue
        noisy = name.endswith(NOISY) and run["system"] != "torch"
        error = max(abs(norm - length), 0 if noisy else abs(product - along)) / max(length, NOISE)
        require(error <= tolerance, f"{name} changed by {norm:.6g} ({product:.6g}), reference {length:.6g} ({along:.6g}): "
                                    f"error {error:.1e}")


def as_pytorch(trainer, name, stage, *flags, slack=1):
    """Within the tolerances of its system, times `slack`."""
    run, want = run_of(name), reference()[name]
    got = trainer.train(name, stage, *flags)
    of_loss, of_norm, of_change = (slack * tolerance for tolerance in TOLERANCES[run["system"]])
    if "overflow" in want:
        skipped = "".join("x" if row["skipped"] else "." for row in got.rows)
        require(skipped == want["overflow"], f"skipped steps {skipped}, reference {want['overflow']}")
        scales = got.column("loss_scale")
        require(scales == want["loss_scale"], f"loss scales {scales}, reference {want['loss_scale']}")
    if "lr" in want:
        close("lr", got.column("lr"), want["lr"], 2e-7)
    close("loss", got.column("loss"), want["loss"], of_loss)
    close("grad_norm", got.column("grad_norm"), want["grad_norm"], of_norm)
    close_changes(run, got.weights, want["final"], of_change)


def same_bits(first, other, what):
    """The same losses, rates, scales and saved bytes; norms are f64 sums in the order of the shards."""
    for key in ("loss", "lr", "loss_scale", "skipped"):
        if key in first.rows[0]:
            require(first.column(key) == other.column(key), f"{key} {what} differ")
    close(f"grad_norm {what}", other.column("grad_norm"), first.column("grad_norm"), 1e-12)
    odd = [k for k in first.weights if first.weights[k] != other.weights.get(k)]
    require(first.bytes == other.bytes, f"saved weights {what} differ in {', '.join(odd) or 'the header'}")


def stages_agree(trainer, name, *flags):
    """To the bit; with micro-batches stages 0 and 1 add before they reduce, 2 and 3 after: these pairs agree."""
    runs = [trainer.train(name, stage, *flags) for stage in STAGES]
    same_bits(runs[0], runs[1], "of stages 0 and 1")
    same_bits(runs[2], runs[3], "of stages 2 and 3")
    if run_of(name)["accumulate"] == 1:
        same_bits(runs[0], runs[2], "of stages 0 and 2")


def stages_of(name):
    """All on the mlp, which compiles fast, and where ranks share; 0 and 3 on the others."""
    run = run_of(name)
    if run["ranks"] == 1 and run["accumulate"] == 1:
        return (0,)
    return STAGES if run["model"] == "mlp" or run["ranks"] == 2 else (0, 3)


@functools.cache
def rate_cases():
    """Of the schedulers of PyTorch and DeepSpeed: see reference/make_tables.py."""
    return json.loads((HERE.parent / "unit" / "Autodiff" / "data" / "schedules.json").read_text())["cases"]


def rates(trainer, made):
    """The rate of every step is the scheduler's, in f32."""
    m, text = model("mlp"), {True: "true", False: "false"}
    if made["system"] == "pytorch":
        schedule = schedule_flag(made["schedule"], made["params"])
    else:
        numbers = ",".join(f"{k}={text.get(v, v) if isinstance(v, bool) else v}" for k, v in made["params"].items())
        schedule = ["--lr-schedule", made["schedule"] + (":" + numbers if numbers else "")]
    # These schedules may have a rate of their own, which --lr would contradict.
    own = {"warmup_max_lr", "lr_range_test_min_lr", "cycle_max_lr"} & set(made["params"])
    metrics = trainer.folder / f"rates-{made['name'].replace(' ', '-')}.jsonl"
    trainer.tools.ok("zero-run", m.folder / "ts_train.onnx", "--loss", "cross-entropy", "--optimizer", "adamw",
                     *([] if own else ["--lr", made["lr"]]), *schedule,
                     "--dim", "batch=1", "--batch", 1, "--ranks", 2, "--zero-stage", 2,
                     "--data", m.folder / "data.safetensors", "--steps", len(made["rates"]), "--metrics", metrics,
                     "--log-every", 0)
    got = [json.loads(line)["lr"] for line in metrics.read_text().splitlines()]
    require(len(got) == len(made["rates"]), f"{len(got)} steps of {len(made['rates'])}")
    for step, (rate, want) in enumerate(zip(got, made["rates"]), 1):
        require(abs(rate - want) <= RATE_ULPS * 2 ** -23 * abs(want), f"step {step}: {rate}, {made['system']} {want!r}")


def add_cases(cases, tools):
    trainer = Trainer(tools)
    for made in rate_cases():
        cases.add(f"reference rates {made['name']}", rates, trainer, made)
    for name in the_runs.RUNS:
        run = run_of(name)
        for stage in stages_of(name):
            cases.add(f"reference {name} stage {stage}", as_pytorch, trainer, name, stage)
        if stages_of(name) == STAGES:
            cases.add(f"reference stages {name}", stages_agree, trainer, name)
        if run["ranks"] == 4 and run["model"] != "cnn":
            for stage in (0, 2, 3):
                cases.add(f"reference grid 2x2 {name} stage {stage}", as_pytorch,
                          trainer, name, stage, "--zero-grid", "2x2")
            cases.add(f"reference grid 2x2 stages {name}", stages_agree, trainer, name, "--zero-grid", "2x2")
    return trainer
