# check_vjps.py - Compares derivatives with central differences.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Usage: check_vjps.py [--PASS...] [CASE...]. Builds the gradients of each case of
# vjp_cases.py with zero-opt, which then runs further passes, and runs them with
# interpreter.py.
import subprocess
import sys

import numpy as np
from interpreter import Function
from vjp_case import module_text
from vjp_cases import CASES

STEP, TOLERANCE = 1e-5, 1e-6


def make_value(spec, rng):
    kind, _, bound = spec.kind.partition(":")
    if kind == "positive":
        return rng.uniform(0.5, 2.0, spec.shape)
    if kind == "unit":
        return rng.uniform(-0.9, 0.9, spec.shape)
    if kind == "above_one":
        return rng.uniform(1.2, 3.0, spec.shape)
    if kind == "far":
        return rng.uniform(-800.0, 800.0, spec.shape)
    if kind == "distinct":
        return rng.permutation(int(np.prod(spec.shape))).reshape(spec.shape) * 0.1 - 0.7
    if kind == "ties":
        return rng.integers(-1, 2, spec.shape).astype(np.float64)
    if kind == "index":
        return rng.integers(-int(bound), int(bound), spec.shape)
    if kind == "label":
        labels = rng.integers(0, int(bound), spec.shape)
        labels.reshape(-1)[1] = -100
        return labels
    if kind == "bool":
        return rng.integers(0, 2, spec.shape).astype(bool)
    return rng.standard_normal(spec.shape)


def central_difference(function, inputs, name):
    result = np.zeros_like(inputs[name])
    for index in np.ndindex(*result.shape):
        losses = []
        for sign in (1, -1):
            moved = inputs[name].copy()
            moved[index] += sign * STEP
            losses.append(function.run(inputs | {name: moved}, stop_at_loss=True))
        result[index] = (losses[0] - losses[1]) / (2 * STEP)
    return result


def check(case, text):
    """The names of inputs whose gradient is wrong."""
    rng = np.random.default_rng(len(case.name))
    function = Function(text)
    inputs = {name: np.array(make_value(spec, rng)) for name, spec in case.inputs.items()}
    inputs["r"] = rng.standard_normal(case.result)
    outputs = function.run(inputs)
    wrong = []
    for name, value in inputs.items():
        if value.dtype != np.float64:
            continue
        expected = central_difference(function, inputs, name)
        # No output means a gradient of zero.
        actual = outputs.get(f"grad.{name}", np.zeros_like(value))
        if not np.allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE):
            wrong.append(f"{case.name}: gradient by {name} is\n{actual}\nexpected\n{expected}")
    return wrong


def main():
    passes = [argument for argument in sys.argv[1:] if argument.startswith("--")]
    names = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    cases = [case for case in CASES if not names or case.name in names]
    source = "// -----\n".join(map(module_text, cases))
    command = ["zero-opt", "-split-input-file", "-train-autodiff=inputs", *passes, "-mlir-print-op-generic"]
    compiled = subprocess.run(command, input=source, capture_output=True, text=True)
    if compiled.returncode:
        sys.exit(compiled.stderr)
    texts = compiled.stdout.split("// -----\n")
    wrong = [message for case, text in zip(cases, texts, strict=True) for message in check(case, text)]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(cases)} derivatives agree with central differences")


if __name__ == "__main__":
    main()
