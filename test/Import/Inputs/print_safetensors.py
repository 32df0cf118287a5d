# print_safetensors.py - Prints the tensors of a safetensors file, sorted.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import math
import struct
import sys

raw = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8 : 8 + size])
header.pop("__metadata__", None)
data = raw[8 + size :]
end = 0
for name, tensor in sorted(header.items(), key=lambda entry: entry[1]["data_offsets"]):
    assert tensor["data_offsets"][0] == end, "a hole or an overlap"
    end = tensor["data_offsets"][1]
assert end == len(data), "trailing bytes"
codes = {"F32": "f", "F64": "d", "F16": "e", "BF16": "H"}
for name, tensor in sorted(header.items()):
    begin, end = tensor["data_offsets"]
    values = struct.unpack(f"<{math.prod(tensor['shape'])}{codes[tensor['dtype']]}", data[begin:end])
    print(name, tensor["dtype"], tensor["shape"], list(values))
