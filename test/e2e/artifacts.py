# artifacts.py - Models that say how they are trained, made by hand.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The artifacts that onnxruntime.training.artifacts.generate_artifacts writes for a small classifier, and the
same step as a TrainingInfoProto; the checkpoint is a FlatBuffer that is laid out here by its schema
(onnxruntime's ort_training_checkpoint.fbs)."""
import struct

import numpy as np
from onnx import StringStringEntryProto, TensorProto, TrainingInfoProto, helper, numpy_helper

MICROSOFT, PREVIEW = "com.microsoft", "ai.onnx.preview.training"
CLASSES, FEATURES, HIDDEN = 5, 6, 7


def weights(seed=1):
    """By name, in the order of the graph's inputs."""
    r = np.random.default_rng(seed)
    draw = lambda *shape: r.normal(0, 0.5, shape).astype(np.float32)
    return {"fc1.weight": draw(HIDDEN, FEATURES), "fc1.bias": draw(HIDDEN), "fc2.weight": draw(CLASSES, HIDDEN),
            "fc2.bias": draw(CLASSES)}


def samples(count, seed=2):
    r = np.random.default_rng(seed)
    return {"x": r.normal(0, 1, (count, FEATURES)).astype(np.float32),
            "labels": r.integers(0, CLASSES, count).astype(np.int64)}


# --- the FlatBuffer


class Buffer:
    """Objects are written one behind the other; offsets to them are filled in afterwards, as they point forwards."""

    def __init__(self):
        self.data, self.patches = bytearray(8), []

    def table(self, fields):
        """`fields` by number: an int32, the bytes of another number, or a function that writes the object referred
        to and gives its place."""
        self.align(4)
        vtable = len(self.data)
        count, size, at = max(fields, default=-1) + 1, 4, {}
        for number, value in sorted(fields.items()):
            at[number] = size
            size += len(value) if isinstance(value, bytes) else 4
        self.data += struct.pack("<HH", 4 + 2 * count, size)
        for number in range(count):
            self.data += struct.pack("<H", at.get(number, 0))
        self.align(4)
        table = len(self.data)
        self.data += struct.pack("<i", table - vtable) + bytes(size - 4)
        for number, value in fields.items():
            place = table + at[number]
            if isinstance(value, int):
                value = struct.pack("<i", value)
            if isinstance(value, bytes):
                self.data[place:place + len(value)] = value
            else:
                self.point(place, value())
        return table

    def point(self, place, target):
        self.data[place:place + 4] = struct.pack("<I", target - place)

    def vector(self, content, width=1):
        self.align(8)
        if width == 8:  # the elements are aligned, the count is before them
            self.data += bytes(4)
        at = len(self.data)
        self.data += struct.pack("<I", len(content) // width) + content
        return at

    def string(self, text):
        at = self.vector(text.encode())
        self.data += b"\0"
        return at

    def list(self, makers):
        at = self.vector(bytes(4 * len(makers)), 4)
        for i, make in enumerate(makers):
            self.point(at + 4 + 4 * i, make())
        return at

    def align(self, width):
        self.data += bytes(-len(self.data) % width)

    def finish(self, root):
        self.point(0, root)
        self.data[4:8] = b"ODTC"
        return bytes(self.data)


def checkpoint(trained, frozen=None, states=None, steps=0):
    """`states`: the two moments of each parameter's gradient, after so many steps."""
    b = Buffer()

    def tensor(name, array):
        return lambda: b.table({0: lambda: b.string(name),
                                2: lambda: b.vector(struct.pack(f"<{array.ndim}q", *array.shape), 8),
                                3: int(helper.np_dtype_to_tensor_dtype(array.dtype)),
                                4: lambda: b.vector(array.tobytes())})

    tensors = lambda arrays: lambda: b.list([tensor(n, a) for n, a in arrays.items()])
    module = lambda: b.table({0: tensors(trained), 1: tensors(frozen or {})})
    state = lambda name, moments: lambda: b.table({
        0: lambda: b.string(name), 1: tensors({f"momentum{i}": m for i, m in enumerate(moments)})})
    group = lambda: b.table({0: lambda: b.string("group0"), 1: struct.pack("<q", steps), 2: struct.pack("<f", 1e-3),
                             3: lambda: b.list([state(n, m) for n, m in states.items()])})
    groups = {2: lambda: b.list([group])} if states else {}
    return b.finish(b.table({0: 1, 1: module} | groups))


# --- graphs


def value(name, shape, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}/{outputs[0]}", domain=domain, **attributes)


def forward():
    return [node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], transB=1), node("Relu", ["h"], ["a"]),
            node("Gemm", ["a", "fc2.weight", "fc2.bias"], ["logits"], transB=1),
            node("SoftmaxCrossEntropyLoss", ["logits", "labels"], ["loss", "log_prob"], reduction="mean")]


def backward():
    ms = MICROSOFT
    return [node("SoftmaxCrossEntropyLossGrad", ["loss_grad", "log_prob", "labels"], ["logits_grad"], ms, reduction="mean"),
            node("ReduceSum", ["logits_grad", "axes"], ["fc2.bias_grad"], keepdims=0),
            node("Gemm", ["logits_grad", "a"], ["fc2.weight_grad"], transA=1, beta=0.0),
            node("FusedMatMul", ["logits_grad", "fc2.weight"], ["a_grad"], ms),
            node("ReluGrad", ["a_grad", "a"], ["h_grad"], ms),
            node("ReduceSum", ["h_grad", "axes"], ["fc1.bias_grad"], keepdims=0),
            node("Gemm", ["h_grad", "x"], ["fc1.weight_grad"], transA=1, beta=0.0)]


def model(nodes, inputs, outputs, initializers=(), opsets=(("", 17), (MICROSOFT, 1), (PREVIEW, 1))):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in initializers])
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid(d, v) for d, v in opsets])


DATA = [value("x", ["batch", FEATURES]), value("labels", ["batch"], TensorProto.INT64)]


def training_model(params):
    nodes, inputs, outputs = forward() + backward(), list(DATA), [value("loss", [])]
    inputs += [value(n, a.shape) for n, a in params.items()]
    for name, array in params.items():
        buffer, done = f"{name}_grad.accumulation.buffer", f"{name}_grad.accumulation.out"
        inputs.append(value(buffer, array.shape))
        outputs.append(value(done, [1], TensorProto.BOOL))
        nodes.append(node("InPlaceAccumulatorV2", [buffer, f"{name}_grad", "lazy_reset_grad"], [done], MICROSOFT))
    inputs.append(value("lazy_reset_grad", [1], TensorProto.BOOL))
    constants = [("loss_grad", np.float32(1)), ("axes", np.array([0], np.int64))]
    return model(nodes, inputs, outputs, constants)


def eval_model(params):
    return model(forward()[:3], DATA[:1] + [value(n, a.shape) for n, a in params.items()], [value("logits", ["batch", CLASSES])])


def optimizer_model(op="AdamWOptimizer", **attributes):
    inputs = ["learning_rate", "step", "params", "gradients", "first_order_moments", "second_order_moments"]
    if op == "SGDOptimizerV2":
        inputs = ["learning_rate", "params", "gradients"]
    sequence = helper.make_tensor_sequence_value_info
    infos = {"learning_rate": value("learning_rate", [1]), "step": value("step", [1], TensorProto.INT64)}
    infos = [infos.get(n) or sequence(n, TensorProto.FLOAT, None) for n in inputs]
    return model([node(op, inputs, ["done"], MICROSOFT, **attributes)], infos, [value("done", [1], TensorProto.BOOL)])


def write(folder, params, optimizer, **progress):
    """The artifacts in a folder; returns the training model."""
    folder.mkdir(parents=True)
    (folder / "checkpoint").write_bytes(checkpoint(params, **progress))
    (folder / "eval_model.onnx").write_bytes(eval_model(params).SerializeToString())
    (folder / "optimizer_model.onnx").write_bytes(optimizer.SerializeToString())
    path = folder / "training_model.onnx"
    path.write_bytes(training_model(params).SerializeToString())
    return path


def training_info(params, algorithm, inputs, states, updates, initializers=()):
    """The classifier with a training algorithm: nodes, inputs, states by name, and updates by state or parameter."""
    made = model(forward()[:3], DATA[:1], [value("logits", ["batch", CLASSES])], params.items())
    graph = helper.make_graph(algorithm, "algorithm", [DATA[1]] + inputs, [value(v, None) for v in ["loss", *updates.values()]],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in [*states.items(), *initializers]])
    info = made.training_info.add()
    info.algorithm.CopyFrom(graph)
    for key, new in updates.items():
        info.update_binding.append(StringStringEntryProto(key=key, value=new))
    return made


# --- what the steps compute, in double precision


def gradients(params, x, labels):
    """The loss, and the gradients by name."""
    p = {n: a.astype(np.float64) for n, a in params.items()}
    h = x.astype(np.float64) @ p["fc1.weight"].T + p["fc1.bias"]
    a = np.maximum(h, 0)
    logits = a @ p["fc2.weight"].T + p["fc2.bias"]
    e = np.exp(logits - logits.max(1, keepdims=True))
    prob = e / e.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(prob[rows, labels]).mean()
    d = prob.copy()
    d[rows, labels] -= 1
    d /= len(labels)
    dh = (d @ p["fc2.weight"]) * (h > 0)
    return loss, {"fc1.weight": dh.T @ x, "fc1.bias": dh.sum(0), "fc2.weight": d.T @ a, "fc2.bias": d.sum(0)}


def train(params, data, batch, steps, update):
    """Losses and final parameters; `update(step from 1, name, parameter, gradient)` gives the new one."""
    params, losses = {n: a.astype(np.float64) for n, a in params.items()}, []
    for step in range(1, steps + 1):
        at = np.arange((step - 1) * batch, step * batch) % len(data["labels"])
        loss, grads = gradients(params, data["x"][at], data["labels"][at])
        losses.append(loss)
        params = {n: update(step, n, params[n], grads[n]) for n in params}
    return losses, params
