# vjp_cases_window.py - Derivatives of convolutions and poolings
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def cases():
    conv = "train.conv %x, %w, %b strides {s} pads {p} dilations {d} group {g} : ({x}, {w}, {b}) -> {y}"

    def convolution(name, x, w, y, s, p, d, g=1):
        op = conv.replace("{s}", s).replace("{p}", p).replace("{d}", d).replace("{g}", str(g))
        return Case(name, {"x": Input(x), "w": Input(w), "b": Input((w[0],))}, op, y)

    yield convolution("conv_1d", (2, 2, 7), (3, 2, 3), (2, 3, 5), "[1]", "[0, 0]", "[1]")
    yield convolution("conv_stride", (1, 2, 6, 7), (2, 2, 3, 2), (1, 2, 3, 4), "[2, 2]", "[1, 0, 1, 1]", "[1, 1]")
    yield convolution("conv_dilated", (1, 1, 7, 7), (2, 1, 2, 2), (1, 2, 4, 5), "[1, 1]", "[0, 0, 0, 0]", "[3, 2]")
    yield convolution("conv_group", (2, 4, 5, 5), (6, 2, 3, 3), (2, 6, 3, 3), "[1, 1]", "[0, 0, 0, 0]", "[1, 1]", 2)
    yield convolution("conv_3d", (1, 1, 3, 4, 3), (2, 1, 2, 2, 2), (1, 2, 2, 3, 2), "[1, 1, 1]", "[0, 0, 0, 0, 0, 0]", "[1, 1, 1]")
    window = "kernel [2, 3] strides [2, 1] pads [0, 1, 1, 1] dilations [1, 1]"
    distinct = Input((1, 2, 5, 4), "distinct")
    yield Case("max_pool", {"x": distinct}, f"train.max_pool %x {window} : ({{x}}) -> {{y}}", (1, 2, 3, 4))
    for flags in ("", " {count_include_pad}"):
        name = "avg_pool_padded" if flags else "avg_pool"
        yield Case(name, {"x": Input((1, 2, 5, 4))}, f"train.avg_pool %x {window}{flags} : ({{x}}) -> {{y}}", (1, 2, 3, 4))
