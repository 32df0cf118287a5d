# cases.py - The tests that the onnx package brings, as files.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A case is a folder: model.onnx, and for each data set K the files inputs_K.safetensors
and outputs_K.safetensors. What is not a tensor of a type that safetensors has is left out
of these and named in the list of all cases, cases.json; so are inputs that are optionals
without an element or sequences without tensors.
"""
import json
import os
import pathlib
import shutil
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

import tensors

FORM = 3  # of the files
KINDS = ("simple", "pytorch-converted", "pytorch-operator")


def array_of(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def flat(name, value):
    """A value as tensors with names: a sequence's are NAME.0, NAME.1, ... as in @forward."""
    if not isinstance(value, list):
        return [(name, value)]
    return [pair for i, element in enumerate(value) for pair in flat(f"{name}.{i}", array_of(element))]


def describe(value):
    if value is None:
        return "an empty optional"
    return f"a tensor of {getattr(value, 'dtype', type(value))}"


def absent_inputs(model, inputs):
    """Names of the inputs that are optionals without an element or empty sequences."""
    return [name for name, value in zip(names_of(model, len(inputs)), map(array_of, inputs))
            if value is None or isinstance(value, list) and not value]


def names_of(model, count):
    """Names of the graph's inputs that a data set of COUNT tensors is for."""
    weights = {w.name for w in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in weights]
    return names if len(names) == count else [i.name for i in model.graph.input][:count]


def write_set(folder, number, model, inputs, outputs):
    """Writes one data set; returns the outputs that could not be written."""
    other = {}
    for role, names, values in (("inputs", names_of(model, len(inputs)), inputs),
                                ("outputs", [o.name for o in model.graph.output], outputs)):
        arrays = {}
        for name, value in (pair for n, v in zip(names, values) for pair in flat(n, array_of(v))):
            if tensors.holds(value):
                arrays[name] = value
            elif role == "outputs":
                other[name] = describe(value)
        tensors.save(folder / f"{role}_{number}.safetensors", arrays)
    return other


def write_case(folder, name, kind, model, sets, rtol, atol):
    path = folder / name
    path.mkdir()
    (path / "model.onnx").write_bytes(model.SerializeToString())
    other, absent = {}, []
    for number, (inputs, outputs) in enumerate(sets):
        absent = absent_inputs(model, inputs)
        other.update(write_set(path, number, model, inputs, outputs))
    return {"name": name, "kind": kind, "sets": len(sets), "rtol": rtol, "atol": atol,
            "other": other, "absent": absent}


def read_value(path, value_info):
    """A value of a data set in the package's folders."""
    data = path.read_bytes()
    if value_info.type.HasField("sequence_type"):
        return onnx.SequenceProto.FromString(data)
    return onnx.TensorProto.FromString(data)


def stored_cases():
    root = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
    for kind in KINDS:
        for folder in sorted((root / kind).iterdir()):
            model = onnx.load(folder / "model.onnx")
            infos = {"input": list(model.graph.input), "output": list(model.graph.output)}
            weights = {w.name for w in model.graph.initializer}
            infos["input"] = [i for i in infos["input"] if i.name not in weights] or infos["input"]
            sets = []
            for data in sorted(folder.glob("test_data_set_*")):
                sets.append(tuple(
                    [read_value(data / f"{role}_{i}.pb", infos[role][min(i, len(infos[role]) - 1)])
                     for i in range(len(list(data.glob(f"{role}_*.pb"))))] for role in ("input", "output")))
            config = {"rtol": 1e-3, "atol": 1e-7}
            if (folder / "config.json").exists():
                config.update(json.loads((folder / "config.json").read_text()))
            yield folder.name, kind, model, sets, config["rtol"], config["atol"]


def node_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        for case in collect_testcases(None):
            yield case.name, "node", case.model, case.data_sets, case.rtol, case.atol


def collect(parent):
    """The cases and their folder below PARENT, which is filled the first time."""
    folder = parent / f"{onnx.__version__}-{FORM}"
    if not (folder / "cases.json").exists():
        parent.mkdir(parents=True, exist_ok=True)
        made = pathlib.Path(tempfile.mkdtemp(dir=parent))
        cases = []
        for source in (node_cases(), stored_cases()):
            for case in source:
                if not any(c["name"] == case[0] for c in cases):
                    cases.append(write_case(made, *case))
        (made / "cases.json").write_text(json.dumps(cases, indent=0))
        try:
            os.rename(made, folder)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return json.loads((folder / "cases.json").read_text()), folder
