# run.py - Runs the backend tests of the onnx package.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports, compiles for this machine, runs and compares with the suite's tolerances. Each
test has a process of its own, so that one that crashes fails alone. Inputs whose values an
operator needs at import (shapes, axes), or whose sizes have only a name, are given as
constants if the importer asks for it.

Tests that are known to fail stand in expected_failures.txt with the reason: one of them
that passes is a failure, too. The last line is `N passed, N failed, N expected`.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import cases as suite
import tensors

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXPECTED = HERE / "expected_failures.txt"
TIMEOUT_S = 300


def read_expected():
    expected = {}
    for line in EXPECTED.read_text().splitlines():
        name, colon, reason = line.partition(": ")
        if line and not line.startswith("#"):
            if not colon or not reason.strip():
                sys.exit(f"{EXPECTED}: '{line}': expected NAME: REASON")
            expected[name] = reason
    return expected


# Words of the importer's errors that ask for an input's value.
ASKS = ("known at import", "give its size with --dim", "whose size depends on the data")


class Failed(Exception):
    """Why a test fails: one line."""


def bindings(inputs):
    """Sets of inputs to be given as constants, from none to all: smaller ones first."""
    def small(names):
        return [n for n in names if inputs[n].ndim <= 1]
    whole = [n for n in inputs if np.issubdtype(inputs[n].dtype, np.integer) or inputs[n].dtype == np.bool_]
    levels = [[], small(whole), small(inputs), whole, list(inputs)[1:], list(inputs)]
    return [names for i, names in enumerate(levels) if names not in levels[:i]]


class Runner:
    def __init__(self, tools, folder):
        self.tools, self.folder = pathlib.Path(tools), folder

    def call(self, case, number, constants, scratch):
        """The finished process of zero-run."""
        path = self.folder / case["name"]
        data = path / f"inputs_{number}.safetensors"
        command = [self.tools / "zero-run", path / "model.onnx", "--forward", "--data", data,
                   "--save-outputs", scratch / "outputs.safetensors"]
        for name in constants:
            command += ["--value", f"{name}={data}"]
        for name in case["absent"]:
            command += ["--value", f"{name}="]
        try:
            return subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL,
                                  timeout=TIMEOUT_S, errors="replace", env={**os.environ, "ZRT_POISON": "1"})
        except subprocess.TimeoutExpired:
            raise Failed(f"runs longer than {TIMEOUT_S} s") from None

    def run_set(self, case, number, scratch):
        path = self.folder / case["name"]
        inputs = tensors.load(path / f"inputs_{number}.safetensors")
        for constants in bindings(inputs):
            done = self.call(case, number, constants, scratch)
            if done.returncode == 0 or not any(words in done.stderr for words in ASKS):
                break
        if done.returncode < 0:
            raise Failed(f"crashes with signal {-done.returncode}: {first_line(done.stderr)}")
        if done.returncode:
            raise Failed(first_line(done.stderr).replace(str(path) + "/", ""))
        compare(case, tensors.load(scratch / "outputs.safetensors"),
                tensors.load(path / f"outputs_{number}.safetensors"))

    def run(self, case):
        """Why CASE fails; None if it does not."""
        with tempfile.TemporaryDirectory() as scratch:
            try:
                for number in range(case["sets"]):
                    self.run_set(case, number, pathlib.Path(scratch))
            except Failed as e:
                return str(e)
            except Exception as e:  # a bug of the runner is the test's failure too
                return f"{type(e).__name__}: {e}"
        return None


def first_line(text):
    lines = [line for line in text.splitlines() if "error:" in line] or text.strip().splitlines() or ["no output"]
    return lines[0].replace("zero-run: error: ", "")[:300]


def compare(case, found, wanted):
    """As assert_similar_outputs of onnx.backend.test.runner does."""
    for name, kind in case["other"].items():
        raise Failed(f"output '{name}' is {kind}, which cannot be compared")
    for name, ref in wanted.items():
        if name not in found:
            raise Failed(f"output '{name}' is missing")
        out = found[name]
        if out.shape != ref.shape or out.dtype != ref.dtype:
            raise Failed(f"output '{name}' is {out.dtype}{list(out.shape)}, expected {ref.dtype}{list(ref.shape)}")
        rtol = case["rtol"]
        if out.dtype.name == "bfloat16":
            rtol = max(rtol, 2 ** -6)
        if out.dtype.kind not in "iub":
            out, ref = out.astype(np.float64), ref.astype(np.float64)
        try:
            np.testing.assert_allclose(out, ref, rtol=rtol, atol=case["atol"])
        except AssertionError as e:
            lines = [line.strip() for line in str(e).splitlines() if line.strip()]
            raise Failed(f"output '{name}': " + "; ".join(lines[1:5])) from None


def report(case, reason, expected, options):
    """Counts one result: "passed", "failed" or "expected"."""
    name = case["name"]
    if reason is None and name not in expected:
        return "passed"
    if reason is None:
        print(f"FAILED {name}: passes now; take it out of {EXPECTED.name}", flush=True)
        return "failed"
    if name not in expected:
        print(f"FAILED {name}: {reason}", flush=True)
        return "failed"
    if options.red:
        print(f"expected {name}: {reason}", flush=True)
    return "expected"


def write_expected(expected, results):
    """Makes the list of known failures that of this run; reasons that it has stay."""
    reasons = {name: reason for name, reason in expected.items() if results.get(name, reason) is not None}
    for name, reason in results.items():
        if reason is not None:
            reasons.setdefault(name, reason)
    comments = [line for line in EXPECTED.read_text().splitlines() if line.startswith("#")]
    EXPECTED.write_text("\n".join(comments + [f"{n}: {r}" for n, r in sorted(reasons.items())]) + "\n")


def chosen(case, patterns):
    return not patterns or any(p in case["name"] if not set(p) & set("*?[") else fnmatch.fnmatch(case["name"], p)
                               for p in patterns)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN",
                        help="only these tests: parts of names, or patterns with * and ?")
    parser.add_argument("--bin", default=ROOT / "build" / "release" / "bin", help="folder of the tools")
    parser.add_argument("--kind", choices=("node", *suite.KINDS), help="only tests of this kind")
    parser.add_argument("--red", action="store_true", help="also print why the expected failures fail")
    parser.add_argument("--write-expected", action="store_true",
                        help="list the failures of this run as expected ones; what they say is the reason of new ones")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    all_cases, folder = suite.collect(ROOT / "build" / "onnx-suite")
    expected = read_expected()
    unknown = set(expected) - {c["name"] for c in all_cases}
    if unknown:
        sys.exit(f"{EXPECTED}: the suite has no {sorted(unknown)[0]}")
    selected = [c for c in all_cases if chosen(c, options.patterns) and options.kind in (None, c["kind"])]
    counts = {"passed": 0, "failed": 0, "expected": 0}
    runner, results = Runner(options.bin, folder), {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, reason in zip(selected, pool.map(runner.run, selected)):
            counts[report(case, reason, expected, options)] += 1
            results[case["name"]] = reason
    if options.write_expected:
        write_expected(expected, results)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return 1 if counts["failed"] or not selected else 0


if __name__ == "__main__":
    sys.exit(main())
