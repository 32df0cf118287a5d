# vjp_cases_reduction.py - Derivatives of reductions
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def cases():
    # Whole numbers: some rows have no zero, some one, some several.
    zeros = {"x": Input((4, 3, 2), "ties")}
    yield Case("reduce_prod_zeros", zeros, "train.reduce_prod %x axes [1] : ({x}) -> {y}", (4, 2))
    yield Case("reduce_prod_empty", {"x": Input((0, 4))}, "train.reduce_prod %x axes [0] : ({x}) -> {y}", (4,))
    x, distinct = {"x": Input((2, 3, 4))}, {"x": Input((2, 3, 4), "distinct")}
    for op, operands in (("sum", x), ("mean", x), ("max", distinct), ("min", distinct), ("prod", x), ("log_sum_exp", x)):
        yield Case(f"reduce_{op}", operands, f"train.reduce_{op} %x axes [1] : ({{x}}) -> {{y}}", (2, 4))
        yield Case(f"reduce_{op}_keep", operands, f"train.reduce_{op} %x axes [0, 2] {{keepdims}} : ({{x}}) -> {{y}}", (1, 3, 1))
        yield Case(f"reduce_{op}_all", operands, f"train.reduce_{op} %x axes [0, 1, 2] : ({{x}}) -> {{y}}", ())
    # Pairs of equal elements: a central difference gives each one half.
    yield Case("reduce_max_ties", {"x": Input((2, 4), "ties")}, "train.reduce_max %x axes [0] : ({x}) -> {y}", (4,))
    yield Case("reduce_sum_empty", {"x": Input((0, 4))}, "train.reduce_sum %x axes [0] : ({x}) -> {y}", (4,))
