# vjp_cases_contraction.py - Derivatives of matrix products
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def cases():
    def matmul(name, a, b, y, flags=""):
        op = f"train.matmul %a, %b {flags} : ({{a}}, {{b}}) -> {{y}}"
        return Case(name, {"a": Input(a), "b": Input(b)}, op, y)

    for ta in (False, True):
        for tb in (False, True):
            a, b = ((5, 3) if ta else (3, 5)), ((4, 5) if tb else (5, 4))
            flags = ", ".join(["transpose_a"] * ta + ["transpose_b"] * tb)
            yield matmul(f"matmul_{ta:d}{tb:d}", a, b, (3, 4), f"{{{flags}}}" if flags else "")
            flags = f"{{{flags}}}" if flags else ""
            yield matmul(f"matmul_batch_{ta:d}{tb:d}", (2, 1, *a), (3, *b), (2, 3, 3, 4), flags)
            yield matmul(f"matmul_flat_{ta:d}{tb:d}", (2, *a), b, (2, 3, 4), flags)
    yield matmul("matmul_empty", (3, 0), (0, 4), (3, 4))
    yield matmul("matmul_left", (3, 5), (2, 5, 4), (2, 3, 4))
    for name, c in (("row", (4,)), ("column", (3, 1)), ("scalar", ())):
        yield Case(
            f"gemm_{name}",
            {"a": Input((5, 3)), "b": Input((4, 5)), "c": Input(c)},
            "train.gemm %a, %b, %c {transpose_a, transpose_b} : ({a}, {b}, {c}) -> {y}",
            (3, 4),
        )
