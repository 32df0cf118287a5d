# interpreter.py - A reference of the train operations in numpy.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs a function of train operations from MLIR's generic form: straight-line code
# and loops, whose bodies are regions.
# Written for clarity from the operations' descriptions, in f64 throughout, so
# that kernels and derivatives have something independent to agree with. The
# operations are in `OPS` of each interpreter_*.py beside this file: functions of
# the operation and its operands.
import json
import re

import numpy as np
from op_helpers import family_modules

_DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_} | {
    f"{prefix}{bits}": np.dtype(f"{kind}{bits // 8}").type
    for prefix, kind in (("i", "i"), ("ui", "u"))
    for bits in (8, 16, 32, 64)
}


class Op:
    """One operation: name, operand and result names, attributes, result types."""

    def __init__(self, line):
        match = re.match(r"(?:(%[\w.]+)(?::(\d+))? = )?\"([\w.]+)\"\(([^)]*)\)(.*)$", line)
        result, count, self.name, operands, rest = match.groups()
        self.operands = re.findall(r"%[\w.#]+", operands)
        self.results = [] if not result else [f"{result}#{i}" for i in range(int(count))] if count else [result]
        attributes, types = re.match(r"(?: <\{(.*)\}>)? : (.*)$", rest).groups()
        self.text = attributes or ""
        self.region = None
        self.types = re.findall(r"tensor<([^>]*)>", types.split("->")[1])

    def ints(self, name):
        text = re.search(rf"\b{name} = array<i64(?:: )?([^>]*)>", self.text).group(1)
        return [int(number) for number in text.split(",") if number.strip()]

    def int(self, name, default=None):
        match = re.search(rf"\b{name} = (-?\d+) : i64", self.text)
        return int(match.group(1)) if match else default

    def float(self, name, default=None):
        match = re.search(rf"\b{name} = ([-+.\deE]+) : f64", self.text)
        return float(match.group(1)) if match else default

    def string(self, name, default=None):
        match = re.search(rf'\b{name} = "([^"]*)"', self.text)
        return match.group(1) if match else default

    def flag(self, name):
        return re.search(rf"\b{name}\b(?! = )", self.text) is not None

    def shape(self, result=0):
        return tuple(int(dim) for dim in self.types[result].split("x")[:-1])

    def dtype(self, result=0):
        return _DTYPES[self.types[result].split("x")[-1]]


def _constant(op):
    value = re.search(r"dense<([^>]*)>", op.text).group(1)
    if value.startswith("0x"):  # the bits of what is no finite number
        kind = np.dtype(op.dtype())
        return np.full(op.shape(), np.array(int(value, 16), f"u{kind.itemsize}").view(kind))
    return np.broadcast_to(np.array(json.loads(value), op.dtype()), op.shape())


OPS = {name: run for module in family_modules("interpreter") for name, run in module.OPS.items()}


def parse_ops(lines):
    """The operations of lines of one region, each with the region it has."""
    ops, at = [], 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if not re.match(r'%[\w.:]+ = "', line):
            continue
        if not line.endswith("({"):
            ops.append(Op(line))
            continue
        start, depth = at, 1
        while depth:
            depth += lines[at].endswith("({") - lines[at].startswith("})")
            at += 1
        ops.append(Op(line[:-3] + lines[at - 1][2:]))
        ops[-1].region = Region(lines[start : at - 1])
    return ops


def execute(ops, values):
    """Adds the results of the operations to the values by name."""
    for op in ops:
        if op.name == "arith.constant":
            results = _constant(op)
        else:
            results = OPS[op.name.removeprefix("train.")](op, *[values[v] for v in op.operands])
        results = results if isinstance(results, tuple) else (results,)
        for i, (name, value) in enumerate(zip(op.results, results)):
            assert np.shape(value) == op.shape(i), f"{op.name}: {np.shape(value)}, {op.shape(i)}"
            values[name] = value


class Region:
    """The body of a loop."""

    def __init__(self, lines):
        self.arguments = re.findall(r"(%\w+):", lines[0])
        self.ops = parse_ops(lines)
        self.yielded = re.findall(r"%[\w.#]+", lines[-1])

    def run(self, arguments):
        values = dict(zip(self.arguments, arguments, strict=True))
        execute(self.ops, values)
        return [values[name] for name in self.yielded]


class Function:
    """The function of a module in generic form, ready to run."""

    def __init__(self, text):
        self.arguments = re.findall(r"(%arg\d+):", re.search(r"\^bb0\((.*)\):", text).group(1))
        self.argument_names = re.findall(r'zero\.input = "(\w+)"', text)
        self.result_names = re.findall(r'zero\.output = "([\w.]+)"', text)
        lines = [line.strip() for line in text.splitlines()]
        body = next(i for i, line in enumerate(lines) if line.startswith("^bb0"))
        self.ops = parse_ops(lines[body:])
        self.returned = re.findall(r"%[\w.#]+", next(line for line in lines if '"func.return"' in line))

    def run(self, inputs, stop_at_loss=False):
        """Outputs by name; with stop_at_loss only the first one, the loss."""
        values = {a: inputs[name] for a, name in zip(self.arguments, self.argument_names)}
        for op in self.ops:
            if stop_at_loss and self.returned[0] in values:
                return values[self.returned[0]]
            execute([op], values)
        outputs = {name: values[v] for name, v in zip(self.result_names, self.returned)}
        return outputs["loss"] if stop_at_loss else outputs
