# failures.py - Cases that provoke what users of other systems run into.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of docs/failures.md, the kinds that no other suite provokes."""
import array
import json
import math
import os
import re
import subprocess

import formulas
import tensors
from bad_input import graph, node, one_line_error
from harness import Once, Run, last_line, model, require
from training import close, elements

STAGES = (0, 1, 2, 3)
WATCHED = {"ZRT_CHECK": "1", "ZRT_POISON": "1"}


class Trials:
    """Runs of one test model or of a small model made here, each in files of its own."""

    def __init__(self, tools):
        self.tools, self.once, self.count = tools, Once(), 0
        self.folder = tools.scratch / "failures"
        self.folder.mkdir()

    def call(self, name, *flags, batch=2, steps=4, optimizer="adamw", weights=None, data=None, **env):
        """The finished process and what it left, of test/models/NAME."""
        key = (name, *map(str, flags), batch, steps, optimizer, str(weights), str(data), *env.items())
        return self.once.get(key, lambda: self._call(name, *flags, batch=batch, steps=steps, optimizer=optimizer,
                                                     weights=weights, data=data, **env))

    def _call(self, name, *flags, batch, steps, optimizer, weights, data, **env):
        m = model(name)
        return self.run(m.folder / "ts_train.onnx", "--loss", m.reference["loss"], "--optimizer", optimizer,
                        *([] if "--lr" in flags else ["--lr", 0.001]), *m.dims("ts_train", batch), "--batch", batch,
                        "--weights", weights or m.folder / "init.safetensors",
                        "--data", data or m.folder / "data.safetensors", "--steps", steps, *flags, **env)

    def run(self, *flags, **env):
        self.count += 1
        metrics, saved = (self.folder / f"{self.count}.{end}" for end in ("jsonl", "safetensors"))
        done = self.tools.call("zero-run", *flags, "--metrics", metrics, "--save-weights", saved, **WATCHED, **env)
        return done, None if done.returncode else Run(metrics, saved)

    def good(self, *args, **options):
        done, run = self.call(*args, **options)
        require(run is not None, f"exits {done.returncode}: {last_line(done)}")
        return run


def floats_file(path, **made):
    """Tensors of floats by name: (shape, values)."""
    tensors.save(path, {k: ("F32", shape, array.array("f", values).tobytes()) for k, (shape, values) in made.items()})
    return path


def waves(shape, phase):
    count = math.prod(shape)
    return shape, [math.sin(phase + 0.7 * i) for i in range(count)]


def small(t, name, nodes, parameters, x, y):
    """A model of f32 parameters by name and shape; x and y are the widths of its input and output."""
    from onnx import TensorProto, helper

    made = graph(nodes, inputs=[helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", x))],
                 initializers=[helper.make_tensor(k, TensorProto.FLOAT, *waves(shape, i))
                               for i, (k, shape) in enumerate(parameters.items())])
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", y)))
    path = t.folder / f"{name}.onnx"
    path.write_bytes(made.SerializeToString())
    data = floats_file(t.folder / f"{name}.data", x=waves([48, x], 1), labels=waves([48, y], 2))
    train = [word for k in parameters for word in ("--train", k)]
    return [path, *train, "--loss", "mse", "--optimizer", "adamw", "--lr", 0.01, "--data", data]


def saved_weights_are_whole(t):
    """Eight ranks, more than some tensors have rows: the file has every tensor in its full shape."""
    run, init = t.good("mlp", "--ranks", 8, "--zero-stage", 3, batch=1), tensors.load(model("mlp").folder / "init.safetensors")
    require(set(run.weights) == set(init), f"saved {sorted(run.weights)}")
    for name, (dtype, shape, data) in init.items():
        require(run.weights[name][:2] == (dtype, shape), f"{name} is saved as {run.weights[name][:2]}")
        require(len(run.weights[name][2]) == len(data) and run.weights[name][2] != data, f"{name} is empty or unchanged")


def frozen_parameters_are_saved(t):
    init = tensors.load(model("mlp").folder / "init.safetensors")
    for stage in STAGES:
        run = t.good("mlp", "--ranks", 2, "--zero-stage", stage, "--freeze", "fc1.*")
        require(set(run.weights) == set(init), f"stage {stage} saves {sorted(run.weights)}")
        for name in init:
            same = run.weights[name] == init[name]
            require(same == name.startswith("fc1."), f"stage {stage}: {name} is {'un' if same else ''}changed")


def frozen_then_trained(t):
    """What was frozen in one run is trained in the next; stages still agree to the bit."""
    first = t.good("mlp", "--ranks", 2, "--zero-stage", 3, "--freeze", "fc1.*")
    path = t.folder / "frozen-then.safetensors"
    tensors.save(path, first.weights)
    runs = [t.good("mlp", "--ranks", 2, "--zero-stage", stage, weights=path) for stage in STAGES]
    require(runs[0].weights["fc1.weight"] != first.weights["fc1.weight"], "fc1.weight is still frozen")
    require(all(r.bytes == runs[0].bytes for r in runs), "stages differ after a parameter was unfrozen")


def tied_weights_stay_one(t):
    """Saved once, loaded under either name."""
    m = model("gpt2")
    run = t.good("gpt2", "--ranks", 2, "--zero-stage", 3)
    for names in m.reference["ties"]:
        found = [n for n in names if n in run.weights]
        require(len(found) == 1, f"saved under {found or 'no name'} of {names}")
        init = tensors.load(m.folder / "init.safetensors")
        source = next(n for n in names if n in init)
        for other in names:
            path = t.folder / f"tied-{other}.safetensors"
            tensors.save(path, {other if k == source else k: v for k, v in init.items()})
            again = t.good("gpt2", "--ranks", 2, "--zero-stage", 3, weights=path)
            require(again.bytes == run.bytes, f"loaded as {other} it trains to other weights")


LINEAR = [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "b"], ["y"])]


def unused_parameters_hang_nobody(t):
    """A parameter without a use: every rank still enters the same collectives."""
    flags = small(t, "unused", LINEAR + [node("Mul", ["u", "u"], ["dead"])], {"w": [4, 3], "b": [3], "u": [5]}, 4, 3)
    found = set()
    for stage in STAGES:
        done, run = t.run(*flags, "--dim", "batch=2", "--batch", 2, "--ranks", 4, "--zero-stage", stage, "--steps", 4)
        require(run is not None, f"stage {stage} exits {done.returncode}: {last_line(done)}")
        require("w" in run.weights, f"stage {stage} saves {sorted(run.weights)}")
        found.add(str(run.column("loss")))
    require(len(found) == 1, "losses of the stages differ")


def branches_are_refused(t):
    """A branch that only some ranks would take cannot get into a plan."""
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    side = lambda kind: helper.make_graph([node(kind, ["x"], [f"of_{kind}"])], kind, [],
                                          [value(f"of_{kind}", TensorProto.FLOAT, (2, 3))])
    choice = node("If", ["c"], ["y"], then_branch=side("Relu"), else_branch=side("Tanh"))
    made = graph([choice], inputs=[value("x", TensorProto.FLOAT, (2, 3)), value("c", TensorProto.BOOL, ())])
    path = t.folder / "branch.onnx"
    path.write_bytes(made.SerializeToString())
    one_line_error(t.tools.call("zero-import", path, "-o", t.folder / "branch.mlir"), "branch.onnx", "If")


def ranks_never_run_out_alone(t):
    """80 samples, 9 a step: the data cycles for all ranks at the same step."""
    run = t.good("mlp", "--ranks", 3, "--zero-stage", 3, batch=3, steps=20)
    one = t.good("mlp", "--ranks", 1, "--zero-stage", 0, batch=9, steps=20)
    close("loss", run.column("loss"), one.column("loss"))


NARROW = [node("MatMul", ["x", "w1"], ["h1"]), node("Add", ["h1", "b1"], ["h2"]), node("Tanh", ["h2"], ["h3"]),
          node("MatMul", ["h3", "w2"], ["h4"]), node("Mul", ["h4", "s"], ["y"])]


def odd_sizes(t, ranks):
    """Dimensions 1, 3 and 5, and a vector of one element: shards with padding, and empty ones."""
    flags = small(t, f"odd-{ranks}", NARROW, {"w1": [5, 3], "b1": [3], "w2": [3, 1], "s": [1]}, 5, 1)
    run_at = lambda n, stage, batch: t.run(*flags, "--dim", f"batch={batch}", "--batch", batch, "--ranks", n,
                                           "--zero-stage", stage, "--steps", 6)
    done, whole = run_at(1, 0, ranks)
    require(whole is not None, f"one rank exits {done.returncode}: {last_line(done)}")
    first = None
    for stage in STAGES:
        done, run = run_at(ranks, stage, 1)
        require(run is not None, f"stage {stage} exits {done.returncode}: {last_line(done)}")
        close("loss", run.column("loss"), whole.column("loss"))
        close("grad_norm", run.column("grad_norm"), whole.column("grad_norm"))
        first = first or run
        require(len(run.weights) == 4 and list(tensors.floats(run.weights["s"])) != waves([1], 3)[1], "nothing was trained")
        require(run.bytes == first.bytes, f"weights of stages 0 and {stage} differ")


def memory_falls_with_the_stage(t):
    """Each stage needs less than the one before, and what it planned."""
    peaks = []
    for stage in STAGES:
        run = t.good("gpt2", "--ranks", 4, "--zero-stage", stage, "--zero-schedule", "none")
        require(all(row["peak_bytes"] == row["planned_peak_bytes"] for row in run.rows), f"stage {stage}: not as planned")
        peaks.append(run.rows[-1]["peak_bytes"]["device"])
    require(peaks == sorted(set(peaks), reverse=True), f"peaks by stage: {peaks}")


def resharding_leaks_nothing(t):
    """Parameters cut over both axes and gathered over one: the tenth step needs what the first needed."""
    run = t.good("gpt2", "--zero-grid", "2x2", "--zero-shard", "all", "--zero-stage", 3, steps=10)
    require(len({str(row["peak_bytes"]) for row in run.rows}) == 1, f"peaks {run.column('peak_bytes')}")


def the_run_says_its_stage(t):
    for stage in STAGES:
        done, run = t.call("mlp", "--ranks", 2, "--zero-stage", stage)
        require(run is not None and f"2 ranks, ZeRO stage {stage}" in done.stdout, f"stage {stage}: {done.stdout.strip()}")


def plans_are_the_same_again(t):
    """Nothing of the process reaches a plan: ranks that compile it by themselves agree."""
    m, found = model("gpt2"), []
    step = t.folder / "again.mlir"
    t.tools.ok("zero-import", m.folder / "ts_train.onnx", "-o", step, "--loss", m.reference["loss"], "--optimizer",
               "adamw", *m.dims("ts_train", 2))
    for number in range(2):
        plan = t.folder / f"again-{number}.zplan"
        done = t.tools.call("zero-compile", step, "--zero-stage", 3, "--ranks", 4, "-o", plan, LANG="C" if number else "")
        require(done.returncode == 0, f"zero-compile exits {done.returncode}: {last_line(done)}")
        found.append(plan.read_bytes())
    require(found[0] == found[1], "two compilations give two plans")


def mixed_types_in_one_model(t):
    """A half-precision parameter beside f32 ones: trained, or refused by name; never an assertion."""
    from onnx import TensorProto, helper, numpy_helper

    import numpy

    half = numpy_helper.from_array(numpy.full((4, 3), 0.25, numpy.float16), "w")
    made = graph([node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT), node("MatMul", ["x", "wide"], ["h"]),
                  node("Add", ["h", "b"], ["y"])],
                 inputs=[helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", 4))],
                 initializers=[half, helper.make_tensor("b", TensorProto.FLOAT, [3], [0.0] * 3)])
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", 3)))
    path = t.folder / "mixed.onnx"
    path.write_bytes(made.SerializeToString())
    data = floats_file(t.folder / "mixed.data", x=waves([16, 4], 1), labels=waves([16, 3], 2))
    losses = set()
    for stage in STAGES:
        done, run = t.run(path, "--loss", "mse", "--optimizer", "sgd", "--lr", 0.1, "--data", data, "--dim", "batch=2",
                          "--train", "w", "--train", "b", "--batch", 2, "--ranks", 2, "--zero-stage", stage)
        if run is None:
            one_line_error(done, "w")
            losses.add("refused")
        else:
            losses.add(str(run.column("loss")))
    require(len(losses) == 1, "stages differ")



def groups_that_match_nothing(t):
    """A group without parameters is named, and changes nothing."""
    plain = t.good("mlp")
    for flags in (("--group", "fc7.*:lr=0.1"), ("--no-decay", "fc7.*")):
        done, run = t.call("mlp", *flags)
        require(run is not None and run.bytes == plain.bytes, f"{flags} exits {done.returncode} or changes weights")
        require("fc7.*" in done.stderr, f"{flags}: nothing said: {done.stderr.strip()[:200]}")


def clipping_acts_at_every_stage(t):
    """The norm before clipping is logged; SGD moves by no more than the clipped norm, alike at every stage."""
    init, found = tensors.load(model("mlp").folder / "init.safetensors"), set()
    for stage in STAGES:
        run = t.good("mlp", "--ranks", 2, "--zero-stage", stage, "--clip", 0.01, "--lr", 1, optimizer="sgd", steps=1)
        norm = run.rows[0]["grad_norm"]
        moved = math.sqrt(sum(sum((a - b) ** 2 for a, b in zip(tensors.floats(run.weights[n]), tensors.floats(init[n])))
                              for n in init))
        require(norm > 0.5, f"stage {stage} logs a norm of {norm}: not the one before clipping")
        require(abs(moved - 0.01) < 1e-5, f"stage {stage} moves by {moved}, clipped to 0.01")
        found.add((norm, run.bytes))
    require(len(found) == 1, "stages differ")


def equal_samples(t):
    """A linear model whose samples are all equal: each micro-batch has the gradient of the step."""
    flags = small(t, "equal", LINEAR, {"w": [4, 3], "b": [3]}, 4, 3)
    row, label = waves([1, 4], 1)[1], waves([1, 3], 2)[1]
    floats_file(flags[-1], x=([128, 4], row * 128), labels=([128, 3], label * 128))
    at = flags.index("--optimizer")
    return flags[:at] + ["--optimizer", "sgd", "--lr", 0.5, *flags[-2:]]


def bf16_accumulation_loses_nothing(t):
    """64 micro-batches with equal gradients add up to what one has; in bf16 sums most would be lost."""
    flags = equal_samples(t) + ["--precision", "bf16", "--dim", "batch=1", "--batch", 1, "--ranks", 2, "--steps", 1]
    for stage in STAGES:
        losses = {}
        for micro in (1, 64):
            done, run = t.run(*flags, "--zero-stage", stage, *(["--accumulate", micro] if micro > 1 else []))
            require(run is not None, f"stage {stage} exits {done.returncode}: {last_line(done)}")
            losses[micro] = run.bytes
        require(losses[1] == losses[64], f"stage {stage}: weights after 1 and 64 equal micro-batches differ")


def a_collapsing_scale_is_explained(t):
    """Gradients that never fit: the run ends at the minimum and says so; nothing was updated before."""
    m = model("mlp")
    x = tensors.floats(m.data["x"])
    path = t.folder / "collapse.data"
    tensors.save(path, {**m.data, "x": ("F32", m.data["x"][1], array.array("f", [v * 4000 for v in x]).tobytes())})
    flags = ["--precision", "fp16", "--initial-scale-power", 12, "--loss-scale-min", 1024, "--loss-scale-hysteresis", 1]
    for stage in (0, 3):
        done, _ = t.call("mlp", "--ranks", 2, "--zero-stage", stage, *flags, data=path, steps=8)
        one_line_error(done, "smallest loss scale", "step 3", "1024")


def from_config(t, name, **settings):
    path = t.folder / f"{name}.json"
    path.write_text(json.dumps({"train_micro_batch_size_per_gpu": 2, **settings}))
    m = model("mlp")
    return t.tools.call("zero-run", m.folder / "ts_train.onnx", "--config", path, "--loss", m.reference["loss"],
                        "--optimizer", "adamw", "--lr", 0.001, "--dim", "batch=2", "--data",
                        m.folder / "data.safetensors", "--steps", 1)


def quantised_collectives_are_refused(t):
    for key in ("zero_quantized_weights", "zero_quantized_gradients"):
        one_line_error(from_config(t, key, zero_optimization={"stage": 3, key: True}), key)


def nvme_without_a_path_is_named(t):
    done = from_config(t, "nvme", zero_optimization={"stage": 3, "offload_optimizer": {"device": "nvme"}})
    one_line_error(done, "nvme_path", "--offload-path")


def unknown_precisions_are_refused(t):
    done, _ = t.call("mlp", "--precision", "fp8")
    one_line_error(done, "--precision", "fp8", "bf16")


def tied_weights_are_one_update(t):
    """Of two groups that match the two names of a tied weight, one decides, at every stage the same."""
    names = model("gpt2").reference["ties"][0]
    found = set()
    for stage in STAGES:
        groups = [w for i, n in enumerate(names) for w in ("--group", f"{n}:lr=0.00{i + 1}")]
        done, run = t.call("gpt2", "--ranks", 2, "--zero-stage", stage, *groups)
        if run is None:  # the second group has nothing left
            one_line_error(done, re.escape(names[-1]) + "|" + re.escape(names[0]))
        found.add(run and (str(run.column("loss")), run.bytes))
    require(len(found) == 1, "stages differ")


def collectives_of(t, *flags):
    """Names of the collectives of a step of one rank."""
    trace = t.folder / f"trace-{t.count}.json"
    t.good("mlp", "--ranks", 2, "--zero-stage", 3, "--zero-schedule", "none", "--trace", trace, *flags)
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    first = min(e["pid"] for e in events)
    return [e["name"] for e in events if e["pid"] == first and re.search("gather|reduce|scatter", e["name"] + e.get("cat", ""))]


def the_norm_is_one_reduction(t):
    """Clipping adds no collective for a parameter: the step has those that it has without."""
    plain, clipped = collectives_of(t), collectives_of(t, "--clip", 0.1)
    require(len(plain) > 6, f"a step of six parameters has only the collectives {plain}")
    require(len(clipped) - len(plain) <= 1, f"{len(plain)} collectives without clipping, {len(clipped)} with")


def clipping_gathers_nothing(t):
    for stage in (2, 3):
        plain, clipped = (t.good("gpt2", "--ranks", 4, "--zero-stage", stage, "--zero-schedule", "none", *flags)
                          for flags in ((), ("--clip", 0.1)))
        shard = 4 * sum(math.prod(v[1]) for v in plain.weights.values()) / 4
        for a, b in zip(plain.rows, clipped.rows):
            more = {kind: b["comm_bytes"][kind] - a["comm_bytes"][kind] for kind in a["comm_bytes"]}
            # The norm itself: one number of 8 bytes.
            require(0 <= more.pop("all_reduce") <= 16 and not any(more.values()),
                    f"stage {stage} sends {b['comm_bytes']}, unclipped {a['comm_bytes']}")
            require(a["gathered_bytes"] == b["gathered_bytes"], f"stage {stage} gathers {b['gathered_bytes']} at once")
            more = b["peak_bytes"]["device"] - a["peak_bytes"]["device"]
            require(more <= 1.1 * shard, f"stage {stage}: clipping takes {more} bytes more, a shard has {shard:.0f}")


def bf16_schedules_change_no_bit(t):
    for name, stage in (("mlp", 2), ("gpt2", 3)):
        runs = {s: t.good(name, "--ranks", 2, "--zero-stage", stage, "--precision", "bf16", "--zero-schedule", s)
                for s in ("none", "prefetch", "keep", "bucket", "joint")}
        for schedule, run in runs.items():
            require(run.bytes == runs["none"].bytes and run.column("loss") == runs["none"].column("loss"),
                    f"{name}: '{schedule}' changes bits")



def most_memory(t, *flags):
    """Largest resident size of a run of one step, in MiB; its state has 48."""
    from onnx import TensorProto, helper

    path, data = t.folder / "large.onnx", t.folder / "large.data"
    if not path.exists():
        value = helper.make_tensor_value_info
        w = helper.make_tensor("w", TensorProto.FLOAT, [1024, 4096], bytes(4 * 1024 * 4096), raw=True)
        made = graph([node("MatMul", ["x", "w"], ["y"])], initializers=[w],
                     inputs=[value("x", TensorProto.FLOAT, ("batch", 1024))])
        del made.graph.output[:]
        made.graph.output.append(value("y", TensorProto.FLOAT, ("batch", 4096)))
        path.write_bytes(made.SerializeToString())
        tensors.save(data, {"x": ("F32", [4, 1024], bytes(4 * 4 * 1024)), "labels": ("F32", [4, 4096], bytes(4 * 4 * 4096))})
    words = [t.tools.folder / "zero-run", path, "--train", "w", "--loss", "mse", "--optimizer", "adamw", "--dim", "batch=1",
             "--batch", 1, "--ranks", 4, "--zero-stage", 3, "--data", data, *flags]
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    require(status == 0, f"zero-run {' '.join(map(str, flags))} ends with status {status}")
    return used.ru_maxrss / 1024


def saving_and_loading_take_a_bucket(t):
    """Beside training: one bucket of 4 MiB a thread of two, and what resident sizes differ by; not the state of 48 MiB."""
    folder = t.folder / "large-checkpoints"
    plain = most_memory(t, "--steps", 1)
    saving = most_memory(t, "--steps", 1, "--checkpoint", folder, "--checkpoint-sync")
    require(saving < plain + 12, f"saving takes {saving - plain:.1f} MiB more")
    loading = most_memory(t, "--steps", 2, "--resume", folder)
    require(loading < plain + 12, f"loading takes {loading - plain:.1f} MiB more")


def consolidated_weights_are_those(t):
    """Groups, two ranks and small files: the parts together are what the run ended with."""
    out = t.folder / "consolidated"
    run = t.good("mlp", "--ranks", 4, "--zero-stage", 3, "--no-decay", "auto", "--save-hf", out, "--shard-size", 4000)
    parts = [tensors.load(path) for path in sorted(out.glob("*.safetensors"))]
    require(len(parts) > 1, f"{len(parts)} file")
    require({k: v for part in parts for k, v in part.items()} == run.weights, "the parts are other tensors")


def recomputation_gathers_no_more(t):
    """Each parameter at most twice, as without: once for the forward pass, once for the backward pass."""
    run = t.good("gpt2", "--ranks", 2, "--zero-stage", 3, "--remat", "full")
    twice = 2 * formulas.SCALAR_BYTES * elements(model("gpt2")) / 2
    for row in run.rows:
        require(row["comm_bytes"]["all_gather"] < twice + 1, f"gathers {row['comm_bytes']['all_gather']} bytes of {twice}")


CASES = (saved_weights_are_whole, frozen_parameters_are_saved, frozen_then_trained, tied_weights_stay_one,
         unused_parameters_hang_nobody, branches_are_refused, ranks_never_run_out_alone, memory_falls_with_the_stage,
         resharding_leaks_nothing, the_run_says_its_stage, plans_are_the_same_again, mixed_types_in_one_model,
         groups_that_match_nothing, clipping_acts_at_every_stage, bf16_accumulation_loses_nothing,
         a_collapsing_scale_is_explained, quantised_collectives_are_refused, nvme_without_a_path_is_named,
         unknown_precisions_are_refused, tied_weights_are_one_update, the_norm_is_one_reduction,
         clipping_gathers_nothing, bf16_schedules_change_no_bit, saving_and_loading_take_a_bucket,
         consolidated_weights_are_those, recomputation_gathers_no_more)


def add_cases(cases, tools):
    trials = Trials(tools)
    for case in CASES:
        cases.add(f"failure: {case.__name__.replace('_', ' ')}", case, trials)
    for ranks in range(1, 9):
        cases.add(f"failure: odd sizes on {ranks} ranks", odd_sizes, trials, ranks)
