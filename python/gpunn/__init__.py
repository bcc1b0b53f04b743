"""gpunn trains neural networks, from YAML or from Python, on any backend plugin."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gpunn._core import version as _version
from gpunn.errors import (
    ConfigError,
    DeviceLostError,
    Diagnostic,
    DivergedError,
    Error,
    MissingError,
    UsageError,
)

if TYPE_CHECKING:
    from gpunn import errors as errors

__version__: str = _version()

# What is imported when it is first asked for, so that `import gpunn` takes little time: the names of a module of the
# package, which may be itself among them.
_LAZY: dict[str, tuple[str, ...]] = {
    "errors": ("errors",),
}
_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names}

__all__ = [
    "ConfigError",
    "DeviceLostError",
    "Diagnostic",
    "DivergedError",
    "Error",
    "MissingError",
    "UsageError",
    "__version__",
]
__all__ += _MODULE_OF  # noqa: PLE0605  # type checkers see the imports above


def __getattr__(name: str) -> Any:
    module_name = _MODULE_OF.get(name)
    if module_name is None:
        raise AttributeError(f"module 'gpunn' has no attribute '{name}'")
    module = importlib.import_module(f"gpunn.{module_name}")
    value = module if name == module_name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
