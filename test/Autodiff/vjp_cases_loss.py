# vjp_cases_loss.py - Derivatives of losses
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def cases():
    loss = "train.cross_entropy %x, %l {axis = 1 : i64} : ({x}, {l}) -> ({y}, {lse})"
    for name, shape in (("cross_entropy", (5, 3)), ("cross_entropy_image", (2, 3, 2, 2))):
        labels = Input((shape[0], *shape[2:]), "label:3")
        op = loss.replace("{lse}", labels.type.replace("i64", "f64"))
        yield Case(name, {"x": Input(shape), "l": labels}, op, (), "tensor<")
        # Class weights have no gradient, so they are no input.
        weights = "arith.constant dense<[0.5, 2.0, 1.5]> : tensor<3xf64>"
        for reduction, result in (("mean", ()), ("sum", ()), ("none", labels.shape)):
            attributes = f'{{axis = 1 : i64, reduction = "{reduction}"}}'
            op = f"train.cross_entropy %x, %l, %w {attributes} : ({{x}}, {{l}}, tensor<3xf64>) -> ({{y}}, {labels.type.replace('i64', 'f64')})"
            yield Case(f"{name}_{reduction}", {"x": Input(shape), "l": labels}, op, result, "tensor<", f"%w = {weights}")
