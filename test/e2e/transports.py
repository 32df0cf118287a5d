# transports.py - Cases about ways for data to travel between ranks.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that are threads, that share memory, or that send messages of MPI: one result, to the bit."""
import itertools
import os
import pathlib
import shutil
import subprocess

from harness import Failure, Run, TIMEOUT_S, last_line, model, require
from offload import flags_of, nothing_is_left
from processes import free_port
from schedule import FORM, share
from training import STAGES, same_bits

# What a step may have: grids, micro-batches, narrow types, state in other spaces.
STEPS = {
    "plain": (),
    "grid": ("--zero-grid", "2x2"),
    "micro": ("--accumulate", 2, "--clip", 0.5),
    "bf16": ("--precision", "bf16", "--reduce-type", "bf16", "--accumulate", 2),
    "fp16": ("--precision", "fp16"),
}
RANKS = 4


def by_mpi(runner, name, stage, flags):
    """The same run in processes that mpirun starts."""
    m, stem = model(name), runner.tools.scratch / f"mpi-{name}-{stage}-{'-'.join(map(str, flags))}"
    metrics, weights = pathlib.Path(f"{stem}.jsonl"), pathlib.Path(f"{stem}.safetensors")
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", RANKS, runner.tools.folder / "zero-run",
             m.folder / f"{FORM}.onnx", *m.loss_flags("adamw"), "--zero-stage", stage, "--batch", share(name, RANKS),
             *m.dims(FORM, share(name, RANKS)), "--weights", m.folder / "init.safetensors",
             "--data", m.folder / "data.safetensors", "--steps", m.reference["steps"], "--metrics", metrics,
             "--save-weights", weights, *flags, "--transport", "mpi", "--master-addr", "127.0.0.1",
             "--master-port", free_port()]
    done = subprocess.run([str(w) for w in words], env={**os.environ, "ZRT_CHECK": "1", "ZRT_POISON": "1"},
                          text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
    if done.returncode:
        raise Failure(f"zero-run over MPI exits {done.returncode}: {last_line(done)}")
    return Run(metrics, weights)


def bits_of_threads(runner, way, name, stage, step):
    key = (name, FORM, "adamw", RANKS, stage, share(name, RANKS), *STEPS[step])
    threads = runner.train(*key)
    other = by_mpi(runner, name, stage, STEPS[step]) if way == "mpi" else runner.train(*key, "--processes", RANKS)
    same_bits(threads, other, f"of threads and {way}")
    for column in ("comm_bytes", "peak_bytes"):
        require(threads.column(column) == other.column(column), f"{column} of threads and {way} differ")


def offloaded(runner, name, stage, rule):
    """State in host memory and on disk, of processes; nothing is left."""
    key = (name, FORM, "adamw", RANKS, stage, share(name, RANKS))
    flags = flags_of(runner, [rule], "transports", name, stage, rule)
    same_bits(runner.train(*key, *flags), runner.train(*key, *flags, "--processes", RANKS), f"of processes with {rule}")
    if "--offload-path" in flags:
        nothing_is_left(flags[-1])


def mpi_needs_a_launcher(runner):
    """Processes that zero-run starts are no MPI processes: one error that says what to do."""
    m = model("mlp")
    done = runner.tools.call("zero-run", m.folder / f"{FORM}.onnx", *m.loss_flags("sgd"), *m.dims(FORM, 2), "--batch", 2,
                             "--data", m.folder / "data.safetensors", "--steps", 1, "--processes", 2, "--transport", "mpi")
    told = [line for line in done.stderr.splitlines() if "the transport mpi needs processes that mpirun or srun" in line]
    require(done.returncode and len(told) == 1, f"zero-run exits {done.returncode}: {done.stderr[-300:]}")


def add_cases(cases, runner):
    ways = ["shm"] + (["mpi"] if shutil.which("mpirun") else [])
    for way, stage, step in itertools.product(ways, STAGES, STEPS):
        name = "gpt2" if step == "plain" else "mlp"
        if way == "shm" or stage in (0, 3):
            cases.add(f"transports/{way}/{name}/{stage}/{step}", bits_of_threads, runner, way, name, stage, step)
    if "mpi" in ways:
        cases.add("transports/mpi/needs_a_launcher", mpi_needs_a_launcher, runner)
    for stage, rule in itertools.product((2, 3), ("optimizer=host", "optimizer=disk")):
        cases.add(f"transports/offload/{stage}/{rule}", offloaded, runner, "mlp", stage, rule)
