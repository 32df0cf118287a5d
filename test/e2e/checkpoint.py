# checkpoint.py - Cases that stop a run and go on.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A run that stopped, was killed or moved to other ranks trains as one that did not."""
import array
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import tensors
from harness import Failure, last_line, model, require
from training import close, close_weights

KILLS, SEED = 200, 20261129


class Legs:
    """One training run in several processes."""

    def __init__(self, tools, name, onnx, flags, batch, data, weights=None):
        self.tools, self.onnx, self.batch = tools, onnx, batch
        self.flags = [*flags, "--data", data, *(["--weights", weights] if weights else [])]
        self.folder = pathlib.Path(tools.scratch) / f"checkpoint-{name}"
        self.folder.mkdir()
        self.number = 0

    def run(self, steps, ranks, stage, *flags):
        """Losses and gradient norms by step, and the saved weights."""
        self.number += 1
        stem = self.folder / str(self.number)
        done = self.tools.call("zero-run", self.onnx, *self.flags, "--ranks", ranks, "--zero-stage", stage,
                               "--batch", self.batch // ranks, *(f.format(batch=self.batch // ranks) for f in flags),
                               "--steps", steps, "--metrics", f"{stem}.jsonl", "--save-weights", f"{stem}.safetensors")
        if done.returncode:
            raise Failure(f"zero-run exits {done.returncode}: {last_line(done)}")
        rows = rows_of(f"{stem}.jsonl")
        return rows, pathlib.Path(f"{stem}.safetensors").read_bytes()


def rows_of(path):
    """step -> (loss, gradient norm); the last line of a killed run may be cut."""
    rows = {}
    for line in pathlib.Path(path).read_text().splitlines(keepends=True) if os.path.exists(path) else []:
        if line.endswith("\n"):
            row = json.loads(line)
            rows[row["step"]] = (row["loss"], row["grad_norm"])
    return rows


def of_model(tools, label, name, optimizer):
    m = model(name)
    flags = [*m.loss_flags(optimizer)]
    if m.reference["loss"] == "causal-lm":
        flags += ["--dim", f"seq={m.data[m.reference['input']][1][1]}"]
    return Legs(tools, label, m.folder / "ts_train.onnx", flags, m.reference["batch"], m.folder / "data.safetensors",
                m.folder / "init.safetensors")


def legs_agree(legs, plan, tolerance=None, flags=("--dim", "batch={batch}"), norms=True):
    """`plan` is (steps, ranks, stage) of each leg. Bit for bit without a tolerance; stages sum norms in orders of their own."""
    steps, ranks, stage = plan[-1]
    whole, weights = legs.run(steps, plan[0][1], plan[0][2], *flags)
    folder, rows = legs.folder / "run", {}
    for i, (steps, ranks, stage) in enumerate(plan):
        more = ["--checkpoint", folder, "--checkpoint-every", 2] + (["--resume", folder] if i else [])
        got, last = legs.run(steps, ranks, stage, *flags, *map(str, more))
        require(list(got) == list(range(len(rows) + 1, steps + 1)), f"leg {i} runs the steps {list(got)}")
        rows.update(got)
    if not norms:
        rows, whole = ({step: row[0] for step, row in of.items()} for of in (rows, whole))
    if tolerance is None:
        require(rows == whole, "losses are not those of the run that did not stop")
        require(last == weights, "final weights are not those of the run that did not stop")
        return
    close("loss", [r[0] for r in rows.values()], [r[0] for r in whole.values()], tolerance)
    close("grad_norm", [r[1] for r in rows.values()], [r[1] for r in whole.values()], tolerance)
    stem = legs.folder / "compare"
    got, want = (stem.with_suffix(s) for s in (".got", ".want"))
    got.write_bytes(last), want.write_bytes(weights)
    close_weights(tensors.load(got), tensors.load(want), tensors.load(want))


def same_place(tools, name, optimizer, ranks, stage):
    legs = of_model(tools, f"same-{name}-{optimizer}-{ranks}-{stage}", name, optimizer)
    legs_agree(legs, [(3, ranks, stage), (7, ranks, stage), (10, ranks, stage)])


def other_stage(tools, name):
    """Stages compute the same bits: so does a run that changes it."""
    legs = of_model(tools, f"stages-{name}", name, "adamw")
    legs_agree(legs, [(2, 4, 0), (4, 4, 3), (6, 4, 1), (8, 4, 2), (10, 4, 0)], norms=False)


def other_ranks(tools, name, stage):
    legs = of_model(tools, f"ranks-{name}-{stage}", name, "adamw")
    legs_agree(legs, [(3, 4, stage), (5, 2, stage), (6, 1, 0), (8, 8, stage), (10, 4, stage)], tolerance=1e-4)


def odd_model(folder):
    """Layers of 1, 3, 5 and 257 outputs; their data."""
    import onnx
    from onnx import TensorProto, helper
    rng, sizes = random.Random(SEED), (5, 1, 3, 5, 257)
    nodes, parameters, last = [], [], "x"
    for i, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        for name, shape in ((f"w{i}", (outputs, inputs)), (f"b{i}", (outputs,))):
            values = [rng.uniform(-1, 1) for _ in range(shape[0] * (shape[1] if len(shape) > 1 else 1))]
            parameters.append(helper.make_tensor(name, TensorProto.FLOAT, shape, values))
        nodes.append(helper.make_node("Gemm", [last, f"w{i}", f"b{i}"], [f"h{i}"], transB=1))
        last = f"h{i}"
        if i < 3:
            nodes.append(helper.make_node("Tanh", [last], [f"t{i}"]))
            last = f"t{i}"
    graph = helper.make_graph(nodes, "odd", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 5])],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["batch", 257])], parameters)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folder / "odd.onnx")
    count = 840 * 2
    x = array.array("f", (rng.uniform(-1, 1) for _ in range(count * 5)))
    labels = array.array("q", (rng.randrange(257) for _ in range(count)))
    tensors.save(folder / "odd.safetensors", {"x": ("F32", (count, 5), x.tobytes()),
                                              "labels": ("I64", (count,), labels.tobytes())})
    return folder / "odd.onnx", folder / "odd.safetensors"


def odd_sizes(tools):
    """1 to 8 ranks and all stages one after the other: short and empty shards of every size."""
    folder = pathlib.Path(tools.scratch) / "odd"
    folder.mkdir()
    onnx, data = odd_model(folder)
    legs = Legs(tools, "odd", onnx, ["--loss", "cross-entropy", "--optimizer", "adamw", "--lr", "0.01"], 840, data)
    plan = [(step, ranks, stage) for step, (ranks, stage) in
            enumerate(((8, 3), (1, 0), (2, 1), (3, 2), (4, 3), (5, 1), (6, 3), (7, 2), (8, 3)), 1)]
    legs_agree(legs, plan, tolerance=1e-4)


def data_goes_on(tools):
    """A batch of another size begins where the last one ended."""
    legs = of_model(tools, "data", "mlp", "adamw")
    folder = str(legs.folder / "run")
    legs.run(3, 2, 3, "--dim", "batch={batch}", "--checkpoint", folder)  # 24 samples
    legs.batch = 4
    legs.run(5, 1, 0, "--dim", "batch={batch}", "--checkpoint", folder, "--resume", folder)
    index = json.loads((legs.folder / "run" / "step-00000005" / "index.json").read_text())
    require((index["step"], index["samples"]) == (5, 32), f"{index['samples']} samples after step {index['step']}")


def zplan(tools, folder, ranks, stage):
    """The mlp as a plan with its weights, for runs that start at once."""
    m = model("mlp")
    flags = m.loss_flags("adamw")
    at = flags.index("--lr")
    batch = m.reference["batch"] // ranks
    tools.ok("zero-import", m.folder / "ts_train.onnx", "-o", folder / "step.mlir", "--weights",
             folder / "weights.safetensors", *flags[:at], *flags[at + 2:], *m.dims("ts_train", batch))
    tools.ok("zero-compile", folder / "step.mlir", "-o", folder / "step.zplan", "--zero-stage", stage, "--ranks", ranks)
    return [folder / "step.zplan", *flags[at:at + 2], "--data", m.folder / "data.safetensors", "--log-every", 0]


def start(tools, *args):
    return subprocess.Popen([str(tools.folder / "zero-run"), *map(str, args)], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def newest(folder):
    steps = [int(p.name[5:].split(".")[0]) for p in folder.glob("step-*")]
    return max(steps, default=0)


def killed(tools):
    """kill -9 at random moments; each next run goes on from what is there."""
    scratch = pathlib.Path(tools.scratch) / "killed"
    scratch.mkdir()
    args, rng = zplan(tools, scratch, 2, 3), random.Random(SEED)
    folder, rows = scratch / "run", {}
    saving = old = new = ends = 0
    for kill in range(KILLS):
        before, metrics = newest(folder), scratch / "m.jsonl"
        metrics.unlink(missing_ok=True)
        run = start(tools, *args, "--steps", 10 ** 6, "--checkpoint", folder, "--checkpoint-every", 1, "--keep", 2,
                    "--resume", folder, "--metrics", metrics)
        if kill % 4:  # most kills come once it saves
            deadline = time.monotonic() + 60
            while newest(folder) == before and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.001)
        time.sleep(rng.random() * 0.05)
        run.send_signal(signal.SIGKILL)
        _, error = run.communicate()
        if run.returncode != -signal.SIGKILL:
            ends += 1
            raise Failure(f"kill {kill}: the run has ended: {error.strip().splitlines()[-1:]}")
        saving += any(folder.glob(".saving-*"))
        after = newest(folder)
        require(after >= before, f"kill {kill}: step {after} is left after step {before}")
        old, new = old + (after == before), new + (after > before)
        got = rows_of(metrics)
        require(not got or min(got) == before + 1, f"kill {kill}: went on at step {min(got, default=0)}, not {before + 1}")
        for step, row in got.items():
            require(rows.setdefault(step, row) == row, f"kill {kill}: step {step} is not what it was before")
    require(old and new and saving, f"{old} old, {new} new, {saving} in a save: too one-sided")
    last = newest(folder)
    done = tools.call("zero-run", *args, "--steps", last + 1, "--resume", folder, "--save-weights", scratch / "got")
    require(done.returncode == 0, f"the last resume: {last_line(done)}")
    whole = scratch / "whole.jsonl"
    tools.ok("zero-run", *args, "--steps", last + 1, "--metrics", whole, "--save-weights", scratch / "want")
    want = rows_of(whole)
    require(all(want[step] == row for step, row in rows.items() if step in want), "a step is not that of a run without kills")
    require((scratch / "got").read_bytes() == (scratch / "want").read_bytes(), "final weights differ")
    print(f"kill -9: {KILLS} kills, {saving} of them in a save; {old} old and {new} new checkpoints went on, "
          f"{last} steps equal to a run without kills", flush=True)


def terminated(tools):
    scratch = pathlib.Path(tools.scratch) / "terminated"
    scratch.mkdir()
    args, folder = zplan(tools, scratch, 2, 2), scratch / "run"
    metrics = scratch / "m.jsonl"
    run = start(tools, *args, "--steps", 10 ** 9, "--checkpoint", folder, "--metrics", metrics)
    deadline = time.monotonic() + 60
    while not rows_of(metrics) and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    asked = time.monotonic()
    run.send_signal(signal.SIGTERM)
    _, error = run.communicate(timeout=60)
    seconds = time.monotonic() - asked
    require(run.returncode == 143, f"exits {run.returncode}: {error[-200:]}")
    step = newest(folder)
    require(step > 0 and f"SIGTERM: stops after step {step}, which is saved" in error, f"says {error[-200:]!r}")
    require(max(rows_of(metrics)) == step, "a step is done and not saved")
    tools.ok("zero-run", *args, "--steps", step + 2, "--resume", folder, "--save-weights", scratch / "got")
    tools.ok("zero-run", *args, "--steps", step + 2, "--save-weights", scratch / "want")
    require((scratch / "got").read_bytes() == (scratch / "want").read_bytes(), "final weights differ")
    print(f"SIGTERM: saved and ended after {seconds:.2f} s, no step lost", flush=True)


def hugging_face(tools):
    """Files of at most 2500 bytes, and back."""
    legs = of_model(tools, "hf", "mlp", "adamw")
    whole, out = legs.folder / "whole", legs.folder / "parts"
    dim = ("--dim", "batch={batch}")
    _, weights = legs.run(2, 4, 3, *dim, "--save-hf", str(whole))
    require((whole / "model.safetensors").read_bytes() == weights, "one file is not as --save-weights")
    legs.run(2, 4, 3, *dim, "--save-hf", str(out), "--shard-size", "2500")
    text = (out / "model.safetensors.index.json").read_text()
    index = json.loads(text)
    require(text == json.dumps(index, indent=2, sort_keys=True) + "\n", "the index is not as Python's json writes it")
    files = sorted(p.name for p in out.glob("*.safetensors"))
    require(len(files) > 1 and files == [f"model-{i:05}-of-{len(files):05}.safetensors" for i in range(1, len(files) + 1)],
            f"the files are {files}")
    joined, sizes = {}, 0
    for file in files:
        part = tensors.load(out / file)
        require(all(index["weight_map"][name] == file for name in part), f"the map differs from {file}")
        joined.update(part)
        sizes += sum(len(t[2]) for t in part.values())
    require(index["metadata"]["total_size"] == sizes, "total_size is not the bytes of the tensors")
    (legs.folder / "compare").write_bytes(weights)
    require(joined == tensors.load(legs.folder / "compare"), "the parts are not what --save-weights has")
    # A run of no step gives back what it took.
    for source in (out, out / "model.safetensors.index.json", whole):
        legs.flags[legs.flags.index("--weights") + 1] = source
        _, again = legs.run(0, 2, 3, *dim)
        require(again == weights, f"weights from {source.name} are not those that were saved")
    done = legs.tools.call("zero-run", legs.onnx, *legs.flags, "--dim", "batch=8", "--save-hf", out)
    require(done.returncode == 1 and "has weights already (model-00001-of-" in done.stderr, last_line(done))


def precisions(tools):
    """bf16 to f32 and back: the master copies are what goes on."""
    legs = of_model(tools, "precision", "mlp", "adamw")
    folder, dim = legs.folder / "run", ("--dim", "batch={batch}")
    save = ("--checkpoint", str(folder))
    legs.run(4, 4, 3, *dim, *save, "--precision", "bf16")
    _, bf16 = legs.run(4, 2, 1, *dim, "--resume", str(folder), "--precision", "bf16")
    _, f32 = legs.run(4, 1, 0, *dim, "--resume", str(folder))
    require(bf16 == f32, "the weights of bf16's master copies are not those that f32 goes on from")
    rows, _ = legs.run(6, 2, 2, *dim, *save, "--resume", str(folder))
    _, f32 = legs.run(6, 2, 2, *dim, "--resume", str(folder))
    _, bf16 = legs.run(6, 4, 0, *dim, "--resume", str(folder), "--precision", "bf16")
    require(bf16 == f32, "the master copies of bf16 are not the weights of f32")
    _, fp16 = legs.run(6, 4, 0, *dim, "--resume", str(folder), "--precision", "fp16")
    require(fp16 == f32, "the master copies of fp16 are not the weights of f32")


def loss_scale(tools):
    """fp16: the state of the scaler goes on bit for bit, at another stage as well."""
    legs = of_model(tools, "scaler", "mlp", "adamw")
    legs_agree(legs, [(3, 2, 3), (6, 2, 1), (10, 2, 3)],
               flags=("--dim", "batch={batch}", "--precision", "fp16", "--loss-scale", "dynamic",
                      "--initial-scale-power", "24", "--loss-scale-window", "2"))


def bad_checkpoints(tools):
    legs = of_model(tools, "bad", "mlp", "adamw")
    folder, dim = legs.folder / "run", ("--dim", "batch={batch}")
    legs.run(4, 2, 3, *dim, "--checkpoint", str(folder), "--checkpoint-every", "2")
    file = folder / "step-00000004" / "rank-00001.safetensors"
    good = file.read_bytes()

    def error(run=legs, resume=folder):
        done = tools.call("zero-run", run.onnx, *run.flags, "--batch", 4, "--dim", "batch=4", "--ranks", 2,
                          "--zero-stage", 3, "--steps", 5, "--resume", resume)
        require(done.returncode == 1 and done.stderr.count("error:") == 1, f"exits {done.returncode}: {done.stderr[-300:]}")
        return last_line(done)

    def says(text, *words):
        for word in words:
            require(word in text, f"{word!r} is not in {text!r}")

    file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    says(error(), "step-00000004/rank-00001.safetensors: is damaged: tensor")
    file.unlink()
    says(error(), "rank-00001.safetensors: cannot open", "name an older one: ", "step-00000002")
    legs.run(5, 2, 3, *dim, "--resume", str(folder / "step-00000002"))
    file.write_bytes(good)
    says(error(of_model(tools, "bad-sgd", "mlp", "sgd")), "fc1.weight.momentum", "optimizer sgd")
    says(error(resume=legs.folder), "has no checkpoint")
    other = of_model(tools, "bad-other", "gpt2", "adamw")
    other.run(1, 2, 3, *dim, "--checkpoint", str(other.folder / "run"))
    says(error(resume=other.folder / "run"), "has no tensor")
    shutil.rmtree(other.folder)


def add_cases(cases, tools):
    for name, optimizer, ranks, stage in (("mlp", "adamw", 4, 3), ("mlp", "sgd", 2, 2), ("gpt2", "adamw", 2, 3),
                                          ("cnn", "sgd", 2, 1), ("cnn", "adamw", 4, 3)):
        cases.add(f"checkpoint same {name} {optimizer} ranks {ranks} stage {stage}", same_place, tools, name, optimizer,
                  ranks, stage)
    cases.add("checkpoint stages mlp", other_stage, tools, "mlp")
    cases.add("checkpoint ranks mlp", other_ranks, tools, "mlp", 3)
    cases.add("checkpoint ranks gpt2", other_ranks, tools, "gpt2", 2)
    for name, function in (("odd sizes", odd_sizes), ("data", data_goes_on), ("killed", killed), ("SIGTERM", terminated),
                           ("Hugging Face", hugging_face), ("precisions", precisions), ("loss scale", loss_scale),
                           ("bad", bad_checkpoints)):
        cases.add(f"checkpoint {name}", function, tools)
