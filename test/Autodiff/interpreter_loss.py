# interpreter_loss.py - The reference of losses
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import numpy as np
from op_helpers import log_sum_exp


def _counted(op, labels):
    counts = labels != op.int("ignore_index", -100)
    return counts, np.where(counts, labels, 0)


def _weighted(op, labels, weights):
    """What each label counts, what the sum is divided by, and valid labels."""
    counts, labels = _counted(op, labels)
    counts = counts * (1.0 if weights is None else weights[labels])
    return counts, counts.sum() if op.string("reduction", "mean") == "mean" else 1, labels


def _cross_entropy(op, logits, labels, weights=None):
    axis = op.int("axis")
    counts, divisor, labels = _weighted(op, labels, weights)
    lse = log_sum_exp(logits, axis).squeeze(axis)
    chosen = np.take_along_axis(logits, np.expand_dims(labels, axis), axis).squeeze(axis)
    losses = (lse - chosen) * counts
    return (losses if op.string("reduction") == "none" else losses.sum() / divisor), lse


def _cross_entropy_grad(op, dloss, logits, labels, lse, weights=None):
    axis = op.int("axis")
    counts, divisor, labels = _weighted(op, labels, weights)
    counts = counts * dloss / divisor
    probabilities = np.exp(logits - np.expand_dims(lse, axis))
    onehot = np.moveaxis(np.eye(logits.shape[axis])[labels], -1, axis)
    return (probabilities - onehot) * np.expand_dims(counts, axis)


OPS = {
    "cross_entropy": _cross_entropy,
    "cross_entropy_grad": _cross_entropy_grad,
}
