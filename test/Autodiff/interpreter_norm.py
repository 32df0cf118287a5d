# interpreter_norm.py - The reference of normalizations
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import numpy as np
from op_helpers import log_sum_exp


def _from_axis(op, x):
    return tuple(range(op.int("axis"), x.ndim))


def _layer_norm(op, x, scale, bias=0.0):
    axes = _from_axis(op, x)
    mean = x.mean(axis=axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + op.float("epsilon"))
    return (x - mean) * rstd * scale + bias, mean, rstd


def _layer_norm_grad(op, dy, x, scale, mean, rstd):
    axes, batch = _from_axis(op, x), tuple(range(op.int("axis")))
    normal, g = (x - mean) * rstd, dy * scale
    inner = g - g.mean(axis=axes, keepdims=True) - normal * (g * normal).mean(axis=axes, keepdims=True)
    return inner * rstd, (dy * normal).sum(axis=batch), dy.sum(axis=batch)


def _normalize(op, x):
    y, _, rstd = _layer_norm(op, x, 1.0)
    return y, rstd


def _normalize_grad(op, dy, y, rstd):
    axes = _from_axis(op, y)
    return (dy - dy.mean(axis=axes, keepdims=True) - y * (dy * y).mean(axis=axes, keepdims=True)) * rstd


def _rms_norm(op, x, scale):
    rstd = 1 / np.sqrt((x * x).mean(axis=_from_axis(op, x), keepdims=True) + op.float("epsilon"))
    return x * rstd * scale, rstd


def _rms_norm_grad(op, dy, x, scale, rstd):
    axes, batch = _from_axis(op, x), tuple(range(op.int("axis")))
    normal, g = x * rstd, dy * scale
    inner = g - normal * (g * normal).mean(axis=axes, keepdims=True)
    return inner * rstd, (dy * normal).sum(axis=batch)


def _channels(x, vector):
    return vector.reshape(1, -1, *[1] * (x.ndim - 2))


def _batch_axes(x):
    return (0, *range(2, x.ndim))


def _batch_norm(op, x, scale, bias, running_mean, running_var):
    axes, keep = _batch_axes(x), op.float("momentum")
    mean, var, count = x.mean(axis=axes), x.var(axis=axes), x.size // x.shape[1]
    rstd = 1 / np.sqrt(var + op.float("epsilon"))
    y = (x - _channels(x, mean)) * _channels(x, rstd * scale) + _channels(x, bias)
    kept_var = var * count / (count - 1) if op.flag("unbiased") else var
    return (
        y,
        running_mean * keep + mean * (1 - keep),
        running_var * keep + kept_var * (1 - keep),
        mean,
        rstd,
    )


def _batch_norm_grad(op, dy, x, scale, mean, rstd):
    axes = _batch_axes(x)
    normal = (x - _channels(x, mean)) * _channels(x, rstd)
    inner = dy - _channels(x, dy.mean(axis=axes)) - normal * _channels(x, (dy * normal).mean(axis=axes))
    return inner * _channels(x, rstd * scale), (dy * normal).sum(axis=axes), dy.sum(axis=axes)


def _batch_norm_inference(op, x, scale, bias, mean, var):
    rstd = 1 / np.sqrt(var + op.float("epsilon"))
    return (x - _channels(x, mean)) * _channels(x, rstd * scale) + _channels(x, bias)


def _log_softmax(op, x):
    return x - log_sum_exp(x, op.int("axis"))


def _softmax_grad(op, dy, y):
    return (dy - (dy * y).sum(axis=op.int("axis"), keepdims=True)) * y


def _log_softmax_grad(op, dy, y):
    return dy - np.exp(y) * dy.sum(axis=op.int("axis"), keepdims=True)


OPS = {
    "layer_norm": _layer_norm,
    "layer_norm_grad": _layer_norm_grad,
    "normalize": _normalize,
    "normalize_grad": _normalize_grad,
    "rms_norm": _rms_norm,
    "rms_norm_grad": _rms_norm_grad,
    "batch_norm": _batch_norm,
    "batch_norm_grad": _batch_norm_grad,
    "batch_norm_inference": _batch_norm_inference,
    "softmax": lambda op, x: np.exp(_log_softmax(op, x)),
    "softmax_grad": _softmax_grad,
    "log_softmax": _log_softmax,
    "log_softmax_grad": _log_softmax_grad,
}
