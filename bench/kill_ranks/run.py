#!/usr/bin/env python3
# run.py - Kills one of four processes at random moments.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains in four processes, kills one of them at a random moment, restarts from
the checkpoint, and so on; at the end all losses and weights must be those of a
run that nobody has touched. Prints a line for each kill.

    run.py --bin BUILD/bin [--kills 100] [--seed 20261130]
"""
import argparse
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "e2e"), str(ROOT / "script")]
import harness  # noqa: E402
import processes  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, metavar="DIR", help="the folder of zero-run and the other tools")
    parser.add_argument("--kills", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=processes.SEED, metavar="S")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        kills = processes.Kills(harness.Tools(args.bin, scratch), args.seed)
        print("kill  rank  last step  run again  all ended after  what was said")
        for number in range(1, args.kills + 1):
            kills.kill()
            rank, step, again, took, said = kills.table[-1]
            print(f"{number:4}  {rank:4}  {step:9}  {again:9}  {took:13.2f} s  {said}", flush=True)
        steps = kills.finish()
    slowest = max(row[3] for row in kills.table)
    print(f"{args.kills} kills, the slowest end after {slowest:.2f} s; the losses of all {steps} steps and the weights "
          "are those of a run without kills")


if __name__ == "__main__":
    try:
        main()
    except harness.Failure as failure:
        sys.exit(f"FAILED: {failure}")
