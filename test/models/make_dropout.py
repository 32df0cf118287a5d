#!/usr/bin/env python3
# make_dropout.py - Makes a model that draws random numbers.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mlp/dropout.onnx: mlp/ts_train.onnx with a Dropout in its training mode behind each Relu, as
PyTorch exports nn.Dropout(0.25). Needs the onnx package alone."""
import pathlib

import numpy as np
import onnx

FOLDER = pathlib.Path(__file__).resolve().parent / "mlp"

model = onnx.load(FOLDER / "ts_train.onnx")
graph, nodes = model.graph, []
for name, value in ("ratio", np.float32(0.25)), ("training_mode", np.bool_(True)):
    graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
for node in graph.node:
    nodes.append(node)
    if node.op_type == "Relu":
        output, inner = node.output[0], node.output[0] + "_kept"
        node.output[0] = inner
        nodes.append(onnx.helper.make_node("Dropout", [inner, "ratio", "training_mode"], [output], name=output + "/Dropout"))
del graph.node[:]
graph.node.extend(nodes)
onnx.checker.check_model(model)
onnx.save(model, FOLDER / "dropout.onnx")
