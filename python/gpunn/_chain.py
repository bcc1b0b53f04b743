"""Sorts layers into the order of a model, and finds their inputs, names and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpunn.errors import UsageError
from gpunn.layers import Layer, Node


def values(kind: str, keys: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Parses a layer's keys from their texts."""
    listed = ("shape", "permutation")
    return {
        key: _value(texts[0]) if len(texts) == 1 and key not in listed else [_value(text) for text in texts]
        for key, texts in keys.items()
    }


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def require_once(layer: Layer, seen: set[int]) -> None:
    if id(layer) in seen:
        raise UsageError(f"{layer!r} has two places in the network; a layer has its own weights and one place")
    seen.add(id(layer))


Chain = list[tuple[Layer, list[Layer | str]]]


def chain_of(inputs: Mapping[str, Node], outputs: Sequence[Node]) -> Chain:
    """The layers between the two, each after its sources: other layers, and names of inputs."""
    for node in outputs:
        if node.layer is None:
            raise UsageError(f"an output of the network is {node!r} itself; an output is what a layer gives")
    chain: Chain = []
    name_of = {id(node): name for name, node in inputs.items()}
    done: set[int] = set(name_of)
    seen: set[int] = set()
    waiting = list(reversed(outputs))
    while waiting:
        node = waiting[-1]
        if id(node) in done:
            waiting.pop()
            continue
        if node.layer is None:
            raise UsageError(f"the output comes from {node!r} too, which is not the network's input")
        missing = [one for one in node.inputs if id(one) not in done]
        if missing:
            waiting.extend(reversed(missing))
            continue
        require_once(node.layer, seen)
        chain.append((node.layer, [name_of[id(one)] if one.layer is None else one.layer for one in node.inputs]))
        done.add(id(node))
        waiting.pop()
    for name in set(inputs) - {source for _, sources in chain for source in sources if isinstance(source, str)}:
        raise UsageError(f"no output of the network depends on the input {name!r}; leave it out")
    return chain


def names_of(layers: Sequence[Layer]) -> list[str]:
    """The layers' names in YAML: the given ones, or type and ordinal."""
    given = {layer.name for layer in layers if layer.name is not None}
    if len(given) < sum(layer.name is not None for layer in layers):
        raise UsageError("two layers of the network have the same name")
    ordinals: dict[str, int] = {}
    names: list[str] = []
    for layer in layers:
        ordinals[layer.type] = ordinals.get(layer.type, 0) + 1
        name = layer.name
        if name is None:
            name = f"{layer.type}{ordinals[layer.type]}"
            while name in given:
                name += "_"
            given.add(name)
        names.append(name)
    return names


def sources_of(chain: Chain, names: Sequence[str], first: str) -> list[list[str]]:
    """The sources of each layer, if they are not just the layer before, or ``first``, the first input."""
    name_of = {id(layer): name for (layer, _), name in zip(chain, names, strict=True)}
    result: list[list[str]] = []
    before: Layer | str = first
    for layer, sources in chain:
        follows = len(sources) == 0 or (len(sources) == 1 and sources[0] == before)
        result.append([] if follows else [one if isinstance(one, str) else name_of[id(one)] for one in sources])
        before = layer
    return result


def found_size(layer: Layer, key: str, name: str, shapes: Mapping[str, Sequence[int]]) -> int | None:
    """The size of a layer's input that its constructor was given, read from its weights."""
    weight = shapes.get(f"{name}.{'weight' if key != 'input_size' else 'weight_ih_l0'}")
    if weight is None:
        return None
    if key == "in_channels" and not layer.type.endswith("_transpose"):
        return int(weight[1]) * int(layer.keys.get("groups", 1))
    if key == "in_channels":
        return int(weight[0])
    if key in ("in_features", "input_size"):
        return int(weight[1])
    if key in ("num_features", "num_channels"):
        return int(weight[0])
    if key == "normalized_shape":
        return int(np.prod(weight))
    return None
