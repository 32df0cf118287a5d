# loss_scales.py - Cases that force overflows at given steps and watch the loss scale.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""1,000 sequences of overflows through the real runtime, against DeepSpeed's class.

A sequence is a line of test/unit/Autodiff/data/loss_scales.txt, which
reference/make_tables.py wrote with the real class. The model is y = w*x*x with
w = 0 and a mean squared error: its gradient is zero where x is zero, and infinite
in half precision where x is large, whatever the scale is. Only one rank's sample
is large, and with ZRT_CHECK=1 every rank has to hold the same scale after each step.
Where the reference raises, the run has to end at that step and say why.
"""
import array
import json
import pathlib
import random
import sys

import tensors
from bad_input import graph, node
from harness import last_line, require

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "reference"))
import scaler  # noqa: E402

TABLE = HERE.parent / "unit" / "Autodiff" / "data" / "loss_scales.txt"
BATCHES = 40  # cases; each has every BATCHES-th sequence
WIDTH, LARGE = 3, 60000.0
# Ranks and stage of a sequence go round; 8 ranks leave some without a part of w.
LAYOUTS = ((1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (4, 3), (3, 2), (8, 3), (8, 1), (3, 3))


def write_model(path):
    from onnx import TensorProto, helper

    w = helper.make_tensor("w", TensorProto.FLOAT, [WIDTH], [0.0] * WIDTH)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", WIDTH))
    made = graph([node("Mul", ["x", "w"], ["wx"]), node("Mul", ["wx", "x"], ["y"])], inputs=[value], initializers=[w])
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    path.write_bytes(made.SerializeToString())


def write_samples(path, overflows, ranks, g):
    """One sample a rank and step; of an overflowing step one is large."""
    x, labels = array.array("f"), array.array("f")
    for overflow in overflows:
        where = g.randrange(ranks) if overflow else None
        for rank in range(ranks):
            x.extend([LARGE if rank == where else 0.0] * WIDTH)
            labels.extend([1.0 if rank == where else 0.0] * WIDTH)
    shape = [len(x) // WIDTH, WIDTH]
    tensors.save(path, {"x": ("F32", shape, x.tobytes()), "labels": ("F32", shape, labels.tobytes())})


def config(given):
    """The settings as DeepSpeed's JSON, which alone can say `consecutive_hysteresis`."""
    return {"train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0, "zero_optimization": {"stage": 0},
            "fp16": {"enabled": True, "initial_scale_power": int(given["init_scale"]).bit_length() - 1,
                     "loss_scale_window": given["scale_window"], "hysteresis": given["delayed_shift"],
                     "consecutive_hysteresis": True, "min_loss_scale": int(given["min_scale"])}}


def flags_of(given, folder, stage):
    from references import scaling_flags

    if not given["consecutive_hysteresis"]:
        return ["--precision", "fp16", "--zero-stage", stage, *scaling_flags(given)]
    made = config(given)
    made["zero_optimization"]["stage"] = stage
    (folder / "ds.json").write_text(json.dumps(made))
    return ["--config", folder / "ds.json"]


def sequence(tools, folder, index, line):
    given, letters = scaler.parse(line)
    ranks, stage = LAYOUTS[index % len(LAYOUTS)]
    ends = letters.find("!")
    letters = letters if ends < 0 else letters[:ends + 1]
    write_samples(folder / "data.safetensors", scaler.overflows(letters), ranks, random.Random(index))
    metrics = folder / "m.jsonl"
    done = tools.call("zero-run", folder / "model.onnx", "--loss", "mse", "--optimizer", "sgd", "--lr", 0.1,
                      "--train", "w", "--dim", "batch=1", "--batch", 1, "--ranks", ranks, *flags_of(given, folder, stage),
                      "--data", folder / "data.safetensors", "--steps", len(letters), "--metrics", metrics,
                      "--log-every", 0, ZRT_CHECK="1")
    what = f"sequence {index + 1}, {ranks} ranks, stage {stage}"
    if ends < 0:
        require(done.returncode == 0, f"{what}: exits {done.returncode}: {last_line(done)}")
    else:
        require(done.returncode == 1 and "loss scale" in done.stderr,
                f"{what}: exits {done.returncode} where the scale is exhausted: {last_line(done)}")
        require(f"step {ends + 1}" in done.stderr, f"{what}: ends at another step than {ends + 1}: {last_line(done)}")
    rows = [json.loads(row) for row in metrics.read_text().splitlines()]
    require(len(rows) >= len(letters) - (ends >= 0), f"{what}: {len(rows)} steps of {len(letters)}")
    for step, (row, scale, overflow) in enumerate(zip(rows, scaler.scales(given, letters), scaler.overflows(letters)), 1):
        require(row["loss_scale"] == scale and bool(row["skipped"]) == overflow,
                f"{what}, step {step}: scale {row['loss_scale']}, skipped {row['skipped']}; "
                f"reference {scale}, {overflow}")


def sequences(tools, batch):
    folder = tools.scratch / f"loss-scales-{batch}"
    folder.mkdir()
    write_model(folder / "model.onnx")
    lines = TABLE.read_text().splitlines()
    for index in range(batch, len(lines), BATCHES):
        sequence(tools, folder, index, lines[index])


def the_table_is_whole():
    """1,000 sequences in which everything happens, as the model of the rule says."""
    lines = TABLE.read_text().splitlines()
    require(len(lines) == 1000, f"{len(lines)} sequences")
    for number, line in enumerate(lines, 1):
        given, letters = scaler.parse(line)
        require(scaler.letters(given, scaler.overflows(letters)) == letters, f"line {number} breaks the rule")
    for letter in ".+h-!":
        require(sum(letter in line for line in lines) > 100, f"'{letter}' is rare")


def add_cases(cases, tools):
    cases.add("loss scale: table", the_table_is_whole)
    for batch in range(BATCHES):
        cases.add(f"loss scale: sequences {batch + 1} of {BATCHES}", sequences, tools, batch)
