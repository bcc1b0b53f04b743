"""Random parts of graphs that are known before the network runs: constants of every type, and the data's shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

import onnx_makers
from onnx_compare import Array
from onnx_graphs import Draw, RefusedError
from onnx_makers import broadcast_shape, maker

INT64 = np.int64
KINDS = (np.float32, np.float32, np.float64, np.float16, np.int32, np.int32, np.int64, np.uint8, np.int8, np.bool_)
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Pow")


def _typed(draw: Draw, kind: Any, shape: tuple[int, ...]) -> Array:
    """Numbers of a type, some of them so large that a sum or a product overflows."""
    if kind is np.bool_:
        return draw.rng.random(shape) < 0.5
    if np.issubdtype(kind, np.integer):
        limits = np.iinfo(kind)
        most = min(int(limits.max), 2**31 - 1) if draw.chance(0.2) else min(int(limits.max), 12)
        return draw.rng.integers(max(int(limits.min), -most), most, shape, endpoint=True).astype(kind)
    return (draw.numbers(shape) * (1000 if draw.chance(0.1) else 1)).astype(kind)


def _calculated(draw: Draw, shape: tuple[int, ...]) -> str:
    """A constant after a few nodes of its type, or of others behind a Cast."""
    name = draw.initializer(_typed(draw, draw.choose(KINDS), shape))
    for _ in range(draw.whole(1, 3)):
        kind = draw.values[name].dtype
        if draw.chance(0.5) and kind != np.bool_:
            op = draw.choose(ARITHMETIC)
            other = _typed(draw, kind.type, broadcast_shape(draw, draw.values[name].shape))
            if op in ("Div", "Mod"):
                other = np.where(other == 0, 1, other)
            if op == "Pow":
                other = abs(other) % 4
            more = {"fmod": 1} if op == "Mod" and kind.kind == "f" else {}
            inputs = [name, draw.initializer(other, kind)]
            name = draw.node(op, inputs if draw.chance(0.7) or op in ("Mod", "Pow", "Div") else inputs[::-1], **more)
        else:
            name = onnx_makers.step(draw, name)
        if name in draw.data:
            raise RefusedError("it is not a constant any more")
    if draw.values[name].dtype != np.float32:
        name = draw.node("Cast", [name], to=TensorProto.FLOAT)
    return name


@maker(4, "f")
def calculated_constant(draw: Draw, name: str) -> str:
    constant = _calculated(draw, broadcast_shape(draw, draw.values[name].shape))
    inputs = [name, constant] if draw.chance(0.6) else [constant, name]
    return draw.node(draw.choose(["Add", "Mul", "Sub", "Max"]) if draw.opset >= 8 else "Add", inputs)


@maker(1.5, "f", (1, 5), since=9)
def filled_by_shape(draw: Draw, name: str) -> str:
    """Numbers whose places come from the shape of the data: full_like, expand_as and arange of exporters."""
    value = draw.values[name]
    shape = draw.node("Shape", [name])
    way = draw.whole(0, 3)
    if way == 0:
        other = draw.node("ConstantOfShape", [shape])
    elif way == 1:
        other = draw.node("Expand", [draw.constant(draw.numbers((value.shape[-1],))), shape])
    elif way == 2 and draw.opset >= 11:
        at = draw.axis(value.ndim)
        size = draw.node("Gather", [shape, draw.constant(at, INT64)], axis=0)
        steps = draw.node("Range", [draw.constant(0, INT64), size, draw.constant(1, INT64)])
        behind = [value.shape[at], *[1] * (value.ndim - 1 - at % value.ndim)]
        other = draw.node("Cast", [draw.node("Reshape", [steps, draw.constant(behind, INT64)])], to=TensorProto.FLOAT)
    else:
        size = draw.node("Size", [name])
        other = draw.node("Cast", [size], to=TensorProto.FLOAT)
    return draw.node(draw.choose(["Add", "Mul", "Div"]), [name, other] if way else [other, name])


@maker(1, "fib", (2, 5), since=10)
def sliced_by_shape(draw: Draw, name: str) -> str:
    """The last part of an axis, from half of its size on."""
    value = draw.values[name]
    axis = draw.whole(1, value.ndim - 1)
    shape = draw.node("Shape", [name])
    size = draw.node("Gather", [shape, draw.constant([axis], INT64)], axis=0)
    half = draw.node("Div", [size, draw.constant([2], INT64)])
    return draw.node("Slice", [name, half, size, draw.constant([axis], INT64)])


@maker(1, "f", (2, 5), since=8)
def reshaped_as_before(draw: Draw, name: str) -> str:
    """Rows of one dimension, a function, and the shape of the data again."""
    shape = draw.node("Shape", [name])
    rows = draw.node("Reshape", [name, draw.constant([draw.values[name].shape[0] if draw.mixes else 0, -1], INT64)])
    return draw.node("Reshape", [draw.node(draw.choose(["Softmax", "Relu", "Abs"]), [rows]), shape])
