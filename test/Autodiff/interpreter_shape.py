# interpreter_shape.py - The reference of operations that move elements
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import numpy as np


def _slice(op, x):
    ranges = zip(op.ints("starts"), op.ints("limits"), op.ints("strides"))
    return x[tuple(slice(*numbers) for numbers in ranges)]


def _pad(op, x):
    y = np.zeros(op.shape(), x.dtype)
    parts = []
    for low, interior, size in zip(op.ints("low"), op.ints("interior"), x.shape):
        span = (size - 1) * (interior + 1) + 1 if size else 0
        parts.append(slice(low, low + span, interior + 1))
    y[tuple(parts)] = x
    return y


def _gather_grad(op, dy, indices):
    axis = op.int("axis")
    dx = np.zeros(op.shape())
    rows = dy.reshape(*dy.shape[:axis], -1, *dx.shape[axis + 1 :])
    np.add.at(dx, (slice(None),) * axis + (indices.reshape(-1),), rows)
    return dx


OPS = {
    "reshape": lambda op, x: x.reshape(op.shape()),
    "broadcast": lambda op, x: np.broadcast_to(x, op.shape()),
    "transpose": lambda op, x: np.transpose(x, op.ints("permutation")),
    "slice": _slice,
    "concat": lambda op, *xs: np.concatenate(xs, axis=op.int("axis")),
    "pad": _pad,
    "gather": lambda op, x, i: np.take(x, i, axis=op.int("axis")),
    "gather_grad": _gather_grad,
}
