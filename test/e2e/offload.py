# offload.py - Cases about what lives in host memory and on disk.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Offload changes where state lies and how long a step takes, and not one bit of a result."""
import hashlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import time
import types

from bad_input import node, one_line_error
from checkpoint import newest, of_model, rows_of, start, zplan
from failures import small
from harness import model, require
from schedule import FORM, share
from training import close, elements, same_bits

KINDS, MEMORIES, STAGES = ("optimizer", "gradients", "parameters", "activations"), ("host", "disk"), (0, 1, 2, 3)
# What a step may have besides: each choice of offload meets some of it.
STEPS = ((), ("--precision", "bf16"), ("--accumulate", 2), ("--precision", "bf16", "--reduce-type", "bf16", "--clip", 0.5),
         ("--precision", "fp16"), ("--clip", 0.5, "--accumulate", 2), ("--remat", "full"),
         ("--precision", "bf16", "--accumulate", 2, "--clip", 0.5))
# Several kinds, parts of them, and both memories at once.
TOGETHER = (("optimizer=host", "parameters=host"), ("optimizer=disk", "parameters=disk"),
            ("optimizer=host:0.5",), ("optimizer=disk", "optimizer@*bias*=device"),
            ("optimizer=host", "gradients=host", "parameters=host", "activations=host"),
            ("optimizer=disk", "gradients=disk", "parameters=disk", "activations=disk"),
            ("optimizer=host:0.5", "parameters=disk", "activations=host"), ("gradients=host", "parameters=host:0.5"))
PARTS = (2, 3, 4)
# Bytes of the rate, the number of the step, and what clips or skips.
SCALARS = 24


def folder_of(runner, *words):
    """An empty folder of its own for what is on disk."""
    name = hashlib.sha1(" ".join(map(str, words)).encode()).hexdigest()[:16]
    folder = runner.tools.scratch / "offload" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def flags_of(runner, rules, *words):
    """--offload flags, with an empty folder where a rule needs one."""
    flags = [w for rule in rules for w in ("--offload", rule)]
    if any("=disk" in rule for rule in rules):
        flags += ["--offload-path", folder_of(runner, *words)]
    return flags


def nothing_is_left(folder):
    left = sorted(p.name for p in pathlib.Path(folder).iterdir())
    require(not left, f"{folder} still has {left}")


def as_planned(run):
    """What was touched is what was planned, in each memory space; returns the last step's."""
    for row in run.rows:
        for space, planned in row["planned_peak_bytes"].items():
            got = row["peak_bytes"][space]
            require(got == planned, f"step {row['step']}: {space} peak {got} bytes, planned {planned}")
    return run.rows[-1]["peak_bytes"]


def same_run(want, got, what):
    same_bits(want, got, what)
    require(want.column("grad_norm") == got.column("grad_norm"), f"gradient norms {what} differ")


def agrees(runner, name, optimizer, ranks, stage, step, rules):
    """Losses, norms and weights of the run without; peaks as planned; the spaces that the rules name are used."""
    key = (name, FORM, optimizer, ranks, stage, share(name, ranks))
    want = runner.train(*key, *step)
    flags = flags_of(runner, rules, *key, *step, *rules)
    got = runner.train(*key, *step, *flags)
    same_run(want, got, f"with and without {' '.join(rules)}")
    peak = as_planned(got)
    for space in MEMORIES:
        named = any(f"={space}" in rule for rule in rules)
        require(not named or peak[space] > 0, f"nothing lies in {space}")
    for rule in rules:
        if "=disk" in rule:
            nothing_is_left(flags[-1])


def moves_two_bytes(runner, name, ranks, stage, reduce):
    """ZeRO-Offload's least traffic: a gradient in its type down, a bf16 parameter up, and the scalars of the update."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    step = ("--precision", "bf16", *(("--reduce-type", "bf16") if reduce == 2 else ()))
    run = runner.train(*key, *step, "--offload", "optimizer=host")
    psi = elements(model(name)) / (ranks if stage else 1)
    for row in run.rows:
        moved = row["transfer_bytes"]
        scalars = moved["to_host"] - reduce * psi
        require(0 <= scalars <= SCALARS, f"{moved['to_host']} bytes to the host, of gradients {reduce * psi}")
        require(moved["to_device"] == 2 * psi, f"{moved['to_device']} bytes to the device, of parameters {2 * psi}")
        require(moved["disk_read"] == moved["disk_write"] == 0, f"moves {moved}")


def less_device_memory(runner, name, ranks, stage):
    """A rank's device memory falls by the optimizer's state, which is in host memory instead; at stage 3 new f32 shards pass by."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    plain, run = runner.train(*key), runner.train(*key, "--offload", "optimizer=host")
    state = 8 * elements(model(name)) / (ranks if stage else 1)
    before, after = (r.rows[-1]["peak_bytes"] for r in (plain, run))
    require(before["device"] - after["device"] >= (0.8 if stage < 3 else 0.4) * state, f"device {before['device']} to {after['device']}, state {state}")
    require(after["host"] >= state, f"{after['host']} bytes in host memory, the state has {state}")


def budgets(runner, name, ranks, stage, *more):
    """`auto` within parts of the device memory: the same bits within it, or how many bytes are missing."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    plain = runner.train(*key)
    most, fits = plain.rows[-1]["peak_bytes"]["device"], 0
    for part in PARTS:
        folder = folder_of(runner, *key, part)
        flags = ["--memory", most // part, "--offload", "auto", "--offload-path", folder, *more]
        done, run = runner.try_train(*key, *flags)
        if run is None:
            one_line_error(done, "bytes", str(most // part))
            continue
        require(as_planned(run)["device"] <= most // part, f"1/{part}: over the budget")
        same_run(plain, run, f"with 1/{part} of the memory")
        nothing_is_left(folder)
        fits += 1
    require(fits, f"no part of {most} bytes is enough")


def host_budget(runner, name, ranks, stage):
    """Host memory for less than the state: the rest is on disk."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    folder = folder_of(runner, "host-budget", *key)
    plain, rules = runner.train(*key), ("optimizer=disk", "parameters=disk")
    free = runner.train(*key, *flags_of(runner, rules, "host-free", *key))
    most = as_planned(free)
    tight = int(most["host"] * 0.8)
    done, run = runner.try_train(*key, "--offload", rules[0], "--offload", rules[1], "--offload-path", folder,
                                 "--host-memory", tight)
    if run is None:
        one_line_error(done, "bytes", str(tight))
    else:
        require(as_planned(run)["host"] <= tight, "over the host budget")
        same_run(plain, run, "within a host budget")
    done, run = runner.try_train(*key, "--offload", "optimizer=host", "--host-memory", 1024)
    require(run is None, "1 KiB of host memory is enough for the state")
    one_line_error(done, "host", "1024")


def config_is_flags(tools):
    """offload_optimizer and offload_param of a DeepSpeed config are --offload."""
    m, folder = model("mlp"), tools.scratch / "offload-config"
    disk = folder / "disk"
    disk.mkdir(parents=True)
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0,
              "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "weight_decay": 0.01}},
              "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": str(disk)},
                                    "offload_param": {"device": "cpu"}}}
    (folder / "ds.json").write_text(json.dumps(config))
    base = [m.folder / "ts_train.onnx", "--loss", m.reference["loss"], "--dim", "batch=2", "--ranks", 2,
            "--data", m.folder / "data.safetensors", "--steps", 3]
    flags = ["--optimizer", "adamw", "--lr", 0.001, "--zero-stage", 3]
    out = []
    for label, more in (("config", ["--config", folder / "ds.json"]), ("flags", flags)):
        tools.ok("zero-run", *base, *more, "--metrics", folder / f"{label}.jsonl", "--save-weights", folder / label)
        out.append(json.loads((folder / f"{label}.jsonl").read_text().splitlines()[-1]))
    require((folder / "config").read_bytes() == (folder / "flags").read_bytes(), "the config trains other weights")
    require(out[0]["peak_bytes"]["disk"] > 0 and out[0]["peak_bytes"]["host"] > 0, f"lies in {out[0]['peak_bytes']}")
    require(out[1]["peak_bytes"]["disk"] == 0, "without the config something is on disk")
    nothing_is_left(disk)


def plan_without_a_folder(tools):
    """A plan that needs a disk says so; with a folder it runs."""
    folder, plain, disk = disk_plan(tools, "plan", 3, "optimizer=disk", "parameters=disk")
    tools.ok("zero-run", *plain, "--steps", 3, "--save-weights", folder / "want")
    one_line_error(tools.call("zero-run", *disk[:-2], "--steps", 1), "disk.zplan", "--offload-path|folder|disk")
    tools.ok("zero-run", *disk, "--steps", 3, "--save-weights", folder / "got")
    require((folder / "got").read_bytes() == (folder / "want").read_bytes(), "weights differ")
    nothing_is_left(folder / "disk")


def bad_folders(tools):
    m, folder = model("mlp"), tools.scratch / "offload-bad"
    folder.mkdir()
    (folder / "file").write_text("")
    base = [m.folder / "ts_train.onnx", *m.loss_flags("adamw"), "--dim", "batch=2", "--data",
            m.folder / "data.safetensors", "--steps", 1, "--offload", "optimizer=disk"]
    one_line_error(tools.call("zero-run", *base), "optimizer=disk", "--offload-path")
    for path in (folder / "none", folder / "file", "/proc"):
        one_line_error(tools.call("zero-run", *base, "--offload-path", path), str(path))
    one_line_error(tools.call("zero-run", *base[:-1], "optimiser=host"), "optimiser", "optimizer")
    one_line_error(tools.call("zero-run", *base[:-1], "optimizer=gpu"), "gpu", "host")
    one_line_error(tools.call("zero-run", *base[:-1], "optimizer@none*=host"), "none\\*")
    one_line_error(tools.call("zero-run", *base[:-1], "optimizer=host:2"), "2")


def disk_plan(tools, name, stage, *rules):
    """An empty folder, and arguments of a run of the mlp whose state is there."""
    folder = tools.scratch / f"offload-{name}"
    (folder / "disk").mkdir(parents=True)
    args = zplan(tools, folder, 2, stage)
    tools.ok("zero-compile", folder / "step.mlir", "-o", folder / "disk.zplan", "--zero-stage", stage, "--ranks", 2,
             *(w for rule in rules for w in ("--offload", rule)))
    return folder, args, [folder / "disk.zplan", *args[1:], "--offload-path", folder / "disk"]


def full_disk(tools):
    """No room for the state: known before the first step, with numbers. A file may have 1 MiB, kernels have less."""
    trial = types.SimpleNamespace(folder=tools.scratch / "offload-full")
    (trial.folder / "disk").mkdir(parents=True)
    args = small(trial, "wide", [node("Gemm", ["x", "w"], ["y"])], {"w": (512, 512)}, 512, 512)
    at, weights = args.index("--lr"), trial.folder / "weights.safetensors"
    tools.ok("zero-import", *args[:at], "--dim", "batch=4", "-o", trial.folder / "step.mlir", "--weights", weights)
    tools.ok("zero-compile", trial.folder / "step.mlir", "-o", trial.folder / "step.zplan", "--offload", "optimizer=disk")
    run = [tools.folder / "zero-run", trial.folder / "step.zplan", *args[at:], "--steps", 1, "--offload-path",
           trial.folder / "disk"]
    words = " ".join(f"'{w}'" for w in run)
    done = subprocess.run(["bash", "-c", f"ulimit -f 1024; exec {words}"], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL)
    one_line_error(done, str(trial.folder / "disk"), "bytes")
    nothing_is_left(trial.folder / "disk")


def killed_leaves_nothing(tools):
    """Signals and an error in the middle of a run: no file stays."""
    folder, _, args = disk_plan(tools, "killed", 2, "optimizer=disk")
    for number in (signal.SIGKILL, signal.SIGTERM):
        metrics = folder / f"{int(number)}.jsonl"
        run = start(tools, *args, "--steps", 10 ** 9, "--metrics", metrics)
        wait_for_steps(run, metrics, 1)
        files = [os.readlink(f"/proc/{run.pid}/fd/{n}") for n in os.listdir(f"/proc/{run.pid}/fd")]
        require(any(str(folder / "disk") in f for f in files), f"no file of the folder is open: {files}")
        run.send_signal(number)
        run.communicate(timeout=60)
        require(run.returncode == -number, f"exits {run.returncode}")
        nothing_is_left(folder / "disk")
    at = args.index("--lr")
    done = tools.call("zero-run", *args[:at], "--lr", "1e30", *args[at + 2:], "--steps", 50)
    require(done.returncode == 1, "a rate of 1e30 trains")
    nothing_is_left(folder / "disk")


def wait_for_steps(run, metrics, steps):
    deadline = time.monotonic() + 60
    while len(rows_of(metrics)) < steps and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


LEGS = (("optimizer=host",), (), ("optimizer=disk", "parameters=host"), ("parameters=disk", "optimizer=host:0.5"), ())


def moves_between_layouts(tools, name, places, tolerance=None, flags=()):
    """A run whose state lies elsewhere after each checkpoint trains as one that never stopped."""
    legs = of_model(tools, f"offload-{name}-{len(places)}-{places[0][1]}{'-'.join(flags)}", name, "adamw")
    folder, disk, rows = legs.folder / "run", legs.folder / "disk", {}
    disk.mkdir()
    dim, last = ("--dim", "batch={batch}", *flags), None
    whole, weights = legs.run(2 * len(places), places[0][0], places[0][1], *dim)
    for i, (ranks, stage) in enumerate(places):
        more = ["--checkpoint", folder, *(["--resume", folder] if i else []), "--offload-path", disk]
        more += [w for rule in LEGS[i % len(LEGS)] for w in ("--offload", rule)]
        got, last = legs.run(2 * i + 2, ranks, stage, *dim, *map(str, more))
        require(list(got) == [2 * i + 1, 2 * i + 2], f"leg {i} runs the steps {list(got)}")
        rows.update(got)
        nothing_is_left(disk)
    if tolerance is None:
        require({s: r[0] for s, r in rows.items()} == {s: r[0] for s, r in whole.items()}, "losses differ")
        require(last == weights, "final weights differ")
    else:
        close("loss", [r[0] for r in rows.values()], [r[0] for r in whole.values()], tolerance)


def precision_and_place(tools):
    """Masters in host memory are what f32 goes on from, and the other way round."""
    legs = of_model(tools, "offload-precision", "mlp", "adamw")
    folder, dim = str(legs.folder / "run"), ("--dim", "batch={batch}")
    legs.run(4, 4, 3, *dim, "--checkpoint", folder, "--precision", "bf16", "--offload", "optimizer=host")
    _, bf16 = legs.run(4, 2, 1, *dim, "--resume", folder, "--precision", "bf16")
    _, f32 = legs.run(4, 1, 0, *dim, "--resume", folder, "--offload", "parameters=host")
    require(bf16 == f32, "the masters of bf16 in host memory are not the weights of f32")
    want, one = legs.run(6, 2, 2, *dim, "--resume", folder, "--precision", "bf16")
    got, other = legs.run(6, 2, 2, *dim, "--resume", folder, "--precision", "bf16", "--offload", "optimizer=host")
    require(want == got and one == other, "going on in host memory trains otherwise")


def terminated_while_on_disk(tools):
    """SIGTERM saves what is on disk; it goes on without offload."""
    folder, plain, args = disk_plan(tools, "terminated", 2, "optimizer=disk", "parameters=host")
    metrics = folder / "m.jsonl"
    run = start(tools, *args, "--steps", 10 ** 9, "--checkpoint", folder / "run", "--checkpoint-every", 3, "--keep", 2,
                "--metrics", metrics)
    wait_for_steps(run, metrics, 5)
    run.send_signal(signal.SIGTERM)
    _, error = run.communicate(timeout=60)
    require(run.returncode == 143, f"exits {run.returncode}: {error[-200:]}")
    nothing_is_left(folder / "disk")
    step = newest(folder / "run")
    tools.ok("zero-run", *plain, "--steps", step + 2, "--resume", folder / "run", "--save-weights", folder / "got")
    tools.ok("zero-run", *plain, "--steps", step + 2, "--save-weights", folder / "want")
    require((folder / "got").read_bytes() == (folder / "want").read_bytes(), "final weights differ")


def traces_show_the_streams(tools):
    """Copies and the host's compute are spans of their own streams, and the report draws them."""
    m, folder = model("mlp"), tools.scratch / "offload-trace"
    folder.mkdir()
    tools.ok("zero-run", m.folder / "ts_train.onnx", *m.loss_flags("adamw"), "--dim", "batch=2", "--ranks", 2,
             "--zero-stage", 2, "--data", m.folder / "data.safetensors", "--steps", 2, "--offload", "optimizer=disk",
             "--offload-path", folder, "--trace", folder / "t.json", "--report", folder / "r.html", "--summary")
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    threads = {e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    wanted = {"to_host", "to_device", "disk_read", "disk_write", "host"}
    require(wanted <= threads, f"the trace has the streams {sorted(threads)}")
    text = (folder / "r.html").read_text()
    require(all(name in text for name in wanted), "the report lacks a stream")


def schedules_agree(runner, name, ranks, stage, schedule):
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    rules = ("optimizer=host", "parameters=disk", "activations=host")
    run = runner.train(*key, "--zero-schedule", schedule, *flags_of(runner, rules, schedule, *key))
    same_run(runner.train(*key), run, f"with offload and --zero-schedule {schedule}")
    as_planned(run)


def threads_agree(runner, name, ranks, stage):
    """The host's part of a step in one piece, or in pieces: the same bits."""
    key = (name, FORM, "adamw", ranks, stage, share(name, ranks))
    for threads in (1, 3):
        run = runner.train(*key, "--offload", "optimizer=host", "--host-threads", threads)
        same_run(runner.train(*key), run, f"with {threads} threads on the host")


def add_agreements(cases, runner):
    """Each kind in each memory at each stage; ranks and what the step has besides go round."""
    for i, (kind, memory, stage) in enumerate(itertools.product(KINDS, MEMORIES, STAGES)):
        ranks, step = (1, 2, 4, 3)[(i + i // 4) % 4], STEPS[(i * 3 + i // 8) % len(STEPS)]
        name, optimizer = (("gpt2", "adamw") if i % 11 == 5 else ("cnn", "sgd") if i % 7 == 3 else ("mlp", "adamw"))
        ranks = 4 if name != "mlp" and ranks == 3 else ranks
        words = " ".join(map(str, step))
        cases.add(f"offload {kind}={memory} {name} ranks {ranks} stage {stage} {words}".strip(), agrees, runner, name,
                  optimizer, ranks, stage, step, (f"{kind}={memory}",))
    for i, rules in enumerate(TOGETHER):
        for stage, ranks in ((3, 2), (i % 3, 4)):
            step = STEPS[(i + stage) % len(STEPS)]
            cases.add(f"offload {' '.join(rules)} mlp ranks {ranks} stage {stage} {' '.join(map(str, step))}".strip(),
                      agrees, runner, "mlp", "adamw", ranks, stage, step, rules)


def add_cases(cases, runner):
    tools = runner.tools
    add_agreements(cases, runner)
    for ranks, stage, reduce in ((1, 0, 4), (2, 1, 2), (4, 2, 2), (3, 3, 2), (4, 3, 4)):
        cases.add(f"offload bytes mlp ranks {ranks} stage {stage} reduced in {reduce} bytes", moves_two_bytes, runner, "mlp",
                  ranks, stage, reduce)
    for ranks, stage in ((1, 0), (2, 2), (4, 3)):
        cases.add(f"offload memory mlp ranks {ranks} stage {stage}", less_device_memory, runner, "mlp", ranks, stage)
    for name, ranks, stage in (("mlp", 1, 0), ("mlp", 2, 3), ("gpt2", 2, 2)):
        cases.add(f"offload budget {name} ranks {ranks} stage {stage}", budgets, runner, name, ranks, stage)
    cases.add("offload budget of host memory", host_budget, runner, "mlp", 2, 2)
    for schedule in ("none", "joint"):
        cases.add(f"offload schedule {schedule}", schedules_agree, runner, "mlp", 2, 3, schedule)
    cases.add("offload threads", threads_agree, runner, "mlp", 2, 2)
    cases.add("offload checkpoint mlp", moves_between_layouts, tools, "mlp", ((2, 2), (2, 3), (2, 0), (2, 3), (2, 1)))
    cases.add("offload checkpoint mlp bf16", moves_between_layouts, tools, "mlp", ((2, 3), (2, 2), (2, 3)), None,
              ("--precision", "bf16"))
    cases.add("offload checkpoint mlp other ranks", moves_between_layouts, tools, "mlp", ((4, 3), (2, 2), (1, 0), (8, 3)),
              1e-4)
    for name, function in (("config", config_is_flags), ("plan", plan_without_a_folder), ("bad flags", bad_folders),
                           ("full disk", full_disk), ("killed", killed_leaves_nothing),
                           ("precision", precision_and_place), ("SIGTERM", terminated_while_on_disk),
                           ("trace", traces_show_the_streams)):
        cases.add(f"offload {name}", function, tools)
