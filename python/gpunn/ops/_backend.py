"""Chooses the backend of an op: named in the call, by ``with gpunn.ops.use(...)``, or by the device."""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from gpunn import _core
from gpunn.errors import UsageError


@dataclass(frozen=True)
class Backend:
    """A backend with its options: the name of a plugin, or the path of its ``.so`` file.

    ``threads`` are those on the host (0: the backend's choice). ``precision`` is what factors of products of f32
    numbers may be rounded to: ``fp32``, ``tf32``, ``bf16`` or ``f16``; by default ``fp32``, and within
    ``gpunn.torch`` what PyTorch's flags allow on the device. ``kernels`` are wanted by name, as ``gemm:3``.
    ``plugins`` are files and folders to find backends in, besides the usual ones. With ``alternatives``, plugins that
    name each other as such are timed at each op, and the fastest runs it.
    """

    name: str
    threads: int = 0
    precision: str | None = None
    deterministic: bool = False
    alternatives: bool = True
    kernels: tuple[str, ...] = field(default=())
    plugins: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """The backend by its content, which any process can read: the name, or JSON with the options that are set."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        chosen = {one.name: given[one.name] for one in fields(self) if given[one.name] != one.default}
        chosen["name"] = os.path.abspath(self.name) if os.path.isfile(self.name) and "/" in self.name else self.name
        return chosen["name"] if len(chosen) == 1 else json.dumps(chosen)

    @staticmethod
    def of(text: str) -> Backend:
        """The backend that ``text`` describes."""
        if not text.startswith("{"):
            return Backend(text)
        try:
            read: Any = json.loads(text).items()
            options: Any = {name: tuple(one) if isinstance(one, list) else one for name, one in read}
            return Backend(**options)
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError(
                f"expected a backend's name, a path or the options of one as JSON, found {text!r}"
            ) from error

    def engine(self, device: int = 0, precision: str = "fp32") -> _core.Engine:
        """The backend, opened on a device. It stays open until the process ends. Its own ``precision`` has priority."""
        precision = self.precision or precision
        key = (self, device, precision)
        found = _engines.get(key)
        if found is None:
            with _lock, _threads_that_do_not_spin():
                found = _core.Engine.open(
                    self.name,
                    device,
                    self.threads,
                    precision,
                    self.deterministic,
                    self.alternatives,
                    list(self.plugins),
                    list(self.kernels),
                )
                _engines[key] = found
        return found


# How many rounds an idle thread of OpenMP spins for before it sleeps: some microseconds.
_SPINS = "1000"


@contextlib.contextmanager
def _threads_that_do_not_spin() -> Iterator[None]:
    """PyTorch has a thread team of its own. While one team computes, the other must not keep the cores busy by waiting.

    OpenMP reads the environment when a backend's library is loaded, so that this comes too late for a later change.
    """
    own = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()
    if own:
        yield
        return
    # os.environ is left alone: gpunn._core sets the variable too, for the process and not for Python.
    os.putenv("GOMP_SPINCOUNT", _SPINS)
    try:
        yield
    finally:
        os.putenv("GOMP_SPINCOUNT", "30000")


_engines: dict[tuple[Backend, int, str], _core.Engine] = {}
_lock = threading.Lock()
_chosen: contextvars.ContextVar[Backend | None] = contextvars.ContextVar("gpunn_backend", default=None)
_named: dict[str, Backend] = {}

_ON_HOST = Backend("cpu")
_ON_CUDA = Backend("auto")


def chosen() -> Backend | None:
    """The backend of the surrounding ``use``."""
    return _chosen.get()


def named(backend: str | Backend | None) -> Backend | None:
    """The backend of that name, or of that text with options."""
    if backend is None or isinstance(backend, Backend):
        return backend
    found = _named.get(backend)
    if found is None:
        if not isinstance(backend, str):
            raise UsageError(f"backend must be a name, a path or a gpunn.ops.Backend, is {type(backend).__name__}")
        found = _named[backend] = Backend.of(backend)
    return found


def _wanted(backend: str | Backend | None, cuda: bool) -> Backend:
    return named(backend) or chosen() or (_ON_CUDA if cuda else _ON_HOST)


def works_on(backend: str | Backend | None, cuda: bool, device: int, precision: str = "fp32") -> bool:
    """Whether the backend works on arrays in host memory or on a CUDA device. Raises if it can't be opened."""
    return _wanted(backend, cuda).engine(device if cuda else 0, precision).on_host != cuda


def engine_for(backend: str | Backend | None, cuda: bool, device: int, precision: str = "fp32") -> _core.Engine:
    """The engine for arrays in host memory or on a CUDA device; ``precision`` where the backend's options name none."""
    wanted = _wanted(backend, cuda)
    engine = wanted.engine(device if cuda else 0, precision)
    if engine.on_host == cuda:
        where = f"cuda:{device}" if cuda else "in host memory"
        raise UsageError(
            f"the arrays are {where}, and backend '{wanted.name}' works on {engine.device} ({engine.memory_domain}); "
            "move the arrays, or name another backend"
        )
    return engine


@contextlib.contextmanager
def use(
    backend: str | Backend,
    *,
    threads: int = 0,
    precision: str | None = None,
    deterministic: bool = False,
    kernels: Sequence[str] = (),
    plugins: Sequence[str] = (),
) -> Iterator[Backend]:
    """Calls within ``with`` run on this backend, unless they name another. Holds for this thread or task only."""
    if not isinstance(backend, Backend):
        backend = Backend(
            backend,
            threads=threads,
            precision=precision,
            deterministic=deterministic,
            kernels=tuple(kernels),
            plugins=tuple(str(one) for one in plugins),
        )
    token = _chosen.set(backend)
    try:
        yield backend
    finally:
        _chosen.reset(token)


class PoolStatistics(NamedTuple):
    """Statistics of the caching pools of all opened backends; sizes in bytes."""

    requests: int
    hits: int
    used_bytes: int
    held_bytes: int
    peak_bytes: int

    @property
    def hit_rate(self) -> float:
        """The share of requests that a kept block served; 0 without a request."""
        return self.hits / self.requests if self.requests else 0.0


def pool_statistics(backend: str | Backend | None = None) -> PoolStatistics:
    """Statistics of the pools of one backend on all its devices, or of all open backends."""
    only = named(backend)
    totals = [0] * len(PoolStatistics._fields)
    # The same engine may be known by several options.
    for engine in {id(e): e for (b, *_), e in list(_engines.items()) if only is None or b == only}.values():
        statistics = engine.pool_statistics()
        for i, name in enumerate(PoolStatistics._fields):
            totals[i] += statistics[name]
    return PoolStatistics(*totals)


def trim_pools() -> None:
    """Returns the unused memory of the pools to the devices."""
    for engine in list(_engines.values()):
        engine.trim_pool()
