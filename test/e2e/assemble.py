# assemble.py - Cases that assemble device kernels with CUDA's ptxas.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every kernel of every model is accepted by ptxas for each target, and none spills registers.

The fake GPUs of cuda.py interpret PTX; this is the assembler of the real ones. Without a CUDA
toolkit there are no cases, and a line says so.
"""
import os
import pathlib
import re
import shutil
import subprocess

from harness import model, require

TARGETS = ("sm_80", "sm_90", "sm_100")
PRECISIONS = ("f32", "bf16")
MODELS = ("mlp", "cnn", "gpt2")
# An exact division or root calls a routine for subnormals: a register or two may be saved around the call,
# where all are in use. It is in no loop: rows are divided once.
CALL_BYTES = 8
WIDE = pathlib.Path(__file__).with_name("wide_block.mlir")
FUNCTION = re.compile(r"Function properties for (\S+)\n\s+(\d+) bytes stack frame, (\d+) bytes spill stores, "
                      r"(\d+) bytes spill loads")


def find_ptxas():
    """That of the toolkit that the compiler would take libdevice from, or any on PATH."""
    places = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for place in (*places, "/usr/local/cuda"):
        if os.access(f"{place}/bin/ptxas", os.X_OK):
            return f"{place}/bin/ptxas"
    return shutil.which("ptxas")


def assemble(ptxas, ptx, target):
    """Stack and spilled bytes by function."""
    done = subprocess.run([ptxas, f"-arch={target}", "-v", str(ptx), "-o", os.devnull], text=True, capture_output=True)
    require(done.returncode == 0, f"ptxas {target}: {done.stderr.strip().splitlines()[-1:]}")
    return {name: tuple(map(int, numbers)) for name, *numbers in FUNCTION.findall(done.stderr)}


def no_spills(ptxas, tools, step, target, *flags):
    ptx = step.with_name(f"{step.stem}-{target}.ptx")
    tools.ok("zero-compile", step, "--target", f"cuda:{target}", "--emit", "ptx", "-o", ptx, *flags)
    text = ptx.read_text()
    functions = assemble(ptxas, ptx, target)
    require(sorted(functions) == sorted(re.findall(r"\.entry (\w+)\(", text)), "ptxas reports other functions")
    for name, (stack, stores, loads) in functions.items():
        require(stack <= CALL_BYTES, f"{name} keeps {stack} bytes of a thread in local memory")
        require(max(stores, loads) <= CALL_BYTES, f"{name} spills {stores} bytes")


def of_model(ptxas, tools, name, precision, target):
    m = model(name)
    step = tools.scratch / f"assemble-{name}-{precision}-{target}.mlir"
    flags = [*m.dims("ts_train", m.reference["batch"]), "--loss", m.reference["loss"], "--optimizer", "adamw"]
    tools.ok("zero-import", m.folder / "ts_train.onnx", *flags, "--precision", precision, "-o", step)
    no_spills(ptxas, tools, step, target, "--zero-stage", 3, "--ranks", 2)


def of_wide_block(ptxas, tools, precision, target):
    step = tools.scratch / f"assemble-wide-{precision}-{target}.mlir"
    options = f"loss=causal-lm optimizer=adamw precision={precision}"
    tools.ok("zero-opt", WIDE, f"-train-step={options}", "-o", step)
    no_spills(ptxas, tools, step, target)


def add_cases(cases, tools):
    ptxas = find_ptxas()
    if not ptxas:
        print("no cases 'assemble': no ptxas in CUDA_HOME, CUDA_PATH, /usr/local/cuda or PATH")
        return
    for target in TARGETS:
        for precision in PRECISIONS:
            for name in MODELS:
                cases.add(f"assemble {name} {precision} {target}", of_model, ptxas, tools, name, precision, target)
            cases.add(f"assemble wide {precision} {target}", of_wide_block, ptxas, tools, precision, target)
