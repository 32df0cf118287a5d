# check_torch_gradients.py - Compares gradients of ONNX nodes with PyTorch's
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Usage: check_torch_gradients.py FOLDER [CASE...]. Writes a model of each case
# to FOLDER, imports and differentiates it with zero-import and zero-opt, and runs
# the result with interpreter.py. See torch_case.py.
import json
import pathlib
import subprocess
import sys

import numpy as np
from interpreter import Function
from onnx import helper, numpy_helper
from torch_case import all_cases, inputs_of

TOLERANCE = 1e-9


def write_model(case, values, path):
    names = list(case.inputs)
    fixed = [numpy_helper.from_array(values[n], n) for n in names if n not in case.variables]
    floats = {n: values[n].shape for n in [*case.variables, "r"]}
    results = ["y"] + [f"y{k}" for k in range(1, case.outputs)]
    # Before opset 13 the axes are an attribute; without it, all.
    axes = [numpy_helper.from_array(np.arange(len(case.result), dtype=np.int64), "loss_axes")] if case.opset >= 13 else []
    all_axes = {"noop_with_empty_axes": 1} if axes else {}
    nodes = [
        helper.make_node(case.op, names, results, name=case.name, domain=case.domain, **case.attributes),
        helper.make_node("Mul", ["y", "r"], ["weighed"]),
        helper.make_node("ReduceSum", ["weighed", *(t.name for t in axes)], ["loss"], keepdims=0, **all_axes),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, 11, shape) for n, shape in floats.items()],
        [helper.make_tensor_value_info("loss", 11, None)],
        [*fixed, *axes],
    )
    opsets = [helper.make_opsetid("", case.opset)]
    if case.domain:
        opsets.append(helper.make_opsetid(case.domain, 1))
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def differentiate(path):
    """The function with gradients as text in generic form."""
    module = path.with_suffix(".mlir")
    imported = subprocess.run(["zero-import", path, "-o", module], capture_output=True, text=True)
    if imported.returncode:
        sys.exit(imported.stderr)
    command = ["zero-opt", module, "-train-autodiff=inputs", "-mlir-print-op-generic"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check(case, expected, folder):
    """What is wrong, a line each."""
    values = inputs_of(case)
    path = folder / f"{case.name}.onnx"
    write_model(case, values, path)
    outputs = Function(differentiate(path)).run(values)
    wrong = []
    for name, numbers in expected.items():
        shape = values[name].shape if name != "loss" else ()
        # No output means a gradient of zero.
        actual = outputs.get("loss" if name == "loss" else f"grad.{name}", np.zeros(shape))
        if not np.allclose(actual, np.reshape(numbers, shape), rtol=TOLERANCE, atol=TOLERANCE):
            wrong.append(f"{case.name}: {name} is\n{actual}\nexpected\n{np.reshape(numbers, shape)}")
    return wrong


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    fixtures = json.loads(pathlib.Path(__file__).with_name("torch_gradients.json").read_text())
    cases = [case for case in all_cases() if not names or case.name in names]
    if not names and set(fixtures) != {case.name for case in cases}:
        sys.exit("torch_gradients.json has other cases: run make_torch_gradients.py")
    wrong = [line for case in cases for line in check(case, fixtures[case.name], folder)]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(cases)} nodes have PyTorch's gradients")


if __name__ == "__main__":
    main()
