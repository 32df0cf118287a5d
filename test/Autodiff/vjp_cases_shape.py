# vjp_cases_shape.py - Derivatives of operations that move elements
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def cases():
    x = {"x": Input((2, 3, 4))}
    yield Case("reshape", x, "train.reshape %x : {x} to {y}", (4, 6))
    yield Case("broadcast", {"x": Input((3, 1))}, "train.broadcast %x : {x} to {y}", (2, 3, 4))
    yield Case("transpose", x, "train.transpose %x [1, 2, 0] : ({x}) -> {y}", (3, 4, 2))
    yield Case("slice", x, "train.slice %x starts [0, 1, 0] limits [1, 3, 4] strides [1, 1, 3] : ({x}) -> {y}", (1, 2, 2))
    yield Case("slice_empty", x, "train.slice %x starts [2, 0, 0] limits [2, 3, 4] strides [1, 2, 1] : ({x}) -> {y}", (0, 2, 4))
    yield Case("concat", {"a": Input((2, 3)), "b": Input((2, 0)), "c": Input((2, 1))}, "train.concat %a, %b, %c axis 1 : ({a}, {b}, {c}) -> {y}", (2, 4))
    yield Case("concat_same", {"a": Input((2, 3))}, "train.concat %a, %a axis 0 : ({a}, {a}) -> {y}", (4, 3))
    yield Case("pad", {"x": Input((2, 3))}, "train.pad %x low [1, 0] high [0, 2] interior [1, 2] : ({x}) -> {y}", (4, 9))
    yield Case("gather", {"t": Input((5, 3)), "i": Input((2, 4), "index:5")}, "train.gather %t, %i axis 0 : ({t}, {i}) -> {y}", (2, 4, 3))
    yield Case("gather_axis", {"t": Input((2, 5, 3)), "i": Input((4,), "index:5")}, "train.gather %t, %i axis 1 : ({t}, {i}) -> {y}", (2, 4, 3))
    yield Case("gather_scalar", {"t": Input((5, 3)), "i": Input((), "index:5")}, "train.gather %t, %i axis 0 : ({t}, {i}) -> {y}", (3,))
