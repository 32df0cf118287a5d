#!/usr/bin/env python3
# make_verdicts.py - Asks the reference implementation about odd safetensors files.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes safetensors-verdicts.txt: a line for each file, `accept|refuse name hex`.

Needs the package safetensors (0.8.0 was used). The header may be long: it is
given as hex bytes, `*N` repeats the byte before N times.
"""
import itertools
import pathlib
import struct

import safetensors


def file(header, values=b"", length=None):
    text = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + values


def one(shape="[1]", offsets="[0,4]", dtype="F32", name="a", values=4, more=""):
    return file('{"%s":{"dtype":"%s","shape":%s,"data_offsets":%s%s}}' % (name, dtype, shape, offsets, more), bytes(values))


def two(first, second, values):
    entry = '"%s":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}'
    return file("{" + entry % ("a", first[1] - first[0], *first) + "," +
                entry % ("b", second[1] - second[0], *second) + "}", bytes(values))


CASES = {
    "fewer-than-8-bytes": b"1234567",
    "length-beyond-file": file("{}", length=100),
    "length-over-limit": file("{}", length=100_000_001),
    "length-absurd": file("{}", length=2**64 - 1),
    "not-utf8": file(b'{"\xff":1}'),
    "bad-json": file('{"a"'),
    "text-behind": file("{}x"),
    "duplicate-key": file('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                          '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', bytes(1)),
    "duplicate-key-differs": file('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                                  '"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}', bytes(3)),
    "overlap": two((0, 4), (2, 6), 6),
    "hole": two((0, 4), (6, 10), 10),
    "hole-in-front": one(offsets="[4,8]", values=8),
    "trailing-bytes": one(values=5),
    "short-data": one(values=3),
    "shape-not-bytes": one(shape="[2]"),
    "shape-overflows": one(shape="[4294967296,4294967296]", offsets="[0,0]", values=0),
    "bytes-overflow": one(shape="[9223372036854775807]", offsets="[0,0]", values=0),
    "negative-dim": one(shape="[-1]"),
    "negative-offset": one(offsets="[-4,0]"),
    "fraction": one(shape="[1.0]"),
    "end-before-begin": one(shape="[0]", offsets="[4,0]"),
    "unknown-dtype": one(dtype="F33"),
    "metadata-number": file('{"__metadata__":{"a":1}}'),
    "metadata-object": file('{"__metadata__":{"a":{}}}'),
    "deep-json": one(more=',"x":' + "[" * 200 + "]" * 200),
    "array": file("[]"),
    "empty-text": file(""),
    "missing-field": file('{"a":{"dtype":"U8","shape":[]}}'),
    "zero-elements": one(shape="[0,5]", offsets="[0,0]", values=0),
    "scalar": one(shape="[]"),
    "empty-header": file("{}"),
    "space-in-front": file("  {}"),
    "space-behind": file("{}     "),
    "metadata": file('{"__metadata__":{"format":"pt"}}'),
    "metadata-null": file('{"__metadata__":null}'),
    "unknown-field": one(more=',"x":1'),
    "empty-name": one(name=""),
    "nan": file('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', struct.pack("<f", float("nan"))),
    "unaligned": file('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]} }', bytes(4)),
    "reversed-order": two((4, 8), (0, 4), 8),
    "half-a-byte": one(dtype="F4", offsets="[0,1]", values=1),
    **{f"dtype-{dtype}": one(shape="[8]", offsets=f"[0,{bits}]", dtype=dtype, values=bits)
       for dtype, bits in (("BOOL", 8), ("U8", 8), ("I8", 8), ("U16", 16), ("I16", 16), ("F16", 16), ("BF16", 16), ("U32", 32),
                           ("I32", 32), ("U64", 64), ("I64", 64), ("F64", 64), ("C64", 64), ("F4", 4), ("F6_E2M3", 6),
                           ("F6_E3M2", 6), ("F8_E4M3", 8), ("F8_E5M2", 8), ("F8_E8M0", 8), ("F8_E4M3FNUZ", 8),
                           ("F8_E5M2FNUZ", 8))},
}


def packed(data):
    runs = [(byte, len(list(group))) for byte, group in itertools.groupby(data)]
    return " ".join(f"{byte:02x}*{count}" if count > 1 else f"{byte:02x}" for byte, count in runs)


def verdict(data):
    try:
        safetensors.deserialize(data)
        return "accept"
    except safetensors.SafetensorError:
        return "refuse"


def main():
    lines = [f"# Verdicts of safetensors {safetensors.__version__}, by make_verdicts.py"]
    lines += [f"{verdict(data)} {name} {packed(data)}" for name, data in CASES.items()]
    pathlib.Path(__file__).with_name("safetensors-verdicts.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
