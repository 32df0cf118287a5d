# torch_cases_window.py - Gradients of convolutions and poolings
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See torch_case.py.
from torch_case import TorchCase


def conv_cases():
    def case(name, torch, x, w, y, op="Conv", **attributes):
        channels = w[0] if op == "Conv" else w[1] * attributes.get("group", 1)
        inputs = {"x": (x, "normal"), "w": (w, "normal"), "b": ((channels,), "normal")}
        return TorchCase(name, op, torch, inputs, y, attributes)

    yield case("Conv_1d", "F.conv1d(x, w, b, padding=1)", (2, 2, 5), (3, 2, 3), (2, 3, 5), pads=[1, 1])
    yield case("Conv_2d", "F.conv2d(x, w, b, stride=(2, 1), dilation=(1, 2))", (1, 2, 6, 6), (2, 2, 3, 2), (1, 2, 2, 4), strides=[2, 1], dilations=[1, 2])
    yield case("Conv_group", "F.conv2d(x, w, b, groups=2)", (1, 4, 4, 4), (4, 2, 3, 3), (1, 4, 2, 2), group=2)
    yield case("Conv_3d", "F.conv3d(x, w, b)", (1, 1, 3, 3, 4), (2, 1, 2, 2, 2), (1, 2, 2, 2, 3))
    yield case("ConvTranspose", "F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1)", (1, 2, 3, 3), (2, 2, 3, 3), (1, 2, 6, 6), "ConvTranspose", strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    yield case("ConvTranspose_1d", "F.conv_transpose1d(x, w, b, groups=2)", (1, 4, 3), (4, 1, 2), (1, 2, 4), "ConvTranspose", group=2)


def pool_cases():
    def case(name, op, torch, x, y, kind="normal", **attributes):
        return TorchCase(name, op, torch, {"x": (x, kind)}, y, attributes)

    yield case("MaxPool", "MaxPool", "F.max_pool2d(x, (2, 3), stride=(2, 1), padding=(0, 1))", (1, 2, 4, 4), (1, 2, 2, 4), "distinct", kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 1])
    yield case("MaxPool_ceil", "MaxPool", "F.max_pool1d(x, 2, stride=2, ceil_mode=True)", (1, 2, 5), (1, 2, 3), "distinct", kernel_shape=[2], strides=[2], ceil_mode=1)
    yield case("AveragePool", "AveragePool", "F.avg_pool2d(x, 2, stride=2, padding=1, count_include_pad=False)", (1, 2, 4, 4), (1, 2, 3, 3), kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1])
    yield case("AveragePool_pads", "AveragePool", "F.avg_pool2d(x, 3, padding=1)", (1, 1, 6, 6), (1, 1, 2, 2), kernel_shape=[3, 3], strides=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    yield case("GlobalAveragePool", "GlobalAveragePool", "F.adaptive_avg_pool2d(x, 1)", (2, 2, 3, 3), (2, 2, 1, 1))
    yield case("GlobalMaxPool", "GlobalMaxPool", "F.adaptive_max_pool2d(x, 1)", (1, 2, 3, 3), (1, 2, 1, 1), "distinct")
    yield case("LpPool", "LpPool", "F.lp_pool2d(x, 2.0, 2, stride=2)", (1, 2, 4, 4), (1, 2, 2, 2), "positive", kernel_shape=[2, 2], strides=[2, 2], p=2)


def cases():
    yield from conv_cases()
    yield from pool_cases()
