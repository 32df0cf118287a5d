# vjp_cases_control.py - Derivatives of loops
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input

# Two carried values, what is stacked, and a weight that all steps share.
_CELL = """%s:3 = train.scan init(%h, %c) over(%x) with(%w) steps 4{reverse}
      : (tensor<2x3xf64>, tensor<2x3xf64>, tensor<4x2x3xf64>, tensor<3x3xf64>)
      -> (tensor<2x3xf64>, tensor<2x3xf64>, tensor<4x2x3xf64>) {
    ^bb0(%bh: tensor<2x3xf64>, %bc: tensor<2x3xf64>, %bx: tensor<2x3xf64>, %bw: tensor<3x3xf64>):
      %product = train.matmul %bh, %bw {transpose_b} : (tensor<2x3xf64>, tensor<3x3xf64>) -> tensor<2x3xf64>
      %gate = train.sigmoid %product : tensor<2x3xf64>
      %sum = train.add %bc, %bx : tensor<2x3xf64>
      %cell = train.mul %gate, %sum : tensor<2x3xf64>
      %state = train.tanh %cell : tensor<2x3xf64>
      train.yield %state, %cell, %state : tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>
  }"""


def cases():
    cell = {"h": Input((2, 3)), "c": Input((2, 3)), "x": Input((4, 2, 3)), "w": Input((3, 3))}
    both = "train.add %s#2, %s#1 : (tensor<4x2x3xf64>, tensor<2x3xf64>) -> {y}"
    yield Case("scan", cell, both, (4, 2, 3), before=_CELL.replace("{reverse}", ""))
    yield Case("scan_reverse", cell, both, (4, 2, 3), before=_CELL.replace("{reverse}", " reverse"))
    # Only what is stacked.
    yield Case("scan_stacked", {"x": Input((3, 2)), "w": Input((2,))}, """train.scan over(%x) with(%w) steps 3 : ({x}, {w}) -> {y} {
    ^bb0(%bx: tensor<2xf64>, %bw: tensor<2xf64>):
      %m = train.mul %bx, %bw : tensor<2xf64>
      %e = train.exp %m : tensor<2xf64>
      train.yield %e : tensor<2xf64>
  }""", (3, 2))
    # A loop in a loop.
    yield Case("scan_nested", {"h": Input((2,)), "x": Input((3, 4, 2))}, """train.scan init(%h) over(%x) steps 3 : ({h}, {x}) -> {y} {
    ^bb0(%bh: tensor<2xf64>, %bx: tensor<4x2xf64>):
      %inner = train.scan init(%bh) over(%bx) steps 4 reverse : (tensor<2xf64>, tensor<4x2xf64>) -> tensor<2xf64> {
      ^bb0(%ih: tensor<2xf64>, %ix: tensor<2xf64>):
        %m = train.mul %ih, %ix : tensor<2xf64>
        %t = train.sin %m : tensor<2xf64>
        train.yield %t : tensor<2xf64>
      }
      train.yield %inner : tensor<2xf64>
  }""", (2,))
