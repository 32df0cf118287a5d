# llama_step.py - Writes the forward pass of a Llama as MLIR, without weights.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes and ops of Llama 3 (RMSNorm, grouped-query attention, SwiGLU) op by op;
rotary embeddings and the causal mask are left out, they cost next to nothing."""
import dataclasses


@dataclasses.dataclass
class Shape:
    layers: int
    width: int
    hidden: int
    heads: int
    groups: int  # key and value heads
    vocabulary: int
    length: int
    batch: int
    type: str = "bf16"


MODELS = {
    "llama3-8b": Shape(32, 4096, 14336, 32, 8, 128256, 4096, 1),
    "llama3-70b": Shape(80, 8192, 28672, 64, 8, 128256, 4096, 1),
    "llama3-8b-short": Shape(32, 4096, 14336, 32, 8, 128256, 1024, 4),
}


class Writer:
    """Every method returns (name, sizes) of the value that it makes."""

    def __init__(self, shape):
        self.s, self.params, self.lines, self.count = shape, [], [], 0

    def type(self, sizes, element=None):
        return f"tensor<{'x'.join(map(str, [*sizes, element or self.s.type]))}>"

    def param(self, name, *sizes):
        unit = ".".join(name.split(".")[:2])
        self.params.append(f'zero.param @{name} : {self.type(sizes)} unit("{unit}")')
        return self.emit(f"zero.read @{name} : {self.type(sizes)}", sizes)

    def emit(self, text, sizes):
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}", tuple(sizes)

    def op(self, name, operands, sizes, attributes=""):
        types = ", ".join(self.type(o[1]) for o in operands)
        names = ", ".join(o[0] for o in operands)
        return self.emit(f"train.{name} {names}{attributes} : ({types}) -> {self.type(sizes)}", sizes)

    def same(self, name, *operands, attributes=""):
        names = ", ".join(o[0] for o in operands)
        return self.emit(f"train.{name} {names}{attributes} : {self.type(operands[0][1])}", operands[0][1])

    def matmul(self, a, b, transpose=False):
        columns = b[1][-2] if transpose else b[1][-1]
        return self.op("matmul", (a, b), (*a[1][:-1], columns), " {transpose_b}" if transpose else "")

    def reshape(self, x, *sizes):
        return self.emit(f"train.reshape {x[0]} : {self.type(x[1])} to {self.type(sizes)}", sizes)

    def transpose(self, x, *order):
        return self.op("transpose", (x,), [x[1][i] for i in order], f" [{', '.join(map(str, order))}]")

    def norm(self, x, name):
        scale = self.param(name, self.s.width)
        self.count += 1
        y, rstd = f"%v{self.count}", f"%r{self.count}"
        self.lines.append(f"  {y}, {rstd} = train.rms_norm {x[0]}, {scale[0]} {{axis = 1 : i64, epsilon = 1.0e-5 : f64}} : "
                          f"({self.type(x[1])}, {self.type(scale[1])}) -> ({self.type(x[1])}, {self.type((x[1][0], 1), 'f32')})")
        return y, x[1]

    def heads(self, x, count, *order):
        size = self.s.width // self.s.heads
        return self.transpose(self.reshape(x, self.s.batch, self.s.length, count, size), *order)

    def attention(self, x, layer):
        s, size = self.s, self.s.width // self.s.heads
        q, k, v = (self.matmul(x, self.param(f"h.{layer}.{n}", s.width, c * size))
                   for n, c in (("wq", s.heads), ("wk", s.groups), ("wv", s.groups)))
        each = s.heads // s.groups
        q = self.reshape(self.heads(q, s.heads, 0, 2, 1, 3), s.batch * s.groups, each * s.length, size)
        k = self.reshape(self.heads(k, s.groups, 0, 2, 3, 1), s.batch * s.groups, size, s.length)
        v = self.reshape(self.heads(v, s.groups, 0, 2, 1, 3), s.batch * s.groups, s.length, size)
        scores = self.matmul(q, k)
        weights = self.same("softmax", scores, attributes=" axis 2")
        mixed = self.reshape(self.matmul(weights, v), s.batch, s.heads, s.length, size)
        merged = self.reshape(self.transpose(mixed, 0, 2, 1, 3), s.batch * s.length, s.width)
        return self.matmul(merged, self.param(f"h.{layer}.wo", s.width, s.width))

    def feed_forward(self, x, layer):
        s = self.s
        gate = self.matmul(x, self.param(f"h.{layer}.w1", s.width, s.hidden))
        up = self.matmul(x, self.param(f"h.{layer}.w3", s.width, s.hidden))
        silu = self.same("mul", gate, self.same("sigmoid", gate))
        return self.matmul(self.same("mul", silu, up), self.param(f"h.{layer}.w2", s.hidden, s.width))

    def write(self):
        s = self.s
        rows = s.batch * s.length
        table = self.param("embed.weight", s.vocabulary, s.width)
        x = self.emit(f"train.gather {table[0]}, %tokens axis 0 : ({self.type(table[1])}, tensor<{s.batch}x{s.length}xi64>)"
                      f" -> {self.type((s.batch, s.length, s.width))}", (s.batch, s.length, s.width))
        x = self.reshape(x, rows, s.width)
        for layer in range(s.layers):
            x = self.same("add", x, self.attention(self.norm(x, f"h.{layer}.norm1"), layer))
            x = self.same("add", x, self.feed_forward(self.norm(x, f"h.{layer}.norm2"), layer))
        logits = self.matmul(self.norm(x, "final.norm"), self.param("head.weight", s.width, s.vocabulary))
        logits = self.reshape(logits, s.batch, s.length, s.vocabulary)
        return "\n".join([*self.params, f"func.func @forward(%tokens: tensor<{s.batch}x{s.length}xi64> "
                          f'{{zero.input = "tokens"}}) -> ({self.type(logits[1])} {{zero.output = "logits"}}) {{',
                          *self.lines, f"  return {logits[0]} : {self.type(logits[1])}", "}", ""])


def write(shape):
    return Writer(shape).write()
