# interpreter_index.py - The reference of indices, order and running sums
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import numpy as np

_COMBINE = {
    "none": lambda old, update: update,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _scatter(op, data, indices, updates):
    axis, result = op.int("axis"), data.copy()
    rows = updates.reshape(*data.shape[:axis], indices.size, *data.shape[axis + 1 :])
    for i, index in enumerate(indices.reshape(-1)):
        to, update = (slice(None),) * axis + (index,), (slice(None),) * axis + (i,)
        result[to] = _COMBINE[op.string("reduction")](result[to], rows[update])
    return result


def _top_k(op, x):
    axis = op.int("axis")
    order = np.argsort(x if op.flag("smallest") else -x, axis=axis, kind="stable")
    indices = np.take(order, np.arange(op.int("k")), axis=axis)
    return np.take_along_axis(x, indices, axis), indices


def _cumulative_sum(op, x):
    axis, reverse = op.int("axis"), op.flag("reverse")
    x = np.flip(x, axis) if reverse else x
    y = np.cumsum(x, axis=axis) - (x if op.flag("exclusive") else 0)
    return np.flip(y, axis) if reverse else y


def _linear_recurrence(op, decay, x):
    axis, reverse = op.int("axis"), op.flag("reverse")
    decay, x = (np.moveaxis(np.flip(a, axis) if reverse else a, axis, 0) for a in (decay, x))
    y = x.copy()
    for i in range(1, len(y)):
        y[i] = decay[i] * y[i - 1] + x[i]
    y = np.moveaxis(y, 0, axis)
    return np.flip(y, axis) if reverse else y


OPS = {
    "scatter": _scatter,
    "top_k": _top_k,
    "cumulative_sum": _cumulative_sum,
    "linear_recurrence": _linear_recurrence,
}
