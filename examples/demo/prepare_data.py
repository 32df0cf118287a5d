# prepare_data.py - Makes the demo's training data from packages.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Handwritten digits from scikit-learn; tokens from a public-domain text."""
import json
import re
import string
import struct
import subprocess

import numpy as np

ALPHABET = string.ascii_letters + " \n.,;:!?'()-"  # 64 symbols
TEST_DIGITS = 360


def save_safetensors(path, tensors):
    kinds = {np.dtype("float32"): "F32", np.dtype("int64"): "I64"}
    head, offset = {}, 0
    for name, t in tensors.items():
        head[name] = {"dtype": kinds[t.dtype], "shape": list(t.shape), "data_offsets": [offset, offset + t.nbytes]}
        offset += t.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t.tobytes() for t in tensors.values()))


def load_safetensors(path):
    raw = path.read_bytes()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:end])
    head.pop("__metadata__", None)
    kinds = {"F32": np.float32, "I64": np.int64, "F64": np.float64}
    return {k: np.frombuffer(raw[end:], kinds[t["dtype"]], int(np.prod(t["shape"])), t["data_offsets"][0])
            .reshape(t["shape"]) for k, t in head.items()}


def digits(folder):
    """1437 images to train on; returns the 360 that are kept for the test."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = (data.images[order, None] / 8 - 1).astype(np.float32)
    labels = data.target[order].astype(np.int64)
    save_safetensors(folder / "digits.safetensors",
                     {"image": images[TEST_DIGITS:], "labels": labels[TEST_DIGITS:]})
    return images[:TEST_DIGITS], labels[:TEST_DIGITS]


def text(folder, tree):
    """Genesis to Exodus in the King James Version, as the Debian package of TREE prints it."""
    verses = subprocess.run([f"{tree}/usr/bin/bible", "-f", "-p", f"{tree}/usr/lib", "ge1:1-ex40:38"],
                            check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    verses = re.sub(r"^\w+:\d+ ", "", verses, flags=re.M)
    known = {c: i for i, c in enumerate(ALPHABET)}
    tokens = np.array([known[c] for c in verses if c in known], np.uint16)
    (folder / "text.bin").write_bytes(tokens.tobytes())
    return len(tokens)
