# demo.py - Imports, partitions and trains two models, and prints what it cost.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""demo.py BIN OUT TEXT_TREE: called by script/demo, which builds what it needs."""
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx

import prepare_data

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "script"))
import formulas  # noqa: E402

RANKS = 4
MODELS = {  # name: (loss, batch of a rank, steps, learning rate, further dims, data)
    "digits-cnn": ("cross-entropy", 16, 120, 3e-3, [], "digits.safetensors"),
    "char-gpt": ("causal-lm", 8, 240, 3e-3, ["seq=64"], "text.bin"),
}


class Demo:
    def __init__(self, tools, out):
        self.tools, self.out = pathlib.Path(tools), pathlib.Path(out)

    def call(self, tool, *args):
        command = [str(self.tools / tool), *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr.strip()}")
        return done.stdout

    def prepare_model(self, name):
        """The training step in `train` and, at stage 3, in `train` + `zero`."""
        loss, batch, _, _, dims, _ = MODELS[name]
        folder = self.out / name
        folder.mkdir(parents=True, exist_ok=True)
        flags = [f for d in [f"batch={batch}", *dims] for f in ("--dim", d)]
        self.call("zero-import", HERE / f"{name}.onnx", "-o", folder / "step.mlir",
                  "--loss", loss, "--optimizer", "adamw", *flags)
        self.call("zero-opt", "--zero-stage=3", f"--zero-ranks={RANKS}", "--zero-schedule=joint",
                  folder / "step.mlir", "-o", folder / "stage3.mlir")
        text = (folder / "stage3.mlir").read_text()
        count = {op: len(re.findall(rf"zero\.{op}(?:_start)?\b", text)) for op in ("all_gather", "reduce_scatter")}
        self.gathered = formulas.gathered_elements(text)
        print(f"  training step        {folder}/step.mlir")
        print(f"  the same at stage 3  {folder}/stage3.mlir: {count['all_gather']} all-gathers, "
              f"{count['reduce_scatter']} reduce-scatters")

    def train(self, name, stage):
        _, _, steps, lr, _, data = MODELS[name]
        stem = self.out / name / f"stage{stage}"
        plan = stem.with_suffix(".zplan")
        self.call("zero-compile", self.out / name / "step.mlir", "-o", plan,
                  "--zero-stage", stage, "--ranks", RANKS)
        self.call("zero-run", plan, "--data", self.out / data, "--steps", steps, "--lr", lr,
                  "--metrics", stem.with_suffix(".jsonl"), "--save-weights", stem.with_suffix(".safetensors"),
                  "--report", stem.with_suffix(".html"))
        rows = [json.loads(line) for line in stem.with_suffix(".jsonl").read_text().splitlines()]
        return rows

    def show(self, name):
        print(f"\n{name}: {RANKS} ranks x {MODELS[name][1]} samples, AdamW")
        self.prepare_model(name)
        runs = {stage: self.train(name, stage) for stage in range(4)}
        print_losses(runs[3])
        print_costs(parameters(HERE / f"{name}.onnx"), runs, self.gathered)
        weights = [(self.out / name / f"stage{s}.safetensors").read_bytes() for s in runs]
        same = all(w == weights[0] for w in weights)
        print(f"  trained weights of all stages: {'the same bytes' if same else 'DIFFERENT'}, "
              f"{self.out / name}/stage3.safetensors")
        print(f"  the last step as planned and as it ran: {self.out / name}/stage3.html")
        return same

    def accuracy(self, images, labels):
        """Share of held-out digits recognized by the trained weights, run by onnx itself."""
        from onnx.reference import ReferenceEvaluator

        model = onnx.load(HERE / "digits-cnn.onnx")
        trained = prepare_data.load_safetensors(self.out / "digits-cnn" / "stage3.safetensors")
        for i in model.graph.initializer:
            if i.name in trained:
                i.CopyFrom(onnx.numpy_helper.from_array(trained[i.name], i.name))
        for node in model.graph.node:
            if node.op_type == "BatchNormalization":
                del node.output[1:]
                next(a for a in node.attribute if a.name == "training_mode").i = 0
        logits = ReferenceEvaluator(model).run(None, {"image": images})[0]
        return float(np.mean(logits.argmax(1) == labels))


def print_losses(rows):
    every = max(1, len(rows) // 10)
    print("  step      loss  gradient norm  (stage 3)")
    for row in rows:
        if row["step"] == 1 or row["step"] % every == 0:
            print(f"  {row['step']:4}  {row['loss']:8.4f}  {row['grad_norm']:13.4f}")


def parameters(path):
    """Elements of the trained parameters: of all weights but BatchNorm's statistics."""
    weights = onnx.load(path).graph.initializer
    return sum(int(np.prod(w.dims)) for w in weights
               if w.data_type == onnx.TensorProto.FLOAT and "running_" not in w.name)


def print_costs(psi, runs, gathered):
    print(f"  {psi} parameters; bytes of one rank beside the formulas:")
    print("  stage | parameters, gradients, AdamW   formula  padding |  peak memory   planned |"
          "  sent a step    formula  padding | ms a step")
    for stage, rows in runs.items():
        row = rows[-1]
        held, padding = sum(row["state_bytes"].values()), row["state_padding_bytes"]  # the latter beside it
        sent = sum(row["comm_bytes"].values())
        formula = sum(formulas.sent_bytes(psi, RANKS, stage, gathered).values())
        print(f"  {stage:5} | {held:28.0f} {formulas.state_bytes(psi, 'adamw', RANKS, stage):9.0f} {padding:8.0f} |"
              f" {row['peak_bytes']['device']:12} {row['planned_peak_bytes']['device']:9} |"
              f" {sent:12.0f} {formula:10.0f} {row['comm_padding_bytes']:8.0f} |"
              f" {np.median([r['step_ms'] for r in rows]):9.2f}")


def main():
    tools, out, tree = sys.argv[1:]
    demo = Demo(tools, out)
    images, labels = prepare_data.digits(demo.out)
    count = prepare_data.text(demo.out, tree)
    print(f"data: scikit-learn's digits (1437 images) and {count} characters of the King James Version, in {out}")
    same = demo.show("digits-cnn")
    accuracy = demo.accuracy(images, labels)
    print(f"  held-out digits recognized: {100 * accuracy:.1f} % of {len(labels)}")
    same = demo.show("char-gpt") and same
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
