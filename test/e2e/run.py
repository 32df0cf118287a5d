#!/usr/bin/env python3
# run.py - The end-to-end tests: real models through the real tools.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports, compiles and trains the models of test/models and checks every number.

    run.py --bin BUILD/bin [--only TEXT] [--list] [-j N]

Prints one line a failure, where the time went, and ends with `N passed, N failed`. Needs flatc on
PATH, and a Python with the onnx package for the bad-input cases.
"""
import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "script"))
import accumulation  # noqa: E402
import assemble  # noqa: E402
import bad_input  # noqa: E402
import checkpoint  # noqa: E402
import cuda  # noqa: E402
import failures  # noqa: E402
import harness  # noqa: E402
import kinds  # noqa: E402
import loops  # noqa: E402
import loss_scales  # noqa: E402
import narrow  # noqa: E402
import offload  # noqa: E402
import offload_choice  # noqa: E402
import output  # noqa: E402
import processes  # noqa: E402
import recompute  # noqa: E402
import references  # noqa: E402
import schedule  # noqa: E402
import training  # noqa: E402
import training_forms  # noqa: E402
import transports  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, metavar="DIR", help="the folder of zero-run and the other tools")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("-j", type=int, default=harness.workers(), metavar="N", help="cases at once")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tools = harness.Tools(args.bin, scratch)
        cases = harness.Cases()
        runner = harness.Runner(tools)
        training.add_cases(cases, runner)
        schedule.add_cases(cases, runner)
        narrow.add_cases(cases, runner)
        recompute.add_cases(cases, runner)
        offload.add_cases(cases, runner)
        offload_choice.add_cases(cases, runner)
        assemble.add_cases(cases, tools)
        bad_input.add_cases(cases, tools)
        checkpoint.add_cases(cases, tools)
        failures.add_cases(cases, tools)
        trainer = references.add_cases(cases, tools)
        accumulation.add_cases(cases, trainer)
        cuda.add_cases(cases, runner, trainer)
        kinds.add_cases(cases, tools)
        loops.add_cases(cases, tools)
        loss_scales.add_cases(cases, tools)
        output.add_cases(cases, tools)
        processes.add_cases(cases, tools)
        transports.add_cases(cases, runner)
        training_forms.add_cases(cases, tools)
        if args.list:
            print("\n".join(name for name, _ in cases.cases))
            return 0
        passed, failed = cases.run(args.j, args.only)
    slowest = ", ".join(f"{kind} {seconds:.0f}" for kind, seconds in cases.seconds.most_common(12))
    print(f"seconds of cases by kind: {slowest}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
