"""Writes names, numbers, lists and maps of Python as YAML text, with a layer on each line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def flow(value: Any) -> str:
    """The value on one line. Throws TypeError for what YAML has no form for."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _RESERVED
        return value if plain else json.dumps(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "tolist") and not isinstance(value, Sequence):  # a number or an array of numpy
        value = value.tolist()
    if isinstance(value, bool | int | float):
        return flow(value) if isinstance(value, bool) else repr(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if hasattr(value, "__fspath__"):
        return json.dumps(str(value))
    raise TypeError(f"a setting is a name, a number, a list or a map, found {type(value).__name__}")


def section(name: str, value: Any) -> str:
    """A line ``name: value``; nothing where the value is None or an empty map."""
    if value is None or (isinstance(value, Mapping) and not value):
        return ""
    return f"{name}: {flow(value)}\n"
