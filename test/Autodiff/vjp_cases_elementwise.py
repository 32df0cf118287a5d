# vjp_cases_elementwise.py - Derivatives of elementwise operations
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


UNARY = (
    "neg abs exp expm1 erf tanh sigmoid relu softplus sin cos tan sinh cosh atan asinh gelu".split()
)
UNARY_POSITIVE = "log log1p sqrt rsqrt reciprocal".split()
UNARY_UNIT = "asin acos atanh".split()
FLAT = "floor ceil round sign".split()


def unary_cases():
    normal, positive = Input((3, 4)), Input((3, 4), "positive")
    operands = {"x": normal}
    for op in UNARY + FLAT:
        yield Case(op, operands, f"train.{op} %x : {{x}}", (3, 4))
    for op in UNARY_POSITIVE:
        yield Case(op, {"x": positive}, f"train.{op} %x : {{x}}", (3, 4))
    for op in UNARY_UNIT:
        yield Case(op, {"x": Input((3, 4), "unit")}, f"train.{op} %x : {{x}}", (3, 4))
    yield Case("acosh", {"x": Input((3, 4), "above_one")}, "train.acosh %x : {x}", (3, 4))
    yield Case("softplus_far", {"x": Input((3, 4), "far")}, "train.softplus %x : {x}", (3, 4))
    yield Case("gelu_tanh", operands, 'train.gelu %x {approximate = "tanh"} : {x}', (3, 4))
    yield Case("abs_zero", {"x": Input((6,), "ties")}, "train.abs %x : {x}", (6,))
    yield Case("empty", {"x": Input((0, 4))}, "train.exp %x : {x}", (0, 4))
    yield Case("scalar", {"x": Input(())}, "train.exp %x : {x}", ())


def binary_cases():
    full, row, column = Input((3, 4)), Input((4,)), Input((3, 1))
    far = Input((3, 4), "positive")
    types = "({a}, {b}) -> {y}"
    for op in ("add", "sub", "mul"):
        yield Case(op, {"a": full, "b": full}, f"train.{op} %a, %b : {types}", (3, 4))
        yield Case(f"{op}_row", {"a": full, "b": row}, f"train.{op} %a, %b : {types}", (3, 4))
        yield Case(f"{op}_outer", {"a": column, "b": row}, f"train.{op} %a, %b : {types}", (3, 4))
        yield Case(f"{op}_scalar", {"a": Input(()), "b": full}, f"train.{op} %a, %b : {types}", (3, 4))
    yield Case("div", {"a": full, "b": far}, f"train.div %a, %b : {types}", (3, 4))
    yield Case("div_row", {"a": row, "b": far}, f"train.div %a, %b : {types}", (3, 4))
    yield Case("pow", {"a": far, "b": full}, f"train.pow %a, %b : {types}", (3, 4))
    yield Case("pow_row", {"a": far, "b": row}, f"train.pow %a, %b : {types}", (3, 4))
    yield Case("mod", {"a": Input((3, 4)), "b": far}, f"train.mod %a, %b : {types}", (3, 4))
    for op in ("max", "min"):
        yield Case(op, {"a": full, "b": row}, f"train.{op} %a, %b : {types}", (3, 4))
        ties = Input((4, 5), "ties")
        yield Case(f"{op}_ties", {"a": ties, "b": ties}, f"train.{op} %a, %b : {types}", (4, 5))
    yield Case("broadcast_empty", {"a": Input((0, 4)), "b": Input((1, 4))}, f"train.mul %a, %b : {types}", (0, 4))
    yield Case(
        "where",
        {"c": Input((3, 4), "bool"), "a": full, "b": Input(())},
        "train.where %c, %a, %b : ({c}, {a}, {b}) -> {y}",
        (3, 4),
    )


def cases():
    yield from unary_cases()
    yield from binary_cases()
