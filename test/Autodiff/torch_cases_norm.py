# torch_cases_norm.py - Gradients of normalizations, softmax and losses
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See torch_case.py.
import numpy as np
from torch_case import TorchCase

EPSILON = 0.0009765625  # exact in float32


def norm_cases():
    def case(name, op, torch, x, scale=None, opset=22, **attributes):
        inputs = {"x": (x, "normal")}
        if scale:
            inputs |= {"s": (scale, "normal"), "b": (scale, "normal")}
        return TorchCase(name, op, torch, inputs, x, attributes, opset)

    yield case("LayerNormalization", "LayerNormalization", f"F.layer_norm(x, (3, 4), s, b, {EPSILON})", (2, 3, 4), (3, 4), axis=1, epsilon=EPSILON)
    yield case("GroupNormalization", "GroupNormalization", f"F.group_norm(x, 2, s, b, {EPSILON})", (2, 4, 3), (4,), num_groups=2, epsilon=EPSILON)
    yield case("InstanceNormalization", "InstanceNormalization", f"F.instance_norm(x, weight=s, bias=b, eps={EPSILON})", (2, 3, 5), (3,), epsilon=EPSILON)
    rms = TorchCase("RMSNormalization", "RMSNormalization", f"F.rms_norm(x, (4,), s, {EPSILON})", {"x": ((3, 4), "normal"), "s": ((4,), "normal")}, (3, 4), {"epsilon": EPSILON}, 23)
    yield rms
    yield case("LpNormalization", "LpNormalization", "F.normalize(x, 2.0, 1)", (3, 4), axis=1, p=2)
    yield case("LRN", "LRN", "F.local_response_norm(x, 3, 0.125, 0.75, 1.0)", (1, 4, 3), size=3, alpha=0.125, beta=0.75, bias=1.0)
    for op, torch in (("Softmax", "F.softmax"), ("LogSoftmax", "F.log_softmax")):
        yield case(op, op, f"{torch}(x, 1)", (2, 3, 2), axis=1)
        yield case(f"{op}_old", op, f"{torch}(x.reshape(2, 6), 1).reshape(2, 3, 2)", (2, 3, 2), opset=11, axis=1)


def loss_cases():
    labels = np.array([2, 0, 1, 2], np.int64)
    ignored = np.array([2, -1, 1, -1], np.int64)
    image = np.array([[[0, 2], [1, 1]]], np.int64)
    weights = np.array([0.5, 2.0, 1.25])
    x, pixels = {"x": ((4, 3), "normal")}, {"x": ((1, 3, 2, 2), "normal")}

    def case(name, op, torch, inputs, result=(), **attributes):
        return TorchCase(name, op, torch, inputs, result, attributes)

    for op, torch in (("SoftmaxCrossEntropyLoss", "F.cross_entropy"), ("NegativeLogLikelihoodLoss", "F.nll_loss")):
        short = "".join(c for c in op if c.isupper())
        for reduction, result in (("mean", ()), ("sum", ()), ("none", (4,))):
            yield case(f"{short}_{reduction}", op, f"{torch}(x, t, reduction='{reduction}')", x | {"t": labels}, result, reduction=reduction)
        yield case(f"{short}_ignore", op, f"{torch}(x, t, ignore_index=-1)", x | {"t": ignored}, ignore_index=-1)
        yield case(f"{short}_weights", op, f"{torch}(x, t, w)", x | {"t": labels, "w": weights}, ())
        yield case(f"{short}_image", op, f"{torch}(x, t)", pixels | {"t": image})


def cases():
    yield from norm_cases()
    yield from loss_cases()
