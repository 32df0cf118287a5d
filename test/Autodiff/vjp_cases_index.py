# vjp_cases_index.py - Derivatives of indices, order and running sums
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# See vjp_case.py.
from vjp_case import Case, Input


def scatter_cases():
    def scatter(name, kind, data, indices, updates, y, axis=0):
        op = f'train.scatter %d, %i, %u axis {axis} reduction "{kind}" : ({{d}}, {{i}}, {{u}}) -> {{y}}'
        return Case(name, {"d": data, "i": indices, "u": updates}, op, y)

    data, one = Input((4, 3)), Input((1,), "index:4")
    yield scatter("scatter_none", "none", data, one, Input((1, 3)), (4, 3))
    yield scatter("scatter_none_axis", "none", Input((2, 5)), Input((), "index:5"), Input((2,)), (2, 5), 1)
    # Six updates of four rows: some rows get several.
    many, rows = Input((2, 3), "index:4"), Input((2, 3, 3))
    for kind in ("add", "mul", "max", "min"):
        yield scatter(f"scatter_{kind}", kind, data, many, rows, (4, 3))
        yield scatter(f"scatter_{kind}_axis", kind, Input((2, 3, 2)), Input((4,), "index:3"), Input((2, 4, 2)), (2, 3, 2), 1)
        yield scatter(f"scatter_{kind}_empty", kind, data, Input((0,), "index:4"), Input((0, 3)), (4, 3))
    # Zeros among the factors: the product of the others is their slope.
    yield scatter("scatter_mul_zeros", "mul", data, many, Input((2, 3, 3), "ties"), (4, 3))
    # A pair of equals shares the slope.
    yield scatter("scatter_max_ties", "max", Input((3,), "ties"), Input((1,), "index:3"), Input((1,), "ties"), (3,))


def recurrence_cases():
    x = {"x": Input((2, 4, 3))}
    for flags in ("", "exclusive", "reverse", "exclusive, reverse"):
        name = "_".join(["cumulative_sum", *flags.replace(",", "").split()])
        yield Case(name, x, f"train.cumulative_sum %x axis 1 {{{flags}}} : {{x}}", (2, 4, 3))
    both = {"a": Input((3, 4)), "b": Input((3, 4))}
    for axis, flags in ((1, ""), (0, "reverse"), (1, "reverse")):
        name = f"linear_recurrence_{axis}{flags}"
        yield Case(name, both, f"train.linear_recurrence %a, %b axis {axis} {{{flags}}} : {{y}}", (3, 4))
    empty = {"a": Input((0, 4)), "b": Input((0, 4))}
    yield Case("linear_recurrence_empty", empty, "train.linear_recurrence %a, %b axis 0 : {y}", (0, 4))


def cases():
    yield from scatter_cases()
    yield from recurrence_cases()
    for axis, k, y in ((0, 2, (2, 5)), (1, 3, (4, 3)), (1, 0, (4, 0))):
        for flags in ("", " {smallest}"):
            op = f"train.top_k %x, {k} axis {axis}{flags} : ({{x}}) -> ({{y}}, {Input(y, 'index:1').type})"
            yield Case(f"top_k_{axis}_{k}{flags.strip(' {}')}", {"x": Input((4, 5), "distinct")}, op, y, "tensor<")
    dense = {"g": Input((2, 4, 3)), "i": Input((4,), "index:5")}
    yield Case("gather_grad", dense, "train.gather_grad %g, %i axis 1 data_shape [2, 5, 3] : ({g}, {i}) -> {y}", (2, 5, 3))
