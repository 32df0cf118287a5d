#!/usr/bin/env python3
# report_traces.py - Traces of made-up steps, as large as one likes.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a trace in the format of docs/reports.md: a transformer at ZeRO stage 3.

    report_traces.py --layers 32 --ranks 8 [--measured] [--offload] [--spans-per-layer 1] -o trace.json

Independent of the C++ that writes traces: what this makes, zero-report must read.
Numbers are pseudo-random and the same on every run.
"""
import argparse
import json
import random

# Whatever a parameter is called, it is shown and does not run.
HOSTILE = "</script><script>alert(1)</script>\"'&\u2028\u202e<img src=x onerror=alert(2)>"
KINDS = ("parameter", "state", "gradient", "gathered", "activation")
LAYER_BYTES = 400 << 20
MICRO = 1e-6


class Step:
    """Simulates one rank: compute in order, collectives on their channels."""

    def __init__(self, rank, noise):
        self.rank, self.noise = rank, noise
        self.random = random.Random(f"{rank} {noise}")
        self.now, self.free, self.command = 0.0, {}, 0
        self.spans, self.points, self.live = [], [], dict.fromkeys(KINDS, 0)
        self.host_points = []
        self.exposed = 0.0

    def jitter(self, seconds):
        return seconds * (1 + self.noise * self.random.random())

    def add(self, channel, name, start, end, **args):
        self.spans.append(dict(rank=self.rank, channel=channel, name=name, start=start, end=end,
                               args={"command": self.command, **args}))
        self.command += 1

    def compute(self, name, seconds):
        end = self.now + self.jitter(seconds)
        self.add("compute", name, self.now, end)
        self.now = end

    def start(self, channel, name, seconds, sent):
        begin = max(self.now, self.free.get(channel, 0.0))
        end = begin + self.jitter(seconds)
        self.free[channel] = end
        self.add(channel, name, begin, end, sent_bytes=sent)
        return self.spans[-1]

    def wait(self, span, reason):
        stood = span["end"] - self.now
        if stood > 0:
            span["args"].update(exposed_seconds=stood, reason=reason)
            self.exposed += stood
            self.now = span["end"]

    def memory(self, **changes):
        for kind, change in changes.items():
            self.live[kind] += change
        self.points.append((self.now, dict(self.live)))


def update_on_host(step, names, shard):
    """State on disk: read, gradient down, update, parameter up, written back; one layer after the other."""
    state, copies = 6 * shard, []
    for name in names:
        read = step.start("disk_read", f"read {name}", 900 * MICRO, state)
        step.host_points.append((step.now, {"state": 2 * state, "gradient": shard}))
        step.wait(read, "the disk is slower than the update")
        step.wait(step.start("to_host", f"gradient of {name}", 150 * MICRO, shard), "the update needs it at once")
        step.wait(step.start("host", f"adamw {name}", 700 * MICRO, 0), "nothing else is left to compute")
        copies = [step.start("to_device", name, 150 * MICRO, shard),
                  step.start("disk_write", f"write {name}", 1100 * MICRO, state)]
        step.host_points.append((step.now, {"state": state}))
    for copy in copies:
        step.wait(copy, "the step ends with it")


def layer_names(layers):
    return [f"model.layers.{k}" for k in range(layers)]


def simulate(rank, args, noise):
    step, names, ops = Step(rank, noise), layer_names(args.layers), args.spans_per_layer
    shard = LAYER_BYTES // args.ranks
    step.memory(parameter=args.layers * shard, state=0 if args.offload else args.layers * shard * 6)
    first = step.start("all_gather", f"gather {names[0]}", 4000 * MICRO, LAYER_BYTES - shard)
    step.memory(gathered=LAYER_BYTES)
    for k, name in enumerate(names):
        step.wait(first, "nothing before it hides it: the first layer" if k == 0
                  else "the budget admits one gathered layer ahead, and the layer is short")
        if k + 1 < len(names):
            first = step.start("all_gather", f"gather {names[k + 1]}", 4000 * MICRO, LAYER_BYTES - shard)
            step.memory(gathered=LAYER_BYTES)
        for op in range(ops):
            step.compute(f"forward {name}" + (f" op {op}" if ops > 1 else ""), 4500 * MICRO / ops)
        step.memory(gathered=-LAYER_BYTES, activation=LAYER_BYTES // 3)
    reduce = None
    for k, name in reversed(list(enumerate(names))):
        gather = step.start("all_gather", f"gather again {name}", 4000 * MICRO, LAYER_BYTES - shard)
        step.memory(gathered=LAYER_BYTES, gradient=LAYER_BYTES)
        step.wait(gather, "the budget admits no earlier start")
        for op in range(ops):
            step.compute(f"backward {name}" + (f" op {op}" if ops > 1 else ""), 9000 * MICRO / ops)
        if reduce:
            step.wait(reduce, "the channel is busy")
            step.memory(gradient=shard - LAYER_BYTES)
        reduce = step.start("reduce_scatter", f"reduce {name}", 4200 * MICRO, LAYER_BYTES - shard)
        step.memory(gathered=-LAYER_BYTES, activation=-(LAYER_BYTES // 3))
    step.wait(reduce, "nothing after it hides it: the last gradient")
    step.memory(gradient=shard - LAYER_BYTES)
    norm = step.start("all_reduce", "gradient norm", 30 * MICRO, 8)
    step.wait(norm, "the update needs it at once")
    if args.offload:
        update_on_host(step, names, shard)
        return step
    for name in names:
        step.compute(f"update {name}", 300 * MICRO)
        step.memory(gradient=-shard)
    return step


def peak(step):
    return max(sum(kinds.values()) for _, kinds in step.points)


def spaces(args, step):
    """Members of the metadata that only a step with memory elsewhere has."""
    if not args.offload:
        return {}
    state = args.layers * 6 * (LAYER_BYTES // args.ranks)
    most = max(sum(kinds.values()) for _, kinds in step.host_points)
    return dict(host=dict(budget_bytes=2 * most, planned_peak=most, lower_bound=most, memory=len(step.host_points)),
                disk=dict(budget_bytes=-1, planned_peak=state, lower_bound=state, memory=1),
                offload="offloading m, v of all layers saves the device their bytes",
                offload_rules=["optimizer=disk"])


def metadata(args, source, steps, processes, parameters):
    most = peak(steps[0])
    return dict(version=1, source=source, model=args.model, machine="h100 (8 per node)", ranks=args.ranks,
                grid=[args.ranks], stage=3, budget_bytes=most * 21 // 20, planned_peak=most + most // 500,
                lower_bound=most, step_seconds=max(s.now for s in steps),
                exposed_seconds=max(s.exposed for s in steps),
                notes=["Communication: the gathers of backward start when the budget lets them, "
                       "not when the channel is free.",
                       "12 GiB more memory per rank would hide 80 % of the exposed time."],
                spans=sum(len(s.spans) for s in steps), memory=len(steps[0].points),
                parameters=len(parameters), processes=processes, **spaces(args, steps[0]))


def parameter_rows(args):
    rows = []
    for name in [HOSTILE] + [f"{layer}.{part}" for layer in layer_names(args.layers)
                             for part in ("attention.wqkv.weight", "mlp.up.weight", "mlp.down.weight", "norm.weight")]:
        columns = 4096 if "norm" not in name else 1
        rows.append(dict(name=name, shape=[4096, columns], shard=[-(-4096 // args.ranks), columns], type="bf16",
                         residence="device", gathered="never" if columns == 1 else "twice",
                         bytes=-(-4096 // args.ranks) * columns * 14))
    return rows


def add_timeline(events, args, source, ranks, noise):
    steps = [simulate(rank, args, noise) for rank in ranks]
    pid = max((e["pid"] for e in events), default=0)
    tid = max((e.get("tid", 0) for e in events), default=0)
    processes, threads = [], {}
    for step in steps:
        pid += 1
        for channel in dict.fromkeys(s["channel"] for s in step.spans):
            tid += 1
            threads[step.rank, channel] = (pid, tid)
        processes.append(dict(pid=pid, rank=step.rank,
                              threads={c: t for (r, c), (_, t) in threads.items() if r == step.rank}))
    parameters = parameter_rows(args)
    first = processes[0]["pid"]
    events.append(dict(ph="M", pid=first, name="zero_timeline",
                       args=metadata(args, source, steps, processes, parameters)))
    events += [dict(ph="M", pid=first, name="zero_parameter", args=row) for row in parameters]
    for process in processes:
        events.append(dict(ph="M", pid=process["pid"], name="process_name",
                           args=dict(name=f"{source}: rank {process['rank']}")))
    for step in steps:
        for s in step.spans:
            pid, tid = threads[s["rank"], s["channel"]]
            events.append(dict(ph="X", pid=pid, tid=tid, name=s["name"], cat=s["channel"].split(".")[0],
                               ts=s["start"] * 1e6, dur=(s["end"] - s["start"]) * 1e6,
                               start=s["start"], end=s["end"], args=s["args"]))
    events += [dict(ph="C", pid=first, name="memory", ts=time * 1e6, start=time, args=kinds)
               for time, kinds in steps[0].points]
    if args.offload:
        state = args.layers * 6 * (LAYER_BYTES // args.ranks)
        events += [dict(ph="C", pid=first, name="host_memory", ts=time * 1e6, start=time, args=kinds)
                   for time, kinds in steps[0].host_points]
        events.append(dict(ph="C", pid=first, name="disk_memory", ts=0, start=0, args={"state": state}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--spans-per-layer", type=int, default=1, help="compute spans of a layer")
    parser.add_argument("--model", default="llama3-8b, sequence 8192")
    parser.add_argument("--measured", action="store_true", help="add a measured timeline of all ranks")
    parser.add_argument("--offload", action="store_true", help="states on disk, updated by the host")
    parser.add_argument("-o", required=True, metavar="FILE")
    args = parser.parse_args()
    events = []
    add_timeline(events, args, "predicted", [0], 0.0)
    if args.measured:
        add_timeline(events, args, "measured", range(args.ranks), 0.2)
    with open(args.o, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file, ensure_ascii=False)


if __name__ == "__main__":
    main()
