"""Random nodes of arithmetic, comparisons, logic, casts, reductions and products."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from onnx_compare import Array
from onnx_graphs import Draw, RefusedError
from onnx_makers import broadcast_shape, maker, partner

INT64 = np.int64

# Functions of one number, with the opset from which on ONNX has them for floats.
FUNCTIONS = {
    7: "Abs Neg Exp Log Sqrt Reciprocal Floor Ceil Sigmoid Tanh Relu Elu Selu LeakyRelu Softplus Softsign HardSigmoid "
    "Sin Cos Tan Asin Acos Atan Identity Dropout",
    9: "Sign Erf Sinh Cosh Asinh Acosh Atanh Shrink",
    10: "ThresholdedRelu",
    11: "Round",
    12: "Celu",
    14: "HardSwish",
    18: "Mish",
    20: "Gelu",
}
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "Elu": ("alpha",), "Selu": ("alpha", "gamma"), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"),
    "Shrink": ("lambd", "bias"), "ThresholdedRelu": ("alpha",), "Celu": ("alpha",),
}  # fmt: skip
LARGEST_ANGLE = 1e5  # of larger ones gpunn gives NaN
SAFE = {"Log": "Abs", "Sqrt": "Abs", "Asin": "Tanh", "Acos": "Tanh", "Atanh": "Tanh"}


@maker(8, "f")
def function(draw: Draw, name: str) -> str:
    op = draw.choose([op for since, ops in FUNCTIONS.items() if draw.opset >= since for op in ops.split()])
    if op in SAFE and draw.chance(0.6):
        name = draw.node(SAFE[op], [name])
    if op in ("Sin", "Cos", "Tan") and not np.all(np.abs(draw.values[name]) <= LARGEST_ANGLE):
        name = draw.node("Tanh", [name])
    attributes: dict[str, Any] = {
        key: round(abs(float(draw.rng.normal(0.5, 0.4))) + 0.05, 3)
        for key in ATTRIBUTES.get(op, ())
        if draw.chance(0.5)
    }
    if op == "Gelu" and draw.chance(0.5):
        attributes["approximate"] = "tanh"
    return draw.node(op, [name], **attributes)


@maker(1, "f", (1, 5))
def prelu(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape[1:]
    slope = tuple(size if draw.chance(0.5) else 1 for size in shape)
    return draw.node("PRelu", [name, draw.constant(draw.numbers(slope))])


def _in_some_order(draw: Draw, op: str, one: str, other: str, **attributes: Any) -> str:
    return draw.node(op, [one, other] if draw.chance(0.6) else [other, one], **attributes)


@maker(8, "f")
def arithmetic(draw: Draw, name: str) -> str:
    op = draw.choose(["Add", "Sub", "Mul", "Div"])

    def make(shape: tuple[int, ...]) -> Array:
        way = draw.whole(0, 5)
        if way == 0:
            return np.full(shape, draw.choose([0, 1, 1, -1]), np.float32)
        values = draw.numbers(shape)
        return np.where(abs(values) < 0.1, np.float32(0.5), values) if draw.chance(0.8) else values

    return _in_some_order(draw, op, name, partner(draw, name, make))


@maker(2, "iu")
def integers(draw: Draw, name: str) -> str:
    kind = draw.values[name].dtype
    op = draw.choose(["Add", "Sub", "Mul", "Max", "Min"] if draw.opset >= 12 else ["Add", "Sub", "Mul"])
    low = 0 if kind.kind == "u" else -9
    other = partner(draw, name, lambda shape: draw.rng.integers(low, 10, shape))
    return _in_some_order(draw, op, name, other)


@maker(1, "iu", since=8)
def divide_integers(draw: Draw, name: str) -> str:
    kind = draw.values[name].dtype
    divisor = draw.rng.integers(1, 6, broadcast_shape(draw, draw.values[name].shape))
    if kind.kind == "i" and draw.chance(0.4):
        divisor = -divisor
    by = draw.constant(divisor, kind)
    if draw.opset >= 10 and draw.chance(0.5):
        return draw.node("Mod", [name, by], fmod=draw.whole(0, 1))
    return draw.node("Div", [name, by])


@maker(1.5, "f")
def power(draw: Draw, name: str) -> str:
    exponents = [0, 0.5, 1, 2, 3, -1, -2, 1.7]

    def make(shape: tuple[int, ...]) -> Array:
        if draw.chance(0.6):
            return np.full(shape, draw.choose(exponents), np.float32)
        return draw.rng.choice(exponents, shape).astype(np.float32)

    if draw.chance(0.15):  # a constant to the power of the data
        base = draw.constant(abs(draw.numbers(broadcast_shape(draw, draw.values[name].shape))) + np.float32(0.1))
        return draw.node("Pow", [base, name])
    if draw.opset >= 12 and draw.chance(0.2):
        whole = draw.constant(draw.rng.integers(0, 4, broadcast_shape(draw, draw.values[name].shape)), INT64)
        return draw.node("Pow", [name, whole])
    return draw.node("Pow", [name, partner(draw, name, make)])


@maker(1.5, "f", since=8)
def several(draw: Draw, name: str) -> str:
    op = draw.choose(["Max", "Min", "Sum", "Mean"])
    inputs = [name, *(partner(draw, name, draw.numbers) for _ in range(draw.whole(0, 2)))]
    return draw.node(op, [inputs[int(at)] for at in draw.rng.permutation(len(inputs))])


@maker(1.5, "f")
def clip(draw: Draw, name: str) -> str:
    low, high = sorted(round(float(bound), 2) for bound in draw.rng.normal(0, 1.5, 2))
    bounds = [-np.inf if draw.chance(0.15) else low, np.inf if draw.chance(0.15) else high]
    has = [draw.chance(0.7), draw.chance(0.7)]
    if draw.opset < 11:
        pairs = zip(("min", "max"), bounds, has, strict=True)
        return draw.node("Clip", [name], **{key: float(bound) for key, bound, kept in pairs if kept})
    kind = draw.values[name].dtype
    inputs = [draw.constant(bound, kind) if kept else "" for bound, kept in zip(bounds, has, strict=True)]
    while inputs and not inputs[-1]:
        inputs.pop()
    return draw.node("Clip", [name, *inputs])


@maker(0.7, "f", since=10)
def modulo(draw: Draw, name: str) -> str:
    by = draw.constant(draw.choose([2.0, 1.5, -0.75, 3.0]), np.float32)
    return draw.node("Mod", [name, by], fmod=1)


def _comparison(draw: Draw, name: str) -> str:
    ops = ["Less", "Greater"] if draw.opset >= 9 or draw.values[name].dtype.kind == "f" else ["Equal"]
    if draw.opset >= 11:
        ops.append("Equal")
    if draw.opset >= 12:
        ops += ["LessOrEqual", "GreaterOrEqual"]
    kind = draw.values[name].dtype

    def make(shape: tuple[int, ...]) -> Array:
        if kind.kind == "f":
            if draw.chance(0.3):
                return np.full(shape, draw.choose([0, 0, 1, np.inf, -np.inf]), np.float32)
            return draw.numbers(shape)
        return draw.rng.integers(0, 5, shape)

    return _in_some_order(draw, draw.choose(ops), name, partner(draw, name, make))


@maker(3, "fi")
def comparison(draw: Draw, name: str) -> str:
    return _comparison(draw, name)


@maker(0.7, "f", since=10)
def is_special(draw: Draw, name: str) -> str:
    if draw.chance(0.5):
        return draw.node("IsNaN", [name])
    return draw.node("IsInf", [name], detect_negative=draw.whole(0, 1), detect_positive=draw.whole(0, 1))


@maker(5, "b")
def logic(draw: Draw, name: str) -> str:
    if draw.chance(0.25):
        return draw.node("Not", [name])
    other = partner(draw, name, lambda shape: draw.rng.random(shape) < 0.5)
    return _in_some_order(draw, draw.choose(["And", "Or", "Xor"]), name, other)


@maker(6, "b", since=9)
def where_data(draw: Draw, name: str) -> str:
    """Branches of data or of constants, some of them infinite or NaN where they are not chosen."""
    shape = draw.values[name].shape

    def branch() -> str:
        floats = [other for other in draw.data if draw.values[other].dtype == np.float32]
        fits = [other for other in floats if draw.values[other].shape == shape]
        way = draw.whole(0, 4)
        if way <= 1 and fits:
            return str(draw.choose(fits))
        if way == 2 and fits:
            return draw.node(draw.choose(["Log", "Sqrt", "Reciprocal", "Exp"]), [draw.choose(fits)])
        if way == 3:
            return draw.constant(draw.choose([0.0, 1.0, -np.inf, np.inf, np.nan]), np.float32)
        return draw.constant(draw.numbers(broadcast_shape(draw, shape)))

    return draw.node("Where", [name, branch(), branch()])


@maker(1.5, "f", since=9)
def where_constant(draw: Draw, name: str) -> str:
    mask = draw.constant(draw.rng.random(broadcast_shape(draw, draw.values[name].shape)) < 0.5)
    other = partner(draw, name, lambda shape: draw.numbers(shape, special=draw.chance(0.2)))
    return draw.node("Where", [mask, name, other] if draw.chance(0.5) else [mask, other, name])


@maker(1.5, "f", since=9)
def where_defined(draw: Draw, name: str) -> str:
    """where(x > 0, log(x), 0) and its like."""
    mask = draw.node("Greater", [name, draw.constant(0, np.float32)])
    risky = draw.node(draw.choose(["Log", "Sqrt", "Reciprocal"]), [name])
    return draw.node("Where", [mask, risky, draw.constant(draw.choose([0.0, -1.0]), np.float32)])


@maker(3, "fiub", since=9)
def cast(draw: Draw, name: str) -> str:
    value = draw.values[name]
    kinds: list[Any] = [np.float32, np.float16, np.float64, np.bool_]
    # A float that does not fit has no defined integer.
    finite = value.dtype.kind != "f" or (bool(np.isfinite(value).all()) and bool((abs(value) < 1e5).all()))
    if finite:
        kinds += [np.int32, np.int64, np.int32, np.int64]
        if value.dtype.kind != "f" or bool(((value >= 0) & (value < 256)).all()) or draw.chance(0.3):
            kinds.append(np.uint8)
    if value.dtype != np.float32:
        kinds += [np.float32] * 4
    kind = np.dtype(draw.choose([kind for kind in kinds if np.dtype(kind) != value.dtype]))
    to = helper.np_dtype_to_tensor_dtype(kind)
    if draw.opset >= 15 and draw.chance(0.15):
        return draw.node("CastLike", [name, draw.constant(np.ones(1), kind)])
    return draw.node("Cast", [name], to=to)


REDUCTIONS = ["Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]


@maker(4, "f", finite=True)
def reduction(draw: Draw, name: str) -> str:
    op = "Reduce" + draw.choose(REDUCTIONS)
    rank = draw.values[name].ndim
    if op == "ReduceLogSum" and draw.chance(0.7):
        name = draw.node("Abs", [name])
    attributes: dict[str, Any] = {"keepdims": draw.whole(0, 1)} if draw.chance(0.7) else {}
    axes = [] if draw.chance(0.1 if draw.mixes or rank == 0 else 0.02) else draw.axes(rank)
    as_input = draw.opset >= (13 if op == "ReduceSum" else 18)
    if as_input:
        if draw.chance(0.3):
            attributes["noop_with_empty_axes"] = draw.whole(0, 1)
        no_axes = [name] if draw.chance(0.5) else [name, draw.constant([], INT64)]
        return draw.node(op, [name, draw.constant(axes, INT64)] if axes else no_axes, **attributes)
    return draw.node(op, [name], **({"axes": axes} if axes else {}), **attributes)


@maker(1, "f", (1, 6), finite=True)
def arg_max(draw: Draw, name: str) -> str:
    attributes: dict[str, Any] = {"keepdims": draw.whole(0, 1)} if draw.chance(0.7) else {}
    if draw.opset >= 12 and draw.chance(0.3):
        attributes["select_last_index"] = 1
    return draw.node(draw.choose(["ArgMax", "ArgMin"]), [name], axis=draw.axis(draw.values[name].ndim), **attributes)


@maker(1, "f", (1, 6), finite=True)
def top_k(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    axis = draw.axis(len(shape))
    count = draw.whole(1, shape[axis])
    more: dict[str, Any] = {"largest": draw.whole(0, 1)} if draw.opset >= 11 and draw.chance(0.6) else {}
    if draw.opset < 10:
        outputs = draw.nodes("TopK", [name], 2, axis=axis, k=count)
    else:
        outputs = draw.nodes("TopK", [name, draw.constant([count], INT64)], 2, axis=axis, **more)
    return outputs[0 if draw.chance(0.7) else 1]


@maker(1, "f", (1, 6), since=11, finite=True)
def cumulative_sum(draw: Draw, name: str) -> str:
    axis = draw.constant(draw.axis(draw.values[name].ndim), INT64)
    return draw.node("CumSum", [name, axis], exclusive=draw.whole(0, 1), reverse=draw.whole(0, 1))


@maker(2, "f", (1, 6), finite=True)
def softmax(draw: Draw, name: str) -> str:
    op = draw.choose(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    more = {"axis": draw.axis(draw.values[name].ndim)} if draw.chance(0.85) else {}
    if not more and draw.values[name].ndim < 2:
        raise RefusedError("it mixes the batch")
    return draw.node(op, [name], **more)


@maker(3, "f", (1, 5), finite=True)
def matmul(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    if draw.chance(0.7):
        leading = broadcast_shape(draw, shape[:-2])
        sizes = [(shape[-1],), (shape[-1], draw.whole(1, 4)), (*leading, shape[-1], 2), (1, shape[-1], 2)]
        size: tuple[int, ...] = draw.choose(sizes)
        return draw.node("MatMul", [name, draw.constant(draw.numbers(size))])
    if len(shape) < 2 or (len(shape) == 2 and not draw.mixes):
        raise RefusedError("it mixes the batch")
    if draw.chance(0.4):
        turned = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        return draw.node("MatMul", [name, draw.node("Transpose", [name], perm=turned)])
    left = draw.choose([(3, shape[-2]), (shape[-2],), (1, 2, shape[-2])])
    return draw.node("MatMul", [draw.constant(draw.numbers(left)), name])


@maker(2, "f", (2, 2), finite=True)
def gemm(draw: Draw, name: str) -> str:
    rows, columns = draw.values[name].shape
    attributes: dict[str, Any] = {}
    for key in ("alpha", "beta"):
        if draw.chance(0.3):
            attributes[key] = draw.choose([0.5, 2.0, -1.0, 0.0])
    width = draw.whole(1, 4)
    if draw.mixes and draw.chance(0.25):
        inputs, rows = [name, draw.constant(draw.numbers((rows, width)))], columns
        attributes["transA"] = 1
    elif draw.mixes and draw.chance(0.5):  # the data on the right, or turned
        turned = draw.chance(0.5)
        inner, width = (columns, rows) if turned else (rows, columns)
        left = draw.constant(draw.numbers((2, inner)))
        inputs, attributes["transB"], rows = [left, name], int(turned), 2
    else:
        turned = draw.chance(0.5)
        right = draw.constant(draw.numbers((width, columns) if turned else (columns, width)))
        inputs, attributes["transB"] = [name, right], int(turned)
    if draw.opset < 11 or draw.chance(0.7):
        shapes: list[tuple[int, ...]] = [(width,), (1, width), (1,), (1, 1)]
        shapes += [(rows, width), (rows, 1)] if draw.mixes else [()]
        inputs.append(draw.constant(draw.numbers(draw.choose(shapes))))
    return draw.node("Gemm", inputs, **attributes)


@maker(0.5, "f", (2, 4), since=12, finite=True)
def einsum(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    letters = "abcd"[: len(shape)]
    last = letters[-1]
    weight = draw.constant(draw.numbers((shape[-1], 3)))
    equation = f"{letters},{last}z->{letters[:-1]}z"
    if len(shape) > 2 and draw.chance(0.4):
        equation = f"{letters},{last}z->{letters[0]}z{letters[1:-1]}"
    return draw.node("Einsum", [name, weight], equation=equation)


@maker(0.5, "i", (0, 3), since=11)
def one_hot(draw: Draw, name: str) -> str:
    depth = draw.constant(draw.whole(2, 6), INT64)
    pair = draw.constant([0.0, 1.0] if draw.chance(0.6) else [-1.0, 2.5], np.float32)
    return draw.node("OneHot", [name, depth, pair], axis=-1)
