# output.py - What a run prints and logs, and how it ends at a number that is none.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The metrics of each step are compared between all places where they appear."""
import array
import csv
import json
import os
import pty
import re
import shlex
import struct
import subprocess

import eventfile
import tensors
from harness import TIMEOUT_S, model, require

STEPS = 12
NAMES = {
    "hf": {"train/loss": "loss", "train/grad_norm": "grad_norm", "train/learning_rate": "lr"},
    "deepspeed": {"Train/Samples/train_loss": "loss", "Train/Samples/lr": "lr"},
    "torchtitan": {"loss_metrics/global_avg_loss": "loss", "grad_norm": "grad_norm", "lr": "lr"},
}


def arguments(name="mlp", data=None, ranks=2, stage=3, form="ts_train", steps=STEPS, lr=None):
    it = model(name)
    flags = it.loss_flags("sgd")
    if lr is not None:
        flags[flags.index("--lr") + 1] = str(lr)
    return [it.folder / f"{form}.onnx", *flags, *it.dims(form, 4), "--ranks", ranks, "--zero-stage", stage,
            "--data", data or it.folder / "data.safetensors", "--steps", steps]


def succeed(done):
    require(done.returncode == 0, f"exits {done.returncode}: {done.stderr.strip()[-300:]}")
    return done


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Folder:
    def __init__(self, tools, name):
        self.tools, self.path = tools, tools.scratch / f"output-{name}"
        self.path.mkdir()

    def run(self, *flags, **env):
        return self.tools.call("zero-run", *flags, **env)


def close(got, want, what):
    require(abs(got - want) <= 1e-6 * max(1, abs(want)), f"{what} is {got}, in the metrics {want}")


def logs(f, system):
    succeed(f.run(*arguments(), "--metrics", f.path / "m.jsonl", "--log", "csv", "--log", "tensorboard",
                  "--log-dir", f.path / "logs", "--metric-names", system))
    rows = rows_of(f.path / "m.jsonl")
    require(len(rows) == STEPS, f"{len(rows)} lines of metrics")
    axis = [r["samples"] if system == "deepspeed" else r["step"] for r in rows]
    with open(f.path / "logs/metrics.csv", newline="") as file:
        table = list(csv.DictReader(file))
    require([int(next(iter(line.values()))) for line in table] == axis, "the axis of the CSV file")
    files = list((f.path / "logs").glob("events.out.tfevents.*"))
    require(len(files) == 1, f"{len(files)} event files")
    first, *events = eventfile.read(files[0])
    require(first.get("version") == "brain.Event:2", f"the file begins with {first}")
    require([e["step"] for e in events] == axis, "the steps of the events")
    for name, member in NAMES[system].items():
        for row, line, event in zip(rows, table, events):
            close(float(line[name]), row[member], f"{name} in CSV")
            close(event["scalars"][name], row[member], f"{name} of an event")


def step_lines(f):
    done = succeed(f.run(*arguments("gpt2"), "--memory", "64MiB", "--machine", "this-cpu", "--metrics", f.path / "m.jsonl"))
    require("\033" not in done.stdout and not done.stderr, "colours or a bar in a pipe")
    rows = {r["step"]: r for r in rows_of(f.path / "m.jsonl")}
    lines = re.findall(r"^step: +(\d+)  loss: +([\d.]+)  grad_norm: +([\d.]+)  memory: [\d.]+[KM]iB\(([\d.]+)%\)"
                       r"  tps: ([\d,]+)  tflops: [\d.]+  mfu: [\d.]+%(.*)$", done.stdout, re.M)
    require([int(line[0]) for line in lines] == [1, 10, 12], f"lines: {done.stdout[:400]}")
    for step, loss, norm, share, tps, rest in lines:
        row = rows[int(step)]
        require(abs(float(loss) - row["loss"]) < 1e-5 and abs(float(norm) - row["grad_norm"]) < 1e-4, f"step {step}")
        require(abs(float(share) - 100 * row["peak_bytes"]["device"] / 2**26) < 0.01, f"share {share}")
        require((rest == "  lr: 0.05") == (step == "1"), f"step {step} ends with '{rest}'")
    first = rows[1]
    require(abs(int(lines[0][4].replace(",", "")) - first["tokens_per_s"] / 2) < 1, "tokens of one rank")


def operations(f):
    """What is counted is 6 N + 12 L H d s a token, N the weights of products: PaLM's formula without the embeddings."""
    layers, hidden, vocabulary, length, batch = 2, 32, 64, 16, 4
    weights = layers * 12 * hidden**2 + vocabulary * hidden
    want = batch * length * (6 * weights + 12 * layers * hidden * length)
    for accumulate in (1, 3):
        succeed(f.run(*arguments("gpt2", steps=2), "--accumulate", accumulate, "--metrics", f.path / "m.jsonl"))
        for row in rows_of(f.path / "m.jsonl"):
            close(row["tflops"] * row["step_ms"] * 1e9, accumulate * want, "operations of a rank")


def continued(f):
    """A run that continues another leaves the files of one that never stopped."""
    whole, parts = f.path / "whole", f.path / "parts"
    def train(folder, steps, *flags):
        return succeed(f.run(*arguments("gpt2", steps=steps), "--metrics", folder / "m.jsonl", "--log", "csv",
                             "--log", "tensorboard", "--log-dir", folder, "--metric-names", "deepspeed", *flags))
    whole.mkdir()
    parts.mkdir()
    train(whole, 9)
    train(parts, 6, "--checkpoint", f.path / "c", "--checkpoint-every", 4)
    done = train(parts, 9, "--resume", f.path / "c/step-00000004")
    require(re.findall(r"^step: +(\d+)", done.stdout, re.M) == ["5", "9"], done.stdout)
    for name in ("step", "loss", "samples"):
        want, got = ([r[name] for r in rows_of(folder / "m.jsonl")] for folder in (whole, parts))
        require(got == want, f"{name}: {got}, uninterrupted {want}")
    require((whole / "metrics.csv").read_text() == (parts / "metrics.csv").read_text(), "the CSV files differ")
    first, second = ([e for e in eventfile.read(path)] for path in sorted(parts.glob("events.out.*"), key=os.path.getmtime))
    require([e["step"] for e in first[1:]] == [8 * n for n in range(1, 7)], "events of the first part")
    require(second[1].get("start") and second[1]["step"] == 33, f"the second part begins with {second[1]}")
    require([e["step"] for e in second[2:]] == [8 * n for n in range(5, 10)], "events of the second part")


def on_a_terminal(f, **env):
    """What the run writes on a terminal, stdout and stderr together."""
    leader, follower = pty.openpty()
    words = [str(f.tools.folder / "zero-run"), *map(str, arguments(steps=40))]
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
                             env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **env})
    os.close(follower)
    text = b""
    try:
        while piece := os.read(leader, 65536):
            text += piece
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    require(child.wait(TIMEOUT_S) == 0, f"exits {child.returncode}: {text[-300:]}")
    return text.decode()


def screen(text):
    """The lines that stay, of text with carriage returns and erased lines."""
    return [re.split(r"\r(?:\033\[K)?", line.removesuffix("\r"))[-1] for line in text.split("\n")]


def terminal(f):
    text = on_a_terminal(f)
    require(re.search(r"\r\033\[Kstep: +\d+%\|", text), "no progress bar")
    require("\033[32mloss:" in text, "no colour")
    stays = [re.sub(r"\033\[\d*m", "", line) for line in screen(text)]
    steps = [int(line.split()[1]) for line in stays if line.startswith("step:")]
    require(steps == [1, 10, 20, 30, 40], f"what stays: {stays}")
    require(not any("%|" in line for line in stays), "the bar stays")


def terminal_without_colors(f):
    text = on_a_terminal(f, NO_COLOR="1")
    require("\033[3" not in text and "%|" in text, "NO_COLOR is not respected")
    require("%|" not in on_a_terminal(f, TERM="dumb"), "a bar on a dumb terminal")


def data_with_nan(f, index):
    data = dict(model("mlp").data)
    dtype, shape, raw = data["x"]
    values = array.array("f", raw)
    values[index] = float("nan")
    data["x"] = (dtype, shape, values.tobytes())
    tensors.save(f.path / "nan.safetensors", data)
    return f.path / "nan.safetensors"


def failure(done):
    require(done.returncode == 1 and done.stderr.count("\n") == 1, f"exits {done.returncode}: {done.stderr[:400]}")
    return done.stderr.strip()


def nan_in_the_data(f):
    """The sample is named, with and without a look at all tensors."""
    columns = model("mlp").data["x"][1][1]
    data = data_with_nan(f, 5 * columns + 2)
    message = failure(f.run(*arguments(data=data)))
    require("the loss is nan on rank 1" in message and 'tensor "x" has nan in sample 5, element 2' in message, message)
    message = failure(f.run(*arguments(data=data), "--check-finite"))
    require(re.search(r'step 1: rank 1, before the first command: "x" \(f32\[4x\d+\]\) has nan at \[1, 2\]', message), message)


def first_tensor(f):
    """A learning rate that makes weights overflow: the same tensor is named each time."""
    found = {failure(f.run(*arguments("gpt2", lr=1e30), "--check-finite")) for _ in range(4)}
    require(len(found) == 1, f"{found}")
    message = found.pop()
    require(re.search(r"step 2: rank \d, command \d+ \(.+\)( of \".+\")?: (\".+\"|its result) \(f32\[[\dx]*\]\) has (nan|-?inf) at \[[\d, ]+\]; "
                      r"\d+ of its \d+ elements are not finite", message), message)


def nothing_to_find(f):
    """Good runs of all models stay good, and their losses are the same."""
    for name in ("mlp", "cnn", "gpt2"):
        plain, checked = f.path / f"{name}.jsonl", f.path / f"{name}-checked.jsonl"
        succeed(f.run(*arguments(name), "--metrics", plain))
        succeed(f.run(*arguments(name), "--check-finite", "--metrics", checked, ZRT_POISON="1"))
        require([r["loss"] for r in rows_of(plain)] == [r["loss"] for r in rows_of(checked)], f"losses of {name}")


def token_values():
    dtype, _, raw = model("gpt2").data["input_ids"]
    return list(array.array({"I64": "q", "I32": "i"}[dtype], raw))


def token_files(f):
    """The same tokens in four forms give the same losses."""
    values = token_values()
    half, full = (struct.pack(f"<{len(values)}{c}", *values) for c in "HI")
    header = lambda magic, version: struct.pack("<256i", magic, version, len(values), *[0] * 253)  # noqa: E731
    forms = {"nanogpt.bin": half, "gpt2.bin": header(20240520, 1) + half, "llama3.bin": header(20240801, 7) + full}
    losses = []
    for name in (None, *forms):
        if name:
            (f.path / name).write_bytes(forms[name])
        succeed(f.run(*arguments("gpt2", data=f.path / name if name else None), "--metrics", f.path / "m.jsonl"))
        losses.append([r["loss"] for r in rows_of(f.path / "m.jsonl")])
    require(all(other == losses[0] for other in losses), "losses differ")


def bad_token_files(f):
    values = token_values()
    values[40] = 64  # the vocabulary has 64
    raw = struct.pack(f"<{len(values)}H", *values)
    cases = {"foreign": (raw, "token 40 is 64 .position"), "odd": (raw + b"x", "no whole 16-bit tokens"),
             "short": (raw[:8], "has 0 samples .4 tokens"), "empty": (b"", "has 0 samples .0 tokens"),
             "cut": (struct.pack("<256i", 20240520, 1, 9, *[0] * 253) + raw, "its header says 9")}
    for name, (data, words) in cases.items():
        (f.path / f"{name}.bin").write_bytes(data)
        message = failure(f.run(*arguments("gpt2", data=f.path / f"{name}.bin")))
        require(f"{name}.bin" in message and re.search(words, message), message)


def hostile_names(f):
    """A name of a file cannot end the line or command the terminal, and a good file of that name works."""
    name = "a\n\033[2J<script>,=1.safetensors"
    message = failure(f.run(*arguments(data=f.path / name)))
    require(r"a\x0a\x1b[2J<script>,=1.safetensors: cannot open" in message, message)
    (f.path / name).write_bytes((model("mlp").folder / "data.safetensors").read_bytes())
    done = succeed(f.run(*arguments(data=f.path / name), "--log", "csv", "--log-dir", f.path / "\n=1,"))
    require("\033" not in done.stdout and not done.stderr and (f.path / "\n=1,/metrics.csv").exists(), "files")


def cannot_log(f):
    (f.path / "file").write_text("")
    message = failure(f.run(*arguments(), "--log", "csv", "--log-dir", f.path / "file/logs"))
    require("cannot create the folder" in message, message)


def one_output_twice(f):
    """Both flags are named before anything is trained, or written."""
    it, x = [*arguments(steps=1)], f.path / "x"
    for first, second in (("--metrics", "--trace"), ("--metrics", "--save-weights"), ("--trace", "--report"),
                          ("--metrics", "--checkpoint"), ("--save-weights", "--save-hf")):
        message = failure(f.run(*it, first, x, second, f.path / "." / "x"))
        require(f"is written by both {first} and {second}; give each its own file" in message, message)
    for flags, names in (((("--metrics", x / "metrics.csv", "--log", "csv", "--log-dir", x)), "--metrics and --log csv"),
                         (("--save-weights", x / "model.safetensors", "--save-hf", x), "--save-weights and --save-hf")):
        x.mkdir(exist_ok=True)
        message = failure(f.run(*it, *flags))
        require(f"is written by both {names};" in message and not any(x.iterdir()), message)
    succeed(f.run(*it, "--metrics", "/dev/null", "--trace", "/dev/null", "--log", "csv", "--log-dir", x, "--checkpoint", x))


def limited_files(f):
    """ulimit -f: an error as a full disk is, and no weights stay in the temporary folder."""
    (f.path / "tmp").mkdir()
    words = " ".join(shlex.quote(str(word)) for word in [f.tools.folder / "zero-run", *arguments(steps=1)])
    done = subprocess.run(["bash", "-c", f"ulimit -f 1; exec {words}"], capture_output=True, text=True, timeout=TIMEOUT_S,
                          env={**os.environ, "TMPDIR": str(f.path / "tmp")})
    require("File too large" in failure(done) and not any((f.path / "tmp").iterdir()), f"{done.stderr} {list((f.path / 'tmp').iterdir())}")


def incomplete_weights(f):
    """What is not in the file begins with the model's own values: said, and true."""
    succeed(f.run(*arguments(steps=0), "--save-weights", f.path / "all.safetensors"))
    whole = tensors.load(f.path / "all.safetensors")
    lost = sorted(whole)[1]
    tensors.save(f.path / "less.safetensors", {name: value for name, value in whole.items() if name != lost})
    done = succeed(f.run(*arguments(steps=0), "--weights", f.path / "less.safetensors", "--save-weights", f.path / "again.safetensors"))
    require(f"has {len(whole) - 1} of the {len(whole)} parameters and buffers of the model; those without begin with the "
            f'model\'s own values, first "{lost}"' in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    require(tensors.load(f.path / "again.safetensors") == whole, "other values")
    require(not succeed(f.run(*arguments(steps=0), "--weights", f.path / "all.safetensors")).stderr, "a word of whole weights")


def add_cases(cases, tools):
    for system in NAMES:
        cases.add(f"output: logs as {system}", lambda s=system: logs(Folder(tools, f"logs-{s}"), s))
    for case in (step_lines, operations, continued, terminal, terminal_without_colors, nan_in_the_data, first_tensor, nothing_to_find,
                 token_files, bad_token_files, hostile_names, cannot_log, one_output_twice, limited_files, incomplete_weights):
        name = case.__name__.replace("_", " ")
        cases.add(f"output: {name}", lambda case=case: case(Folder(tools, case.__name__)))
