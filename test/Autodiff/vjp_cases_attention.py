# vjp_cases_attention.py - Derivatives of attention
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def cases():
    y, lse = (1, 2, 3, 3), "tensor<1x2x3xf64>"
    q, keys, values = Input((1, 2, 3, 2)), Input((1, 2, 4, 2)), Input((1, 2, 4, 3))
    yield Case("attention", {"q": q, "k": keys, "v": values, "m": Input((2, 1, 4))}, f"train.attention %q, %k, %v, %m scale 7.0e-01 : ({{q}}, {{k}}, {{v}}, {{m}}) -> ({{y}}, {lse})", y, "tensor<")
    yield Case("attention_groups", {"q": q, "k": Input((1, 1, 4, 2)), "v": Input((1, 1, 4, 3))}, f"train.attention %q, %k, %v scale 7.0e-01 causal : ({{q}}, {{k}}, {{v}}) -> ({{y}}, {lse})", y, "tensor<")
    drawn = {"k0": Input((), "index:100"), "f": Input((), "index:9")}
    q, keys, values = (Input((4, *x.shape[1:])) for x in (q, keys, values))
    y, lse = (4, *y[1:]), "tensor<4x2x3xf64>"
    yield Case("attention_dropout", {"q": q, "k": keys, "v": values, "m": Input((2, 1, 4)), **drawn}, f"train.attention %q, %k, %v, %m scale 7.0e-01 dropout %k0, %f ratio 4.0e-01 samples 2 : ({{q}}, {{k}}, {{v}}, {{m}}, {{k0}}, {{f}}) -> ({{y}}, {lse})", y, "tensor<")
    yield Case("attention_dropout_shared", {"q": q, "k": Input((4, 1, 4, 2)), "v": Input((4, 1, 4, 3)), **drawn}, f"train.attention %q, %k, %v scale 7.0e-01 causal dropout %k0, %f ratio 2.0e-01 : ({{q}}, {{k}}, {{v}}, {{k0}}, {{f}}) -> ({{y}}, {lse})", y, "tensor<")
