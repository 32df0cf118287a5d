# make_torch_gradients.py - Writes torch_gradients.json
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Usage: make_torch_gradients.py. Needs PyTorch; run it after a change of the
# cases in torch_cases_*.py. See torch_case.py.
import json
import pathlib

import torch
import torch.nn.functional as F
from torch_case import all_cases, inputs_of


def gradients(case):
    tensors = {}
    for name, value in inputs_of(case).items():
        tensors[name] = torch.tensor(value)
        if name in case.variables:
            tensors[name].requires_grad_()
    result = eval(case.torch, {"torch": torch, "F": F}, tensors)
    assert tuple(result.shape) == case.result, f"{case.name}: {tuple(result.shape)}"
    loss = (result * tensors["r"]).sum()
    if loss.requires_grad:
        loss.backward()
    found = {"loss": loss.item()}
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            grad = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
            found[name] = [float(f"{x:.15g}") for x in grad.reshape(-1).tolist()]
    return found


def main():
    found = {case.name: gradients(case) for case in all_cases()}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    path = pathlib.Path(__file__).with_name("torch_gradients.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(found)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
