# torch_cases_elementwise.py - Gradients of elementwise operators
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See torch_case.py.
import numpy as np
from torch_case import TorchCase

SHAPE = (3, 4)
UNARY = {
    "Abs": "torch.abs(x)", "Atan": "torch.atan(x)", "Asinh": "torch.asinh(x)", "Ceil": "torch.ceil(x)",
    "Cos": "torch.cos(x)", "Cosh": "torch.cosh(x)", "Erf": "torch.erf(x)", "Exp": "torch.exp(x)",
    "Floor": "torch.floor(x)", "HardSwish": "F.hardswish(x)", "Mish": "F.mish(x)", "Neg": "-x",
    "Relu": "F.relu(x)", "Round": "torch.round(x)", "Selu": "1.0507010221481323 * F.elu(x, 1.6732631921768188)", "Sigmoid": "torch.sigmoid(x)",
    "Sign": "torch.sign(x)", "Sin": "torch.sin(x)", "Sinh": "torch.sinh(x)", "Softplus": "F.softplus(x)",
    "Softsign": "F.softsign(x)", "Tan": "torch.tan(x)", "Tanh": "torch.tanh(x)",
}
UNARY_POSITIVE = {"Log": "torch.log(x)", "Reciprocal": "1 / x", "Sqrt": "torch.sqrt(x)"}
UNARY_UNIT = {"Acos": "torch.acos(x)", "Asin": "torch.asin(x)", "Atanh": "torch.atanh(x)"}


def unary_cases():
    for table, kind in ((UNARY, "normal"), (UNARY_POSITIVE, "positive"), (UNARY_UNIT, "unit")):
        for op, torch in table.items():
            yield TorchCase(op, op, torch, {"x": (SHAPE, kind)}, SHAPE)
    yield TorchCase("Acosh", "Acosh", "torch.acosh(x)", {"x": (SHAPE, "above_one")}, SHAPE)
    for op in ("Abs", "Elu", "Relu", "LeakyRelu"):
        torch = {"Abs": "torch.abs(x)", "Elu": "F.elu(x)", "Relu": "F.relu(x)", "LeakyRelu": "F.leaky_relu(x, 0.009999999776482582)"}[op]
        yield TorchCase(f"{op}_zero", op, torch, {"x": (SHAPE, "ties")}, SHAPE)


def activation_cases():
    def case(name, op, torch, kind="normal", opset=22, **attributes):
        return TorchCase(name, op, torch, {"x": (SHAPE, kind)}, SHAPE, attributes, opset)

    yield case("Celu", "Celu", "F.celu(x, 0.75)", alpha=0.75)
    yield case("Elu", "Elu", "F.elu(x, 0.75)", alpha=0.75)
    yield case("Gelu", "Gelu", "F.gelu(x)")
    yield case("Gelu_tanh", "Gelu", "F.gelu(x, approximate='tanh')", approximate="tanh")
    yield case("HardSigmoid", "HardSigmoid", "torch.clamp(0.25 * x + 0.5, 0, 1)", alpha=0.25, beta=0.5)
    yield case("LeakyRelu", "LeakyRelu", "F.leaky_relu(x, 0.125)", alpha=0.125)
    yield case("Shrink_soft", "Shrink", "F.softshrink(x, 0.5)", lambd=0.5, bias=-0.5 * -1)
    yield case("Shrink_hard", "Shrink", "F.hardshrink(x, 0.5)", lambd=0.5)
    yield case("Swish", "Swish", "x * torch.sigmoid(1.5 * x)", opset=24, alpha=1.5)
    yield case("ThresholdedRelu", "ThresholdedRelu", "F.threshold(x, 0.5, 0.0)", alpha=0.5)


def binary_cases():
    torch = {"Add": "a + b", "Sub": "a - b", "Mul": "a * b", "Div": "a / b", "Max": "torch.maximum(a, b)", "Min": "torch.minimum(a, b)"}
    for op, expression in torch.items():
        operands = {"a": (SHAPE, "normal"), "b": ((4,), "positive")}
        yield TorchCase(op, op, expression, operands, SHAPE)
        yield TorchCase(f"{op}_outer", op, expression, {"a": ((2, 3, 1), "normal"), "b": ((1, 4), "positive")}, (2, 3, 4))
    for op in ("Max", "Min"):
        yield TorchCase(f"{op}_ties", op, torch[op], {"a": ((4, 5), "ties"), "b": ((4, 5), "ties")}, (4, 5))
    yield TorchCase("Mod", "Mod", "torch.fmod(a, b)", {"a": (SHAPE, "normal"), "b": (SHAPE, "positive")}, SHAPE, {"fmod": 1})
    yield TorchCase("Mod_floor", "Mod", "torch.remainder(a, b)", {"a": (SHAPE, "normal"), "b": (SHAPE, "positive")}, SHAPE, {"fmod": 0}, 28)
    yield TorchCase("Pow", "Pow", "torch.pow(a, b)", {"a": (SHAPE, "positive"), "b": (SHAPE, "normal")}, SHAPE)
    yield TorchCase("PRelu", "PRelu", "F.prelu(x, slope.reshape(-1))", {"x": ((2, 3, 4), "normal"), "slope": ((3, 1), "normal")}, (2, 3, 4))
    yield TorchCase("SwiGLU", "SwiGLU", "F.silu(a) * b", {"a": (SHAPE, "normal"), "b": (SHAPE, "normal")}, SHAPE, {}, 28)
    yield TorchCase("Mean", "Mean", "(a + b + c) / 3", {"a": (SHAPE, "normal"), "b": ((4,), "normal"), "c": ((1,), "normal")}, SHAPE)


def other_cases():
    for exponent in (2, 3, 1, 0.5, 2.5, -1):
        kind = "positive" if exponent % 1 else "normal"
        name = f"Pow_{exponent}".replace(".", "_").replace("-", "m")
        yield TorchCase(name, "Pow", "torch.pow(x, e)", {"x": (SHAPE, kind), "e": np.array(exponent, np.float32)}, SHAPE)
    bounds = {"x": (SHAPE, "ties"), "low": ((), "unit"), "high": ((), "above_one")}
    yield TorchCase("Clip", "Clip", "torch.clamp(x, low, high)", bounds, SHAPE)
    yield TorchCase("Clip_old", "Clip", "torch.clamp(x, -1, 0.5)", {"x": (SHAPE, "ties")}, SHAPE, {"min": -1.0, "max": 0.5}, 6)
    condition = np.arange(12).reshape(SHAPE) % 3 == 0
    yield TorchCase("Where", "Where", "torch.where(c, a, b)", {"c": condition, "a": (SHAPE, "normal"), "b": ((), "normal")}, SHAPE)


def cases():
    for part in (unary_cases, activation_cases, binary_cases, other_cases):
        yield from part()
