# vjp_cases_dropout.py - Derivatives of random operations
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def cases():
    x, key, first = Input((6, 5)), Input((), "index:100"), Input((), "index:9")
    operands = {"x": x, "k": key, "f": first}
    types = "({x}, {k}, {f}) -> {y}"
    yield Case("dropout", operands, f"train.dropout %x, %k, %f ratio 4.0e-01 samples 3 along 0 : {types}", x.shape)
    yield Case("dropout_shared", operands, f"train.dropout %x, %k, %f ratio 4.0e-01 : {types}", x.shape)
