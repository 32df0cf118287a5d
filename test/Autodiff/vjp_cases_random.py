# vjp_cases_random.py - Derivatives on random shapes
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Shapes, axes and broadcasts drawn from a fixed seed: ranks 0 to 4, dimensions
# of 0 among them, ties in what has a largest element. See vjp_case.py.
import random

from vjp_case import Case, Input
from vjp_cases_elementwise import FLAT, UNARY, UNARY_POSITIVE, UNARY_UNIT

SIZES = (0, 1, 1, 2, 3, 4)


def draw_shape(rng, low=0, high=4, sizes=SIZES):
    return tuple(rng.choice(sizes) for _ in range(rng.randint(low, high)))


def part_of(rng, shape):
    """A shape that broadcasts to SHAPE."""
    dropped = rng.randint(0, len(shape))
    return tuple(rng.choice((1, d, d)) for d in shape[dropped:])


def join(a, b):
    """The broadcast of two shapes that fit."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(y if x == 1 else x for x, y in zip(a, b))


def unary_cases(rng):
    kinds = {op: "normal" for op in UNARY + FLAT}
    kinds |= {op: "positive" for op in UNARY_POSITIVE} | {op: "unit" for op in UNARY_UNIT}
    for op, kind in kinds.items():
        shape = draw_shape(rng)
        yield Case(f"random_{op}", {"x": Input(shape, kind)}, f"train.{op} %x : {{x}}", shape)


def binary_cases(rng):
    types = "({a}, {b}) -> {y}"
    for op in ("add", "sub", "mul", "div", "pow", "mod", "max", "min"):
        for number in range(3):
            shape = draw_shape(rng)
            a, b = part_of(rng, shape), part_of(rng, shape)
            kind = "positive" if op in ("div", "pow", "mod") else "ties" if op in ("max", "min") else "normal"
            operands = {"a": Input(a, kind), "b": Input(b, kind)}
            yield Case(f"random_{op}_{number}", operands, f"train.{op} %a, %b : {types}", join(a, b))
    for number in range(3):
        shape = draw_shape(rng)
        c, a, b = (part_of(rng, shape) for _ in range(3))
        operands = {"c": Input(c, "bool"), "a": Input(a), "b": Input(b)}
        op = "train.where %c, %a, %b : ({c}, {a}, {b}) -> {y}"
        yield Case(f"random_where_{number}", operands, op, join(join(a, b), c))


def reduction_cases(rng):
    for op in ("sum", "mean", "max", "min"):
        for number in range(3):
            # Nothing has no largest element and no mean.
            shape = draw_shape(rng, sizes=SIZES if op == "sum" else (1, 2, 3))
            axes = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
            keep = rng.random() < 0.5
            result = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
            kind = "distinct" if op in ("max", "min") else "normal"
            text = f"train.reduce_{op} %x axes {axes}{' {keepdims}' if keep else ''} : ({{x}}) -> {{y}}"
            yield Case(f"random_reduce_{op}_{number}", {"x": Input(shape, kind)}, text, result)


def row_cases(rng):
    for op in ("softmax", "log_softmax"):
        for number in range(2):
            shape = draw_shape(rng, low=1, sizes=(1, 2, 3))
            axis = rng.randrange(len(shape))
            yield Case(f"random_{op}_{number}", {"x": Input(shape)}, f"train.{op} %x axis {axis} : {{x}}", shape)


def matmul_cases(rng):
    for number in range(4):
        batch = draw_shape(rng, high=2)
        a, b = part_of(rng, batch), part_of(rng, batch)
        m, k, n = (rng.choice(SIZES) for _ in range(3))
        ta, tb = rng.random() < 0.5, rng.random() < 0.5
        flags = ", ".join(["transpose_a"] * ta + ["transpose_b"] * tb)
        operands = {"a": Input((*a, k, m) if ta else (*a, m, k)), "b": Input((*b, n, k) if tb else (*b, k, n))}
        text = f"train.matmul %a, %b {'{' + flags + '}' if flags else ''} : ({{a}}, {{b}}) -> {{y}}"
        yield Case(f"random_matmul_{number}", operands, text, (*join(a, b), m, n))


def shape_cases(rng):
    for number in range(3):
        shape = draw_shape(rng, low=1)
        order = rng.sample(range(len(shape)), len(shape))
        moved = tuple(shape[i] for i in order)
        yield Case(f"random_transpose_{number}", {"x": Input(shape)}, f"train.transpose %x {order} : ({{x}}) -> {{y}}", moved)
        small = part_of(rng, shape)
        yield Case(f"random_broadcast_{number}", {"x": Input(small)}, "train.broadcast %x : {x} to {y}", shape)
        starts = [rng.randint(0, d) for d in shape]
        limits = [rng.randint(s, d) for s, d in zip(starts, shape)]
        strides = [rng.randint(1, 3) for _ in shape]
        cut = tuple(-(-(l - s) // t) for s, l, t in zip(starts, limits, strides))
        text = f"train.slice %x starts {starts} limits {limits} strides {strides} : ({{x}}) -> {{y}}"
        yield Case(f"random_slice_{number}", {"x": Input(shape)}, text, cut)
        low, high, inner = ([rng.randint(0, 2) for _ in shape] for _ in range(3))
        padded = tuple(l + h + (d + (d - 1) * i if d else 0) for d, l, h, i in zip(shape, low, high, inner))
        text = f"train.pad %x low {low} high {high} interior {inner} : ({{x}}) -> {{y}}"
        yield Case(f"random_pad_{number}", {"x": Input(shape)}, text, padded)
        axis = rng.randrange(len(shape))
        other = tuple(rng.choice(SIZES) if i == axis else d for i, d in enumerate(shape))
        joined = tuple(d + o if i == axis else d for i, (d, o) in enumerate(zip(shape, other)))
        text = f"train.concat %a, %b axis {axis} : ({{a}}, {{b}}) -> {{y}}"
        yield Case(f"random_concat_{number}", {"a": Input(shape), "b": Input(other)}, text, joined)


def cases():
    for part in (unary_cases, binary_cases, reduction_cases, row_cases, matmul_cases, shape_cases):
        yield from part(random.Random(part.__name__))
