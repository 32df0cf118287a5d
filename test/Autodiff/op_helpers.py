# op_helpers.py - What the references of several families share
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Functions of numpy arrays, and of how the files of families are found.
import importlib
import math
import pathlib

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def swap(x, flag):
    return np.swapaxes(x, -1, -2) if flag else x


def log_sum_exp(x, axis):
    peak = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - peak).sum(axis=axis, keepdims=True)) + peak


def family_modules(prefix):
    """The modules PREFIX_*.py beside this file, by name."""
    paths = sorted(pathlib.Path(__file__).parent.glob(f"{prefix}_*.py"))
    return [importlib.import_module(path.stem) for path in paths]
