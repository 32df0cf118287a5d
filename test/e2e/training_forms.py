# training_forms.py - Cases on models that have a backward pass of their own, and on the way back to ONNX.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models are those of artifacts.py, the reference is computed there in double precision. Exported models
are run by onnx's reference evaluator."""
import json
import math

import numpy as np

import tensors
from harness import MODELS, model as test_model, require

BATCH, STEPS, RATE = 12, 6, 0.05
LIMIT = 0.02  # of an element of a gradient, where they are clipped


def data_file(folder):
    path = folder / "data.safetensors"
    data = samples()
    tensors.save(path, {"x": ("F32", data["x"].shape, data["x"].tobytes()),
                        "labels": ("I64", data["labels"].shape, data["labels"].tobytes())})
    return path


def samples():
    import artifacts

    return artifacts.samples(BATCH * STEPS)


def arrays(path):
    kinds = {"F32": np.float32, "I64": np.int64}
    return {n: np.frombuffer(raw, kinds[t]).reshape(shape) for n, (t, shape, raw) in tensors.load(path).items()}


def sgd(step, name, p, g):
    return p - RATE * g


class Adam:
    """Hugging Face's form: epsilon before the bias correction, decay last. `late`: ONNX's, whose first step has no
    correction and which corrects by the number of steps before."""

    def __init__(self, epsilon=1e-6, decay=0.0, b1=0.9, b2=0.999, onnx=False, l2=0.0, post=0.0):
        self.state, self.epsilon, self.decay, self.b1, self.b2, self.onnx = {}, epsilon, decay, b1, b2, onnx
        self.l2, self.post = l2, post

    def __call__(self, step, name, p, g):
        g = g + self.l2 * p
        m, v = self.state.get(name, (0, 0))
        m, v = self.b1 * m + (1 - self.b1) * g, self.b2 * v + (1 - self.b2) * g * g
        self.state[name] = m, v
        count = step - 1 if self.onnx else step
        rate = RATE * math.sqrt(1 - self.b2**count) / (1 - self.b1**count) if count else RATE
        p = p - rate * m / (np.sqrt(v) + self.epsilon)
        return p * (1 - RATE * self.decay - self.post)


class Momentum:
    def __init__(self, alpha, beta, l2, nesterov):
        self.state, self.alpha, self.beta, self.l2, self.nesterov = {}, alpha, beta, l2, nesterov

    def __call__(self, step, name, p, g):
        g = g + self.l2 * p
        v = self.alpha * self.state.get(name, 0) + (self.beta if step > 1 else 1) * g
        self.state[name] = v
        return p - RATE * (g + self.alpha * v if self.nesterov else v)


class Adagrad:
    def __init__(self, epsilon, slower, l2):
        self.state, self.epsilon, self.slower, self.l2 = {}, epsilon, slower, l2

    def __call__(self, step, name, p, g):
        g = g + self.l2 * p
        h = self.state.get(name, 0) + g * g
        self.state[name] = h
        return p - RATE / (1 + (step - 1) * self.slower) * g / (np.sqrt(h) + self.epsilon)


# --- runs


def run(tools, path, folder, ranks, stage, *flags, batch=None):
    """Losses, weights by name, and the saved model."""
    stem = folder / f"n{ranks}s{stage}"
    out = folder / f"n{ranks}s{stage}.onnx"
    save = [] if "training_model" in path.name else ["--save-onnx", out]
    tools.ok("zero-run", path, "--dim", f"batch={(batch or BATCH) // ranks}", "--data", data_file(folder), "--lr", RATE,
             "--steps", STEPS, "--ranks", ranks, "--zero-stage", stage, "--metrics", f"{stem}.jsonl", "--save-weights",
             f"{stem}.safetensors", *save, *flags)
    rows = [json.loads(line) for line in open(f"{stem}.jsonl") if line.strip()]
    return [row["loss"] for row in rows], arrays(f"{stem}.safetensors"), out


def check_run(got, weights, want, params):
    require(np.allclose(got, want, rtol=2e-5), f"losses are {got}, expected {want}")
    for name, expected in params.items():
        error = np.abs(weights[name] - expected).max()
        require(error < 3e-5, f"{name} differs by {error:.2g}")


def check_everywhere(tools, path, folder, update, *flags, start=None):
    """The run is the reference's at all stages, on 1 to 4 ranks."""
    import artifacts

    want, params = artifacts.train(start or artifacts.weights(), samples(), BATCH, STEPS, update())
    for ranks, stage in [(1, 0), (2, 0), (2, 1), (4, 2), (3, 3), (4, 3)]:
        losses, weights, saved = run(tools, path, folder, ranks, stage, *flags)
        check_run(losses, weights, want, params)
        if saved.exists():
            check_logits(saved, params)


def check_logits(path, params):
    """The saved model's logits are those of the parameters."""
    from onnx.reference import ReferenceEvaluator
    import onnx

    made = onnx.load(path)
    made.ClearField("training_info")
    x = samples()["x"]
    logits = ReferenceEvaluator(made).run(None, {"x": x})[0]
    hidden = np.maximum(x @ params["fc1.weight"].T + params["fc1.bias"], 0)
    error = np.abs(logits - (hidden @ params["fc2.weight"].T + params["fc2.bias"])).max()
    require(error < 1e-4, f"logits of the saved model differ by {error:.2g}")


# --- onnxruntime's artifacts


def write_artifacts(tools, name, optimizer):
    import artifacts

    folder = tools.scratch / f"forms-{name}"
    return artifacts.write(folder, artifacts.weights(), optimizer), folder


def artifacts_adamw(tools):
    import artifacts

    optimizer = artifacts.optimizer_model(adam_mode=1, epsilon=1e-6, weight_decay=0.02, alpha=0.9, beta=0.999, correct_bias=1)
    path, folder = write_artifacts(tools, "adamw", optimizer)
    check_everywhere(tools, path, folder, lambda: Adam(decay=0.02))


def artifacts_progress(tools):
    """Training goes on where onnxruntime stopped: with its moments, and the bias correction of the next step."""
    import artifacts

    done, adam = 3, Adam()
    _, params = artifacts.train(artifacts.weights(), samples(), BATCH, done, adam)
    start = {n: p.astype(np.float32) for n, p in params.items()}
    states = {n: [moment.astype(np.float32) for moment in adam.state[n]] for n in params}
    folder = tools.scratch / "forms-progress"
    path = artifacts.write(folder, start, artifacts.optimizer_model(adam_mode=1, epsilon=1e-6, weight_decay=0.0),
                           states=states, steps=done)

    def later():
        after = Adam()
        after.state = {n: tuple(moments) for n, moments in states.items()}
        return lambda step, *rest: after(step + done, *rest)

    check_everywhere(tools, path, folder, later, start=start)


def artifacts_sgd(tools):
    import artifacts

    path, folder = write_artifacts(tools, "sgd", artifacts.optimizer_model("SGDOptimizerV2"))
    check_everywhere(tools, path, folder, lambda: sgd)


def artifacts_accumulate(tools):
    """The seed of the backward pass is divided among micro-batches."""
    import artifacts

    path, folder = write_artifacts(tools, "accumulate", artifacts.optimizer_model("SGDOptimizerV2"))
    want, params = artifacts.train(artifacts.weights(), samples(), BATCH, STEPS, sgd)
    losses, weights, _ = run(tools, path, folder, 2, 2, "--accumulate", 3, batch=BATCH // 3)
    check_run(losses, weights, want, params)


def artifacts_flags(tools):
    """--optimizer goes before what the artifacts say, --loss before their gradients."""
    import artifacts

    path, folder = write_artifacts(tools, "flags", artifacts.optimizer_model(adam_mode=1))
    want, params = artifacts.train(artifacts.weights(), samples(), BATCH, STEPS, sgd)
    for flags in (["--optimizer", "sgd"], ["--optimizer", "sgd", "--loss", "output:loss"]):
        losses, weights, _ = run(tools, path, folder, 2, 3, *flags)
        check_run(losses, weights, want, params)


def artifacts_export(tools):
    """Trained weights go into the graph that the artifacts keep for evaluation, whose weights are inputs."""
    import artifacts

    path, folder = write_artifacts(tools, "export", artifacts.optimizer_model("SGDOptimizerV2"))
    _, params = artifacts.train(artifacts.weights(), samples(), BATCH, STEPS, sgd)
    run(tools, path, folder, 2, 1)
    tools.ok("zero-import", folder / "eval_model.onnx", "--export", folder / "n2s1.safetensors", "-o", folder / "out.onnx")
    check_logits(folder / "out.onnx", params)


# --- TrainingInfoProto


def info_model(tools, name, op, states, **attributes):
    """Gradient and one node of an optimizer; R is an input, T a state that counts."""
    import artifacts
    from onnx import TensorProto

    params, node = artifacts.weights(), artifacts.node
    names = list(params)
    loss = artifacts.forward()[3:]
    grads = [f"d {n}" for n in names]
    gradient = node("Gradient", names, grads, artifacts.PREVIEW, xs=names, y="loss")
    kept = [f"{n}.{s}" for s in states for n in names]
    new = [f"new {n}" for n in names + kept]
    update = node(op, ["R", "T", *names, *grads, *kept], new, artifacts.PREVIEW, **attributes)
    count = node("Add", ["T", "one"], ["new T"])
    zeros = {f"{n}.{s}": np.zeros_like(params[n]) for s in states for n in names}
    made = artifacts.training_info(params, loss + [gradient, update, count], [artifacts.value("R", [])],
                                   {"T": np.int64(0), **zeros}, dict(zip(names + kept + ["T"], new + ["new T"])),
                                   [("one", np.int64(1))])
    folder = tools.scratch / f"forms-info-{name}"
    folder.mkdir()
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path, folder


def info_adam(tools):
    path, folder = info_model(tools, "adam", "Adam", "VH", alpha=0.9, beta=0.99, epsilon=1e-4, norm_coefficient=0.01,
                              norm_coefficient_post=0.001)
    check_everywhere(tools, path, folder, lambda: Adam(1e-4, 0, 0.9, 0.99, True, 0.01, 0.001))


def info_adagrad(tools):
    path, folder = info_model(tools, "adagrad", "Adagrad", "H", epsilon=1e-3, decay_factor=0.2, norm_coefficient=0.01)
    check_everywhere(tools, path, folder, lambda: Adagrad(1e-3, 0.2, 0.01))


def info_momentum(tools):
    path, folder = info_model(tools, "momentum", "Momentum", "V", alpha=0.9, beta=0.5, norm_coefficient=0.01, mode="standard")
    check_everywhere(tools, path, folder, lambda: Momentum(0.9, 0.5, 0.01, False))


def info_nesterov(tools):
    path, folder = info_model(tools, "nesterov", "Momentum", "V", alpha=0.9, beta=1.0, norm_coefficient=0.01, mode="nesterov")
    check_everywhere(tools, path, folder, lambda: Momentum(0.9, 1.0, 0.01, True))


def plain_info(tools, name, update, states, constants):
    """Gradient and, for each parameter, the nodes that `update` makes of it."""
    import artifacts

    params, node = artifacts.weights(), artifacts.node
    names = list(params)
    nodes = artifacts.forward()[3:] + [node("Gradient", names, [f"d {n}" for n in names], artifacts.PREVIEW, xs=names, y="loss")]
    for n in names:
        nodes += update(node, n)
    zeros = {f"{n}.{s}": np.zeros_like(params[n]) for s in states for n in names}
    made = artifacts.training_info(params, nodes, [], zeros, {n: f"new {n}" for n in [*names, *zeros]}, constants)
    folder = tools.scratch / f"forms-info-{name}"
    folder.mkdir()
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path, folder


def info_plain(tools):
    """An update written in elementwise operators, the rate an initializer."""
    def update(node, n):
        return [node("Mul", [f"d {n}", "rate"], [f"step {n}"]), node("Sub", [n, f"step {n}"], [f"new {n}"])]

    path, folder = plain_info(tools, "plain", update, "", [("rate", np.float32(RATE))])
    check_everywhere(tools, path, folder, lambda: sgd)


def info_own_state(tools):
    """Momentum written in elementwise operators: its state is partitioned as an optimizer's."""
    def update(node, n):
        return [node("Mul", [f"{n}.V", "slow"], [f"kept {n}"]), node("Add", [f"kept {n}", f"d {n}"], [f"new {n}.V"]),
                node("Mul", [f"new {n}.V", "rate"], [f"step {n}"]), node("Sub", [n, f"step {n}"], [f"new {n}"])]

    path, folder = plain_info(tools, "own", update, "V", [("rate", np.float32(RATE)), ("slow", np.float32(0.9))])
    check_everywhere(tools, path, folder, lambda: Momentum(0.9, 1.0, 0.0, False))


def clipped(step, name, p, g):
    return p - RATE * np.clip(g, -LIMIT, LIMIT)


def info_clipped(tools):
    """An update that begins with an operator on the gradient alone: of the whole batch's, not of one rank's."""
    def update(node, n):
        return [node("Clip", [f"d {n}", "low", "high"], [f"cut {n}"]), node("Mul", [f"cut {n}", "rate"], [f"step {n}"]),
                node("Sub", [n, f"step {n}"], [f"new {n}"])]

    constants = [("rate", np.float32(RATE)), ("low", np.float32(-LIMIT)), ("high", np.float32(LIMIT))]
    path, folder = plain_info(tools, "clipped", update, "", constants)
    check_everywhere(tools, path, folder, lambda: clipped)


# --- models of PyTorch's exporters


def round_trip(tools, name, form):
    """Trained weights in the user's model: onnx's evaluator computes what the weights say, through a second import."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    m = test_model(name)
    folder = tools.scratch / f"forms-{name}-{form}"
    folder.mkdir()
    out, weights = folder / "out.onnx", folder / "w.safetensors"
    fixed = exported_batch(onnx.load(m.folder / f"{form}.onnx"))
    batch = fixed or 4
    dims = [] if fixed else m.dims(form, batch)
    done = tools.ok("zero-run", m.folder / f"{form}.onnx", *m.loss_flags("sgd"), *dims, "--ranks", 2,
                    "--zero-stage", 3, "--data", m.folder / "data.safetensors", "--steps", 2, "--save-onnx", out,
                    "--save-weights", weights)
    require("error" not in done.stderr, done.stderr)
    # The same file again, from the saved weights.
    again = folder / "again.onnx"
    tools.ok("zero-import", m.folder / f"{form}.onnx", "--export", weights, "-o", again)
    before, after, other = (onnx.load(p) for p in (m.folder / f"{form}.onnx", out, again))
    require(after.graph.initializer == other.graph.initializer, "zero-import --export writes other weights")
    trained = arrays_of(after)
    changed = [n for n, a in arrays_of(before).items() if n in trained and not np.array_equal(a, trained[n])]
    require(len(changed) >= 2, f"only {changed} changed")
    # A second import has the trained values under the names of the first.
    back = folder / "back.safetensors"
    tools.ok("zero-import", out, *dims, "-o", folder / "back.mlir", "--weights", back)
    saved = tensors.load(weights)
    for n, tensor in tensors.load(back).items():
        require(saved.get(n, tensor) == tensor, f"{n} differs after the way back")
    x = {i.name: as_array(m, i.name, batch) for i in after.graph.input if i.name not in trained}
    logits = ReferenceEvaluator(str(out)).run(None, x)
    require(all(np.isfinite(y).all() for y in logits), "outputs of the saved model are not numbers")
    forward = folder / "logits.safetensors"
    tensors.save(folder / "x.safetensors", {n: m.data[n][:1] + (list(a.shape), a.tobytes()) for n, a in x.items()})
    tools.ok("zero-run", out, "--forward", *dims, "--data", folder / "x.safetensors", "--save-outputs", forward)
    ours = arrays(forward)
    for info, y in zip(after.graph.output, logits):
        error = np.abs(ours[info.name].reshape(y.shape) - y).max()
        require(error < 1e-4, f"{info.name} differs by {error:.2g} from onnx's evaluator")


def exported_batch(made):
    """The batch of a graph that was exported at one; 0 where it is a symbol."""
    weights = {t.name for t in made.graph.initializer}
    return next(i for i in made.graph.input if i.name not in weights).type.tensor_type.shape.dim[0].dim_value


def arrays_of(made):
    from onnx import numpy_helper

    return {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}


def as_array(m, name, batch):
    kinds = {"F32": np.float32, "I64": np.int64}
    kind, shape, raw = m.data[name]
    return np.frombuffer(raw, kinds[kind]).reshape(shape)[:batch]


def add_cases(cases, tools):
    for function in (artifacts_adamw, artifacts_progress, artifacts_sgd, artifacts_accumulate, artifacts_flags,
                     artifacts_export, info_adam, info_adagrad, info_momentum, info_nesterov, info_plain,
                     info_own_state, info_clipped):
        cases.add(f"forms {function.__name__}", function, tools)
    for name in sorted(p.name for p in MODELS.iterdir() if (p / "reference.json").exists()):
        for form in ("ts_train", "dynamo_noopt", "dynamo"):
            if (MODELS / name / f"{form}.onnx").exists():
                cases.add(f"save-onnx {name} {form}", round_trip, tools, name, form)
