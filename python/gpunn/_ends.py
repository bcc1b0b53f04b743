"""The inputs and outputs of a network: their names, shapes and types, and the arrays that are given for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpunn._yaml import flow, section
from gpunn.errors import UsageError
from gpunn.layers import Node

USUAL = "input"  # the name of the only input of a model, in ``from``


@dataclass
class InputOf:
    """An input of a network. ``shape`` is None where it is not known yet; ``dtype`` is "" where samples decide."""

    name: str = USUAL
    shape: list[int] | None = None
    dtype: str = ""

    @property
    def is_integer(self) -> bool:
        return self.dtype not in ("", "f32")

    def described(self, dtype: str, alone: bool) -> tuple[str, str, str, list[int]]:
        """As the library takes it, for samples of this dtype: name, kind, dtype and shape."""
        assert self.shape is not None
        if self.is_integer:
            return "" if alone and self.name == USUAL else self.name, "tokens", self.dtype, self.shape
        if alone:
            return "" if self.name == USUAL else self.name, "", dtype, self.shape
        return self.name, "image" if len(self.shape) == 3 else "numbers", dtype, self.shape


def named_nodes(given: Node | Sequence[Node] | Mapping[str, Node], what: str) -> dict[str, Node]:
    """Nodes by their names; "" is that of a single one."""
    if isinstance(given, Node):
        return {"": given}
    if isinstance(given, Mapping):
        nodes = dict(given)
    else:
        listed = list(given)
        if len(listed) == 1:
            return {"": listed[0]}
        names = [node.name or f"{what}{i}" for i, node in enumerate(listed, 1)]
        nodes = dict(zip(names, listed, strict=True))
        if len(nodes) < len(listed):
            raise UsageError(f"two {what}s of the network have the same name: {', '.join(names)}")
    if not nodes:
        raise UsageError(f"a network has at least one {what}")
    return nodes


def inputs_of(given: Node | Sequence[Node] | Mapping[str, Node]) -> tuple[list[InputOf], list[Node]]:
    """The inputs of a network that begins with these nodes."""
    nodes = named_nodes(given, "input")
    for node in nodes.values():
        if node.layer is not None:
            raise UsageError(f"a network begins with gpunn.Input(shape), found {node!r}")
    inputs = [
        InputOf(name or node.name or USUAL, node.shape, node.dtype if node.dtype != "f32" else "")
        for name, node in nodes.items()
    ]
    return inputs, list(nodes.values())


def inputs_text(inputs: Sequence[InputOf]) -> str:
    """The inputs in the YAML of a model."""
    if len(inputs) == 1 and inputs[0].name == USUAL and not inputs[0].is_integer:
        return section("input", inputs[0].shape)
    text = "inputs:\n"
    for one in inputs:
        shape: Any = "data" if one.shape is None else one.shape
        text += f"  {flow(one.name)}: {flow({'shape': shape, 'type': one.dtype} if one.is_integer else shape)}\n"
    return text


def outputs_text(outputs: Mapping[str, str]) -> str:
    """The outputs in the YAML of a model, each with the layer that gives it; none where it is the last layer."""
    if all(name == layer for name, layer in outputs.items()):
        return section("outputs", list(outputs) or None)
    return section("outputs", outputs)


def by_input(value: Any, names: Sequence[str], what: str) -> list[tuple[Any, str]]:
    """The arrays that are given for the inputs, each with its name in messages."""
    if isinstance(value, Mapping) and (len(names) > 1 or list(value) == list(names)):
        missing = [name for name in names if name not in value]
        unknown = [str(name) for name in value if name not in names]
        if missing or unknown:
            found = f"missing: {', '.join(missing)}" if missing else f"unknown: {', '.join(unknown)}"
            raise UsageError(f"{what}: the network takes the inputs {', '.join(names)}; {found}")
        return [(value[name], f"{what}[{name!r}]") for name in names]
    if len(names) > 1:
        raise UsageError(
            f"{what}: the network takes the inputs {', '.join(names)}: give a dict of arrays with these names, found "
            f"{type(value).__name__}"
        )
    return [(value, what)]
