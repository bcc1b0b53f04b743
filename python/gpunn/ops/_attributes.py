"""The attributes of a call, by the kinds that the catalogue gives them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gpunn import _core
from gpunn.errors import UsageError

_TRUTH_VALUES = (bool, np.bool_)


class _BadValueError(Exception):
    """What was expected."""


def _integer(value: Any) -> int:
    try:
        if isinstance(value, _TRUTH_VALUES):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise _BadValueError("an integer") from None
    if not -(2**63) <= number < 2**64:
        raise _BadValueError("an integer of 64 bits")
    return number


def _number(value: Any) -> float:
    try:
        if isinstance(value, (*_TRUTH_VALUES, str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise _BadValueError("a number") from None


def _flag(value: Any) -> bool:
    if isinstance(value, _TRUTH_VALUES):
        return bool(value)
    raise _BadValueError("true or false")


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _BadValueError("a word")


def _several(one: Callable[[Any], Any], expected: str) -> Callable[[Any], Any]:
    """One value, or a list of them."""

    def read(value: Any) -> Any:
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) != 0:
            try:
                return tuple(one(item) for item in value)
            except _BadValueError:
                raise _BadValueError(expected) from None
        return one(value)

    return read


_integers = _several(_integer, "a list of integers")
_READERS: dict[str, Callable[[Any], Any]] = {
    "integer": _integer,
    "axis": _integer,
    "elements": _integer,
    "number": _number,
    "flag": _flag,
    "choice": _word,
    "dtype": _word,
    "axes": _integers,
    "pair": _integers,
    "list": _integers,
    "numbers": _several(_number, "a list of numbers"),
}


def settled(op: str, described: list[dict[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    """The attributes as numbers, words and tuples of Python's own; those that are None are the op's to choose."""
    for name in given.keys() - {attribute["name"] for attribute in described}:
        _core.Op(op, {name: 0})  # which says what is near
    result: dict[str, Any] = {}
    for attribute in described:
        name = attribute["name"]
        value = given.get(name)
        if value is None:
            # Without dimensions, all are taken.
            if attribute["required"] and attribute["kind"] != "axes":
                raise UsageError(f"{op}: {name} is missing: {attribute['help']}")
            result[name] = attribute["default"] if attribute["kind"] == "axis" else None
            continue
        try:
            result[name] = _READERS[attribute["kind"]](value)
        except _BadValueError as expected:
            found = value if isinstance(value, (str, int, float, list, tuple)) else type(value).__name__
            raise UsageError(f"{op}: {name} must be {expected}, is {found!r}") from None
    return result


_PLAIN = frozenset({int, float, bool, str, type(None)})


def key_of(attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Differs where attributes differ, in a type or the sign of a zero too. Raises TypeError for values that settled()
    has to make plain: what may change later, as an array or a tensor, must not be remembered."""
    values = tuple(attributes.values())
    return (tuple(attributes), *_exact(values))


def _exact(values: tuple[Any, ...]) -> tuple[Any, ...]:
    kinds = tuple(map(type, values))
    if _PLAIN.issuperset(kinds):
        return (kinds, values, str(values)) if 0 in values else (kinds, values)
    parts: list[Any] = []
    for one, kind in zip(values, kinds, strict=True):
        if kind is not tuple and kind not in _PLAIN:
            raise TypeError
        parts.append(_exact(one) if kind is tuple else str(one))
    return kinds, tuple(parts)
