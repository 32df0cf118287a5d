# tensors.py - Reads and writes safetensors files with nothing but Python.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as (dtype, shape, bytes); float32 ones also as Python floats."""
import array
import json
import math
import struct


def load(path):
    """name -> (dtype, shape, bytes)."""
    with open(path, "rb") as f:
        raw = f.read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:end])
    head.pop("__metadata__", None)
    return {k: (t["dtype"], t["shape"], raw[end + t["data_offsets"][0]:end + t["data_offsets"][1]])
            for k, t in head.items()}


def save(path, tensors):
    head, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)


def floats(tensor):
    values = array.array("f")
    values.frombytes(tensor[2])
    return values


def relative_l2(got, want):
    """|got - want| / |want| of two float32 tensors, in Python's doubles."""
    a, b = floats(got), floats(want)
    if len(a) != len(b):
        return math.inf
    difference = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)))
    return difference / max(math.sqrt(sum(y * y for y in b)), 1e-12)
