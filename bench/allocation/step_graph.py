#!/usr/bin/env python3
# step_graph.py - The buffers of a training step as an allocation instance.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints `id,lower,upper,size` for one step of a Llama under ZeRO stage 3.

On each rank: shards of parameters, gradients and optimizer state; parameters
gathered some products ahead of their use, in forward and again in backward;
activations kept for backward, or a layer's input alone where it is recomputed;
full gradients until they are reduced and scattered.
"""
import argparse

MODELS = {  # layers, hidden, feed-forward, heads, key/value heads, vocabulary
    "8b": (32, 4096, 14336, 32, 8, 128256),
    "70b": (80, 8192, 28672, 64, 8, 128256),
    "405b": (126, 16384, 53248, 128, 8, 128256),
}


class Step:
    """Commands in program order; each buffer with its first and last command."""

    def __init__(self):
        self.time = 0
        self.rows = []  # name, lower, upper, size
        self.open = {}

    def begin(self, name, size):
        self.open[name] = (self.time, size)

    def end(self, name):
        lower, size = self.open.pop(name)
        self.rows.append((name, lower, self.time + 1, size))

    def tick(self):
        self.time += 1


class Llama:
    def __init__(self, args):
        (self.layers, self.hidden, self.ffn, self.heads, self.kv, self.vocab) = MODELS[args.model]
        self.args = args
        self.tokens = args.seq * args.batch
        h, f, kv = self.hidden, self.ffn, self.hidden // self.heads * self.kv
        # name, parameters, elements of the output per token
        self.products = [("norm1", h, h), ("q", h * h, h), ("k", h * kv, kv), ("v", h * kv, kv),
                         ("attention", 0, h), ("o", h * h, h), ("norm2", h, h), ("gate", h * f, f),
                         ("up", h * f, f), ("act", 0, f), ("down", f * h, h)]
        self.step = Step()

    def shard(self, parameters, size):
        return -(-parameters // self.args.ranks) * size

    def units(self):
        """(name, parameters, output bytes) of the whole model, in order."""
        yield "embed", self.vocab * self.hidden, 2 * self.tokens * self.hidden
        for layer in range(self.layers):
            for name, parameters, width in self.products:
                yield f"{layer}.{name}", parameters, 2 * self.tokens * width
        yield "head", self.vocab * self.hidden, 2 * self.tokens * self.vocab // self.args.loss_chunks

    def residents(self):
        for name, parameters, _ in self.units():
            if parameters:
                for kind, size in (("parameter", 2), ("master", 4), ("m", 4), ("v", 4)):
                    self.step.begin(f"{name}.{kind}", self.shard(parameters, size))

    def gather(self, units, k, pass_name):
        """The products `prefetch` ahead of unit k, as far as not yet gathered."""
        for name, parameters, _ in units[k:k + 1 + self.args.prefetch]:
            key = f"{name}.gathered.{pass_name}"
            if parameters and key not in self.gathered:
                self.gathered.add(key)
                self.step.begin(key, 2 * parameters)

    def is_recomputed(self, name):
        return name[0].isdigit() and int(name.split(".")[0]) % 4 < self.args.recompute

    def is_kept(self, name):
        return not self.is_recomputed(name) or name.endswith(".down")

    def forward(self, units, pass_name):
        previous = None
        for k, (name, parameters, size) in enumerate(units):
            self.gather(units, k, pass_name)
            self.step.begin(f"{name}.out", size)
            if parameters > self.hidden:
                self.step.begin("workspace", 32 << 20)
                self.step.end("workspace")
            self.step.tick()
            if parameters:
                self.step.end(f"{name}.gathered.{pass_name}")
            if previous and not self.is_kept(previous):
                self.step.end(f"{previous}.out")
            previous = name

    def recompute(self, units, k):
        """The layer of unit k again, from its input."""
        layer = units[k][0].split(".")[0]
        for name, _, size in units:
            if name.split(".")[0] == layer and f"{name}.out" not in self.step.open:
                self.step.begin(f"{name}.out", size)
                self.step.tick()

    def backward(self, units, micro):
        backwards = units[::-1]
        self.step.begin("head.grad", units[-1][2])
        for k, (name, parameters, size) in enumerate(backwards):
            if self.is_recomputed(name) and name.endswith(".down"):
                self.recompute(units, len(units) - 1 - k)
            self.gather(backwards, k, f"backward{micro}")
            if k + 1 < len(backwards):
                self.step.begin(f"{backwards[k + 1][0]}.grad", backwards[k + 1][2])
            if parameters:
                self.step.begin(f"{name}.dw", 2 * parameters)
            self.step.tick()
            self.step.end(f"{name}.grad")
            self.step.end(f"{name}.out")
            if parameters:
                self.step.end(f"{name}.gathered.backward{micro}")
                if micro == 0:
                    self.step.begin(f"{name}.dshard", self.shard(parameters, 4))
            self.reduce(backwards, k - self.args.prefetch)
        for k in range(len(backwards) - self.args.prefetch, len(backwards)):
            self.step.tick()
            self.reduce(backwards, k)

    def reduce(self, backwards, k):
        if k >= 0 and backwards[k][1]:
            self.step.end(f"{backwards[k][0]}.dw")

    def update(self, units):
        for name, parameters, _ in units:
            if parameters:
                self.step.tick()
                self.step.end(f"{name}.dshard")
        for name in list(self.step.open):
            self.step.end(name)

    def run(self):
        units = list(self.units())
        self.residents()
        for micro in range(self.args.micro):
            self.gathered = set()
            self.forward(units, f"forward{micro}")
            self.backward(units, micro)
        self.update(units)
        return self.step.rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--seq", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--micro", type=int, default=1, help="micro-batches")
    parser.add_argument("--prefetch", type=int, default=7, help="products gathered ahead")
    parser.add_argument("--recompute", type=int, default=0, help="of each 4 layers")
    parser.add_argument("--loss-chunks", type=int, default=8)
    args = parser.parse_args()
    print("id,lower,upper,size")
    for name, lower, upper, size in Llama(args).run():
        print(f"{name},{lower},{upper},{size}")


if __name__ == "__main__":
    main()
