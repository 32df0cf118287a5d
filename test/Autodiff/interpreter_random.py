# interpreter_random.py - The reference of random numbers
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See interpreter.py. Philox4x32-10 as in Random123's philox.h.
import numpy as np


def _philox(counter, key):
    """Four arrays of words, from four arrays and the 64 bits of the key."""
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    low, high = int(key) & 0xFFFFFFFF, (int(key) >> 32) & 0xFFFFFFFF
    for turn in range(10):
        k0 = np.uint64((low + turn * 0x9E3779B9) & 0xFFFFFFFF)
        k1 = np.uint64((high + turn * 0xBB67AE85) & 0xFFFFFFFF)
        first, second = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        upper, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
        c = [(second >> upper) ^ c[1] ^ k0, second & mask, (first >> upper) ^ c[3] ^ k1, first & mask]
    return c


def _words(shape, key, first, samples, along, per_element):
    """The words of each element of a tensor, and where its samples are."""
    index = np.indices(shape).astype(np.uint64)
    sample, offset = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    for dim, size in enumerate(shape):
        at = index[dim]
        if along == dim:
            size //= samples
            sample = at // np.uint64(size) + np.uint64(int(first) & 0xFFFFFFFFFFFFFFFF)
            at = at % np.uint64(size)
        offset = offset * np.uint64(size) + at
    low, upper = np.uint64(0xFFFFFFFF), np.uint64(32)
    result = []
    for i in range(per_element):
        word = offset * np.uint64(per_element) + np.uint64(i)
        block = word >> np.uint64(2)
        drawn = _philox([block & low, block >> upper, sample & low, sample >> upper], key)
        result.append(np.choose((word & np.uint64(3)).astype(int), drawn))
    return result


def _unit(words):
    return (words >> np.uint64(8)).astype(np.float64) * 2.0**-24


def _random_key(op, seed, step):
    words = _philox([int(step) & 0xFFFFFFFF, (int(step) >> 32) & 0xFFFFFFFF, op.int("site"), 0], int(seed))
    return np.array((int(words[1]) << 32 | int(words[0])), dtype=np.uint64).astype(np.int64)


def drop_out(op, x, key, first, along):
    """`x` after dropout with the ratio and samples of `op`."""
    (words,) = _words(x.shape, key, first, op.int("samples"), along, 1)
    ratio = op.float("ratio")
    return np.where(_unit(words) >= ratio, x / (1 - ratio), 0.0)


def _dropout(op, x, key, first):
    return drop_out(op, x, key, first, op.int("along"))


OPS = {"random_key": _random_key, "dropout": _dropout}
