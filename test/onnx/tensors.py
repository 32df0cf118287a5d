# tensors.py - Safetensors files of NumPy arrays.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package safetensors knows neither all types of ONNX nor arrays of ml_dtypes."""
import json
import struct

import ml_dtypes
import numpy as np

TYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}
NAMES = {np.dtype(t): n for n, t in TYPES.items()}


def holds(array):
    """Whether a file can have ARRAY."""
    return isinstance(array, (np.ndarray, np.generic)) and np.dtype(array.dtype) in NAMES


def save(path, arrays):
    header, at, parts = {}, 0, []
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": NAMES[np.dtype(array.dtype)], "shape": list(np.shape(array)),
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def load(path):
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header, values = json.loads(data[8:8 + size]), data[8 + size:]
    header.pop("__metadata__", None)
    return {name: np.frombuffer(values[info["data_offsets"][0]:info["data_offsets"][1]],
                                TYPES[info["dtype"]]).reshape(info["shape"])
            for name, info in header.items()}
