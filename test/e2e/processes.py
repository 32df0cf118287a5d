# processes.py - Cases with a process for each rank.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks as processes train as threads do, fail together, and go on from what they saved."""
import array
import functools
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

import tensors
from checkpoint import rows_of
from harness import Failure, last_line, model, require

KILLS, SEED = 4, 20261130
PATIENCE_S = 10  # all have ended so long after the first failure
LATE_S = 5  # for a machine that is busy with other things


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def torchrun(rank, size, port, **more):
    """What torchrun sets."""
    return {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **more}


def srun(rank, size, port, **more):
    """What srun sets; the name of this machine stands for the list of hosts."""
    return {"SLURM_JOB_ID": 7, "SLURM_STEP_ID": 0, "SLURM_PROCID": rank, "SLURM_NTASKS": size, "SLURM_LOCALID": rank,
            "SLURM_STEP_NODELIST": "localhost", "MASTER_PORT": port, **more}


def children(pid):
    """Processes that PID has started, in that order."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def running(text):
    """Processes with TEXT in their command line, zombies too."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class Job:
    """One started zero-run, or several that are one run."""

    def __init__(self, run, processes, stem):
        self.run, self.processes, self.stem = run, processes, stem

    def wait(self, seconds=120):
        """Exit codes, and all that was said."""
        end = time.monotonic() + seconds
        outputs = []
        for process in self.processes:
            try:
                outputs.append(process.communicate(timeout=max(0.1, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                self.kill()
                raise Failure(f"does not end within {seconds} s") from None
        self.said = "".join(err for _, err in outputs)
        self.codes = [process.returncode for process in self.processes]
        return self

    def kill(self):
        for process in self.processes:
            process.kill()
            process.communicate()

    def rows(self):
        return rows_of(f"{self.stem}.jsonl")

    def weights(self):
        return pathlib.Path(f"{self.stem}.safetensors").read_bytes()

    def errors(self):
        return [line for line in self.said.splitlines() if "error:" in line]

    def until_step(self, step, seconds=60):
        """Returns once the metrics have a line of STEP."""
        end = time.monotonic() + seconds
        while not any(s >= step for s in self.rows()):
            require(time.monotonic() < end, f"no step {step} within {seconds} s")
            if all(p.poll() is not None for p in self.processes):
                raise Failure(f"ended before step {step}: {self.wait().said[-300:]}")
            time.sleep(0.01)


LOCK = threading.Lock()


class Plan:
    """A plan of a test model that runs are started with."""

    def __init__(self, tools, name, stage, ranks, label="", batch=2, optimizer="adamw"):
        self.tools, self.ranks, m = tools, ranks, model(name)
        self.folder = pathlib.Path(tools.scratch) / f"processes-{name}-{stage}-{ranks}{label}"
        self.folder.mkdir()
        self.count, self.counting = 0, threading.Lock()
        flags = m.loss_flags(optimizer)
        at = flags.index("--lr")
        self.lr = flags[at:at + 2]
        self.data = ["--data", m.folder / "data.safetensors", "--weights", m.folder / "init.safetensors"]
        self.model = [m.folder / "ts_train.onnx", *flags, *m.dims("ts_train", batch), "--batch", batch,
                      "--zero-stage", stage]
        step, self.path = self.folder / "step.mlir", self.folder / "step.zplan"
        tools.ok("zero-import", m.folder / "ts_train.onnx", "-o", step, "--weights", self.folder / "w.safetensors",
                 *flags[:at], *flags[at + 2:], *m.dims("ts_train", batch))
        tools.ok("zero-compile", step, "-o", self.path, "--zero-stage", stage, "--ranks", ranks)

    def begin(self, *flags, before=(), environments=({},), compiled=True, limits=None, data=None):
        """Starts zero-run once for each environment."""
        with self.counting:
            self.count += 1
            stem = self.folder / str(self.count)
        words = [self.path, *self.lr] if compiled else self.model
        command = [*before, self.tools.folder / "zero-run", *words, *(data or self.data), "--log-every", 0,
                   "--metrics", f"{stem}.jsonl", "--save-weights", f"{stem}.safetensors", *flags]
        started = []
        for i, environment in enumerate(environments):
            limit = functools.partial(resource.setrlimit, *limits[i]) if limits and limits[i] else None
            started.append(subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            text=True, stdin=subprocess.DEVNULL, preexec_fn=limit,
                                            env={**os.environ, **{k: str(v) for k, v in environment.items()}}))
        return Job(self, started, stem)

    def good(self, *flags, **how):
        job = self.begin(*flags, **how).wait()
        require(not any(job.codes), f"exits {job.codes}: {job.said[-300:]}")
        return job

    def several(self, variables=torchrun, port=None, **more):
        port = port or free_port()
        return [variables(rank, self.ranks, port, **more) for rank in range(self.ranks)]

    def none_left(self, job):
        """Nobody of the job runs any more."""
        end = time.monotonic() + 5
        while running(f"{job.stem}.jsonl"):
            require(time.monotonic() < end, f"processes {running(f'{job.stem}.jsonl')} are left")
            time.sleep(0.05)


@functools.cache
def cached_plan(tools, name, stage, ranks):
    return Plan(tools, name, stage, ranks)


def plan(tools, name, stage, ranks):
    """Made once, also where cases run side by side."""
    with LOCK:
        return cached_plan(tools, name, stage, ranks)


def same(job, other):
    require(job.rows() == other.rows(), "losses are not those of threads")
    require(job.weights() == other.weights(), "weights are not those of threads")


def same_as_threads(tools, name, stage, ranks, how):
    """Bit for bit the losses and weights that ranks have as threads."""
    run = plan(tools, name, stage, ranks)
    steps = ["--steps", 6]
    threads = run.good(*steps)
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks]
    if how == "processes":
        same(run.good(*steps, "--processes", ranks), threads)
    elif how == "compiled":
        same(run.good(*steps, "--processes", ranks, compiled=False), run.good(*steps, "--ranks", ranks, compiled=False))
    elif how == "mpirun":
        same(run.good(*steps, before=mpirun), threads)
    elif how == "mpi":
        same(run.good(*steps, "--transport", "mpi", before=mpirun), threads)
    else:
        same(run.good(*steps, environments=run.several({"torchrun": torchrun, "srun": srun}[how])), threads)


def moves(tools):
    """A checkpoint of processes goes on in threads, in other processes, and back."""
    run = plan(tools, "mlp", 3, 4)
    whole = run.good("--steps", 12)
    folder = run.folder / "moves"
    keep = ["--checkpoint", folder, "--checkpoint-every", 2]
    legs = [run.good("--steps", 4, "--processes", 4, *keep),
            run.good("--steps", 8, *keep, "--resume", folder),
            run.good("--steps", 12, "--processes", 4, *keep, "--checkpoint-sync", "--resume", folder)]
    rows = {step: row for leg in legs for step, row in leg.rows().items()}
    require(rows == whole.rows(), "losses are not those of the run that did not stop")
    require(legs[-1].weights() == whole.weights(), "weights are not those of the run that did not stop")
    two = plan(tools, "mlp", 2, 2)
    moved = two.good("--steps", 14, "--processes", 2, "--resume", folder)
    require(list(moved.rows()) == [13, 14], f"goes on with steps {list(moved.rows())}")


def terminated(tools, whom):
    """SIGTERM to whomever: all save the same step and end with 143."""
    run = plan(tools, "mlp", 3, 4)
    folder = run.folder / f"terminated-{whom}"
    keep = ["--checkpoint", folder, "--steps", 1 << 40]
    several = whom in ("one", "all")
    job = run.begin(*keep, environments=run.several()) if several else run.begin(*keep, "--processes", 4)
    job.until_step(5)
    if whom == "child":
        os.kill(children(job.processes[0].pid)[2], signal.SIGTERM)
    for process in [job.processes[1]] if whom == "one" else job.processes if whom != "child" else []:
        process.send_signal(signal.SIGTERM)
    job.wait()
    require(set(job.codes) == {143}, f"exits {job.codes}: {job.said[-300:]}")
    require(not job.errors(), f"says {job.errors()}")
    saved = sorted(p.name for p in folder.iterdir())
    require(saved == [f"step-{max(job.rows()):08}"], f"has saved {saved} after step {max(job.rows())}")
    run.none_left(job)
    shutil.rmtree(folder)



def fails_once(job, *words, codes=None):
    """One error, which has all of WORDS, and processes that end because of it."""
    errors = job.errors()
    require(len(errors) == 1, f"{len(errors)} errors: {errors}")
    for word in words:
        require(word in errors[0], f"'{word}' is not in: {errors[0]}")
    if codes:
        require(sorted(job.codes) == sorted(codes), f"exits {job.codes}, not {codes}")
    job.run.none_left(job)


def bad_data(tools):
    """Data that is not finite for one rank: said once."""
    run = plan(tools, "mlp", 3, 4)
    path = run.folder / "bad.safetensors"
    made = dict(tensors.load(run.data[1]))
    name = next(n for n in made if n != "labels")
    kind, shape, raw = made[name]
    values = array.array("f", raw)
    per_sample = len(values) // shape[0]
    values[5 * per_sample] = float("nan")  # of rank 2
    made[name] = (kind, shape, values.tobytes())
    tensors.save(path, made)
    job = run.begin("--steps", 4, data=["--data", path, *run.data[2:]], environments=run.several()).wait()
    fails_once(job, "step 1", "nan", "rank 2", codes=[1, 75, 75, 75])
    job = run.begin("--steps", 4, "--check-finite", data=["--data", path, *run.data[2:]], environments=run.several())
    fails_once(job.wait(), "rank 2", codes=[1, 75, 75, 75])


def hang(tools, rank):
    """A process that is stopped is late, and is named."""
    run = plan(tools, "mlp", 3, 4)
    job = run.begin("--steps", 1 << 40, "--timeout", 1, "--processes", 4)
    job.until_step(3)
    os.kill(children(job.processes[0].pid)[rank], signal.SIGSTOP)
    begin = time.monotonic()
    job.wait()
    took = time.monotonic() - begin
    require(took < 1 + PATIENCE_S + LATE_S, f"took {took:.1f} s")
    fails_once(job, f"rank {rank}", codes=[1])


def disk_full(tools):
    """One process cannot write; the checkpoint that is there stays."""
    run = plan(tools, "mlp", 3, 4)
    folder = run.folder / "full"
    run.good("--steps", 2, "--processes", 4, "--checkpoint", folder)
    limits = [None, None, (resource.RLIMIT_FSIZE, (100, 100)), None]
    job = run.begin("--steps", 4, "--checkpoint", folder, "--resume", folder, environments=run.several(), limits=limits)
    fails_once(job.wait(), "rank 2", "File too large", codes=[1, 75, 75, 75])
    job = run.begin("--steps", 4, "--checkpoint", folder, "--resume", folder, "--trace", "/dev/full",
                    environments=run.several())
    fails_once(job.wait(), "/dev/full", codes=[1, 75, 75, 75])
    shutil.rmtree(folder / "step-00000004")
    require(sorted(p.name for p in folder.iterdir()) == ["step-00000002"], "something else is in the folder")
    run.good("--steps", 4, "--processes", 4, "--checkpoint", folder, "--resume", folder)


def contradictions(tools):
    """Processes that do not belong together."""
    run = plan(tools, "mlp", 3, 4)
    port = free_port()
    alone = run.begin("--steps", 1, "--connect-timeout", 1, environments=[torchrun(1, 4, port)]).wait()
    fails_once(alone, f"process 0 is not at 127.0.0.1:{port}", "Connection refused", codes=[1])
    missing = run.begin("--steps", 1, "--connect-timeout", 2, environments=[torchrun(r, 4, port) for r in (0, 2)]).wait()
    fails_once(missing, "2 of 4 processes came", "missing: rank 1, 3", codes=[1, 75])
    sizes = run.begin("--steps", 1, "--connect-timeout", 5, environments=[torchrun(0, 4, port), torchrun(1, 2, port)])
    fails_once(sizes.wait(), "rank 1 of 2, to process 0 of 4", codes=[1, 75])
    ranks = run.begin("--steps", 1, "--ranks", 2, environments=run.several()[:1]).wait()
    fails_once(ranks, "--ranks 2: there are 4 processes (torchrun)", codes=[1])
    part = run.begin("--steps", 1, environments=[{"RANK": 1, "WORLD_SIZE": 4}]).wait()
    fails_once(part, "RANK=1, WORLD_SIZE=4", "LOCAL_RANK, MASTER_ADDR, MASTER_PORT are not", codes=[1])
    twice = run.begin("--steps", 1, "--processes", 4, environments=run.several()[1:2]).wait()
    fails_once(twice, "--processes 4", "torchrun", codes=[1])
    wrong = run.begin("--steps", 1, "--processes", 2).wait()
    fails_once(wrong, "a number of ranks of 4, --processes says 2", codes=[1])


def other_flags(tools):
    """Each process has a command line of its own: what changes the run is the same in all."""
    run = plan(tools, "mlp", 3, 4)
    w = run.folder / "unused.safetensors"
    for flags, others, said in [
            (["--steps", 2, "--clip", 1], ["--steps", 2], "rank 3 has no --clip, rank 0 --clip 1"),
            (["--steps", 2], ["--steps", 3], "rank 3 has --steps 3, rank 0 --steps 2"),
            (["--steps", 2], ["--steps", 2, "--checkpoint", w], "rank 3 has --checkpoint, rank 0 no --checkpoint"),
            (["--steps", 2, "--trace", w], ["--steps", 2], "rank 3 has no --trace or --report, rank 0 --trace or")]:
        environments = run.several()
        first = run.begin(*flags, environments=environments[:3], compiled=False)
        last = run.begin(*others, environments=environments[3:], compiled=False)
        job = Job(run, first.processes + last.processes, first.stem).wait()
        fails_once(job, said, ": all processes of a run need the same flags", codes=[1, 75, 75, 75])
        run.none_left(last)
    require(not w.exists(), "something was written")
    grid = run.begin("--steps", 1, "--processes", 3, "--zero-grid", "2x2", compiled=False).wait()
    fails_once(grid, "--zero-grid has 4 ranks: there are 3 processes (--processes)", codes=[1])
    alone = run.begin("--steps", 1, "--transport", "shm", compiled=False).wait()
    require("note: --transport has no effect: this is the only process" in alone.said, f"says {alone.said}")


def nothing_temporary(tools, whom):
    """A run of an ONNX model that ends while it starts leaves no copy of the weights."""
    run = plan(tools, "mlp", 3, 4)
    folder = run.folder / f"temporary-{whom}"
    folder.mkdir()
    job = run.begin("--steps", 1 << 40, "--processes", 4, compiled=False, environments=[{"TMPDIR": folder}])
    end = time.monotonic() + 30
    while not list(folder.glob("zero-run-*/weights.safetensors")):
        require(time.monotonic() < end, "no weights within 30 s")
    if whom == "rank0":
        os.kill(children(job.processes[0].pid)[0], signal.SIGKILL)
    else:
        job.processes[0].send_signal(signal.SIGTERM)
    job.wait()
    require(job.codes == [1 if whom == "rank0" else 143], f"exits {job.codes}: {job.said[-300:]}")
    run.none_left(job)
    left = [p.name for p in folder.glob("zero-run-*")]
    require(not left, f"{left} stays")


def other_plan(tools):
    """The same model at another stage is another plan."""
    run, other = plan(tools, "mlp", 3, 4), plan(tools, "mlp", 2, 4)
    environments = run.several()
    first = run.begin("--steps", 1, environments=environments[:3])
    last = other.begin("--steps", 1, environments=environments[3:])
    job = Job(run, first.processes + last.processes, first.stem).wait()
    fails_once(job, "rank 3")


def hostile_bytes(tools):
    """Strangers at the port of process 0 change nothing."""
    run = plan(tools, "mlp", 3, 4)
    environments = run.several()
    port, rng = environments[0]["MASTER_PORT"], random.Random(SEED)
    first = run.begin("--steps", 3, environments=environments[:1])
    for i in range(100):
        noise = b"ZRT1" * (i % 3) + rng.randbytes(rng.randrange(200))
        for _ in range(200):  # until it listens
            try:
                with socket.create_connection(("127.0.0.1", port), 5) as s:
                    s.sendall(noise)
                break
            except OSError:
                time.sleep(0.02)
    rest = run.begin("--steps", 3, environments=environments[1:])
    job = Job(run, first.processes + rest.processes, first.stem).wait()
    require(not any(job.codes), f"exits {job.codes}: {job.said[-300:]}")
    require(list(job.rows()) == [1, 2, 3], f"runs steps {list(job.rows())}")


def launcher_killed(tools):
    run = plan(tools, "mlp", 3, 4)
    job = run.begin("--steps", 1 << 40, "--processes", 4)
    job.until_step(2)
    of = children(job.processes[0].pid)
    job.processes[0].kill()
    job.wait()
    end = time.monotonic() + 5
    while any(state_of(pid) not in ("", "Z") for pid in of):
        require(time.monotonic() < end, "processes outlive the launcher")
        time.sleep(0.05)


def state_of(pid):
    """The letter of a process's state; a zombie is its parent's affair."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


class Kills:
    """Kills one of four processes at random moments, again and again, and goes on from the checkpoint."""

    def __init__(self, tools, seed):
        self.run, self.rng = Plan(tools, "mlp", 3, 4, "-kills"), random.Random(seed)
        self.folder = self.run.folder / "kills"
        self.rows, self.table = {}, []

    def leg(self, *flags):
        keep = ["--checkpoint", self.folder, "--checkpoint-every", 5, "--keep", 3, "--resume", self.folder]
        return self.run.begin("--processes", 4, *keep, *flags)

    def take(self, job):
        """Losses by step; what is run again is the same again."""
        again = [step for step in job.rows() if step in self.rows]
        for step, row in job.rows().items():
            require(self.rows.setdefault(step, row) == row, f"step {step} has another loss after the restart")
        return len(again)

    def kill(self):
        rank, job = self.rng.randrange(4), self.leg("--steps", 1 << 40)
        pids = []
        while len(pids) < 4 and job.processes[0].poll() is None:
            pids = children(job.processes[0].pid)
        if self.rng.random() < 0.8:  # else while it starts
            job.until_step(1)
        time.sleep(self.rng.random() * 0.4)
        os.kill(pids[rank], signal.SIGKILL)
        begin = time.monotonic()
        job.wait()
        took = time.monotonic() - begin
        errors = job.errors()
        require(job.codes == [1], f"exits {job.codes}: {job.said[-300:]}")
        require(len(errors) == 1 and f"rank {rank} was" in errors[0], f"rank {rank} was killed, but: {errors}")
        require(took < PATIENCE_S, f"took {took:.1f} s")
        self.run.none_left(job)
        self.table.append((rank, max(job.rows(), default=0), self.take(job), took, errors[0].partition("error: ")[2]))

    def finish(self):
        """To the end without a kill: all losses are those of a run without any."""
        last = max(self.rows, default=0) + 10
        job = self.leg("--steps", last).wait()
        require(not any(job.codes), f"exits {job.codes}: {job.said[-300:]}")
        self.take(job)
        whole = self.run.good("--steps", last)
        require(self.rows == whole.rows(), "losses are not those of the run without kills")
        require(job.weights() == whole.weights(), "weights are not those of the run without kills")
        return last


def killed(tools, count, seed):
    kills = Kills(tools, seed)
    for _ in range(count):
        kills.kill()
    kills.finish()


def add_cases(cases, tools):
    for name, stage, ranks, how in [("mlp", 3, 4, "processes"), ("mlp", 3, 4, "compiled"), ("mlp", 3, 4, "torchrun"),
                                    ("mlp", 3, 4, "srun"), ("gpt2", 2, 2, "processes"), ("cnn", 1, 3, "processes")]:
        cases.add(f"processes/same/{name}/{stage}/{ranks}/{how}", same_as_threads, tools, name, stage, ranks, how)
    if shutil.which("mpirun"):
        for how in ("mpirun", "mpi"):
            cases.add(f"processes/same/mlp/3/4/{how}", same_as_threads, tools, "mlp", 3, 4, how)
    cases.add("processes/checkpoint/moves", moves, tools)
    for whom in ("launcher", "child", "one", "all"):
        cases.add(f"processes/terminated/{whom}", terminated, tools, whom)
    for rank in (0, 2):
        cases.add(f"processes/hang/rank{rank}", hang, tools, rank)
    for whom in ("rank0", "launcher"):
        cases.add(f"processes/nothing_temporary/{whom}", nothing_temporary, tools, whom)
    for case in (bad_data, disk_full, contradictions, other_flags, other_plan, hostile_bytes, launcher_killed):
        cases.add(f"processes/{case.__name__}", case, tools)
    cases.add(f"processes/killed/{KILLS}", killed, tools, KILLS, SEED)
