# interpreter_control.py - Loops.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
import re

import numpy as np


def scan(op, *operands):
    sizes = re.search(r"operandSegmentSizes = array<i32: (\d+), (\d+), (\d+)>", op.text).groups()
    inits, scanned, _ = map(int, sizes)
    steps = op.int("steps")
    order = range(steps)[::-1] if op.flag("reverse") else range(steps)
    carried, stacks = list(operands[:inits]), {}
    for step in order:
        entries = [tensor[step] for tensor in operands[inits : inits + scanned]]
        yielded = op.region.run([*carried, *entries, *operands[inits + scanned :]])
        carried = yielded[:inits]
        stacks[step] = yielded[inits:]
    return (*carried, *(np.stack(values) for values in zip(*(stacks[step] for step in range(steps)))))


OPS = {"scan": scan}
