# eventfile.py - Reads TensorBoard's event files with nothing but Python.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Written from the formats' descriptions, not from the writer: TFRecord and protocol buffers."""
import struct


class Damaged(Exception):
    """A record or message that does not read."""


def _table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


TABLE = tuple(_table())


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(raw):
    """The bytes of each record; both checksums are compared."""
    at = 0
    while at < len(raw):
        if at + 12 > len(raw):
            raise Damaged("half a header")
        length, crc = struct.unpack_from("<QI", raw, at)
        data = raw[at + 12:at + 12 + length]
        if masked_crc(raw[at:at + 8]) != crc or len(data) != length:
            raise Damaged(f"the length at byte {at}")
        if struct.unpack_from("<I", raw, at + 12 + length)[0] != masked_crc(data):
            raise Damaged(f"the record at byte {at}")
        yield data
        at += 16 + length


def _varint(raw, at):
    value = shift = 0
    while True:
        value |= (raw[at] & 127) << shift
        shift += 7
        at += 1
        if raw[at - 1] < 128:
            return value, at


def fields(raw):
    """(number, value) of each field; numbers are ints, 8 and 4 bytes and messages are bytes."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        if key & 7 == 0:
            value, at = _varint(raw, at)
        else:
            if key & 7 == 2:
                size, at = _varint(raw, at)
            else:
                size = {1: 8, 5: 4}[key & 7]
            value, at = raw[at:at + size], at + size
            if len(value) != size:
                raise Damaged("a field is cut")
        yield key >> 3, value


def read(path):
    """Events as dicts: wall_time, step, and version, start or scalars {tag: value}."""
    for data in records(path.read_bytes()):
        event = {"step": 0}
        for number, value in fields(data):
            if number == 1:
                event["wall_time"] = struct.unpack("<d", value)[0]
            elif number == 2:
                event["step"] = value
            elif number == 3:
                event["version"] = value.decode()
            elif number == 5:
                event["scalars"] = {}
                for _, message in fields(value):
                    parts = dict(fields(message))
                    event["scalars"][parts[1].decode()] = struct.unpack("<f", parts[2])[0]
            elif number == 7:
                event["start"] = dict(fields(value)) == {1: 1}
        yield event
