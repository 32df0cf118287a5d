# vjp_case.py - A derivative that is checked by numbers.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# One case per operation and form: operands with shapes and ranges, and the
# operation. `module_text` makes a function of a case: the loss is the sum of
# the result times an input `r` of the same shape, so that every element of the
# result has another weight. Run `zero-opt -train-autodiff=inputs` on it to get
# the gradients by all float inputs. check_vjps.py compares them with central
# differences, on its own reference of the operations; whoever compiles kernels
# can do the same with them.
import dataclasses


@dataclasses.dataclass
class Input:
    """An operand: its shape and what its elements are.

    normal: the normal distribution; positive: between 0.5 and 2; unit: between
    -0.9 and 0.9; above_one: between 1.2 and 3; far: up to 800 from 0; distinct:
    no two within 0.05; ties: small whole numbers, so that many are equal;
    index:N: integers in [-N, N); label:N: integers in [0, N), some of them
    -100; bool.
    """

    shape: tuple
    kind: str = "normal"

    @property
    def dtype(self):
        if self.kind == "bool":
            return "i1"
        return "i64" if self.kind.split(":")[0] in ("index", "label") else "f64"

    @property
    def type(self):
        return "tensor<" + "".join(f"{d}x" for d in self.shape) + self.dtype + ">"


@dataclasses.dataclass
class Case:
    name: str
    inputs: dict
    op: str  # the operation; {x} is the type of operand x, {y} the result's
    result: tuple  # the result's shape
    extra: str = ""  # types of further results
    before: str = ""  # an operation before it


def module_text(case):
    """The module with the function @forward of a case."""
    result = Input(case.result)
    types = {name: value.type for name, value in case.inputs.items()} | {"y": result.type}
    arguments = ", ".join(
        f'%{name}: {value.type} {{zero.input = "{name}"}}'
        for name, value in (case.inputs | {"r": result}).items()
    )
    op = case.op
    for name, text in types.items():
        op = op.replace("{" + name + "}", text)
    results = case.extra.count("tensor<") + 1
    y, bind = ("%y#0", f"%y:{results}") if results > 1 else ("%y", "%y")
    axes = ", ".join(map(str, range(len(case.result))))
    return f"""func.func @forward({arguments}) -> (tensor<f64> {{zero.output = "loss"}}) {{
  {case.before}
  {bind} = {op}
  %p = train.mul {y}, %r : {result.type}
  %loss = train.reduce_sum %p axes [{axes}] : ({result.type}) -> tensor<f64>
  return %loss : tensor<f64>
}}
"""
