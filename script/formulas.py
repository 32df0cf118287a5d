# formulas.py - The closed forms that measured bytes are compared with.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of the ZeRO paper (arXiv 1910.02054), in fp32. Shared by the demo and the tests."""
import re

SCALAR_BYTES = 4
# Bytes of optimizer state per parameter: momentum; two moments.
OPTIMIZER_BYTES = {"sgd": 4, "adamw": 8}


def state_bytes(parameters, optimizer, ranks, stage):
    """Parameters, gradients and optimizer state on one rank."""
    extra = OPTIMIZER_BYTES[optimizer]
    whole, part = {0: (8 + extra, 0), 1: (8, extra), 2: (4, 4 + extra), 3: (0, 8 + extra)}[stage]
    return whole * parameters + part * parameters / ranks


def sent_bytes(parameters, ranks, stage, gathered=None):
    """What a rank sends in a step, by collective, in the ring model.

    In stage 3 GATHERED is the number of elements that all-gathers make whole:
    twice the parameters, less those kept from forward to backward."""
    share = SCALAR_BYTES * (ranks - 1) / ranks
    if stage == 0:
        return {"all_gather": 0, "reduce_scatter": 0, "all_reduce": 2 * share * parameters}
    if stage < 3:
        gathered = parameters
    return {"all_gather": share * gathered, "reduce_scatter": share * parameters, "all_reduce": 0}


def gathered_elements(ir):
    """Elements that the all-gathers of a step in IR make whole."""
    total = 0
    for results in re.findall(r"zero\.all_gather(?:_start)?\b.*->\s*(.*)", ir):
        for shape in re.findall(r"tensor<((?:\d+x)*)f32", results):
            count = 1
            for size in shape.split("x")[:-1]:
                count *= int(size)
            total += count
    return total
