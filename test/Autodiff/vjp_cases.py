# vjp_cases.py - The derivatives that are checked by numbers.
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

    normal: the normal distribution; positive: between 0.5 and 2; distinct: no
    two within 0.05; ties: small whole numbers, so that many are equal; index:N:
    integers in [-N, N); label:N: integers in [0, N), some of them -100; bool.
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
  {bind} = {op}
  %p = train.mul {y}, %r : {result.type}
  %loss = train.reduce_sum %p axes [{axes}] : ({result.type}) -> tensor<f64>
  return %loss : tensor<f64>
}}
"""


def unary_cases():
    normal, positive = Input((3, 4)), Input((3, 4), "positive")
    operands = {"x": normal}
    for op in ("neg", "abs", "exp", "erf", "tanh", "sigmoid", "relu", "sin", "cos", "gelu"):
        yield Case(op, operands, f"train.{op} %x : {{x}}", (3, 4))
    for op in ("log", "sqrt", "rsqrt", "reciprocal"):
        yield Case(op, {"x": positive}, f"train.{op} %x : {{x}}", (3, 4))
    for op in ("floor", "sign"):
        yield Case(op, operands, f"train.{op} %x : {{x}}", (3, 4))
    yield Case("gelu_tanh", operands, 'train.gelu %x {approximate = "tanh"} : {x}', (3, 4))
    yield Case("abs_zero", {"x": Input((6,), "ties")}, "train.abs %x : {x}", (6,))
    yield Case("empty", {"x": Input((0, 4))}, "train.exp %x : {x}", (0, 4))
    yield Case("scalar", {"x": Input(())}, "train.exp %x : {x}", ())


def binary_cases():
    full, row, column = Input((3, 4)), Input((4,)), Input((3, 1))
    far = Input((3, 4), "positive")
    types = "({a}, {b}) -> {y}"
    for op in ("add", "sub", "mul"):
        yield Case(op, {"a": full, "b": full}, f"train.{op} %a, %b : {types}", (3, 4))
        yield Case(f"{op}_row", {"a": full, "b": row}, f"train.{op} %a, %b : {types}", (3, 4))
        yield Case(f"{op}_outer", {"a": column, "b": row}, f"train.{op} %a, %b : {types}", (3, 4))
        yield Case(f"{op}_scalar", {"a": Input(()), "b": full}, f"train.{op} %a, %b : {types}", (3, 4))
    yield Case("div", {"a": full, "b": far}, f"train.div %a, %b : {types}", (3, 4))
    yield Case("div_row", {"a": row, "b": far}, f"train.div %a, %b : {types}", (3, 4))
    yield Case("pow", {"a": far, "b": full}, f"train.pow %a, %b : {types}", (3, 4))
    yield Case("pow_row", {"a": far, "b": row}, f"train.pow %a, %b : {types}", (3, 4))
    yield Case("mod", {"a": Input((3, 4)), "b": far}, f"train.mod %a, %b : {types}", (3, 4))
    for op in ("max", "min"):
        yield Case(op, {"a": full, "b": row}, f"train.{op} %a, %b : {types}", (3, 4))
        ties = Input((4, 5), "ties")
        yield Case(f"{op}_ties", {"a": ties, "b": ties}, f"train.{op} %a, %b : {types}", (4, 5))
    yield Case("broadcast_empty", {"a": Input((0, 4)), "b": Input((1, 4))}, f"train.mul %a, %b : {types}", (0, 4))
    yield Case(
        "where",
        {"c": Input((3, 4), "bool"), "a": full, "b": Input(())},
        "train.where %c, %a, %b : ({c}, {a}, {b}) -> {y}",
        (3, 4),
    )


def product_cases():
    def matmul(name, a, b, y, flags=""):
        op = f"train.matmul %a, %b {flags} : ({{a}}, {{b}}) -> {{y}}"
        return Case(name, {"a": Input(a), "b": Input(b)}, op, y)

    for ta in (False, True):
        for tb in (False, True):
            a, b = ((5, 3) if ta else (3, 5)), ((4, 5) if tb else (5, 4))
            flags = ", ".join(["transpose_a"] * ta + ["transpose_b"] * tb)
            yield matmul(f"matmul_{ta:d}{tb:d}", a, b, (3, 4), f"{{{flags}}}" if flags else "")
            flags = f"{{{flags}}}" if flags else ""
            yield matmul(f"matmul_batch_{ta:d}{tb:d}", (2, 1, *a), (3, *b), (2, 3, 3, 4), flags)
            yield matmul(f"matmul_flat_{ta:d}{tb:d}", (2, *a), b, (2, 3, 4), flags)
    yield matmul("matmul_empty", (3, 0), (0, 4), (3, 4))
    yield matmul("matmul_left", (3, 5), (2, 5, 4), (2, 3, 4))
    for name, c in (("row", (4,)), ("column", (3, 1)), ("scalar", ())):
        yield Case(
            f"gemm_{name}",
            {"a": Input((5, 3)), "b": Input((4, 5)), "c": Input(c)},
            "train.gemm %a, %b, %c {transpose_a, transpose_b} : ({a}, {b}, {c}) -> {y}",
            (3, 4),
        )


def window_cases():
    conv = "train.conv %x, %w, %b strides {s} pads {p} dilations {d} group {g} : ({x}, {w}, {b}) -> {y}"

    def convolution(name, x, w, y, s, p, d, g=1):
        op = conv.replace("{s}", s).replace("{p}", p).replace("{d}", d).replace("{g}", str(g))
        return Case(name, {"x": Input(x), "w": Input(w), "b": Input((w[0],))}, op, y)

    yield convolution("conv_1d", (2, 2, 7), (3, 2, 3), (2, 3, 5), "[1]", "[0, 0]", "[1]")
    yield convolution("conv_stride", (1, 2, 6, 7), (2, 2, 3, 2), (1, 2, 3, 4), "[2, 2]", "[1, 0, 1, 1]", "[1, 1]")
    yield convolution("conv_dilated", (1, 1, 7, 7), (2, 1, 2, 2), (1, 2, 4, 5), "[1, 1]", "[0, 0, 0, 0]", "[3, 2]")
    yield convolution("conv_group", (2, 4, 5, 5), (6, 2, 3, 3), (2, 6, 3, 3), "[1, 1]", "[0, 0, 0, 0]", "[1, 1]", 2)
    yield convolution("conv_3d", (1, 1, 3, 4, 3), (2, 1, 2, 2, 2), (1, 2, 2, 3, 2), "[1, 1, 1]", "[0, 0, 0, 0, 0, 0]", "[1, 1, 1]")
    window = "kernel [2, 3] strides [2, 1] pads [0, 1, 1, 1] dilations [1, 1]"
    distinct = Input((1, 2, 5, 4), "distinct")
    yield Case("max_pool", {"x": distinct}, f"train.max_pool %x {window} : ({{x}}) -> {{y}}", (1, 2, 3, 4))
    for flags in ("", " {count_include_pad}"):
        name = "avg_pool_padded" if flags else "avg_pool"
        yield Case(name, {"x": Input((1, 2, 5, 4))}, f"train.avg_pool %x {window}{flags} : ({{x}}) -> {{y}}", (1, 2, 3, 4))


def shape_cases():
    x = {"x": Input((2, 3, 4))}
    yield Case("reshape", x, "train.reshape %x : {x} to {y}", (4, 6))
    yield Case("broadcast", {"x": Input((3, 1))}, "train.broadcast %x : {x} to {y}", (2, 3, 4))
    yield Case("transpose", x, "train.transpose %x [1, 2, 0] : ({x}) -> {y}", (3, 4, 2))
    yield Case("slice", x, "train.slice %x starts [0, 1, 0] limits [1, 3, 4] strides [1, 1, 3] : ({x}) -> {y}", (1, 2, 2))
    yield Case("slice_empty", x, "train.slice %x starts [2, 0, 0] limits [2, 3, 4] strides [1, 2, 1] : ({x}) -> {y}", (0, 2, 4))
    yield Case("concat", {"a": Input((2, 3)), "b": Input((2, 0)), "c": Input((2, 1))}, "train.concat %a, %b, %c axis 1 : ({a}, {b}, {c}) -> {y}", (2, 4))
    yield Case("concat_same", {"a": Input((2, 3))}, "train.concat %a, %a axis 0 : ({a}, {a}) -> {y}", (4, 3))
    yield Case("pad", {"x": Input((2, 3))}, "train.pad %x low [1, 0] high [0, 2] interior [1, 2] : ({x}) -> {y}", (4, 9))
    yield Case("gather", {"t": Input((5, 3)), "i": Input((2, 4), "index:5")}, "train.gather %t, %i axis 0 : ({t}, {i}) -> {y}", (2, 4, 3))
    yield Case("gather_axis", {"t": Input((2, 5, 3)), "i": Input((4,), "index:5")}, "train.gather %t, %i axis 1 : ({t}, {i}) -> {y}", (2, 4, 3))
    yield Case("gather_scalar", {"t": Input((5, 3)), "i": Input((), "index:5")}, "train.gather %t, %i axis 0 : ({t}, {i}) -> {y}", (3,))


def reduction_cases():
    x, distinct = {"x": Input((2, 3, 4))}, {"x": Input((2, 3, 4), "distinct")}
    for op, operands in (("sum", x), ("mean", x), ("max", distinct), ("min", distinct)):
        yield Case(f"reduce_{op}", operands, f"train.reduce_{op} %x axes [1] : ({{x}}) -> {{y}}", (2, 4))
        yield Case(f"reduce_{op}_keep", operands, f"train.reduce_{op} %x axes [0, 2] {{keepdims}} : ({{x}}) -> {{y}}", (1, 3, 1))
        yield Case(f"reduce_{op}_all", operands, f"train.reduce_{op} %x axes [0, 1, 2] : ({{x}}) -> {{y}}", ())
    # Pairs of equal elements: a central difference gives each one half.
    yield Case("reduce_max_ties", {"x": Input((2, 4), "ties")}, "train.reduce_max %x axes [0] : ({x}) -> {y}", (4,))
    yield Case("reduce_sum_empty", {"x": Input((0, 4))}, "train.reduce_sum %x axes [0] : ({x}) -> {y}", (4,))


def norm_cases():
    x, s, v = Input((3, 2, 4)), Input((2, 4)), Input((2,))
    yield Case("layer_norm", {"x": x, "s": s, "b": s}, "train.layer_norm %x, %s, %b {axis = 1 : i64, epsilon = 1.0e-5 : f64} : ({x}, {s}, {b}) -> ({y}, tensor<3x1x1xf64>, tensor<3x1x1xf64>)", (3, 2, 4), "tensor<, tensor<")
    yield Case("layer_norm_last", {"x": x, "s": Input((4,))}, "train.layer_norm %x, %s {axis = 2 : i64, epsilon = 0.1 : f64} : ({x}, {s}) -> ({y}, tensor<3x2x1xf64>, tensor<3x2x1xf64>)", (3, 2, 4), "tensor<, tensor<")
    yield Case("rms_norm", {"x": x, "s": Input((4,))}, "train.rms_norm %x, %s {axis = 2 : i64, epsilon = 0.1 : f64} : ({x}, {s}) -> ({y}, tensor<3x2x1xf64>)", (3, 2, 4), "tensor<")
    yield Case("batch_norm", {"x": x, "s": v, "b": v, "m": v, "v": v}, "train.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5 : f64, momentum = 0.9 : f64, unbiased} : ({x}, {s}, {b}, {m}, {v}) -> ({y}, {m}, {v}, tensor<2xf64>, tensor<2xf64>)", (3, 2, 4), "tensor<" * 4)
    yield Case("batch_norm_inference", {"x": x, "s": v, "b": v, "m": v, "v": Input((2,), "positive")}, "train.batch_norm_inference %x, %s, %b, %m, %v {epsilon = 0.1 : f64} : ({x}, {s}, {b}, {m}, {v}) -> {y}", (3, 2, 4))
    for op in ("softmax", "log_softmax"):
        yield Case(op, {"x": x}, f"train.{op} %x axis 2 : {{x}}", (3, 2, 4))
        yield Case(f"{op}_first", {"x": x}, f"train.{op} %x axis 0 : {{x}}", (3, 2, 4))


def attention_cases():
    y, lse = (1, 2, 3, 3), "tensor<1x2x3xf64>"
    q, keys, values = Input((1, 2, 3, 2)), Input((1, 2, 4, 2)), Input((1, 2, 4, 3))
    yield Case("attention", {"q": q, "k": keys, "v": values, "m": Input((2, 1, 4))}, f"train.attention %q, %k, %v, %m scale 7.0e-01 : ({{q}}, {{k}}, {{v}}, {{m}}) -> ({{y}}, {lse})", y, "tensor<")
    yield Case("attention_groups", {"q": q, "k": Input((1, 1, 4, 2)), "v": Input((1, 1, 4, 3))}, f"train.attention %q, %k, %v scale 7.0e-01 causal : ({{q}}, {{k}}, {{v}}) -> ({{y}}, {lse})", y, "tensor<")


def loss_cases():
    loss = "train.cross_entropy %x, %l {axis = 1 : i64} : ({x}, {l}) -> ({y}, {lse})"
    for name, shape in (("cross_entropy", (5, 3)), ("cross_entropy_image", (2, 3, 2, 2))):
        labels = Input((shape[0], *shape[2:]), "label:3")
        op = loss.replace("{lse}", labels.type.replace("i64", "f64"))
        yield Case(name, {"x": Input(shape), "l": labels}, op, (), "tensor<")


CASES = [
    *unary_cases(),
    *binary_cases(),
    *product_cases(),
    *window_cases(),
    *shape_cases(),
    *reduction_cases(),
    *norm_cases(),
    *attention_cases(),
    *loss_cases(),
]
