"""Operators that make constants, and that move their elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from constant_graphs.graph import (
    ANY,
    NUMBERS,
    Array,
    Draw,
    Graph,
    InvalidError,
    given_axes,
    onnx_type,
    unary,
)


def constant(g: Graph) -> None:
    kind = int(g.rng.integers(5))
    if g.opset < 12:
        kind = 0
    value = g.numbers(g.choice(ANY), g.shape())
    forms: list[dict[str, Any]] = [
        {"value": numpy_helper.from_array(value)},
        {"value_float": 1.5},
        {"value_int": -7},
        {"value_floats": [0.5, -1.0]},
        {"value_ints": [3, -2, 9]},
    ]
    g.node("Constant", [], **forms[kind])


def constant_of_shape(g: Graph) -> None:
    value = numpy_helper.from_array(g.numbers(g.choice(ANY), (1,))) if g.chance(0.8) else None
    g.node("ConstantOfShape", [g.integers(g.shape())], value=value)


def give_shape(g: Graph) -> None:
    bounds = {"start": int(g.rng.integers(-3, 4)), "end": int(g.rng.integers(-3, 7))} if g.chance(0.5) else {}
    g.node("Shape", [g.operand(ANY)], **bounds)


def number_range(g: Graph) -> None:
    kind = g.choice([np.float32, np.float64, np.int16, np.int32, np.int64])
    step = g.choice([-2, -1, 1, 2, 3]) * (0.5 if np.dtype(kind).kind == "f" else 1)
    start = int(g.rng.integers(-5, 6))
    g.node(
        "Range",
        [g.add(start, kind), g.add(start + int(g.rng.integers(-3, 12)) * np.sign(step), kind), g.add(step, kind)],
    )


def eye_like(g: Graph) -> None:
    kind = onnx_type(g.choice([np.float32, np.float64, np.int32, np.int64, np.uint64])) if g.chance(0.7) else None
    g.node("EyeLike", [g.operand([np.float32, np.int64, np.int32], 2, 2)], k=int(g.rng.integers(-3, 4)), dtype=kind)


def one_hot(g: Graph) -> None:
    places = (
        g.operand([np.int64, np.int32], 1, 4) if g.chance(0.5) else g.fresh(np.int64, g.shape(1, 4), low=-4, high=3)
    )
    rank = g.values[places].ndim
    kind = g.choice([np.float32, np.int64, np.int32])
    axis = int(g.rng.integers(-rank - 1, rank + 1)) if g.chance(0.7) else None
    g.node("OneHot", [places, g.add(int(g.rng.integers(1, 6)), np.int64), g.fresh(kind, (2,))], axis=axis)


def reshape(g: Graph) -> None:
    x = g.operand(ANY)
    size = g.values[x].size
    shape: list[int] = []
    while size > 1 and len(shape) < 5:
        factor = g.choice([one for one in range(1, size + 1) if size % one == 0])
        shape.append(int(factor))
        size //= int(factor)
    shape.append(size)
    if size > 0 and g.chance(0.4):
        shape[int(g.rng.integers(len(shape)))] = -1
    elif g.chance(0.2):
        shape = [0 if g.chance(0.5) else one for one in g.values[x].shape]
    g.node("Reshape", [x, g.integers(shape)], allowzero=1 if g.opset >= 14 and g.chance(0.2) else None)


def squeeze(g: Graph) -> None:
    x = g.operand(ANY)
    ones = [i for i, size in enumerate(g.values[x].shape) if size == 1 and g.chance(0.7)]
    axes = [one - g.values[x].ndim if g.opset >= 11 and g.chance(0.4) else one for one in ones]
    given_axes(g, "Squeeze", x, axes, 13, g.chance(0.3) or not axes)


def unsqueeze(g: Graph) -> None:
    x = g.operand(ANY, 0, 4)
    axes = g.axes(g.values[x].ndim + 2)
    rank = g.values[x].ndim + len(axes)
    given_axes(g, "Unsqueeze", x, sorted({one % rank for one in axes}), 13, False)


def transpose(g: Graph) -> None:
    x = g.operand(ANY)
    order = [int(one) for one in g.rng.permutation(g.values[x].ndim)]
    g.node("Transpose", [x], perm=order if g.chance(0.8) and order else None)


def expand(g: Graph) -> None:
    x = g.operand(ANY, 0, 4)
    shape = [int(g.rng.integers(1, 4)) if size == 1 else g.choice([1, size]) for size in g.values[x].shape]
    g.node("Expand", [x, g.integers([2] * int(g.rng.integers(2)) + shape)])


def tile(g: Graph) -> None:
    x = g.operand(ANY, 1, 4)
    g.node("Tile", [x, g.integers(g.rng.integers(0 if g.chance(0.1) else 1, 4, g.values[x].ndim))])


def concat(g: Graph) -> None:
    x = g.operand(ANY, 1)
    value = g.values[x]
    axis = g.axis(value.ndim)
    parts = [x]
    for _ in range(int(g.rng.integers(1, 4))):
        shape = list(value.shape)
        shape[axis] = int(g.rng.integers(0, 4))
        parts.insert(int(g.rng.integers(2)), g.fresh(value.dtype, tuple(shape)))
    g.node("Concat", parts, axis=axis)


def split(g: Graph) -> None:
    x = g.operand(ANY, 1)
    axis = g.axis(g.values[x].ndim)
    size = g.values[x].shape[axis]
    count = int(g.rng.integers(1, 4))
    if g.chance(0.5):
        parts = [size // count] * count if size % count == 0 else [1] * size
        if g.opset >= 18:
            return g.node("Split", [x], count, axis=axis, num_outputs=count)
        return g.node("Split", [x], len(parts), axis=axis)
    cuts = sorted(int(one) for one in g.rng.integers(0, size + 1, count - 1))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    if g.opset >= 13:
        return g.node("Split", [x, g.integers(parts)], count, axis=axis)
    return g.node("Split", [x], count, axis=axis, split=parts)


def take_slice(g: Graph) -> None:
    x = g.operand(ANY, 1)
    axes = g.axes(g.values[x].ndim)
    starts, ends = (g.rng.integers(-5, 6, len(axes)).tolist() for _ in range(2))
    if g.chance(0.2):
        ends[0] = 2**62
    if g.opset < 10:
        return g.node("Slice", [x], starts=starts, ends=ends, axes=[one % g.values[x].ndim for one in axes])
    steps = [int(g.choice([-3, -2, -1, 1, 1, 2])) for _ in axes]
    return g.node("Slice", [x, *(g.integers(one) for one in (starts, ends, axes, steps))])


def pad(g: Graph) -> None:
    x = g.operand(NUMBERS if g.opset >= 13 else [np.float32, np.float64, np.float16], 1)
    value = g.values[x]
    mode = g.choice(["constant", "constant", "edge", "reflect", *(["wrap"] if g.opset >= 19 else [])])
    axes = g.axes(value.ndim) if g.opset >= 18 and g.chance(0.5) else list(range(value.ndim))
    most = [max(0, value.shape[one] - 1) if mode in ("reflect", "wrap") else 3 for one in axes]
    low = -1 if g.chance(0.2) else 0
    pads = [int(g.rng.integers(low, min(one, 3) + 1)) for one in most + most]
    if g.opset < 11:
        return g.node("Pad", [x], pads=pads, mode=mode, value=1.5)
    fill = g.fresh(value.dtype, ()) if mode == "constant" and g.chance(0.7) else ""
    named = [g.integers(axes)] if g.opset >= 18 and len(axes) != value.ndim else []
    if not named:
        order = np.argsort([one % value.ndim for one in axes])
        pads = [pads[i] for i in order] + [pads[len(axes) + i] for i in order]
    return g.node("Pad", [x, g.integers(pads), fill, *named], mode=mode)


def trilu(g: Graph) -> None:
    k = [g.add(int(g.rng.integers(-4, 5)), np.int64)] if g.chance(0.7) else []
    g.node("Trilu", [g.operand(ANY, 2), *k], upper=int(g.chance(0.5)))


def blocks(g: Graph) -> None:
    size = g.choice([1, 2, 3])
    kind = g.choice([np.float32, np.float64, np.int32, np.uint8])
    if g.chance(0.5):
        x = g.fresh(kind, (2, size * size * 2, 2, 3))
        return g.node(
            "DepthToSpace", [x], blocksize=size, mode=g.choice(["DCR", "CRD", None]) if g.opset >= 11 else None
        )
    return g.node("SpaceToDepth", [g.fresh(kind, (1, 2, 2 * size, 3 * size))], blocksize=size)


def reverse_sequence(g: Graph) -> None:
    x = g.operand(ANY, 2)
    shape = g.values[x].shape
    time = int(g.rng.integers(2))
    lengths = g.integers(g.rng.integers(1, max(shape[time], 1) + 1, shape[1 - time]))
    g.node("ReverseSequence", [x, lengths], time_axis=time, batch_axis=1 - time)


def places(g: Graph, size: int, shape: tuple[int, ...]) -> str:
    if size == 0:
        raise InvalidError
    kind = g.choice([np.int64, np.int32])
    return g.add(g.rng.integers(-size if g.opset >= 11 else 0, size, shape), kind)


def gather(g: Graph) -> None:
    x = g.operand(ANY, 1, 4)
    axis = g.axis(g.values[x].ndim)
    g.node("Gather", [x, places(g, g.values[x].shape[axis], g.shape(0, 3))], axis=axis)


def inner_shape(g: Graph, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    inner = [int(g.rng.integers(1, size + 1)) if size else 0 for size in shape]
    inner[axis] = int(g.rng.integers(1, 4))
    return tuple(inner)


def gather_elements(g: Graph) -> None:
    x = g.operand(ANY, 1, 5)
    value = g.values[x]
    axis = g.axis(value.ndim)
    g.node("GatherElements", [x, places(g, value.shape[axis], inner_shape(g, value.shape, axis))], axis=axis)


def tuples(g: Graph, shape: tuple[int, ...], lead: tuple[int, ...], depth: int) -> Array:
    if 0 in shape:
        raise InvalidError
    return np.stack([g.rng.integers(-size, size, lead) for size in shape[:depth]], -1)


def gather_nd(g: Graph) -> None:
    x = g.operand(ANY, 1, 5)
    shape = g.values[x].shape
    shared = int(g.rng.integers(len(shape))) if g.opset >= 12 else 0
    depth = int(g.rng.integers(1, len(shape) - shared + 1))
    found = tuples(g, shape[shared:], (*shape[:shared], *g.shape(0, 2)), depth)
    g.node("GatherND", [x, g.integers(found)], batch_dims=shared or None)


def reduction(g: Graph) -> str | None:
    names = [None, "add", "mul", *(["max", "min"] if g.opset >= 18 else [])]
    return str(g.choice(names[1:])) if g.opset >= 16 and g.chance(0.6) else None


def scatter_elements(g: Graph) -> None:
    how = reduction(g)
    x = g.finite(NUMBERS, 1, 4) if how else g.operand(ANY, 1, 4)
    value = g.values[x]
    axis = g.axis(value.ndim)
    if value.shape[axis] == 0:
        raise InvalidError
    shape = list(inner_shape(g, value.shape, axis))
    shape[axis] = min(shape[axis], value.shape[axis])
    # Without a reduction each place is written once.
    at = axis % value.ndim
    lines = np.broadcast_to(np.arange(value.shape[at]), (*shape[:at], *shape[at + 1 :], value.shape[at]))
    at_once = np.moveaxis(g.rng.permuted(lines, axis=-1), -1, at).take(range(shape[at]), at)
    op = "ScatterElements" if g.opset >= 11 else "Scatter"
    g.node(op, [x, g.integers(at_once), g.fresh(value.dtype, tuple(shape))], axis=axis, reduction=how)


def scatter_nd(g: Graph) -> None:
    how = reduction(g)
    x = g.finite(NUMBERS, 1, 4) if how else g.operand(ANY, 1, 4)
    shape = g.values[x].shape
    depth = int(g.rng.integers(1, len(shape) + 1))
    found = np.unique(tuples(g, shape, (3,), depth) % np.asarray(shape[:depth]), axis=0)
    g.node("ScatterND", [x, g.integers(found), g.fresh(g.values[x].dtype, (len(found), *shape[depth:]))], reduction=how)


def compress(g: Graph) -> None:
    x = g.operand(ANY, 1)
    value = g.values[x]
    axis = g.axis(value.ndim) if g.chance(0.7) else None
    size = value.size if axis is None else value.shape[axis]
    g.node("Compress", [x, g.fresh(np.bool_, (int(g.rng.integers(0, size + 1)),))], axis=axis)


def non_zero(g: Graph) -> None:
    # The text of ONNX gives a single number no row of places, ONNX Runtime one.
    g.node("NonZero", [g.operand([np.float32, np.int64, np.int32, np.uint8, np.bool_], 1)])


OPERATORS: dict[str, Draw] = {
    "Compress": compress,
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": blocks,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": unary("Flatten", ANY, axis=lambda g: int(g.rng.integers(0, 2))),
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "NonZero": non_zero,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": number_range,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Shape": give_shape,
    "Size": unary("Size", ANY),
    "Slice": take_slice,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
