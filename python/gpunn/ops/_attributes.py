"""The attributes of a call, by the kinds that the catalogue gives them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from gpunn.errors import UsageError


class _BadValueError(Exception):
    """What was expected."""


def _integer(value: Any) -> int:
    if isinstance(value, bool) or type(value).__name__ == "bool":  # NumPy's too
        raise _BadValueError("an integer")
    try:
        number = operator.index(value)
    except TypeError:
        raise _BadValueError("an integer") from None
    if not -(2**63) <= number < 2**64:
        raise _BadValueError("an integer of 64 bits")
    return number


def _number(value: Any) -> float | int:
    if isinstance(value, (bool, str, bytes)) or type(value).__name__ == "bool":
        raise _BadValueError("a number")
    if isinstance(value, int):
        return value
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise _BadValueError("a number") from None


def _flag(value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ == "bool":
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
    return result | {name: value for name, value in given.items() if name not in result}  # the core refuses these


def key_of(attributes: dict[str, Any]) -> tuple[Any, ...]:
    """What tells attributes from others: values with their types, and the sign of a zero. Raises TypeError or
    ValueError where a value is no plain one."""
    return tuple((name, *_exact(value)) for name, value in attributes.items())


def _exact(value: Any) -> tuple[Any, Any]:
    kind = value.__class__
    if kind is tuple:
        return kind, tuple(_exact(item) for item in value)
    return kind, value if value or kind is not float else str(value)
