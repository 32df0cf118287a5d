# interpreter_reduction.py - The reference of reductions
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import numpy as np


def _log_sum_exp(x, axis, keepdims):
    peak = x.max()
    return np.log(np.exp(x - peak).sum(axis=axis, keepdims=keepdims)) + peak


def _reduce(function):
    def run(op, x):
        return function(x, axis=tuple(op.ints("axes")), keepdims=op.flag("keepdims"))

    return run


OPS = {
    "reduce_sum": _reduce(np.sum),
    "reduce_mean": _reduce(np.mean),
    "reduce_max": _reduce(np.max),
    "reduce_min": _reduce(np.min),
    "reduce_prod": _reduce(np.prod),
    "reduce_log_sum_exp": _reduce(_log_sum_exp),
}
