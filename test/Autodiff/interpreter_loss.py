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


def _cross_entropy(op, logits, labels):
    axis = op.int("axis")
    counts, labels = _counted(op, labels)
    lse = log_sum_exp(logits, axis).squeeze(axis)
    chosen = np.take_along_axis(logits, np.expand_dims(labels, axis), axis).squeeze(axis)
    return np.sum((lse - chosen) * counts) / counts.sum(), lse


def _cross_entropy_grad(op, dloss, logits, labels, lse):
    axis = op.int("axis")
    counts, labels = _counted(op, labels)
    probabilities = np.exp(logits - np.expand_dims(lse, axis))
    onehot = np.moveaxis(np.eye(logits.shape[axis])[labels], -1, axis)
    return (probabilities - onehot) * np.expand_dims(counts, axis) * dloss / counts.sum()


OPS = {
    "cross_entropy": _cross_entropy,
    "cross_entropy_grad": _cross_entropy_grad,
}
