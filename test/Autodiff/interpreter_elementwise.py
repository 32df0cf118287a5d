# interpreter_elementwise.py - The reference of elementwise operations
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import math

import numpy as np
from op_helpers import erf


def _gelu_slope(op, x):
    if 'approximate = "tanh"' not in op.text:
        return 0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)


def _gelu(op, x):
    if 'approximate = "tanh"' in op.text:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


OPS = {
    "neg": lambda op, x: -x,
    "abs": lambda op, x: np.abs(x),
    "sign": lambda op, x: np.sign(x),
    "exp": lambda op, x: np.exp(x),
    "log": lambda op, x: np.log(x),
    "sqrt": lambda op, x: np.sqrt(x),
    "rsqrt": lambda op, x: 1 / np.sqrt(x),
    "reciprocal": lambda op, x: 1 / x,
    "erf": lambda op, x: erf(x),
    "tanh": lambda op, x: np.tanh(x),
    "sigmoid": lambda op, x: 0.5 * (1 + np.tanh(x / 2)),
    "relu": lambda op, x: np.maximum(x, 0),
    "sin": lambda op, x: np.sin(x),
    "cos": lambda op, x: np.cos(x),
    "tan": lambda op, x: np.tan(x),
    "asin": lambda op, x: np.arcsin(x),
    "acos": lambda op, x: np.arccos(x),
    "atan": lambda op, x: np.arctan(x),
    "sinh": lambda op, x: np.sinh(x),
    "cosh": lambda op, x: np.cosh(x),
    "asinh": lambda op, x: np.arcsinh(x),
    "acosh": lambda op, x: np.arccosh(x),
    "atanh": lambda op, x: np.arctanh(x),
    "expm1": lambda op, x: np.expm1(x),
    "log1p": lambda op, x: np.log1p(x),
    "softplus": lambda op, x: np.logaddexp(x, 0.0),
    "floor": lambda op, x: np.floor(x),
    "ceil": lambda op, x: np.ceil(x),
    "round": lambda op, x: np.rint(x),
    "not": lambda op, x: ~x,
    "gelu": _gelu,
    "cast": lambda op, x: x.astype(op.dtype()),
    "add": lambda op, a, b: a + b,
    "sub": lambda op, a, b: a - b,
    "mul": lambda op, a, b: a * b,
    "div": lambda op, a, b: a / b,
    "pow": lambda op, a, b: a**b,
    "max": lambda op, a, b: np.maximum(a, b),
    "min": lambda op, a, b: np.minimum(a, b),
    "mod": lambda op, a, b: np.fmod(a, b),
    "and": lambda op, a, b: a & b,
    "or": lambda op, a, b: a | b,
    "xor": lambda op, a, b: a ^ b,
    "shift_left": lambda op, a, b: np.left_shift(a, b),
    "shift_right": lambda op, a, b: np.right_shift(a, b),
    "bitcast": lambda op, x: x.view(op.dtype()),
    "equal": lambda op, a, b: a == b,
    "less": lambda op, a, b: a < b,
    "less_equal": lambda op, a, b: a <= b,
    "greater": lambda op, a, b: a > b,
    "greater_equal": lambda op, a, b: a >= b,
    "where": lambda op, c, a, b: np.where(c, a, b),
    "relu_grad": lambda op, dy, y: np.where(y > 0, dy, 0.0),
    "gelu_grad": lambda op, dy, x: dy * _gelu_slope(op, x),
}
