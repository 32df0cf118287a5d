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
    # The gradients of a convolution are linear too: a transposed convolution is one.
    back = "train.conv_grad_{of} %g, %o {of}_shape [{shape}] strides [2, 1] pads [1, 0, 0, 1] dilations [1, 2] group 2 : ({g}, {o}) -> {y}"
    x, w, g = (2, 4, 5, 6), (6, 2, 3, 2), (2, 6, 2, 5)
    for of, other, result in (("input", w, x), ("weight", x, w)):
        op = back.replace("{of}", of).replace("{shape}", ", ".join(map(str, result)))
        yield Case(f"conv_grad_{of}", {"g": Input(g), "o": Input(other)}, op, result)
    window = "kernel [2, 3] strides [2, 1] pads [0, 1, 1, 1] dilations [1, 1]"
    distinct = Input((1, 2, 5, 4), "distinct")
    yield Case("max_pool", {"x": distinct}, f"train.max_pool %x {window} : ({{x}}) -> {{y}}", (1, 2, 3, 4))
    for flags in ("", " {count_include_pad}"):
        name = "avg_pool_padded" if flags else "avg_pool"
        yield Case(name, {"x": Input((1, 2, 5, 4))}, f"train.avg_pool %x {window}{flags} : ({{x}}) -> {{y}}", (1, 2, 3, 4))
    yield Case("avg_pool_divisor", {"x": Input((1, 2, 5, 4))}, f"train.avg_pool %x {window} {{divisor = 4 : i64}} : ({{x}}) -> {{y}}", (1, 2, 3, 4))
    # The last windows reach beyond the padding: of 7 + 1 places they start at 0, 2, 4 and, rounded up, 6.
    rounded = "kernel [3] strides [2] pads [0, 1] dilations [1]"
    yield Case("max_pool_ceil", {"x": Input((2, 1, 7), "distinct")}, f"train.max_pool %x {rounded} {{ceil_mode}} : ({{x}}) -> {{y}}", (2, 1, 4))
    for flags in ("ceil_mode", "ceil_mode, count_include_pad"):
        name = "avg_pool_ceil" + flags[9:].replace(", ", "_")
        yield Case(name, {"x": Input((2, 1, 7))}, f"train.avg_pool %x {rounded} {{{flags}}} : ({{x}}) -> {{y}}", (2, 1, 4))
    strides = "kernel [2, 2, 2] strides [1, 2, 1] pads [0, 0, 1, 0, 0, 0] dilations [1, 1, 2]"
    yield Case("max_pool_3d", {"x": Input((1, 1, 3, 4, 4), "distinct")}, f"train.max_pool %x {strides} : ({{x}}) -> {{y}}", (1, 1, 2, 2, 3))
    yield Case("avg_pool_3d", {"x": Input((1, 1, 3, 4, 4))}, f"train.avg_pool %x {strides} : ({{x}}) -> {{y}}", (1, 1, 2, 2, 3))
