# interpreter.py - A reference of the train operations in numpy.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs a straight-line function of train operations from MLIR's generic form.
# Written for clarity from the operations' descriptions, in f64 throughout, so
# that kernels and derivatives have something independent to agree with.
import itertools
import json
import math
import re

import numpy as np

_erf = np.vectorize(math.erf, otypes=[float])

_DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i1": np.bool_}


class Op:
    """One operation: name, operand and result names, attributes, result types."""

    def __init__(self, line):
        match = re.match(r"(?:(%[\w.]+)(?::(\d+))? = )?\"([\w.]+)\"\(([^)]*)\)(.*)$", line)
        result, count, self.name, operands, rest = match.groups()
        self.operands = re.findall(r"%[\w.#]+", operands)
        self.results = [] if not result else [f"{result}#{i}" for i in range(int(count))] if count else [result]
        attributes, types = re.match(r"(?: <\{(.*)\}>)? : (.*)$", rest).groups()
        self.text = attributes or ""
        self.types = re.findall(r"tensor<([^>]*)>", types.split("->")[1])

    def ints(self, name):
        text = re.search(rf"\b{name} = array<i64(?:: )?([^>]*)>", self.text).group(1)
        return [int(number) for number in text.split(",") if number.strip()]

    def int(self, name, default=None):
        match = re.search(rf"\b{name} = (-?\d+) : i64", self.text)
        return int(match.group(1)) if match else default

    def float(self, name):
        return float(re.search(rf"\b{name} = ([-+.\deE]+) : f64", self.text).group(1))

    def flag(self, name):
        return re.search(rf"\b{name}\b(?! = )", self.text) is not None

    def shape(self, result=0):
        return tuple(int(dim) for dim in self.types[result].split("x")[:-1])

    def dtype(self, result=0):
        return _DTYPES[self.types[result].split("x")[-1]]


def _swap(x, flag):
    return np.swapaxes(x, -1, -2) if flag else x


def _gelu_slope(op, x):
    if 'approximate = "tanh"' not in op.text:
        return 0.5 * (1 + _erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)


def _gelu(op, x):
    if 'approximate = "tanh"' in op.text:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


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


def _reduce(function):
    def run(op, x):
        return function(x, axis=tuple(op.ints("axes")), keepdims=op.flag("keepdims"))

    return run


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


def _log_sum_exp(x, axis):
    peak = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - peak).sum(axis=axis, keepdims=True)) + peak


def _log_softmax(op, x):
    return x - _log_sum_exp(x, op.int("axis"))


def _softmax_grad(op, dy, y):
    return (dy - (dy * y).sum(axis=op.int("axis"), keepdims=True)) * y


def _log_softmax_grad(op, dy, y):
    return dy - np.exp(y) * dy.sum(axis=op.int("axis"), keepdims=True)


def _attention_parts(op, q, k, v, mask):
    """Keys and values for each query head, and the scores."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ _swap(k, True) * op.float("scale") + (0.0 if mask is None else mask)
    if op.flag("causal"):
        scores = np.where(np.tri(*scores.shape[2:], dtype=bool), scores, -np.inf)
    return k, v, scores


def _attention(op, q, k, v, mask=None):
    k, v, scores = _attention_parts(op, q, k, v, mask)
    lse = _log_sum_exp(scores, 3)
    return np.exp(scores - lse) @ v, lse.squeeze(3)


def _attention_grad(op, dy, q, k, v, y, lse, mask=None):
    groups = k.shape[1]
    k, v, scores = _attention_parts(op, q, k, v, mask)
    p = np.exp(scores - lse[..., None])
    ds = p * (dy @ _swap(v, True) - (dy * y).sum(axis=3, keepdims=True)) * op.float("scale")

    def sum_heads(x):
        return x.reshape(x.shape[0], groups, -1, *x.shape[2:]).sum(axis=2)

    return ds @ k, sum_heads(_swap(ds, True) @ q), sum_heads(_swap(p, True) @ dy)


def _counted(op, labels):
    counts = labels != op.int("ignore_index", -100)
    return counts, np.where(counts, labels, 0)


def _cross_entropy(op, logits, labels):
    axis = op.int("axis")
    counts, labels = _counted(op, labels)
    lse = _log_sum_exp(logits, axis).squeeze(axis)
    chosen = np.take_along_axis(logits, np.expand_dims(labels, axis), axis).squeeze(axis)
    return np.sum((lse - chosen) * counts) / counts.sum(), lse


def _cross_entropy_grad(op, dloss, logits, labels, lse):
    axis = op.int("axis")
    counts, labels = _counted(op, labels)
    probabilities = np.exp(logits - np.expand_dims(lse, axis))
    onehot = np.moveaxis(np.eye(logits.shape[axis])[labels], -1, axis)
    return (probabilities - onehot) * np.expand_dims(counts, axis) * dloss / counts.sum()


def _constant(op):
    value = re.search(r"dense<([^>]*)>", op.text).group(1)
    return np.broadcast_to(np.array(json.loads(value), op.dtype()), op.shape())


OPS = {
    "neg": lambda op, x: -x,
    "abs": lambda op, x: np.abs(x),
    "sign": lambda op, x: np.sign(x),
    "exp": lambda op, x: np.exp(x),
    "log": lambda op, x: np.log(x),
    "sqrt": lambda op, x: np.sqrt(x),
    "rsqrt": lambda op, x: 1 / np.sqrt(x),
    "reciprocal": lambda op, x: 1 / x,
    "erf": lambda op, x: _erf(x),
    "tanh": lambda op, x: np.tanh(x),
    "sigmoid": lambda op, x: 1 / (1 + np.exp(-x)),
    "relu": lambda op, x: np.maximum(x, 0),
    "sin": lambda op, x: np.sin(x),
    "cos": lambda op, x: np.cos(x),
    "floor": lambda op, x: np.floor(x),
    "gelu": _gelu,
    "cast": lambda op, x: x.astype(op.dtype()),
    "add": lambda op, a, b: a + b,
    "sub": lambda op, a, b: a - b,
    "mul": lambda op, a, b: a * b,
    "div": lambda op, a, b: a / b,
    "pow": lambda op, a, b: a**b,
    "max": lambda op, a, b: np.maximum(a, b),
    "min": lambda op, a, b: np.minimum(a, b),
    "mod": lambda op, a, b: np.fmod(a, b),
    "and": lambda op, a, b: a & b,
    "or": lambda op, a, b: a | b,
    "xor": lambda op, a, b: a ^ b,
    "equal": lambda op, a, b: a == b,
    "less": lambda op, a, b: a < b,
    "less_equal": lambda op, a, b: a <= b,
    "greater": lambda op, a, b: a > b,
    "greater_equal": lambda op, a, b: a >= b,
    "where": lambda op, c, a, b: np.where(c, a, b),
    "relu_grad": lambda op, dy, y: np.where(y > 0, dy, 0.0),
    "gelu_grad": lambda op, dy, x: dy * _gelu_slope(op, x),
    "matmul": lambda op, a, b: _swap(a, op.flag("transpose_a")) @ _swap(b, op.flag("transpose_b")),
    "gemm": lambda op, a, b, c: _swap(a, op.flag("transpose_a")) @ _swap(b, op.flag("transpose_b")) + c,
    "conv": _conv,
    "conv_grad_input": _conv_grad_input,
    "conv_grad_weight": _conv_grad_weight,
    "max_pool": _max_pool,
    "max_pool_grad": _max_pool_grad,
    "avg_pool": _avg_pool,
    "avg_pool_grad": _avg_pool_grad,
    "reshape": lambda op, x: x.reshape(op.shape()),
    "broadcast": lambda op, x: np.broadcast_to(x, op.shape()),
    "transpose": lambda op, x: np.transpose(x, op.ints("permutation")),
    "slice": _slice,
    "concat": lambda op, *xs: np.concatenate(xs, axis=op.int("axis")),
    "pad": _pad,
    "gather": lambda op, x, i: np.take(x, i, axis=op.int("axis")),
    "gather_grad": _gather_grad,
    "reduce_sum": _reduce(np.sum),
    "reduce_mean": _reduce(np.mean),
    "reduce_max": _reduce(np.max),
    "reduce_min": _reduce(np.min),
    "layer_norm": _layer_norm,
    "layer_norm_grad": _layer_norm_grad,
    "rms_norm": _rms_norm,
    "rms_norm_grad": _rms_norm_grad,
    "batch_norm": _batch_norm,
    "batch_norm_grad": _batch_norm_grad,
    "batch_norm_inference": _batch_norm_inference,
    "softmax": lambda op, x: np.exp(_log_softmax(op, x)),
    "softmax_grad": _softmax_grad,
    "log_softmax": _log_softmax,
    "log_softmax_grad": _log_softmax_grad,
    "attention": _attention,
    "attention_grad": _attention_grad,
    "cross_entropy": _cross_entropy,
    "cross_entropy_grad": _cross_entropy_grad,
}


class Function:
    """The function of a module in generic form, ready to run."""

    def __init__(self, text):
        self.arguments = re.findall(r"(%arg\d+):", re.search(r"\^bb0\((.*)\):", text).group(1))
        self.argument_names = re.findall(r'zero\.input = "(\w+)"', text)
        self.result_names = re.findall(r'zero\.output = "([\w.]+)"', text)
        lines = [line.strip() for line in text.splitlines()]
        self.ops = [Op(line) for line in lines if re.match(r'%[\w.:]+ = "', line)]
        self.returned = re.findall(r"%[\w.#]+", next(line for line in lines if '"func.return"' in line))

    def run(self, inputs, stop_at_loss=False):
        """Outputs by name; with stop_at_loss only the first one, the loss."""
        values = {a: inputs[name] for a, name in zip(self.arguments, self.argument_names)}
        for op in self.ops:
            if stop_at_loss and self.returned[0] in values:
                return values[self.returned[0]]
            if op.name == "arith.constant":
                results = _constant(op)
            else:
                results = OPS[op.name.removeprefix("train.")](op, *[values[v] for v in op.operands])
            results = results if isinstance(results, tuple) else (results,)
            for i, (name, value) in enumerate(zip(op.results, results)):
                assert np.shape(value) == op.shape(i), f"{op.name}: {np.shape(value)}, {op.shape(i)}"
                values[name] = value
        outputs = {name: values[v] for name, v in zip(self.result_names, self.returned)}
        return outputs["loss"] if stop_at_loss else outputs
