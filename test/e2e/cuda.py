# cuda.py - Cases that train on the fake GPUs of test/fake-cuda.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CUDA backend as it is, on libraries that check every call: the host's losses, no race, no leak.

The libraries interpret the PTX that was compiled. They end a run with an error where two streams
race, a kernel leaves its memory, ranks disagree on a collective, or something is not freed.
"""
import itertools
import json
import sys

import formulas
import kinds
import loops
import offload
import operators
import plan_order
import tensors
from accumulation import sends_as_the_formula as accumulated_traffic
from bad_input import one_line_error
from checkpoint import of_model
from harness import Runner, Tools, last_line, model, require
from references import Trainer, as_pytorch, close, run_of, stages_of, the_runs
from schedule import FORM, share
from training import (FORMS, STAGES, close_to_pytorch, peak_as_planned, ranks_agree, sends_as_the_formula,
                      state_as_the_formula)

TARGET = "cuda:sm_90"
# Of the host's losses and gradient norms, and of the weights after the run. Sums are taken in
# another order; narrow types round such differences to a unit of theirs.
LOSS_TOLERANCE, WEIGHT_TOLERANCE = 1e-5, 1e-4
NARROW_TOLERANCE, NARROW_WEIGHT_TOLERANCE = 2e-2, 5e-2
# Softmax does not see the bias of keys: its gradient is rounding alone, and Adam makes steps of it.
KEY_BIAS, KEY_BIAS_TOLERANCE = "attn.c_attn.bias", 0.2
DEVICES = 8


class CudaTools(Tools):
    """Tools whose zero-run trains on fake GPUs."""

    def __init__(self, tools):
        super().__init__(tools.folder, tools.scratch / "cuda")
        self.scratch.mkdir(exist_ok=True)
        self.libraries = self.folder.parent / "test" / "fake-cuda" / "lib"
        self.env = {"LD_LIBRARY_PATH": str(self.libraries), "FAKE_CUDA_DEVICES": str(DEVICES), "FAKE_CUDA_LEAKS": "1"}

    def there(self):
        return (self.libraries / "libcuda.so.1").exists()

    def call(self, tool, *args, cwd=None, **env):
        if tool == "zero-run" and not str(args[0]).endswith(".zplan"):
            args = (*args, "--backend", TARGET)
        return super().call(tool, *args, cwd=cwd, **{**self.env, **env})


def as_host(want, got, narrow=False):
    """Loss and norm of each step, and the final weights."""
    tolerance, of_weights = ((NARROW_TOLERANCE, NARROW_WEIGHT_TOLERANCE) if narrow else (LOSS_TOLERANCE, WEIGHT_TOLERANCE))
    for key in ("loss", "grad_norm"):
        close(f"{key} of the host", got.column(key), want.column(key), tolerance)
    for name in want.weights:
        error = tensors.relative_l2(got.weights[name], want.weights[name])
        allowed = KEY_BIAS_TOLERANCE if narrow and name.endswith(KEY_BIAS) else of_weights
        require(error <= allowed, f"final {name} differs from the host's by {error:.1e} (relative L2)")


def as_everywhere(gpu, host, name, form, optimizer, ranks, stage):
    """All that a case of training.py asks of a run, and the host's numbers."""
    key = (name, form, optimizer, ranks, stage)
    close_to_pytorch(gpu, *key)
    peak_as_planned(gpu, *key)
    state_as_the_formula(gpu, *key)
    if stage < 3:  # what stage 3 keeps gathered is the scheduler's to say
        sends_as_the_formula(gpu, *key)
    batch = model(name).reference["batch"] // ranks
    as_host(host.train(*key, batch), gpu.train(*key, batch))


def as_references(gpu, host, name, stage, *flags):
    narrow = run_of(name)["system"] != "torch"
    as_pytorch(gpu, name, stage, *flags, slack=2 if narrow else 1)
    as_host(host.train(name, stage, *flags), gpu.train(name, stage, *flags), narrow)


def offloads(gpu, host, name, optimizer, ranks, stage, step, rules):
    """Host memory is pinned, copies have streams of their own, the host's part runs between them."""
    key = (name, FORM, optimizer, ranks, stage, share(name, ranks))
    flags = offload.flags_of(gpu, rules, *key, *step, *rules)
    got = gpu.train(*key, *step, *flags)
    as_host(host.train(*key, *step), got, "--precision" in step)
    offload.as_planned(got)
    for row in got.rows:
        for rule in rules:
            space = rule.split("=")[1].split(":")[0]
            require(row["peak_bytes"].get(space, 1) > 0, f"nothing lies in {space}")
    if any("=disk" in rule for rule in rules):
        offload.nothing_is_left(flags[-1])


def same_numbers(first, other, what):
    for key in ("loss", "grad_norm"):
        require(first.column(key) == other.column(key), f"{key} {what} differ")
    require(first.bytes == other.bytes, f"saved weights {what} differ")


def one_graph(gpu, name, ranks, stage, *flags):
    """A step that is captured once and launched as a graph does what its commands do one by one."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    same_numbers(gpu.train(*key, *flags), gpu.train(*key, *flags, "--cuda-graph"), "with and without --cuda-graph")


def processes(gpu, name, ranks, stage, *flags):
    """Ranks that are processes compute what threads do."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    same_numbers(gpu.train(*key, *flags), gpu.train(*key, *flags, "--processes", ranks), "of threads and processes")


def goes_on_elsewhere(gpu, host, name, plan):
    """A run that moves between the host and GPUs at each checkpoint trains as one that never stopped."""
    steps, rows = plan[-1][0], {}
    legs = {"host": of_model(host.tools, f"across-host-{name}", name, "adamw"),
            "gpu": of_model(gpu.tools, f"across-gpu-{name}", name, "adamw")}
    dim, folder = ("--dim", "batch={batch}"), str(legs["host"].folder / "run")
    whole, _ = legs["host"].run(steps, plan[0][2], plan[0][3], *dim)
    for i, (until, where, ranks, stage) in enumerate(plan):
        more = ["--checkpoint", folder, *(["--resume", folder] if i else [])]
        got, _ = legs[where].run(until, ranks, stage, *dim, *more)
        rows.update(got)
    require(list(rows) == list(range(1, steps + 1)), f"runs the steps {list(rows)}")
    for which, what in enumerate(("loss", "grad_norm")):
        close(what, [r[which] for r in rows.values()], [r[which] for r in whole.values()], 1e-4)


# ---- Waits ----

class Plans:
    """Plans of one step for GPUs, and runs of them."""

    def __init__(self, tools):
        self.tools = tools

    def compile(self, label, name, ranks, *flags):
        m, folder = model(name), self.tools.scratch / f"waits-{label}"
        folder.mkdir()
        (folder / "disk").mkdir()
        given = m.loss_flags("adamw")
        at = given.index("--lr")
        self.tools.ok("zero-import", m.folder / f"{FORM}.onnx", "-o", folder / "step.mlir", "--weights",
                      folder / "weights.safetensors", *given[:at], *given[at + 2:], *m.dims(FORM, share(name, ranks)),
                      *flags[:flags.index("--")])
        self.tools.ok("zero-compile", folder / "step.mlir", "-o", folder / "step.zplan", "--target", TARGET,
                      "--ranks", ranks, *flags[flags.index("--") + 1:])
        return folder

    def run(self, folder, name, steps=1, **env):
        m = model(name)
        return self.tools.call("zero-run", folder / "step.zplan", "--lr", 0.001, "--data",
                               m.folder / "data.safetensors", "--steps", steps, "--log-every", 0, "--metrics",
                               folder / "m.jsonl", "--offload-path", folder / "disk", **env)


def every_wait_is_needed_or_not(plans, label, name, ranks, *flags):
    """Each wait left out in turn: a race is found just where the plan's own tables say that there is one."""
    folder = plans.compile(label, name, ranks, *flags)
    plan = plan_order.Plan(plan_order.load(folder / "step.zplan", folder), 0)
    require(not plan.races(), f"the plan leaves commands {plan.races()[:3]} unordered")
    whole = plans.run(folder, name)
    require(whole.returncode == 0, f"exits {whole.returncode}: {last_line(whole)}")
    want = json.loads((folder / "m.jsonl").read_text())["loss"]
    waits, needed = plan.waits(), 0
    for number, ((command, _), needs) in enumerate(waits, 1):
        done = plans.run(folder, name, FAKE_CUDA_DROP_WAIT=str(number))
        where = f"wait {number} of command {command}"
        if needs:
            require(done.returncode and "race: it" in done.stderr, f"without {where}: exits {done.returncode}, no race")
            needed += 1
            continue
        require(done.returncode == 0, f"without {where}, which data do not need: {last_line(done)}")
        got = json.loads((folder / "m.jsonl").read_text())["loss"]
        require(got == want, f"without {where}: loss {got}, not {want}")
    require(needed, f"none of {len(waits)} waits is needed")


def any_order(gpu, name, ranks, stage):
    """Whatever runs first of what may: the same bits."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    want = gpu.train(*key)
    for seed in (1, 2, 3):
        tools = CudaTools(Tools(gpu.tools.folder, gpu.tools.scratch.parent))
        tools.scratch = gpu.tools.scratch / f"seed-{seed}"
        tools.scratch.mkdir()
        tools.env = {**tools.env, "FAKE_CUDA_SEED": str(seed)}
        same_numbers(want, Runner(tools).train(*key), f"with seeds 0 and {seed}")


# ---- Failures ----

def mlp(tools, ranks, stage, *flags, **env):
    m = model("mlp")
    return tools.call("zero-run", m.folder / f"{FORM}.onnx", *m.loss_flags("adamw"), *m.dims(FORM, share("mlp", ranks)),
                      "--ranks", ranks, "--zero-stage", stage, "--data", m.folder / "data.safetensors", "--steps", 3,
                      "--log-every", 0, *flags, FAKE_CUDA_LEAKS="0", **env)


def says(done, *words):
    """One line of zero-run's own, beside what the fake prints."""
    own = [line for line in done.stderr.splitlines() if not line.startswith("fake-cuda: ")]
    done.stderr = "\n".join(own)
    one_line_error(done, *words)


def calls_that_fail(tools):
    for fault, words in (("cuMemAlloc:1:memory", ("rank", "bytes")), ("ncclAllGather:2", ("ncclAllGather", "rank")),
                         ("ncclAllGather:3:async", ("remote", "rank")), ("cuStreamCreateWithPriority:1", ("cuStream",)),
                         ("cuLaunchKernel:5", ("cuLaunchKernel", "rank"))):
        says(mlp(tools, 2, 3, FAKE_CUDA_FAULT=fault), *words)


def a_silent_rank(tools):
    """A collective that never ends: the limit that was asked for ends it."""
    says(mlp(tools, 2, 3, "--timeout", 1, "--timeout-factor", 1, FAKE_CUDA_FAULT="ncclAllGather:3:hang"), "rank",
         "has not ended after 1 s")


def too_few_devices(tools):
    says(mlp(tools, 4, 3, FAKE_CUDA_DEVICES="2"), "rank", "2 CUDA devices")


def too_little_memory(tools):
    says(mlp(tools, 1, 0, FAKE_CUDA_MEMORY="10000"), "memory", "10000|10,000|9.8")


def an_older_gpu(tools):
    """A plan for sm_90 on a device that is sm_80."""
    says(mlp(tools, 1, 0, FAKE_CUDA_SM="80"), "sm_90", "sm_80")


# ---- All of them ----

def add_training(cases, gpu, host):
    for name in ("mlp", "cnn", "gpt2"):
        for form, all_ranks in FORMS.items():
            for optimizer, ranks, stage in itertools.product(formulas.OPTIMIZER_BYTES, all_ranks, STAGES):
                # The forms differ before anything is compiled: one layout of each other form.
                if form != FORM and (optimizer, stage) != ("adamw", 3 if ranks == 2 else 0):
                    continue
                cases.add(f"cuda training {name}/{form} {optimizer} ranks {ranks} stage {stage}", as_everywhere, gpu, host,
                          name, form, optimizer, ranks, stage)
    for ranks, batch, stage in ((3, 2, 0), (3, 2, 3), (5, 2, 2), (8, 1, 1), (8, 1, 3)):
        cases.add(f"cuda ranks mlp {ranks} stage {stage}", ranks_agree, gpu, "mlp", "adamw", ranks, stage, batch)


def add_references(cases, gpu, host):
    for name in the_runs.RUNS:
        run = run_of(name)
        for stage in stages_of(name):
            # Stages 1 and 2 differ from their neighbours in what becomes of micro-batches.
            if stage in (1, 2) and run["accumulate"] == 1:
                continue
            cases.add(f"cuda reference {name} stage {stage}", as_references, gpu, host, name, stage)
        if run["ranks"] == 4 and run["model"] == "mlp":
            for stage in (0, 2, 3):
                cases.add(f"cuda reference grid 2x2 {name} stage {stage}", as_references, gpu, host, name, stage,
                          "--zero-grid", "2x2")
    for name in ("accumulate 2 mlp ranks 2", "accumulate 2 cnn ranks 2"):
        for stage in STAGES:
            cases.add(f"cuda accumulation traffic {name} stage {stage}", accumulated_traffic, gpu, name, stage)


def add_offload(cases, gpu, host):
    kinds, memories = offload.KINDS, offload.MEMORIES
    for i, (kind, memory, stage) in enumerate(itertools.product(kinds, memories, STAGES)):
        step = offload.STEPS[(i * 3 + i // 8) % len(offload.STEPS)]
        ranks = (1, 2, 4, 3)[(i + i // 4) % 4]
        words = " ".join(map(str, step))
        cases.add(f"cuda offload {kind}={memory} mlp ranks {ranks} stage {stage} {words}".strip(), offloads, gpu, host,
                  "mlp", "adamw", ranks, stage, step, (f"{kind}={memory}",))
    for i, rules in enumerate(offload.TOGETHER):
        cases.add(f"cuda offload {' '.join(rules)} mlp ranks 2 stage 3", offloads, gpu, host, "mlp", "adamw", 2, 3,
                  offload.STEPS[i % len(offload.STEPS)], rules)
    cases.add("cuda offload optimizer=host gpt2 ranks 2 stage 2", offloads, gpu, host, "gpt2", "adamw", 2, 2, (),
              ("optimizer=host",))


def as_host_kinds(gpu, host, name, form, ranks, stage):
    kinds.close_to_pytorch(gpu, name, form, "adamw", ranks, stage)
    key = (name, form, "adamw", ranks, stage)
    want, got = host.train(*key), gpu.train(*key)
    for column in ("loss", "grad_norm"):
        close(f"{column} of the host", got.column(column), want.column(column), LOSS_TOLERANCE)


def add_kinds(cases, gpu, host):
    """Encoders, rotary decoders, experts and recurrent layers."""
    for name in (*kinds.FORMS, *loops.MODELS):
        for ranks, stage in ((1, 0), (2, 3)):
            cases.add(f"cuda kind {name} ranks {ranks} stage {stage}", as_host_kinds, gpu, host, name, "ts_train", ranks,
                      stage)


def add_waits(cases, plans):
    for stage in STAGES:
        cases.add(f"cuda waits mlp stage {stage}", every_wait_is_needed_or_not, plans, f"mlp-{stage}", "mlp", 2,
                  "--", "--zero-stage", stage)
    cases.add("cuda waits mlp bf16", every_wait_is_needed_or_not, plans, "bf16", "mlp", 2, "--precision", "bf16", "--",
              "--zero-stage", 3)
    cases.add("cuda waits mlp offload host", every_wait_is_needed_or_not, plans, "host", "mlp", 2, "--", "--zero-stage",
              3, "--offload", "optimizer=host", "--offload", "parameters=host")
    cases.add("cuda waits mlp offload disk", every_wait_is_needed_or_not, plans, "disk", "mlp", 2, "--", "--zero-stage",
              2, "--offload", "optimizer=disk")
    for name in ("cnn", "gpt2"):
        cases.add(f"cuda waits {name} stage 3", every_wait_is_needed_or_not, plans, name, name, 2, "--", "--zero-stage", 3)


def add_cases(cases, runner, trainer):
    """`runner` and `trainer` are those of the host: what they have trained is not trained again."""
    tools = CudaTools(runner.tools)
    if not tools.there():
        print(f"no fake CUDA in {tools.libraries}: its cases are left out", file=sys.stderr)
        return
    gpu = Runner(tools)
    add_training(cases, gpu, runner)
    add_references(cases, Trainer(tools), trainer)
    add_offload(cases, gpu, runner)
    add_kinds(cases, kinds.Trainer(tools), kinds.Trainer(runner.tools))
    operators.add_cases(cases, tools, runner.tools)
    add_waits(cases, Plans(tools))
    for name, ranks, stage, flags in (("mlp", 2, 3, ()), ("mlp", 4, 1, ("--accumulate", 2)), ("gpt2", 2, 3, ()),
                                      ("mlp", 2, 2, ("--offload", "optimizer=host"))):
        words = " ".join(map(str, (name, "ranks", ranks, "stage", stage, *flags)))
        cases.add(f"cuda graph {words}", one_graph, gpu, name, ranks, stage, *flags)
        cases.add(f"cuda processes {words}", processes, gpu, name, ranks, stage, *flags)
    cases.add("cuda orders mlp", any_order, gpu, "mlp", 2, 3)
    cases.add("cuda checkpoint mlp", goes_on_elsewhere, gpu, runner, "mlp",
              ((2, "host", 2, 3), (4, "gpu", 2, 3), (6, "gpu", 4, 1), (8, "host", 1, 0), (10, "gpu", 2, 2)))
    for function in (calls_that_fail, a_silent_rank, too_few_devices, too_little_memory, an_older_gpu):
        cases.add(f"cuda {function.__name__.replace('_', ' ')}", function, tools)
