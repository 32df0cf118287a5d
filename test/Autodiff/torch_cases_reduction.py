# torch_cases_reduction.py - Gradients of reductions, products and sums along an axis
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See torch_case.py.
import numpy as np
from torch_case import TorchCase

REDUCTIONS = {
    "ReduceSum": ("x.sum(1)", "normal"), "ReduceMean": ("x.mean(1)", "normal"),
    "ReduceMax": ("x.amax(1)", "ties"), "ReduceMin": ("x.amin(1)", "ties"),
    "ReduceProd": ("x.prod(1)", "normal"), "ReduceL1": ("x.abs().sum(1)", "normal"),
    "ReduceL2": ("x.norm(2, 1)", "normal"), "ReduceLogSum": ("x.sum(1).log()", "positive"),
    "ReduceLogSumExp": ("torch.logsumexp(x, 1)", "normal"), "ReduceSumSquare": ("(x * x).sum(1)", "normal"),
}


def cases():
    axis = np.array([1], np.int64)
    for op, (torch, kind) in REDUCTIONS.items():
        yield TorchCase(op, op, torch, {"x": ((2, 3, 4), kind), "a": axis}, (2, 4), {"keepdims": 0})
        yield TorchCase(f"{op}_old", op, torch, {"x": ((2, 3, 4), kind)}, (2, 4), {"keepdims": 0, "axes": [-2]}, 11)
    yield TorchCase("ReduceProd_zeros", "ReduceProd", "x.prod(1)", {"x": ((4, 5), "ties"), "a": axis}, (4,), {"keepdims": 0})
    for exclusive in (0, 1):
        torch = "torch.cumsum(x, 1)" + (" - x" if exclusive else "")
        yield TorchCase(f"CumSum_{exclusive}", "CumSum", torch, {"x": ((3, 4), "normal"), "a": np.array(1, np.int64)}, (3, 4), {"exclusive": exclusive})
    yield TorchCase("CumSum_reverse", "CumSum", "torch.cumsum(x.flip(1), 1).flip(1)", {"x": ((3, 4), "normal"), "a": np.array(-1, np.int64)}, (3, 4), {"reverse": 1})
    yield TorchCase("MatMul", "MatMul", "a @ b", {"a": ((2, 1, 3, 4), "normal"), "b": ((3, 4, 2), "normal")}, (2, 3, 3, 2))
    yield TorchCase("MatMul_vector", "MatMul", "a @ b", {"a": ((4,), "normal"), "b": ((2, 4, 3), "normal")}, (2, 3))
    gemm = {"a": ((4, 3), "normal"), "b": ((2, 4), "normal"), "c": ((2,), "normal")}
    yield TorchCase("Gemm", "Gemm", "0.5 * a.T @ b.T + 2 * c", gemm, (3, 2), {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1})
    yield TorchCase("Einsum", "Einsum", "torch.einsum('bij,bjk->bik', a, b)", {"a": ((2, 3, 4), "normal"), "b": ((2, 4, 2), "normal")}, (2, 3, 2), {"equation": "bij,bjk->bik"})
    yield TorchCase("Einsum_diagonal", "Einsum", "torch.einsum('ii->i', a)", {"a": ((3, 3), "normal")}, (3,), {"equation": "ii->i"})
    yield TorchCase("Det", "Det", "torch.linalg.det(x)", {"x": ((2, 3, 3), "normal")}, (2,))
