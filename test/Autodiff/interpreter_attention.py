# interpreter_attention.py - The reference of attention
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import numpy as np
from interpreter_random import drop_out
from op_helpers import log_sum_exp, swap


def _attention_parts(op, q, k, v, mask):
    """Keys and values for each query head, and the scores."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ swap(k, True) * op.float("scale") + (0.0 if mask is None else mask)
    if op.flag("causal"):
        scores = np.where(np.tri(*scores.shape[2:], dtype=bool), scores, -np.inf)
    return k, v, scores


def _options(op, operands):
    """The mask, or None, and the dropout of the probabilities as a function."""
    if op.float("ratio") is None:
        return (operands or (None,))[0], lambda x: x
    *mask, key, first = operands
    along = None if op.int("samples") is None else 0
    return (mask or (None,))[0], lambda x: drop_out(op, x, key, first, along)


def _attention(op, q, k, v, *options):
    mask, drop = _options(op, options)
    k, v, scores = _attention_parts(op, q, k, v, mask)
    lse = log_sum_exp(scores, 3)
    return drop(np.exp(scores - lse)) @ v, lse.squeeze(3)


def _attention_grad(op, dy, q, k, v, y, lse, *options):
    groups = k.shape[1]
    mask, drop = _options(op, options)
    k, v, scores = _attention_parts(op, q, k, v, mask)
    p = np.exp(scores - lse[..., None])
    ds = p * (drop(dy @ swap(v, True)) - (dy * y).sum(axis=3, keepdims=True)) * op.float("scale")

    def sum_heads(x):
        return x.reshape(x.shape[0], groups, -1, *x.shape[2:]).sum(axis=2)

    return ds @ k, sum_heads(swap(ds, True) @ q), sum_heads(swap(drop(p), True) @ dy)


OPS = {
    "attention": _attention,
    "attention_grad": _attention_grad,
}
