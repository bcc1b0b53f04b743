"""Random nodes that move numbers, and those that compute with the shape of the data."""

from __future__ import annotations

import numpy as np

from onnx_graphs import Draw, RefusedError
from onnx_makers import maker

ANY = "fiub"
INT64 = np.int64


def _factors(draw: Draw, number: int) -> list[int]:
    """Sizes with this product."""
    sizes: list[int] = []
    while number > 1 and len(sizes) < 3:
        divisors = [size for size in range(1, number + 1) if number % size == 0]
        sizes.append(int(draw.choose(divisors)))
        number //= sizes[-1]
    if number > 1:
        sizes.append(number)
    return sizes


def _sizes(draw: Draw, shape: tuple[int, ...]) -> list[int]:
    kept = draw.low(len(shape))
    return [*shape[:kept], *_factors(draw, int(np.prod(shape[kept:])))]


@maker(3, ANY)
def reshape(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    sizes = _sizes(draw, shape)
    if draw.chance(0.5):
        same = [axis for axis in range(min(len(sizes), len(shape))) if sizes[axis] == shape[axis]]
        for axis in same:
            if draw.chance(0.5):
                sizes[axis] = 0
    if sizes and draw.chance(0.6):
        sizes[draw.whole(0, len(sizes) - 1)] = -1
    return draw.node("Reshape", [name, draw.constant(sizes, INT64)])


@maker(3, "i", (0, 4))
def table_row(draw: Draw, name: str) -> str:
    """Rows of a constant table by integers of the data, as an embedding; those below 0 count from the end."""
    value = draw.values[name]
    if value.dtype not in (np.int32, np.int64) or np.abs(value).max() > 20:
        raise RefusedError("no places")
    rows = max(int(value.max()) + 1, -int(value.min()), 1) + draw.whole(0, 2)
    each = [draw.whole(1, 4) for _ in range(draw.whole(0, 2))]
    return draw.node("Gather", [draw.constant(draw.numbers((rows, *each))), name], axis=0)


@maker(1, ANY, (1, 6))
def reshape_by_shape(draw: Draw, name: str) -> str:
    """Shape, Gather and Concat, as exporters write a reshape that keeps the batch."""
    shape = draw.values[name].shape
    if draw.opset >= 15 and draw.chance(0.3):
        size = draw.node("Shape", [name], start=0, end=1)
    else:
        whole = draw.node("Shape", [name])
        if draw.chance(0.5):
            at = draw.constant([0], INT64)
            size = draw.node("Gather", [whole, at], axis=0)
        else:
            one = draw.node("Gather", [whole, draw.constant(0, INT64)], axis=0)
            size = _unsqueezed(draw, one, [0])
    if draw.opset >= 10 and draw.chance(0.2):
        by = draw.constant([2], INT64)
        size = draw.node("Div", [draw.node("Mul", [size, by]), by])
    rest = _factors(draw, int(np.prod(shape[1:])))
    if rest and draw.chance(0.5):
        rest[draw.whole(0, len(rest) - 1)] = -1
    parts = [size, draw.constant(rest, INT64)] if rest else [size]
    return draw.node("Reshape", [name, draw.node("Concat", parts, axis=0)])


def _unsqueezed(draw: Draw, name: str, axes: list[int]) -> str:
    if draw.opset >= 13:
        return draw.node("Unsqueeze", [name, draw.constant(axes, INT64)])
    return draw.node("Unsqueeze", [name], axes=axes)


@maker(1, ANY, (1, 6))
def flatten(draw: Draw, name: str) -> str:
    rank = draw.values[name].ndim
    axis = draw.whole(0, rank) if draw.mixes else 1
    return draw.node(
        "Flatten", [name], axis=axis - rank if axis < rank and draw.opset >= 11 and draw.chance(0.3) else axis
    )


@maker(1, ANY, (1, 6))
def squeeze(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    ones = [axis for axis in range(draw.low(len(shape)), len(shape)) if shape[axis] == 1]
    if not ones:
        raise RefusedError("no dimension of 1")
    axes = [axis - len(shape) if draw.chance(0.3) and draw.opset >= 11 else axis for axis in ones if draw.chance(0.7)]
    if not axes:
        return draw.node("Squeeze", [name])
    if draw.opset >= 13:
        return draw.node("Squeeze", [name, draw.constant(axes, INT64)])
    return draw.node("Squeeze", [name], axes=axes)


@maker(1, ANY, (0, 5))
def unsqueeze(draw: Draw, name: str) -> str:
    rank = draw.values[name].ndim
    more = draw.whole(1, 2)
    low = 0 if draw.mixes or rank == 0 or draw.chance(0.1) else 1
    axes = sorted(int(axis) for axis in draw.rng.choice(np.arange(low, rank + more), more, replace=False))
    if draw.opset >= 11:
        axes = [axis - rank - more if draw.chance(0.3) else axis for axis in axes]
    return _unsqueezed(draw, name, axes)


@maker(2, ANY, (1, 6))
def transpose(draw: Draw, name: str) -> str:
    rank = draw.values[name].ndim
    low = draw.low(rank) if draw.chance(0.7) else 0
    order = [*range(low), *(int(axis) for axis in draw.rng.permutation(np.arange(low, rank)))]
    return draw.node("Transpose", [name], perm=order) if draw.chance(0.9) else draw.node("Transpose", [name])


@maker(2, ANY, (1, 6))
def slice_(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    axes = draw.axes(len(shape))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = shape[axis]
        step = draw.choose([1, 1, 1, 2, 3, -1, -1, -2]) if draw.opset >= 10 else 1
        start, end = sorted((draw.whole(0, size), draw.whole(0, size)))
        end = max(end, start + 1)
        if step < 0:
            start, end = min(end, size) - 1, start - 1
            end = -size - 1 if end < 0 else end
            start = size + 5 if start == size - 1 and draw.chance(0.3) else start
        else:
            start = start - size if draw.chance(0.3) and start < size else start
            end = np.iinfo(np.int64).max if end >= size and draw.chance(0.5) else end
        starts.append(int(start))
        ends.append(int(end))
        steps.append(int(step))
    if draw.opset < 10:
        return draw.node("Slice", [name], starts=starts, ends=ends, axes=axes)
    kind = np.int32 if draw.chance(0.2) else INT64
    if kind == np.int32:
        ends = [min(end, np.iinfo(np.int32).max) for end in ends]
    inputs = [name, *(draw.constant(value, kind) for value in (starts, ends, axes))]
    return draw.node(
        "Slice", [*inputs, draw.constant(steps, kind)] if set(steps) != {1} or draw.chance(0.5) else inputs
    )


@maker(1, ANY, (1, 6))
def split(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    axis = draw.axis(len(shape))
    size = shape[axis]
    if size < 2:
        raise RefusedError("nothing to split")
    count = draw.whole(2, min(3, size))
    cuts = sorted(int(cut) for cut in draw.rng.choice(np.arange(1, size), count - 1, replace=False))
    sizes = [int(part) for part in np.diff([0, *cuts, size])]
    even = size % count == 0 or draw.opset >= 18
    if even and draw.chance(0.4):
        more = {"num_outputs": count} if draw.opset >= 18 else {}
        parts = draw.nodes("Split", [name], count, axis=axis, **more)
    elif draw.opset >= 13:
        parts = draw.nodes("Split", [name, draw.constant(sizes, INT64)], count, axis=axis)
    else:
        parts = draw.nodes("Split", [name], count, axis=axis, split=sizes)
    if draw.chance(0.5):
        order = [parts[int(at)] for at in draw.rng.permutation(count)]
        return draw.node("Concat", order, axis=axis)
    return str(draw.choose(parts))


@maker(2, "fi", (1, 6))
def concat(draw: Draw, name: str) -> str:
    value = draw.values[name]
    axis = draw.axis(value.ndim)
    parts = [name]
    for _ in range(draw.whole(1, 2)):
        fits = [
            other
            for other in draw.data
            if draw.values[other].dtype == value.dtype
            and draw.values[other].ndim == value.ndim
            and np.delete(draw.values[other].shape, axis).tolist() == np.delete(value.shape, axis).tolist()
        ]
        if fits and draw.chance(0.5):
            other = str(draw.choose(fits))
        else:
            shape = list(value.shape)
            shape[axis] = draw.whole(1, 3)
            other = draw.constant(draw.numbers(tuple(shape)), value.dtype)
        parts.insert(draw.whole(0, len(parts)), other)
    return draw.node("Concat", parts, axis=axis)


@maker(2, ANY, (1, 6))
def gather(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    axis = draw.axis(len(shape))
    size = shape[axis]
    at = draw.rng.integers(-size if draw.opset >= 11 else 0, size, draw.choose([(), (), (1,), (3,), (2, 2)]))
    kind = np.int32 if draw.chance(0.2) else INT64
    return draw.node("Gather", [name, draw.constant(at, kind)], axis=axis)


@maker(1, "fi", (0, 5), since=8)
def expand(draw: Draw, name: str) -> str:
    shape = list(draw.values[name].shape)
    low = draw.low(len(shape))
    for axis in range(low, len(shape)):
        if draw.chance(0.3):
            shape[axis] = 1
        elif shape[axis] == 1:
            shape[axis] = draw.whole(1, 3)
    if low and draw.chance(0.7):
        shape[0] = 1
    if draw.chance(0.3):
        shape = [draw.choose([1, 1, 2]), *shape]
    elif shape and draw.chance(0.2):
        shape = shape[1:]
    return draw.node("Expand", [name, draw.constant(shape, INT64)])


@maker(1, "fi", (1, 5))
def tile(draw: Draw, name: str) -> str:
    rank = draw.values[name].ndim
    low = draw.low(rank)
    repeats = [1] * low + [draw.choose([1, 1, 2, 3]) for _ in range(rank - low)]
    return draw.node("Tile", [name, draw.constant(repeats, INT64)])


@maker(2, "f", (1, 5))
def pad(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if draw.opset >= 19 else [])
    mode = draw.choose(modes)
    low = draw.low(len(shape))
    pads = np.zeros((2, len(shape)), INT64)
    for axis in range(low, len(shape)):
        most = shape[axis] - 1 if mode == "reflect" else min(2, shape[axis])
        least = -1 if mode == "constant" and shape[axis] > 2 else 0
        pads[:, axis] = [draw.whole(least, max(most, 0)) if draw.chance(0.6) else 0 for _ in range(2)]
    value = float(draw.choose([0, 0, 1.5, -2, 1e4]))
    if draw.opset < 11:
        return draw.node("Pad", [name], mode=mode, pads=pads.flatten().tolist(), value=value)
    inputs = [name]
    if draw.opset >= 18 and draw.chance(0.3):
        axes = draw.axes(len(shape))
        inputs += [draw.constant(pads[:, axes].flatten()), draw.constant(np.float32(value)), draw.constant(axes, INT64)]
    else:
        inputs.append(draw.constant(pads.flatten()))
        if draw.chance(0.5):
            inputs.append(draw.constant(np.float32(value)))
    return draw.node("Pad", inputs, mode=mode)


@maker(1, "f", (4, 4))
def depth_to_space(draw: Draw, name: str) -> str:
    _, channels, rows, columns = draw.values[name].shape
    if channels % 4 == 0 and draw.chance(0.7):
        more = {"mode": draw.choose(["DCR", "CRD"])} if draw.opset >= 11 else {}
        return draw.node("DepthToSpace", [name], blocksize=2, **more)
    if rows % 2 == 0 and columns % 2 == 0:
        return draw.node("SpaceToDepth", [name], blocksize=2)
    raise RefusedError("no blocks")


@maker(0.6, "f", (2, 6), since=14)
def trilu(draw: Draw, name: str) -> str:
    if draw.values[name].ndim == 2 and not draw.mixes:
        raise RefusedError("it mixes the batch")
    inputs = [name, draw.constant(draw.whole(-2, 2), INT64)] if draw.chance(0.6) else [name]
    return draw.node("Trilu", inputs, upper=draw.whole(0, 1))


@maker(0.8, "fi", (1, 5), since=11)
def gather_elements(draw: Draw, name: str) -> str:
    shape = list(draw.values[name].shape)
    axis = draw.axis(len(shape))
    size = shape[axis]
    shape[axis] = draw.whole(1, 4)
    at = draw.constant(draw.rng.integers(-size, size, shape), INT64)
    return draw.node("GatherElements", [name, at], axis=axis)


@maker(0.8, "f", (1, 5), since=12)
def gather_nd(draw: Draw, name: str) -> str:
    shape = draw.values[name].shape
    shared = 0 if draw.mixes or len(shape) < 2 else draw.choose([0, 1, 1, 1])
    depth = draw.whole(1, len(shape) - shared)
    tail = draw.choose([(), (2,), (2, 3)])
    at = np.stack(
        [draw.rng.integers(-shape[shared + i], shape[shared + i], (*shape[:shared], *tail)) for i in range(depth)], -1
    )
    return draw.node("GatherND", [name, draw.constant(at, INT64)], batch_dims=shared)


@maker(0.8, "f", (1, 5), since=11)
def scatter_elements(draw: Draw, name: str) -> str:
    shape = list(draw.values[name].shape)
    axis = draw.axis(len(shape))
    size = shape[axis]
    shape[axis] = draw.whole(1, size)
    order = np.argsort(draw.rng.random([*shape[:axis], size, *shape[axis:][1:]]), axis)
    at = np.take(order, range(shape[axis]), axis)
    more = {"reduction": draw.choose(["none", "add", "mul"])} if draw.opset >= 16 and draw.chance(0.4) else {}
    updates = draw.constant(draw.numbers(at.shape))
    return draw.node("ScatterElements", [name, draw.constant(at, INT64), updates], axis=axis, **more)


@maker(0.8, "f", (1, 4), since=11)
def scatter_nd(draw: Draw, name: str) -> str:
    """At the same places of every row of the batch, or at places of a value without one."""
    shape = draw.values[name].shape
    depth = draw.whole(1, len(shape))
    places = np.stack(np.unravel_index(draw.rng.permutation(int(np.prod(shape[:depth])))[:4], shape[:depth]), -1)
    if not draw.mixes and depth > 1:  # one place along the other axes, for each row
        rest = [draw.whole(0, size - 1) for size in shape[1:depth]]
        places = np.array([[row, *rest] for row in range(shape[0])])
    more = {"reduction": draw.choose(["none", "add", "mul"])} if draw.opset >= 16 and draw.chance(0.4) else {}
    updates = draw.constant(draw.numbers((len(places), *shape[depth:])))
    return draw.node("ScatterND", [name, draw.constant(places, INT64), updates], **more)
