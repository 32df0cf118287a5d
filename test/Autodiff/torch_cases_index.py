# torch_cases_index.py - Gradients of operators that move elements
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See torch_case.py.
import numpy as np
from torch_case import TorchCase


def ints(*values):
    return np.array(values, np.int64)


def index_cases():
    table = {"x": ((4, 3), "normal")}
    rows = np.array([[2, 0], [3, 2]], np.int64)
    each = np.array([[2, 0, 1], [3, 2, 2]], np.int64)
    yield TorchCase("Gather", "Gather", "x[i]", table | {"i": rows}, (2, 2, 3))
    yield TorchCase("GatherElements", "GatherElements", "torch.gather(x, 0, i)", table | {"i": each}, (2, 3))
    pairs = np.array([[2, 0], [3, 2], [2, 0]], np.int64)
    yield TorchCase("GatherND", "GatherND", "x[i[:, 0], i[:, 1]]", table | {"i": pairs}, (3,))
    unique = np.array([[2, 0, 1], [3, 2, 0]], np.int64)
    updates = {"u": ((2, 3), "normal")}
    yield TorchCase("ScatterElements", "ScatterElements", "torch.scatter(x, 0, i, u)", table | {"i": unique} | updates, (4, 3))
    yield TorchCase("ScatterElements_add", "ScatterElements", "torch.scatter_add(x, 0, i, u)", table | {"i": each} | updates, (4, 3), {"reduction": "add"})
    positions = np.array([[2, 0], [3, 2]], np.int64)
    scattered = "torch.index_put(x, (i[:, 0], i[:, 1]), u)"
    yield TorchCase("ScatterND", "ScatterND", scattered, table | {"i": positions, "u": ((2,), "normal")}, (4, 3))
    k = ints(2)
    yield TorchCase("TopK", "TopK", "torch.topk(x, 2, 1)[0]", {"x": ((3, 4), "distinct"), "k": k}, (3, 2), {"axis": 1}, outputs=2)
    yield TorchCase("TopK_smallest", "TopK", "torch.topk(x, 2, 0, largest=False)[0]", {"x": ((4, 3), "distinct"), "k": k}, (2, 3), {"axis": 0, "largest": 0}, outputs=2)
    yield TorchCase("Trilu", "Trilu", "torch.triu(x, 1)", {"x": ((3, 4), "normal"), "k": np.array(1, np.int64)}, (3, 4))


def shape_cases():
    x = {"x": ((2, 3, 4), "normal")}
    yield TorchCase("Slice_back", "Slice", "x.flip(2)[:, 1:, 1::2]", x | {"s": ints(1, 2), "e": ints(3, -100), "a": ints(1, 2), "t": ints(1, -2)}, (2, 2, 2))
    yield TorchCase("Transpose", "Transpose", "x.permute(2, 0, 1)", x, (4, 2, 3), {"perm": [2, 0, 1]})
    yield TorchCase("Tile", "Tile", "x.repeat(2, 1, 3)", x | {"n": ints(2, 1, 3)}, (4, 3, 12))
    yield TorchCase("Expand", "Expand", "x.expand(2, 3, 4)", {"x": ((3, 1), "normal"), "s": ints(2, 3, 4)}, (2, 3, 4))
    for mode in ("constant", "reflect", "replicate", "circular"):
        onnx_mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
        torch = f"F.pad(x, (1, 2), mode='{mode}')"
        yield TorchCase(f"Pad_{onnx_mode}", "Pad", torch, {"x": ((1, 2, 4), "normal"), "p": ints(0, 0, 1, 0, 0, 2)}, (1, 2, 7), {"mode": onnx_mode})
    yield TorchCase("DepthToSpace", "DepthToSpace", "F.pixel_shuffle(x, 2)", {"x": ((1, 4, 2, 3), "normal")}, (1, 1, 4, 6), {"blocksize": 2, "mode": "CRD"})
    yield TorchCase("Concat", "Concat", "torch.cat((a, b), 1)", {"a": ((2, 3), "normal"), "b": ((2, 2), "normal")}, (2, 5), {"axis": 1})
    yield TorchCase("Split", "Split", "torch.split(x, [1, 2], 1)[0]", {"x": ((2, 3), "normal"), "s": ints(1, 2)}, (2, 1), {"axis": 1}, outputs=2)


def cases():
    yield from index_cases()
    yield from shape_cases()
    x = {"x": ((1, 2, 3, 4), "normal")}
    empty = np.zeros(0, np.float32)
    sizes = {"roi": empty, "scales": empty, "sizes": ints(1, 2, 6, 8)}
    yield TorchCase("Resize_linear", "Resize", "F.interpolate(x, size=(6, 8), mode='bilinear', align_corners=False)", x | sizes, (1, 2, 6, 8), {"mode": "linear", "coordinate_transformation_mode": "half_pixel"})
    yield TorchCase("Resize_corners", "Resize", "F.interpolate(x, size=(6, 8), mode='bilinear', align_corners=True)", x | sizes, (1, 2, 6, 8), {"mode": "linear", "coordinate_transformation_mode": "align_corners"})
    yield TorchCase("Resize_nearest", "Resize", "F.interpolate(x, size=(6, 8), mode='nearest')", x | sizes, (1, 2, 6, 8), {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})
    yield TorchCase("Resize_cubic", "Resize", "F.interpolate(x, size=(6, 8), mode='bicubic', align_corners=False)", x | sizes, (1, 2, 6, 8), {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75})
    grid = {"x": ((1, 2, 3, 3), "normal"), "g": ((1, 2, 3, 2), "unit")}
    yield TorchCase("GridSample", "GridSample", "F.grid_sample(x, g, align_corners=False)", grid, (1, 2, 2, 3), {"mode": "linear"})
