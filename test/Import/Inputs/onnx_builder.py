# onnx_builder.py - Makes small ONNX models for the importer's tests.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thin layer over the onnx package that checks nothing, so that broken models
can be made, too. Tests are Python scripts that say `from onnx_builder import *`
and take the folder they write to as their argument."""
import os
import sys

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, StringStringEntryProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OUT = sys.argv[1] if len(sys.argv) > 1 else "."
os.makedirs(OUT, exist_ok=True)


def ramp(*shape):
    """Distinct float values, the same on every run."""
    n = int(np.prod(shape))
    return (np.arange(n, dtype=np.float32) / 8 - 1).reshape(shape)


class Model:
    def __init__(self, opset=17, ir=8, producer="pytorch"):
        self.inputs, self.outputs, self.initializers, self.nodes = [], [], [], []
        self.opset, self.ir, self.producer, self.metadata = [("", opset)], ir, producer, {}

    def input(self, name, shape, type=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, type, shape))
        return name

    def output(self, *names):
        """Outputs of a type that is not declared."""
        for name in names:
            self.outputs.append(ValueInfoProto(name=name))

    def init(self, name, array):
        array = np.asarray(array)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def raw_init(self, name, type, dims, **fields):
        """An initializer whose fields need not fit together."""
        tensor = TensorProto(name=name, data_type=type, dims=dims)
        for key, value in fields.items():
            setattr(tensor, key, value) if isinstance(value, (bytes, int)) else getattr(tensor, key).extend(value)
        self.initializers.append(tensor)
        return name

    def external_init(self, name, dims, **entries):
        tensor = TensorProto(name=name, data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, value in entries.items():
            tensor.external_data.append(StringStringEntryProto(key=key, value=str(value)))
        self.initializers.append(tensor)
        return name

    def const(self, name, array, dtype=np.int64):
        """A Constant node."""
        value = numpy_helper.from_array(np.asarray(array, dtype=dtype), name)
        self.node("Constant", [], [name], value=value)
        return name

    def node(self, op, inputs, outputs, name="", domain="", metadata=None, **attributes):
        node = helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes)
        for key, value in (metadata or {}).items():
            node.metadata_props.append(StringStringEntryProto(key=key, value=value))
        self.nodes.append(node)
        return outputs[0] if outputs else None

    def proto(self):
        graph = GraphProto(name="g", node=self.nodes, input=self.inputs, output=self.outputs, initializer=self.initializers)
        for key, value in self.metadata.items():
            graph.metadata_props.append(StringStringEntryProto(key=key, value=value))
        model = ModelProto(ir_version=self.ir, producer_name=self.producer, graph=graph)
        for domain, version in self.opset:
            model.opset_import.append(helper.make_opsetid(domain, version))
        return model

    def save(self, name):
        path = os.path.join(OUT, name)
        with open(path, "wb") as file:
            file.write(self.proto().SerializeToString())
        return path


def unary(op, opset=17, shape=(2, 3), type=FLOAT, **attributes):
    """A model of one node from x to y."""
    model = Model(opset)
    model.input("x", shape, type)
    model.node(op, ["x"], ["y"], name="n", **attributes)
    model.output("y")
    return model
