# interpreter_window.py - The reference of convolutions and poolings
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import itertools

import numpy as np


def _windows(op, kernel, spatial, out):
    """(output position, input position, kernel position) of every pair that
    lies in the input; input is None for what lies in the padding."""
    strides, pads, dilations = op.ints("strides"), op.ints("pads"), op.ints("dilations")
    for o in itertools.product(*map(range, out)):
        for k in itertools.product(*map(range, kernel)):
            i = tuple(a * s - p + b * d for a, s, p, b, d in zip(o, strides, pads, k, dilations))
            yield o, i if all(0 <= a < n for a, n in zip(i, spatial)) else None, k


def _conv_terms(op, x_shape, w_shape, y_shape):
    """All (y, x, w) index triples of a convolution's products."""
    group = op.int("group", 1)
    per_in, per_out = w_shape[1], w_shape[0] // group
    for o, i, k in _windows(op, w_shape[2:], x_shape[2:], y_shape[2:]):
        if i is None:
            continue
        for n, m, c in itertools.product(range(x_shape[0]), range(w_shape[0]), range(per_in)):
            yield (n, m, *o), (n, (m // per_out) * per_in + c, *i), (m, c, *k)


def _conv(op, x, w, bias=None):
    y = np.zeros(op.shape())
    for yi, xi, wi in _conv_terms(op, x.shape, w.shape, y.shape):
        y[yi] += x[xi] * w[wi]
    return y if bias is None else y + bias.reshape(-1, *[1] * (x.ndim - 2))


def _conv_grad_input(op, dy, w):
    dx = np.zeros(op.shape())
    for yi, xi, wi in _conv_terms(op, dx.shape, w.shape, dy.shape):
        dx[xi] += dy[yi] * w[wi]
    return dx


def _conv_grad_weight(op, dy, x):
    dw = np.zeros(op.shape())
    for yi, xi, wi in _conv_terms(op, x.shape, dw.shape, dy.shape):
        dw[wi] += dy[yi] * x[xi]
    return dw


def _first_maxima(op, x, out):
    best = {}
    for o, i, _ in _windows(op, op.ints("kernel"), x.shape[2:], out):
        for n, c in itertools.product(range(x.shape[0]), range(x.shape[1])):
            if i is not None and ((n, c, *o) not in best or x[(n, c, *i)] > x[best[n, c, *o]]):
                best[n, c, *o] = (n, c, *i)
    return best


def _max_pool(op, x):
    y = np.zeros(op.shape())
    for o, i in _first_maxima(op, x, y.shape[2:]).items():
        y[o] = x[i]
    return y


def _max_pool_indices(op, x):
    y = np.zeros(op.shape(), np.int64)
    shape = np.array(x.shape)
    for o, i in _first_maxima(op, x, y.shape[2:]).items():
        order = [0, 1, *range(2, x.ndim)[:: -1 if op.flag("column_major") else 1]]
        y[o] = np.ravel_multi_index(np.array(i)[order], shape[order])
    return y


def _max_pool_grad(op, dy, x):
    dx = np.zeros_like(x)
    for o, i in _first_maxima(op, x, dy.shape[2:]).items():
        dx[i] += dy[o]
    return dx


def _average_weights(op, spatial, out):
    """(output, input, 1 / divisor). With count_include_pad what lies beyond
    the padding still does not count."""
    inside = list(_windows(op, op.ints("kernel"), spatial, out))
    pads, n = op.ints("pads"), len(spatial)
    strides, dilations = op.ints("strides"), op.ints("dilations")
    counts = {}
    for o, i, k in inside:
        position = [a * s - p + b * d for a, s, p, b, d in zip(o, strides, pads, k, dilations)]
        padded = all(-pads[a] <= position[a] < spatial[a] + pads[n + a] for a in range(n))
        counts[o] = counts.get(o, 0) + (padded if op.flag("count_include_pad") else i is not None)
    if op.int("divisor"):
        counts = dict.fromkeys(counts, op.int("divisor"))
    return [(o, i, 1 / counts[o]) for o, i, _ in inside if i is not None]


def _avg_pool(op, x):
    y = np.zeros(op.shape())
    for o, i, weight in _average_weights(op, x.shape[2:], y.shape[2:]):
        y[(..., *o)] += x[(..., *i)] * weight
    return y


def _avg_pool_grad(op, dy):
    dx = np.zeros(op.shape())
    for o, i, weight in _average_weights(op, dx.shape[2:], dy.shape[2:]):
        dx[(..., *i)] += dy[(..., *o)] * weight
    return dx


OPS = {
    "conv": _conv,
    "conv_grad_input": _conv_grad_input,
    "conv_grad_weight": _conv_grad_weight,
    "max_pool": _max_pool,
    "max_pool_grad": _max_pool_grad,
    "max_pool_indices": _max_pool_indices,
    "avg_pool": _avg_pool,
    "avg_pool_grad": _avg_pool_grad,
}
