# vjp_cases_norm.py - Derivatives of normalizations
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def cases():
    x, s, v = Input((3, 2, 4)), Input((2, 4)), Input((2,))
    yield Case("layer_norm", {"x": x, "s": s, "b": s}, "train.layer_norm %x, %s, %b {axis = 1 : i64, epsilon = 1.0e-5 : f64} : ({x}, {s}, {b}) -> ({y}, tensor<3x1x1xf64>, tensor<3x1x1xf64>)", (3, 2, 4), "tensor<, tensor<")
    yield Case("layer_norm_last", {"x": x, "s": Input((4,))}, "train.layer_norm %x, %s {axis = 2 : i64, epsilon = 0.1 : f64} : ({x}, {s}) -> ({y}, tensor<3x2x1xf64>, tensor<3x2x1xf64>)", (3, 2, 4), "tensor<, tensor<")
    yield Case("rms_norm", {"x": x, "s": Input((4,))}, "train.rms_norm %x, %s {axis = 2 : i64, epsilon = 0.1 : f64} : ({x}, {s}) -> ({y}, tensor<3x2x1xf64>)", (3, 2, 4), "tensor<")
    for axis, rstd in ((1, "3x1x1"), (2, "3x2x1")):
        yield Case(f"normalize_{axis}", {"x": x}, f"train.normalize %x {{axis = {axis} : i64, epsilon = 0.1 : f64}} : ({{x}}) -> ({{y}}, tensor<{rstd}xf64>)", (3, 2, 4), "tensor<")
    yield Case("batch_norm", {"x": x, "s": v, "b": v, "m": v, "v": v}, "train.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5 : f64, momentum = 0.9 : f64, unbiased} : ({x}, {s}, {b}, {m}, {v}) -> ({y}, {m}, {v}, tensor<2xf64>, tensor<2xf64>)", (3, 2, 4), "tensor<" * 4)
    yield Case("batch_norm_inference", {"x": x, "s": v, "b": v, "m": v, "v": Input((2,), "positive")}, "train.batch_norm_inference %x, %s, %b, %m, %v {epsilon = 0.1 : f64} : ({x}, {s}, {b}, {m}, {v}) -> {y}", (3, 2, 4))
    for op in ("softmax", "log_softmax"):
        yield Case(op, {"x": x}, f"train.{op} %x axis 2 : {{x}}", (3, 2, 4))
        yield Case(f"{op}_first", {"x": x}, f"train.{op} %x axis 0 : {{x}}", (3, 2, 4))
