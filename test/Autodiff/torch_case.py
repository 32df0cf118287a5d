# torch_case.py - A gradient of PyTorch's that an ONNX operator must have
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A case is one node and the expression that PyTorch computes the same with. The
# loss is the sum of the node's first result times weights, in f64. Cases are in
# `cases()` of torch_cases_*.py beside this file. make_torch_gradients.py, which
# needs PyTorch, writes their gradients to torch_gradients.json;
# check_torch_gradients.py, which does not, imports the node, differentiates it
# and compares.
import dataclasses
import math

import numpy as np
from op_helpers import family_modules


@dataclasses.dataclass
class TorchCase:
    name: str
    op: str
    torch: str  # of the inputs by name, with torch and F (torch.nn.functional)
    inputs: dict  # name: (shape, kind), or an array, a constant of the model
    result: tuple  # the result's shape
    attributes: dict = dataclasses.field(default_factory=dict)
    opset: int = 22
    outputs: int = 1
    domain: str = ""

    @property
    def variables(self):
        """The inputs that have a gradient."""
        return [name for name, given in self.inputs.items() if not isinstance(given, np.ndarray)]


def numbers(shape, kind, seed):
    """The same f64 values everywhere.

    normal: between -2.2 and 2.2; positive: 0.4 to 2.4; unit: -0.9 to 0.9;
    above_one: 1.2 to 3.2; distinct: 0.1 apart; ties: -1, 0 or 1.
    """
    count = math.prod(shape)
    step = (5 ** (1 + seed % 7)) % 101
    unit = np.array([((k + 1) * step * 37 + seed * 11) % 101 / 101 for k in range(count)])
    values = {
        "normal": 4.4 * unit - 2.2,
        "positive": 2 * unit + 0.4,
        "unit": 1.8 * unit - 0.9,
        "above_one": 2 * unit + 1.2,
        "distinct": np.argsort(np.argsort(unit, kind="stable"), kind="stable") * 0.1 - 0.75,
        "ties": np.floor(unit * 3) - 1,
    }[kind]
    return values.reshape(shape)


def inputs_of(case):
    """The case's inputs and the weights `r` of its result."""
    values = {}
    for i, (name, given) in enumerate(case.inputs.items()):
        values[name] = given if isinstance(given, np.ndarray) else numbers(*given, seed=len(case.name) + i)
    values["r"] = numbers(case.result, "normal", seed=len(case.name) + 50)
    return values


def all_cases():
    return [case for module in family_modules("torch_cases") for case in module.cases()]
