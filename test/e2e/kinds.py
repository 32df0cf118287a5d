# kinds.py - Cases of models of further kinds: encoders, rotary decoders, losses as outputs.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of make_more_models.py: losses, norms and parameters are PyTorch's, stages give
the same bits, a graph at a fixed batch is trained at another, and saved logits are PyTorch's.
"""
import struct

import tensors
import training
from harness import Once, Run, model, require

# Ranks and stages of each form; those of dynamo are exported at the batch of one rank.
BOTH = {"ts_train": ((1, 0), (2, 1), (2, 2), (2, 3), (4, 3)), "ts_loss": ((1, 0), (2, 3), (4, 1)),
        "dynamo": ((1, 0), (1, 3), (2, 3), (4, 2))}
FORMS = {"bert": BOTH, "llama": BOTH | {"dynamo_op23": ((1, 0), (2, 3), (4, 1))}}
LOGITS_TOLERANCE = 1e-4
# A softmax takes no notice of the bias of the keys: its gradient is rounding noise, which Adam makes steps of.
NOISY = ".key.bias"


class Trainer:
    def __init__(self, tools):
        self.tools, self.runs = tools, Once()

    def train(self, *key):
        return self.runs.get(key, lambda: self._train(*key))

    def _train(self, name, form, optimizer, ranks, stage):
        m = model(name)
        batch = m.reference["batch"] // ranks
        stem = self.tools.scratch / f"kinds-{name}-{form}-{optimizer}-{ranks}-{stage}"
        metrics, weights = (stem.with_suffix(end) for end in (".jsonl", ".safetensors"))
        flags = m.loss_flags(optimizer)
        if form == "ts_loss":
            flags[1] = "output:loss"
        if not form.startswith("dynamo"):
            flags += ["--dim", f"batch={batch}"]
        self.tools.ok("zero-run", m.folder / f"{form}.onnx", *flags, "--ranks", ranks, "--zero-stage", stage,
                      "--batch", batch, "--data", m.folder / "data.safetensors", "--steps", m.reference["steps"],
                      "--metrics", metrics, "--save-weights", weights)
        return Run(metrics, weights)


def close_to_pytorch(trainer, name, form, optimizer, ranks, stage):
    m, run = model(name), trainer.train(name, form, optimizer, ranks, stage)
    want = m.reference["runs"][f"{optimizer}_w1"]
    training.close("loss", run.column("loss"), want["losses"])
    training.close("grad_norm", run.column("grad_norm"), want["grad_norms"], 10 * training.LOSS_TOLERANCE)
    if form == "ts_train":  # the others rename and turn parameters
        final = tensors.load(m.folder / want["final"])
        require(set(final) <= set(run.weights), f"saved weights lack some of {list(final)}")
        training.close_weights(run.weights, final, [n for n in final if not n.endswith(NOISY)])


def places_agree(trainer, name, form, optimizer, places):
    """Wherever it runs, a form that is not what PyTorch trains is the same model."""
    one, *others = (trainer.train(name, form, optimizer, ranks, stage) for ranks, stage in places)
    for other in others:
        training.close("loss", other.column("loss"), one.column("loss"))
        training.close("grad_norm", other.column("grad_norm"), one.column("grad_norm"), 10 * training.LOSS_TOLERANCE)
        training.close_weights(other.weights, one.weights, [n for n in one.weights if not n.endswith(NOISY)])


def stages_agree(trainer, name, form, optimizer, ranks, stages):
    runs = [trainer.train(name, form, optimizer, ranks, stage) for stage in stages]
    for stage, run in zip(stages[1:], runs[1:]):
        training.same_bits(runs[0], run, f"of stages {stages[0]} and {stage}")


def logits(tools, name, form, ranks, stage):
    m = model(name)
    batch = m.reference["batch"] // ranks
    scratch = tools.scratch / f"logits-{name}-{form}-{ranks}"
    scratch.mkdir()
    first = {n: (dtype, [m.reference["batch"], *shape[1:]], data[:len(data) * m.reference["batch"] // shape[0]])
             for n, (dtype, shape, data) in m.data.items() if n != "labels"}
    tensors.save(scratch / "data.safetensors", first)
    dims = [] if form == "dynamo" else ["--dim", f"batch={batch}"]
    tools.ok("zero-run", m.folder / f"{form}.onnx", "--forward", *dims, "--batch", batch, "--ranks", ranks,
             "--zero-stage", stage, "--data", scratch / "data.safetensors", "--save-outputs", scratch / "out.safetensors")
    got = tensors.load(scratch / "out.safetensors")["logits"]
    want = tensors.load(m.folder / "logits.safetensors")["logits"]
    require(got[:2] == want[:2], f"logits are {got[:2]}, expected {want[:2]}")
    values = [struct.unpack(f"<{len(t[2]) // 4}f", t[2]) for t in (got, want)]
    worst = max(abs(x - y) for x, y in zip(*values))
    require(worst <= LOGITS_TOLERANCE, f"logits differ by {worst:.1e}")


def add_cases(cases, tools):
    trainer = Trainer(tools)
    for name, forms in FORMS.items():
        for form, places in forms.items():
            # The exporter folds BERT's position table away: its logits are right, but it does not train as
            # PyTorch does, which the importer warns of.
            if (name, form) == ("bert", "dynamo"):
                cases.add("kind bert/dynamo places", places_agree, trainer, name, form, "adamw", places)
                continue
            for ranks, stage in places:
                for optimizer in ("adamw", "sgd") if ranks > 1 and stage == 3 else ("adamw",):
                    cases.add(f"kind {name}/{form} {optimizer} ranks {ranks} stage {stage}", close_to_pytorch,
                              trainer, name, form, optimizer, ranks, stage)
        cases.add(f"kind {name} stages", stages_agree, trainer, name, "ts_train", "adamw", 2, (1, 2, 3))
        for form, ranks, stage in (("ts_train", 1, 0), ("ts_train", 2, 3), ("dynamo", 1, 0), ("dynamo", 4, 3)):
            cases.add(f"kind {name}/{form} logits ranks {ranks}", logits, tools, name, form, ranks, stage)
