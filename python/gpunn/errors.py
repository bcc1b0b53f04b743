"""The exceptions of gpunn. The message says what was expected, what was found, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Diagnostic(NamedTuple):
    """A mistake in a file or text; ``line`` and ``column`` count from 1, 0 is unknown."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{place}: {self.message}" if place else self.message


class Error(RuntimeError):
    """The base class of gpunn's exceptions. ``exit_code`` is the program's exit code for this error."""

    exit_code = 1


class UsageError(Error, ValueError):
    """An argument is wrong: an unknown name, or an array whose type or shape does not fit."""

    exit_code = 2


class ConfigError(UsageError):
    """An experiment or a model is wrong. ``diagnostics`` has all mistakes; ``file``, ``line`` and ``column`` are the
    place of the first one."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = list(diagnostics)
        first = self.diagnostics[0] if self.diagnostics else Diagnostic("", 0, 0, message)
        self.file, self.line, self.column = first.file, first.line, first.column

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.diagnostics)


class MissingError(Error):
    """Data, a plugin, a device or a run does not exist."""

    exit_code = 3


class DivergedError(Error, ArithmeticError):
    """A training met NaN or infinity."""

    exit_code = 4


class DeviceLostError(Error):
    """A device failed. It cannot be used again in this process."""
