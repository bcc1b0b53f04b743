"""Makers of random nodes: each adds a node or a few behind a value of a random graph, which onnx_graphs.py draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onnx_graphs import Draw, RefusedError

Function = Callable[[Draw, str], str]


class Maker(NamedTuple):
    make: Function
    weight: float
    kinds: str  # of numpy's types: f, i, u, b
    low: int  # the least rank
    high: int
    since: int  # the first opset
    finite: bool  # it takes finite numbers only


MAKERS: list[Maker] = []


def maker(
    weight: float = 1, kinds: str = "f", ranks: tuple[int, int] = (0, 7), since: int = 7, finite: bool = False
) -> Callable[[Function], Function]:
    """Registers a function that takes values of these types and ranks, in opsets from ``since`` on.

    finite: the node mixes or ranks numbers. ONNX does not say then what becomes of infinities and NaN: 0 times infinity
        is NaN for one runtime, and left out by another.
    """

    def register(make: Function) -> Function:
        MAKERS.append(Maker(make, weight, kinds, *ranks, since, finite))
        return make

    return register


LARGEST_MIXED = 1e18  # whose products are finite, in any order of the sums


def step(draw: Draw, name: str) -> str:
    """Adds nodes behind a value and returns the name of the result."""
    value = draw.values[name]
    finite = value.dtype.kind != "f" or bool((np.abs(value) < LARGEST_MIXED).all())
    fits = [
        one
        for one in MAKERS
        if value.dtype.kind in one.kinds
        and one.low <= value.ndim <= one.high
        and draw.opset >= one.since
        and (finite or not one.finite)
    ]
    if value.dtype.kind == "f" and value.dtype.itemsize != 4:
        # Few operators take other floats; most of the time the graph goes back to float32.
        fits = [one for one in fits if draw.chance(0.3) or one.make.__name__ == "cast"]
    if not fits:
        raise RefusedError("no maker")
    total = sum(one.weight for one in fits)
    chosen = int(draw.rng.choice(len(fits), p=[one.weight / total for one in fits]))
    return fits[chosen].make(draw, name)


def broadcast_shape(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with this one: a scalar, of lower, equal or higher rank, with or without ones."""
    rank = len(shape)
    way = draw.whole(0, 5)
    if way == 0:
        return draw.choose([(), (1,), (1,) * rank])  # type: ignore[no-any-return]
    sizes = list(shape)
    if not draw.mixes and sizes and draw.chance(0.85):
        sizes[0] = 1  # a constant that does not differ along the batch
    if way in (1, 2) and sizes:
        sizes = sizes[draw.whole(0 if draw.chance(0.3) else 1, rank) :]
    if way in (3, 5):
        sizes = [1 if draw.chance(0.5) else size for size in sizes]
    if way == 4 and rank < 6:
        more = draw.whole(1, 2)
        sizes = [2 if draw.chance(0.15) else 1 for _ in range(more)] + sizes
    if draw.chance(0.1):  # the data broadcasts, too
        sizes = [draw.whole(2, 3) if size == 1 and draw.chance(0.3) else size for size in sizes]
    return tuple(sizes)


def partner(draw: Draw, name: str, make: Callable[[tuple[int, ...]], Any]) -> str:
    """The other operand: data of an equal type now and then, else a constant."""
    value = draw.values[name]
    if draw.chance(0.6 if draw.graph.more else 0.2):
        others = [other for other in draw.data if draw.values[other].dtype == value.dtype]
        fits = [
            other
            for other in others
            if all(
                a == b or 1 in (a, b) for a, b in zip(draw.values[other].shape[::-1], value.shape[::-1], strict=False)
            )
        ]
        if fits:
            return str(draw.choose(fits))
    return draw.constant(make(broadcast_shape(draw, value.shape)), value.dtype)


# The makers register themselves.
import onnx_makers_constants  # noqa: E402, F401
import onnx_makers_layers  # noqa: E402, F401
import onnx_makers_math  # noqa: E402, F401
import onnx_makers_movement  # noqa: E402, F401
