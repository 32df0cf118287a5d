# interpreter_contraction.py - The reference of matrix products
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py.
from op_helpers import swap

OPS = {
    "matmul": lambda op, a, b: swap(a, op.flag("transpose_a")) @ swap(b, op.flag("transpose_b")),
    "gemm": lambda op, a, b, c: swap(a, op.flag("transpose_a")) @ swap(b, op.flag("transpose_b")) + c,
}
