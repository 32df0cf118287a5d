# gpt_model.py - Writes the GPT of the benchmark as ONNX, without PyTorch.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nanoGPT's architecture (pre-LayerNorm, learned positions, tied output matrix)
in the operators that PyTorch's exporter uses for it, at a fixed batch."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

VOCABULARY, LENGTH, LAYERS, WIDTH, HEADS = 4096, 128, 6, 384, 6


class Graph:
    """Appends nodes and initializers; every method returns the name of its result."""

    def __init__(self, seed=0):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(seed)

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"node_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, name, value):
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def normal(self, name, *shape):
        return self.weight(name, self.random.normal(0, 0.02, shape))

    def constant(self, value):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def linear(self, x, name, rows, columns):
        weight = self.op("Transpose", self.normal(f"{name}.weight", rows, columns), perm=[1, 0])
        return self.op("Add", self.op("MatMul", x, weight), self.weight(f"{name}.bias", np.zeros(rows)))

    def norm(self, x, name):
        scale, bias = self.weight(f"{name}.weight", np.ones(WIDTH)), self.weight(f"{name}.bias", np.zeros(WIDTH))
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def gelu(self, x):
        half = self.op("Erf", self.op("Div", x, self.constant(np.float32(2 ** 0.5))))
        both = self.op("Mul", x, self.op("Add", half, self.constant(np.float32(1))))
        return self.op("Mul", both, self.constant(np.float32(0.5)))

    def attention(self, x, name):
        size = WIDTH // HEADS
        parts = self.op("Split", self.linear(x, f"{name}.c_attn", 3 * WIDTH, WIDTH),
                        self.constant(np.array([WIDTH] * 3)), outputs=3, axis=2)
        split = self.constant(np.array([0, 0, HEADS, size]))
        q, k, v = (self.op("Reshape", part, split) for part in parts)
        q, v = (self.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 2, 3, 1]))
        scores = self.op("Mul", scores, self.constant(np.float32(size ** -0.5)))
        future = np.triu(np.full((LENGTH, LENGTH), -np.inf, np.float32), 1)
        weights = self.op("Softmax", self.op("Add", scores, self.constant(future)), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        merged = self.op("Reshape", mixed, self.constant(np.array([0, 0, WIDTH])))
        return self.linear(merged, f"{name}.c_proj", WIDTH, WIDTH)

    def block(self, x, name):
        x = self.op("Add", x, self.attention(self.norm(x, f"{name}.ln_1"), name))
        hidden = self.gelu(self.linear(self.norm(x, f"{name}.ln_2"), f"{name}.fc", 4 * WIDTH, WIDTH))
        return self.op("Add", x, self.linear(hidden, f"{name}.proj", WIDTH, 4 * WIDTH))


def write(path, batch):
    g = Graph()
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, [batch, LENGTH])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, LENGTH, VOCABULARY])
    embedding = g.normal("wte.weight", VOCABULARY, WIDTH)
    positions = g.op("Gather", g.normal("wpe.weight", LENGTH, WIDTH), g.constant(np.arange(LENGTH)))
    x = g.op("Add", g.op("Gather", embedding, "tokens"), positions)
    for layer in range(LAYERS):
        x = g.block(x, f"h.{layer}")
    head = g.op("Transpose", embedding, perm=[1, 0])
    g.nodes.append(helper.make_node("MatMul", [g.norm(x, "ln_f"), head], ["logits"], name="lm_head"))
    graph = helper.make_graph(g.nodes, "gpt", [tokens], [logits], g.weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
