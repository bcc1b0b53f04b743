"""Makes a graph smaller while it still fails: fewer nodes, then smaller shapes, then simpler numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx

from onnx_compare import Array
from onnx_graphs import Graph, RefusedError, answers

Fails = Callable[[Graph], bool]


def shrink(graph: Graph, fails: Fails, tries: int = 1500) -> Graph:
    """The smallest failing graph that single steps reach. ``fails`` must be false for graphs that are not valid."""
    graph = graph.prune()
    again = True
    while again and tries > 0:
        again = False
        for steps in (_fewer_nodes, _fewer_attributes, _smaller_shapes, _simpler_numbers):
            found = True
            while found and tries > 0:
                found = False
                for candidate in steps(graph):
                    tries -= 1
                    if tries < 0:
                        break
                    if fails(candidate):
                        graph, found, again = candidate, True, True
                        break
    return graph


def _fewer_nodes(graph: Graph) -> Iterator[Graph]:
    for name in graph.outputs if graph.also else []:  # a single output
        one = graph.copy()
        one.output, one.also = name, []
        yield one.prune()
    for name in graph.more:  # let an input be a constant
        one = graph.copy()
        one.constants[name] = one.more.pop(name)
        one.rows -= {name}
        yield one
    for node in graph.nodes[:-1]:  # cut the tail
        for name in node.outputs:
            one = graph.copy()
            one.output, one.also = name, []
            yield one.prune()
    names = [name for node in graph.nodes for name in node.outputs]
    try:
        values = dict(zip(names, answers(graph, names), strict=True))
    except RefusedError:
        values = {}
    for node in reversed(graph.nodes):  # let the input be a value within the graph
        for name in node.outputs:
            value = values.get(name)
            if value is not None and value.dtype == np.float32 and name not in graph.outputs:
                one = _replaced(graph, name, "x")
                one.x, one.free = value, graph.free and value.shape[:1] == graph.x.shape[:1]
                yield one.prune()
    for node in graph.nodes:  # let a value be a constant
        for name in node.outputs:
            if name in values and name not in graph.outputs and node.op != "Constant":
                one = graph.copy()
                one.nodes = [kept for kept in one.nodes if name not in kept.outputs]
                one.constants[name] = values[name]
                yield one.prune()
    for node in graph.nodes:  # pass a node's input on
        for other in dict.fromkeys(node.inputs):
            if other and other not in graph.constants:
                yield _replaced(graph, node.outputs[0], other).prune()


def _replaced(graph: Graph, name: str, by: str) -> Graph:
    one = graph.copy()
    for node in one.nodes:
        node.inputs = [by if each == name else each for each in node.inputs]
    one.output = by if one.output == name else one.output
    one.also = [by if also == name else also for also in one.also]
    return one


def _fewer_attributes(graph: Graph) -> Iterator[Graph]:
    for number, node in enumerate(graph.nodes):
        for key in node.attributes:
            one = graph.copy()
            del one.nodes[number].attributes[key]
            yield one
        if len(node.inputs) > 1:
            one = graph.copy()
            del one.nodes[number].inputs[-1]
            yield one.prune()


def _smaller_shapes(graph: Graph) -> Iterator[Graph]:
    arrays = [*graph.inputs.values(), *graph.constants.values()]
    names = [*graph.inputs, *graph.constants]
    for size in sorted({size for array in arrays for size in array.shape if size > 1}, reverse=True):
        parts = [slice(at, at + 1) for at in range(min(size, 8))]
        parts += [slice(0, size // 2), slice(size // 2, size), slice(0, size - 1), slice(1, size)]
        for part in parts:
            yield _cut(graph, size, part, names)
        for name in names:
            for part in parts:
                yield _cut(graph, size, part, [name])
    for name in names:  # without a leading dimension
        value = _value(graph, name)
        if value.ndim > 1 and value.shape[0] == 1:
            yield _with(graph, name, value[0])


def _cut(graph: Graph, size: int, part: slice, names: list[str]) -> Graph:
    """Cuts each dimension of this size of these arrays. If all are cut, so is the size where constants name it."""
    one = graph.copy()
    for name in names:
        value = _value(graph, name)
        if len(names) > 1 and value.dtype == np.int64 and value.ndim == 1:
            cut = np.where(value == size, part.stop - part.start, value)
        else:
            cut = value[tuple(part if extent == size else slice(None) for extent in value.shape)]
        one = _with(one, name, np.array(cut, order="C"))
    return one


def _with(graph: Graph, name: str, value: Array) -> Graph:
    one = graph.copy()
    if name == "x":
        one.free = graph.free and value.ndim > 0 and value.ndim == graph.x.ndim
        one.x = value
    elif name in one.more:
        one.more[name] = value
    else:
        one.constants[name] = value
    return one


def _value(graph: Graph, name: str) -> Array:
    return graph.inputs[name] if name in graph.inputs else graph.constants[name]


def _simpler_numbers(graph: Graph) -> Iterator[Graph]:
    for name in [*graph.inputs, *graph.constants]:
        value = _value(graph, name)
        if value.dtype.kind != "f" or not value.size:
            continue
        rounded = np.round(value)
        counted = np.arange(1, value.size + 1).reshape(value.shape)
        for simple in (np.zeros_like(value), np.ones_like(value), counted, rounded, np.round(value, 1)):
            simpler = simple.astype(value.dtype)
            if _length(simpler) < _length(value):
                yield _with(graph, name, simpler)


def _length(value: Array) -> int:
    """The length of the numbers as text."""
    return sum(len(f"{number:.9g}") for number in value.flatten())


def save(graph: Graph, path: str) -> None:
    """Writes the graph as a file, with its inputs and ONNX Runtime's first answer as PATH.npz."""
    found = answers(graph, graph.outputs)
    onnx.save(graph.model(dict(zip(graph.outputs, found, strict=True))), path)
    arrays: Any = {"y": found[0], **graph.inputs}
    np.savez(path.removesuffix(".onnx") + ".npz", **arrays)
