#!/usr/bin/env python3
# run.py - How low and how fast zero-plan --allocate is on a folder of instances.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a table: instance, buffers, lower bound, height, ratio, one pass, ms.

Files without the columns of an instance are skipped. A number before .csv in a file's name (A.1048576.csv) is its capacity: the plan
must fit, and a row that does not fit ends in OVER. All plans are checked here,
independently of the planner. Exits 1 if a plan is wrong or over its capacity.
"""
import argparse
import bisect
import csv
import pathlib
import re
import subprocess
import sys
import tempfile


def is_instance(path):
    with open(path) as file:
        return {"id", "lower", "upper", "size"} <= set(file.readline().strip().split(","))


def check(path):
    """None, or what is wrong with a plan's offsets."""
    events = []
    with open(path) as file:
        for row in csv.DictReader(file):
            low, size = int(row["offset"]), int(row["size"])
            if size:
                events.append((int(row["lower"]), 1, low, low + size, row["id"]))
                events.append((int(row["upper"]), 0, low, low + size, row["id"]))
    live = []  # (low, high, id), sorted: ends sort before begins
    for _, begins, low, high, name in sorted(events):
        k = bisect.bisect_left(live, (low, high, name))
        if not begins:
            del live[k]
            continue
        below, above = live[max(k - 1, 0):k], live[k:k + 1]
        if any(b[1] > low for b in below) or any(high > a[0] for a in above) or low < 0:
            return f"{name} overlaps {below + above}"
        live.insert(k, (low, high, name))
    return None


def plan(tool, path, *flags):
    result = subprocess.run([tool, "--allocate", path, *flags], capture_output=True, text=True)
    last = result.stdout.strip().splitlines()[-1:] or [""]
    match = re.fullmatch(r"height=(\d+) lower_bound=(\d+) ms=([\d.]+)", last[0])
    if not match:
        sys.exit(f"{path}: {result.stderr.strip() or 'no last line'}")
    buffers = re.search(r": (\d+) buffers", result.stdout).group(1)
    return int(buffers), int(match[1]), int(match[2]), float(match[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--tool", default="zero-plan")
    args = parser.parse_args()
    failed = False
    print("| instance | buffers | lower bound | height | height / bound | one pass / bound | ms |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for path in sorted(p for folder in args.folders for p in folder.rglob("*.csv") if is_instance(p)):
        capacity = re.search(r"\.(\d+)$", path.stem)
        flags = ["--capacity", capacity[1]] if capacity else []
        with tempfile.NamedTemporaryFile(suffix=".csv") as offsets:
            buffers, height, bound, ms = plan(args.tool, path, *flags, f"--offsets={offsets.name}")
            error = check(offsets.name)
        one_pass = plan(args.tool, path, "--effort=0")[1]
        over = " OVER" if capacity and height > int(capacity[1]) else ""
        failed |= bool(over or error)
        print(f"| {path.stem} | {buffers} | {bound} | {height}{over} | {height / max(bound, 1):.5f} "
              f"| {one_pass / max(bound, 1):.5f} | {ms:.0f} |", flush=True)
        if error:
            print(f"{path}: {error}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
