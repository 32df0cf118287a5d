# bad_input.py - Cases that feed the tools damaged files and wrong flags.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each must end in exit status 1 and one line that names the file and the cause."""
import array
import os
import re

import tensors
from harness import model, require

CRASH = re.compile(r"Stack dump|PLEASE submit|Assertion|terminate called|Traceback|Sanitizer|core dumped")


def one_line_error(done, *words):
    """The run failed as promised, and its message holds every one of WORDS."""
    text = done.stderr
    require(not CRASH.search(text), f"crashed: {text.strip().splitlines()[0][:200] if text.strip() else ''}")
    require(done.returncode == 1, f"exit status {done.returncode}, expected 1: {text.strip()[:200]}")
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    require(len(errors) == 1, f"{len(errors)} error lines: {' | '.join(lines)[:300]}")
    others = [line for line in lines if line not in errors and not re.search(r"(warning|remark):", line)]
    require(not others, f"more than one line: {' | '.join(others)[:300]}")
    for word in words:
        require(re.search(word, errors[0], re.I), f"the message lacks '{word}': {errors[0][:300]}")


class Scratch:
    """Where a case writes its damaged files."""

    def __init__(self, tools, name):
        self.tools, self.folder = tools, tools.scratch / ("bad-" + re.sub(r"\W+", "-", name))
        self.folder.mkdir()

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def imports(self, path, *flags):
        return self.tools.call("zero-import", path, *flags, "-o", self.folder / "out.mlir")

    def runs(self, path, *flags):
        return self.tools.call("zero-run", path, *flags)


def good_onnx():
    return (model("mlp").folder / "ts_train.onnx").read_bytes()


def truncated(s):
    data = good_onnx()
    one_line_error(s.imports(s.write("cut.onnx", data[:len(data) // 2])), "cut.onnx")


def empty(s):
    one_line_error(s.imports(s.write("empty.onnx", b"")), "empty.onnx", "empty")


def not_onnx(s):
    one_line_error(s.imports(s.write("text.onnx", b"this is no protobuf\n" * 50)), "text.onnx")


def missing_file(s):
    one_line_error(s.imports(s.folder / "none.onnx"), "none.onnx")


def graph(nodes, inputs=None, opset=17, ir_version=8, initializers=(), outputs=("y",)):
    """A small model of float tensors, unchecked."""
    from onnx import TensorProto, helper

    value = lambda n, shape=(2, 3): helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
    made = helper.make_graph(nodes, "g", [value("x")] if inputs is None else inputs,
                             [value(o) for o in outputs], list(initializers))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def node(kind, inputs, outputs, **attributes):
    from onnx import helper

    return helper.make_node(kind, inputs, outputs, name=f"the_{kind.lower()}", **attributes)


def rejected(s, made, *words, name="model.onnx", flags=()):
    one_line_error(s.imports(s.write(name, made.SerializeToString()), *flags), name, *words)


def opset_too_old(s):
    rejected(s, graph([node("Relu", ["x"], ["y"])], opset=0), "opset", "0", "1")


def opset_too_new(s):
    rejected(s, graph([node("Relu", ["x"], ["y"])], opset=99), "opset", "99")


def ir_version_unknown(s):
    rejected(s, graph([node("Relu", ["x"], ["y"])], ir_version=999), "999")


def unsupported_operator(s):
    rejected(s, graph([node("StringNormalizer", ["x"], ["y"])]), "StringNormalizer", "the_stringnormalizer", "17")


def cyclic(s):
    rejected(s, graph([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
             "cycl|before|order|undefined")


def duplicate_names(s):
    rejected(s, graph([node("Relu", ["x"], ["a"]), node("Tanh", ["x"], ["a"]), node("Relu", ["a"], ["y"])]),
             "'?a'?", "twice|duplicate|already|more than once|redefin")


def undefined_input(s):
    rejected(s, graph([node("Add", ["x", "nowhere"], ["y"])]), "nowhere")


def undefined_output(s):
    rejected(s, graph([node("Relu", ["x"], ["z"])]), "y")


def symbolic_without_dim(s):
    path = model("mlp").folder / "ts_train.onnx"
    one_line_error(s.imports(path), "ts_train.onnx", "batch", "--dim")


def external(s, location, before=None):
    """A model whose weight lies in an external file at LOCATION."""
    from onnx import TensorProto

    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", "24")):
        w.external_data.add(key=key, value=value)
    if before:
        before()
    rejected(s, graph([node("Add", ["x", "w"], ["y"])], initializers=[w]), "w", re.escape(location))


def external_missing(s):
    external(s, "gone.data")


def external_short(s):
    external(s, "short.data", lambda: s.write("short.data", b"1234"))


def external_parent(s):
    outside = s.folder.parent / "outside.data"
    external(s, "../outside.data", lambda: outside.write_bytes(bytes(24)))


def external_absolute(s):
    external(s, str(s.write("here.data", bytes(24))))


def external_symlink(s):
    def link():
        target = s.folder.parent / "target.data"
        target.write_bytes(bytes(24))
        os.symlink(target, s.folder / "link.data")

    external(s, "link.data", link)


def mlp_flags(batch=8, steps=2):
    return [*model("mlp").loss_flags("sgd"), *model("mlp").dims("ts_train", batch), "--batch", batch,
            "--steps", steps]


def run_mlp(s, data=None, batch=8, flags=()):
    m = model("mlp")
    return s.runs(m.folder / "ts_train.onnx", *mlp_flags(batch), "--data", data or m.folder / "data.safetensors", *flags)


def changed_data(s, change, name="bad.safetensors"):
    data = dict(model("mlp").data)
    change(data)
    tensors.save(s.folder / name, data)
    return s.folder / name


def wrong_dtype(s):
    def change(data):
        _, shape, raw = data["x"]
        values = array.array("f")
        values.frombytes(raw)
        data["x"] = ("F64", shape, array.array("d", values).tobytes())

    one_line_error(run_mlp(s, changed_data(s, change)), "bad.safetensors", "x", "F64")


def label_out_of_range(s):
    def change(data):
        dtype, shape, _ = data["labels"]
        data["labels"] = (dtype, shape, array.array("q", [10] * shape[0]).tobytes())

    one_line_error(run_mlp(s, changed_data(s, change)), "labels", "10")


def missing_tensor(s):
    one_line_error(run_mlp(s, changed_data(s, lambda data: data.pop("labels"))), "bad.safetensors", "labels")


def too_few_samples(s):
    def change(data):
        for name, (dtype, shape, raw) in data.items():
            data[name] = (dtype, [3] + shape[1:], raw[:len(raw) // shape[0] * 3])

    one_line_error(run_mlp(s, changed_data(s, change)), "bad.safetensors", "3", "8")


def damaged_data(s):
    one_line_error(run_mlp(s, s.write("cut.safetensors", b"\xff" * 64)), "cut.safetensors")


def nan_loss(s):
    def change(data):
        dtype, shape, raw = data["x"]
        data["x"] = (dtype, shape, array.array("f", [float("nan")] * (len(raw) // 4)).tobytes())

    one_line_error(run_mlp(s, changed_data(s, change)), "loss", "nan", "step 1")


def stage_four(s):
    one_line_error(run_mlp(s, flags=["--zero-stage", 4]), "stage", "4")


def ranks_zero(s):
    one_line_error(run_mlp(s, flags=["--ranks", 0]), "ranks", "0")


def damaged_plan(s):
    one_line_error(s.runs(s.write("cut.zplan", b"\x10\0\0\0ZPLN" + bytes(40)), "--data",
                          model("mlp").folder / "data.safetensors"), "cut.zplan")


CASES = (truncated, empty, not_onnx, missing_file, opset_too_old, opset_too_new, ir_version_unknown,
         unsupported_operator, cyclic, duplicate_names, undefined_input, undefined_output, symbolic_without_dim,
         external_missing, external_short, external_parent, external_absolute, external_symlink, wrong_dtype,
         label_out_of_range, missing_tensor, too_few_samples, damaged_data, nan_loss, stage_four, ranks_zero,
         damaged_plan)


def add_cases(cases, tools):
    for case in CASES:
        name = case.__name__.replace("_", " ")
        cases.add(f"bad input: {name}", lambda case=case, name=name: case(Scratch(tools, name)))
