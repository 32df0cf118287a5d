# operators.py - Cases of single operators, on the fake GPUs and on the host.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An operator in a model of its own, with a parameter among its inputs: the loss and the gradient are the host's.

The host's own are checked with ONNX's backend tests and PyTorch's gradients. Here are the operators that a GPU
computes in another way: loops in rows, scatters, windows, sums along other dimensions than the last.
"""
import json

import tensors
from harness import require

TOLERANCE = 1e-5
OPSET = 20


def table():
    """By name: operator, inputs, attributes and which output is used. The input "w" is the parameter."""
    import numpy as np

    r = np.random.default_rng(5)
    draw = lambda *shape: r.normal(0, 1, shape).astype(np.float32)
    some = lambda high, *shape: r.integers(0, high, shape)
    ints = lambda *values: np.int64(values)
    rows = r.permutation(24)[:6].reshape(6, 1).repeat(16, 1)
    w = "w"
    lstm = dict(W=draw(1, 12, 4), R=draw(1, 12, 3), B=draw(1, 24))
    return {
        "gather first": ("Gather", {w: draw(24, 16), "i": some(24, 48)}, {"axis": 0}),
        "gather of one row": ("Gather", {w: draw(96), "i": some(96, 48)}, {"axis": 0}),
        "gather second": ("Gather", {w: draw(1, 24, 16), "i": some(24, 48)}, {"axis": 1}),
        "gather last": ("Gather", {w: draw(5, 9), "i": some(9, 3, 4)}, {"axis": 1}),
        "gather elements": ("GatherElements", {w: draw(6, 16), "i": some(16, 6, 5)}, {"axis": 1}),
        "gather nd": ("GatherND", {w: draw(6, 16), "i": some(6, 7, 2)}, {}),
        "top k of one row": ("TopK", {w: draw(37), "k": ints(5)}, {}),
        "top k": ("TopK", {w: draw(12, 7), "k": ints(3)}, {}),
        "top k first": ("TopK", {w: draw(12, 7), "k": ints(3)}, {"axis": 0, "largest": 0}),
        "cumulative sum of one row": ("CumSum", {w: draw(50), "a": np.int64(0)}, {}),
        "cumulative sum": ("CumSum", {w: draw(9, 50), "a": np.int64(1)}, {"reverse": 1, "exclusive": 1}),
        "scatter into": ("ScatterElements", {w: draw(24, 16), "i": rows, "u": draw(6, 16)}, {"axis": 0}),
        "scatter of": ("ScatterElements", {"d": draw(24, 16), "i": rows, w: draw(6, 16)}, {"axis": 0}),
        "scatter add": ("ScatterElements", {"d": draw(24, 16), "i": some(24, 6, 16), w: draw(6, 16)}, {"reduction": "add"}),
        "scatter rows": ("ScatterND", {"d": draw(24, 16), "i": some(24, 6, 1), w: draw(6, 16)}, {"reduction": "add"}),
        "scatter max": ("ScatterND", {"d": draw(24, 16), "i": some(24, 6, 1), w: draw(6, 16)}, {"reduction": "max"}),
        "max pool": ("MaxPool", {w: draw(2, 3, 9, 9)}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        "average pool": ("AveragePool", {w: draw(2, 3, 9, 9)}, {"kernel_shape": [3, 2], "strides": [2, 1]}),
        "transposed convolution": ("ConvTranspose", {"x": draw(2, 3, 5, 5), w: draw(3, 4, 3, 3)}, {"strides": [2, 2]}),
        "resize": ("Resize", {w: draw(1, 2, 5, 6), "r": np.zeros(0, np.float32), "s": np.float32([1, 1, 2, 1.5])},
                   {"mode": "linear"}),
        "grid sample": ("GridSample", {w: draw(1, 2, 5, 6), "g": np.clip(draw(1, 3, 4, 2), -1, 1)}, {}),
        "pad": ("Pad", {w: draw(3, 7), "p": ints(0, 2, 1, 3)}, {"mode": "reflect"}),
        "largest": ("ReduceMax", {w: np.float32(some(4, 6, 20)), "a": ints(0)}, {}),
        "product": ("ReduceProd", {w: draw(6, 20), "a": ints(1)}, {}),
        "log of sums": ("ReduceLogSumExp", {w: draw(6, 5, 7), "a": ints(0, 2)}, {}),
        "softmax first": ("Softmax", {w: draw(6, 20)}, {"axis": 0}),
        "instance norm": ("InstanceNormalization", {w: draw(2, 3, 8), "s": draw(3), "b": draw(3)}, {}),
        "lower triangle": ("Trilu", {w: draw(3, 6, 6)}, {"upper": 0}),
        "tile": ("Tile", {w: draw(3, 4), "n": ints(2, 3)}, {}),
        "einsum": ("Einsum", {w: draw(4, 5, 6), "x": draw(4, 7, 6)}, {"equation": "bij,bkj->bik"}),
        "lstm": ("LSTM", {w: draw(7, 2, 4), **lstm}, {"hidden_size": 3}),
        "lstm weights": ("LSTM", {"x": draw(7, 2, 4), "W": lstm["W"], w: lstm["R"]}, {"hidden_size": 3}),
    }


def write_model(path, op, inputs, attributes):
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    def proto(nodes, constants, made, result):
        graph = helper.make_graph(nodes, "g", made, [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)

    node = helper.make_node(op, list(inputs), ["y", "places"] if op == "TopK" else ["y"], **attributes)
    y = ReferenceEvaluator(proto([node], inputs, [], "y")).run(None, {})[0]
    factors = np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape)
    nodes = [node, helper.make_node("Mul", ["y", "factors"], ["z"]), helper.make_node("ReduceSum", ["z"], ["sum"], keepdims=0),
             helper.make_node("ReduceSum", ["sample"], ["none"], keepdims=0),
             helper.make_node("Add", ["sum", "none"], ["loss"])]
    sample = helper.make_tensor_value_info("sample", TensorProto.FLOAT, [1, 1])
    path.write_bytes(proto(nodes, {**inputs, "factors": factors}, [sample], "loss").SerializeToString())


def trained(tools, path):
    """The loss, and the parameter after a step along its gradient."""
    stem = tools.scratch / f"operator-{path.stem}"
    data, metrics, weights = (stem.with_suffix(end) for end in (".data.safetensors", ".jsonl", ".safetensors"))
    tensors.save(data, {"sample": ("F32", [1, 1], bytes(4))})
    tools.ok("zero-run", path, "--loss", "output:loss", "--optimizer", "sgd", "--lr", 1, "--steps", 1, "--train", "w",
             "--data", data, "--metrics", metrics, "--save-weights", weights)
    return json.loads(metrics.read_text().splitlines()[0])["loss"], tensors.load(weights)["w"]


def as_host(gpu, host, name, case):
    path = host.scratch / f"operator-{name.replace(' ', '-')}.onnx"
    write_model(path, *case)
    (want_loss, want), (loss, got) = trained(host, path), trained(gpu, path)
    require(abs(loss - want_loss) <= TOLERANCE * max(1, abs(want_loss)), f"the loss is {loss}, the host's {want_loss}")
    error = tensors.relative_l2(got, want)
    require(error <= TOLERANCE, f"the parameter after a step differs from the host's by {error:.1e} (relative L2)")


def add_cases(cases, gpu, host):
    for name, case in table().items():
        cases.add(f"cuda operator {name}", as_host, gpu, host, name, case)
