# plan_order.py - Which waits of a plan its data need.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a .zplan by its schema alone and finds commands that touch the same bytes.

Independent of the compiler, of the runtime and of the fake CUDA: what it says about a wait is
compared with what the fake finds when that wait is left out.
"""
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES = {"F32": 4, "F64": 8, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "Bool": 1}


def load(path, scratch):
    """The tables of a plan as JSON; flatc writes them."""
    subprocess.run(["flatc", "--json", "--strict-json", "--defaults-json", "--raw-binary", "-o", str(scratch),
                    str(ROOT / "runtime" / "zplan.fbs"), "--", str(path)], check=True, capture_output=True)
    return json.loads((scratch / (path.stem + ".json")).read_text())


class Plan:
    """One rank's part of a plan."""

    def __init__(self, tables, rank):
        self.tables, self.rank = tables, rank
        self.commands = tables["commands"]
        self.touched = [self.accesses(command) for command in self.commands]
        self.parts = self.split_parts()

    def split_parts(self):
        """Ranges of commands between which the host waits for everything."""
        micro = self.tables["micro_commands"]
        return [(first, last) for first, last in ((0, micro), (micro, len(self.commands))) if first < last]

    def place(self, number):
        """Arena and first byte of a buffer."""
        buffer = self.tables["buffers"][number]
        return buffer["arena"], buffer["offset"] + self.rank % max(buffer["shards"], 1) * buffer["rank_stride"]

    def view(self, operand):
        """Byte ranges of a view: a row each, or one where rows are adjacent."""
        arena, base = self.place(operand["buffer"])
        size = BYTES[self.tables["buffers"][operand["buffer"]]["dtype"]]
        starts, length = [base + operand.get("offset", 0) * size], size
        dims = list(zip(operand.get("sizes", []), operand.get("strides", [])))
        while dims and (dims[-1][0] == 1 or dims[-1][1] * size == length):
            length *= dims.pop()[0]
        for count, stride in dims:
            starts = [s + i * stride * size for s in starts for i in range(count)]
        return [(arena, s, s + length) for s in sorted(set(starts)) if length]

    def pieces(self, command):
        """Of a collective: what a rank sends and receives."""
        ranks = self.group_size(command)
        for piece in command.get("pieces", []):
            size = BYTES[self.tables["buffers"][piece["source"]]["dtype"]]
            chunk, whole = piece["chunk"] * size, ranks * piece["chunk"] * size
            if command["op"] == "AllReduce":
                whole = chunk
            sent, got = {"AllGather": (chunk, whole), "ReduceScatter": (piece["elements"] * size, chunk),
                         "AllReduce": (chunk, chunk)}[command["op"]]
            for number, length, write in ((piece["source"], sent, False), (piece["target"], got, True)):
                arena, begin = self.place(number)
                yield arena, begin, begin + length, write

    def group_size(self, command):
        grid = self.tables.get("grid") or [self.tables["ranks"]]
        ranks = 1
        for axis in command.get("axes") or range(len(grid)):
            ranks *= grid[axis]
        return ranks

    def accesses(self, command):
        """(arena, begin, end, write) of all that a command touches."""
        if command.get("pieces"):
            return list(self.pieces(command))
        operands, writes = command.get("operands", []), set(command.get("writes", []))
        if command["op"] in ("Call", "Copy", "Fill"):
            writes = {len(operands) - 1 - i for i in range(self.results(command))}
        found = []
        for i, operand in enumerate(operands):
            found += [(*r, i in writes) for r in self.view(operand)]
            if command["op"] == "Launch" and i in writes:  # which may read it too
                found += [(*r, False) for r in self.view(operand)]
        return found

    @staticmethod
    def results(command):
        """Operands at the end that a library call writes."""
        said = [a["ints"][0] for a in command.get("attrs", []) if a["name"] == "results"]
        return said[0] if said else 1

    def conflicts(self, first, last):
        """Pairs of commands of different streams that touch the same bytes, one of them writing."""
        events = {}
        for c in range(first, last):
            for arena, begin, end, write in self.touched[c]:
                events.setdefault(arena, []).append((begin, end, write, c))
        pairs = set()
        for ranges in events.values():
            ranges.sort()
            alive = []
            for begin, end, write, c in ranges:
                alive = [a for a in alive if a[1] > begin]
                for _, _, other_writes, other in alive:
                    if (write or other_writes) and self.stream(c) != self.stream(other):
                        pairs.add((min(c, other), max(c, other)))
                alive.append((begin, end, write, c))
        return pairs

    def stream(self, command):
        return self.commands[command]["stream"]

    def unordered(self, first, last, pairs, dropped):
        """Pairs that nothing orders when the wait (command, place in its list) is left out."""
        signaler = {c["signal"]: i for i, c in enumerate(self.commands) if c.get("signal", -1) >= 0}
        clocks, latest = {}, {}
        for c in range(first, last):
            stream = self.stream(c)
            clock = dict(clocks[latest[stream]]) if stream in latest else {}
            for place, event in enumerate(self.commands[c].get("wait", [])):
                if (c, place) != dropped and signaler[event] in clocks:
                    for s, when in clocks[signaler[event]].items():
                        clock[s] = max(clock.get(s, -1), when)
            clock[stream] = c
            clocks[c], latest[stream] = clock, c
        return [(a, b) for a, b in pairs if clocks[b].get(self.stream(a), -1) < a]

    def waits(self):
        """[(command, place)] in the order in which a step makes them, with whether the data need each."""
        result = []
        for first, last in self.parts:
            pairs = self.conflicts(first, last)
            for c in range(first, last):
                for place in range(len(self.commands[c].get("wait", []))):
                    result.append(((c, place), bool(self.unordered(first, last, pairs, (c, place)))))
        return result

    def races(self):
        """Pairs that the plan itself leaves unordered."""
        return [p for first, last in self.parts
                for p in self.unordered(first, last, self.conflicts(first, last), None)]
