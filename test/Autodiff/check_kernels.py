# check_kernels.py - Compares compiled kernels with the reference.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Usage: check_kernels.py FOLDER f32|f64 [CASE...]. Joins the cases of vjp_cases.py
# into one function whose loss is the sum of theirs, builds the gradients with
# zero-opt, and runs it with zero-compile and zero-run as well as interpreter.py. In
# f32 products and convolutions are calls of a library, in f64 they are kernels.
import pathlib
import re
import subprocess
import sys

import numpy as np
from check_vjps import make_value
from interpreter import Function
from vjp_case import Input
from vjp_cases import CASES

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "onnx"))
from tensors import load, save

TOLERANCE = {"f64": 1e-9, "f32": 1e-3}


def joined_module(cases):
    arguments, lines, losses = [], [], []
    for number, case in enumerate(cases):
        inputs = case.inputs | {"r": Input(case.result)}
        types = {name: value.type for name, value in inputs.items()} | {"y": inputs["r"].type}
        arguments += [f'%c{number}_{name}: {value.type} {{zero.input = "c{number}_{name}"}}' for name, value in inputs.items()]
        op = case.op
        for name, text in types.items():
            op = op.replace("{" + name + "}", text)
        results = case.extra.count("tensor<") + 1
        axes = ", ".join(map(str, range(len(case.result))))
        text = f"""{case.before}
  %y{f":{results}" if results > 1 else ""} = {op}
  %p = train.mul %y{"#0" if results > 1 else ""}, %r : {types["y"]}
  %loss = train.reduce_sum %p axes [{axes}] : ({types["y"]}) -> tensor<f64>"""
        lines.append(re.sub(r"%(\w+)", rf"%c{number}_\1", text))
        losses.append(f"%c{number}_loss")
    for number in range(1, len(losses)):
        total = f"%total{number}"
        lines.append(f"  {total} = train.add {losses[0]}, {losses[number]} : tensor<f64>")
        losses[0] = total
    body = "\n".join(lines)
    return f"""func.func @forward({", ".join(arguments)}) -> (tensor<f64> {{zero.output = "loss"}}) {{
{body}
  return {losses[0]} : tensor<f64>
}}
"""


def tool(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(done.stderr[:3000])
    return done.stdout


def main():
    folder, element, names = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    cases = [case for case in CASES if not names or any(re.fullmatch(name, case.name) for name in names)]
    text = re.sub(r"(?<=[x<])f64(?=>)", element, joined_module(cases))
    flags = ["-train-autodiff=inputs"]
    function = Function(tool("zero-opt", *flags, "-mlir-print-op-generic", input=text))
    module, plan, data, result = (folder / name for name in ("step.mlir", "step.zplan", "data.safetensors", "out.safetensors"))
    module.write_text(tool("zero-opt", *flags, input=text))
    tool("zero-compile", module, "--forward", "-o", plan)
    inputs = {}
    for number, case in enumerate(cases):
        rng = np.random.default_rng(len(case.name))
        values = {name: make_value(spec, rng) for name, spec in case.inputs.items()}
        values["r"] = rng.standard_normal(case.result)
        inputs |= {f"c{number}_{name}": value for name, value in values.items()}
    floats = np.dtype(element.replace("f", "float"))
    inputs = {name: value.astype(floats) if value.dtype == np.float64 else value for name, value in inputs.items()}
    save(data, inputs)
    tool("zero-run", plan, "--forward", "--data", data, "--save-outputs", result)
    expected, actual = function.run({n: v.astype(np.float64) if v.dtype == floats else v for n, v in inputs.items()}), load(result)
    wrong = [name for name in expected if not np.allclose(actual[name], expected[name], rtol=TOLERANCE[element], atol=TOLERANCE[element])]
    for name in wrong:
        number = re.search(r"c(\d+)_", name)
        print(cases[int(number[1])].name if number else "", name, actual[name], expected[name], sep="\n")
    if wrong:
        sys.exit(f"{len(wrong)} of {len(expected)} results are wrong")
    print(f"{len(expected)} results of kernels agree with the reference")


if __name__ == "__main__":
    main()
