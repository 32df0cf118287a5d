# harness.py - Runs the tools once per configuration and collects test cases.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A case is a named function that raises Failure; each counts by itself."""
import collections
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import tensors

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
TIMEOUT_S = 600


class Failure(Exception):
    """What a case says when it fails: one line."""


def require(condition, message):
    if not condition:
        raise Failure(message)


def last_line(done):
    return ((done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"])[0][:300]


class Once:
    """Remembers a method's results by argument; concurrent callers wait for one run."""

    def __init__(self):
        self.lock, self.locks, self.results = threading.Lock(), {}, {}

    def get(self, key, compute):
        with self.lock:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.results:
                try:
                    self.results[key] = (compute(), None)
                except Failure as e:
                    self.results[key] = (None, e)
        value, error = self.results[key]
        if error:
            raise error
        return value


class Tools:
    def __init__(self, folder, scratch):
        self.folder, self.scratch = pathlib.Path(folder), pathlib.Path(scratch)

    def call(self, tool, *args, cwd=None, **env):
        """Runs TOOL; returns the finished process, whatever its exit status."""
        try:
            return subprocess.run([str(self.folder / tool), *map(str, args)], cwd=cwd, text=True,
                                  env={**os.environ, **env}, capture_output=True, stdin=subprocess.DEVNULL,
                                  timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"{tool} ran longer than {TIMEOUT_S} s") from None

    def ok(self, tool, *args, cwd=None):
        done = self.call(tool, *args, cwd=cwd)
        if done.returncode:
            raise Failure(f"{tool} exits {done.returncode}: {last_line(done)}")
        return done


class Model:
    """One folder of test/models."""

    def __init__(self, name):
        self.name, self.folder = name, MODELS / name
        self.reference = json.loads((self.folder / "reference.json").read_text())
        self.data = tensors.load(self.folder / "data.safetensors")

    def dims(self, form, batch):
        """--dim flags of a form: its symbols are `batch` and `seq`."""
        if form == "dynamo_noopt":
            return []
        flags = ["--dim", f"batch={batch}"]
        if self.reference["loss"] == "causal-lm":
            flags += ["--dim", f"seq={self.data[self.reference['input']][1][1]}"]
        return flags

    def loss_flags(self, optimizer):
        """Flags that give the training step: --loss, --optimizer and what they need."""
        hyper = self.reference["hyper"][optimizer]
        return ["--loss", self.reference["loss"]] + [w for k, v in hyper.items() for w in (f"--{k}", str(v))]


@functools.cache
def model(name):
    return Model(name)


class Run:
    """What one zero-run left: metrics by step and the saved weights."""

    def __init__(self, metrics, weights):
        self.rows = [json.loads(line) for line in metrics.read_text().splitlines() if line.strip()]
        self.bytes = weights.read_bytes()
        self.weights = tensors.load(weights)

    def column(self, name):
        return [row[name] for row in self.rows]


class Runner:
    """Trains a test model with zero-run, once per configuration."""

    def __init__(self, tools):
        self.tools, self.runs, self.tries, self.steps = tools, Once(), Once(), Once()

    def train(self, name, form, optimizer, ranks, stage, batch, *flags):
        key = (name, form, optimizer, ranks, stage, batch, *flags)
        return self.runs.get(key, lambda: self._train(*key))

    def _train(self, *key):
        done, run = self._call(*key)
        if run is None:
            raise Failure(f"zero-run exits {done.returncode}: {last_line(done)}")
        return run

    def try_train(self, *key):
        """The finished process, and what it left where it succeeded."""
        return self.tries.get(key, lambda: self._call(*key))

    def _call(self, name, form, optimizer, ranks, stage, batch, *flags):
        m = model(name)
        words = "".join(c if c.isalnum() else "-" for c in "".join(map(str, flags)))
        if len(words) > 80:  # names of files are bounded
            words = words[:60] + hashlib.sha1(words.encode()).hexdigest()[:12]
        stem = self.tools.scratch / f"{name}-{form}-{optimizer}-n{ranks}-s{stage}-b{batch}{words}"
        metrics, weights = (pathlib.Path(f"{stem}.{end}") for end in ("jsonl", "safetensors"))
        # A schedule that reads too early or too late meets NaN.
        modes = {"ZRT_CHECK": "1", "ZRT_POISON": "1"} if flags else {}
        done = self.tools.call("zero-run", m.folder / f"{form}.onnx", *m.loss_flags(optimizer),
                               "--ranks", ranks, "--zero-stage", stage, "--batch", batch, *m.dims(form, batch),
                               "--weights", m.folder / "init.safetensors",
                               "--data", m.folder / "data.safetensors", "--steps", m.reference["steps"],
                               "--metrics", metrics, "--save-weights", weights, *flags, **modes)
        return done, None if done.returncode else Run(metrics, weights)

    def stage3(self, name, form, optimizer, ranks, batch):
        """The IR of a step at stage 3, scheduled as zero-run does, as zero-opt prints it."""
        key = (name, form, optimizer, ranks, batch)
        return self.steps.get(key, lambda: self._stage3(*key))

    def _stage3(self, name, form, optimizer, ranks, batch):
        m = model(name)
        step = self.tools.scratch / f"{name}-{form}-{optimizer}-n{ranks}-b{batch}.mlir"
        flags = m.loss_flags(optimizer)
        at = flags.index("--lr") if "--lr" in flags else len(flags)
        self.tools.ok("zero-import", m.folder / f"{form}.onnx", "-o", step, *flags[:at], *flags[at + 2:],
                      *m.dims(form, batch))
        return self.tools.ok("zero-opt", "--zero-stage=3", f"--zero-ranks={ranks}", "--zero-schedule=joint", step).stdout


class Cases:
    def __init__(self):
        self.cases = []
        self.seconds = collections.Counter()  # by the first word of a case's name

    def add(self, name, function, *args):
        self.cases.append((name, functools.partial(function, *args)))

    def run(self, workers, only):
        """Runs all; prints each failure and a progress line on a terminal."""
        chosen = [(n, f) for n, f in self.cases if only in n]
        passed, failed, live = 0, 0, sys.stderr.isatty()
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for name, error, seconds in pool.map(self._one, chosen):
                self.seconds[re.split("[ /:]", name)[0]] += seconds
                passed, failed = (passed + 1, failed) if error is None else (passed, failed + 1)
                if live:
                    print(f"\r\033[Ke2e {passed + failed}/{len(chosen)} {name[:60]}", end="", file=sys.stderr)
                if error is not None:
                    print(("\r\033[K" if live else "") + f"FAILED {name}: {error}", flush=True)
        if live:
            print("\r\033[K", end="", file=sys.stderr)
        return passed, failed

    @staticmethod
    def _one(case):
        name, function = case
        start, error = time.monotonic(), None
        try:
            function()
        except Failure as e:
            error = str(e)
        except Exception as e:  # a bug of the case is its failure too
            error = f"{type(e).__name__}: {e}"
        return name, error, time.monotonic() - start


def workers():
    return max(1, len(os.sched_getaffinity(0)))
