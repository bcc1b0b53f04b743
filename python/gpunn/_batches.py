"""Batches that a program supplies while it trains: any iterable of pairs (samples, targets)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpunn._arrays import Array, as_array
from gpunn.errors import UsageError

Convert = Callable[[Any, Any, str], tuple[Array, Array]]


def is_batches(x: Any) -> bool:
    """Whether ``x`` supplies batches instead of being an array: an iterator, a loader, a function that makes one, a
    list of pairs."""
    if hasattr(x, "__array__") or hasattr(x, "dtype"):
        return False
    if isinstance(x, list | tuple):
        return (
            len(x) > 0
            and all(isinstance(one, list | tuple) and len(one) == 2 for one in x)
            and getattr(x[0][0], "ndim", 0) > 0  # else a list of rows, each with two numbers
        )
    return callable(x) or hasattr(x, "__iter__") or hasattr(x, "__getitem__")


def pair_of(batch: Any, what: str) -> tuple[Any, Any]:
    if isinstance(batch, list | tuple) and len(batch) == 2:
        return batch[0], batch[1]
    found = f"{len(batch)} parts" if isinstance(batch, list | tuple) else type(batch).__name__
    raise UsageError(f"{what}: expected a pair (samples, targets), found {found}")


class Batches:
    """Iterates over the caller's batches again in each epoch, so that a stream that augments takes effect.

    The steps of an epoch are ``steps`` if given, else the length of the iterable, else those of its first pass, which
    is kept in memory until it is learnt.
    """

    def __init__(self, source: Any, steps: int | None, epochs: int) -> None:
        self._source = source
        self._endless = steps is not None  # a pass goes on where the last epoch ended
        self._once = hasattr(source, "__next__")
        self._kept: list[Any] = []
        self._iterator: Iterator[Any] | None = None
        self._epoch = self._done = 0
        self._next_step: int | None = None
        self._convert: Convert | None = None
        if self._once and not self._endless and epochs > 1:
            raise UsageError(
                f"a generator can be gone through once, and epochs={epochs}: give a function that makes it "
                "(fit(make_batches, ...)), an iterable that can be begun again, or steps_per_epoch"
            )
        if steps is not None and steps < 1:
            raise UsageError(f"steps_per_epoch: expected at least 1, found {steps}")
        if steps is None and not callable(source) and hasattr(source, "__len__"):
            steps = len(source)
        if steps is None:
            self._kept = list(self._pass())
            steps = len(self._kept)
        else:
            self._iterator = self._pass()
            first = next(self._iterator, None)
            if first is not None:
                self._kept = [first]
        if not self._kept or steps < 1:
            raise UsageError("the iterable brings no batch: it ends at once")
        self.steps = steps
        self.first = pair_of(self._kept[0], "the first batch")

    def _pass(self) -> Iterator[Any]:
        source = self._source() if callable(self._source) and not hasattr(self._source, "__iter__") else self._source
        return iter(source)

    def begin(self, convert: Convert) -> Callable[[int], tuple[Array, Array]]:
        """The function that the library calls for each step in turn; ``convert`` checks a batch."""
        self._convert = convert
        return self._read

    def _read(self, _step: int) -> tuple[Array, Array]:
        assert self._convert is not None
        if self._done == self.steps:
            self._finish_pass()
            self._epoch, self._done = self._epoch + 1, 0
            if not self._endless:
                self._iterator = None
        what = f"batch {self._done + 1} of epoch {self._epoch + 1}"
        x, y = pair_of(self._take(what), what)
        self._done += 1
        return self._convert(x, y, what)

    def _take(self, what: str) -> Any:
        if self._kept:
            return self._kept.pop(0)
        if self._iterator is None:
            self._iterator = self._pass()
        try:
            return next(self._iterator)
        except StopIteration:
            if self._endless and not self._once:  # begun again, as often as steps_per_epoch wants
                self._iterator = self._pass()
                batch = next(self._iterator, None)
                if batch is not None:
                    return batch
            raise UsageError(
                f"the batches of epoch {self._epoch + 1} ended before {what}: {self.steps} were expected"
            ) from None

    def _finish_pass(self) -> None:
        """An epoch with more batches than the first one is an error: it is not cut silently."""
        if self._endless or self._iterator is None:
            return
        if next(self._iterator, None) is not None:
            raise UsageError(f"epoch {self._epoch + 1} has more than the {self.steps} batches that were expected")


def gathered(data: Any, what: str) -> tuple[Any, Any]:
    """Samples and targets of a pair, or of all batches together."""
    if isinstance(data, list | tuple) and len(data) == 2 and not is_batches(data):
        return data[0], data[1]
    if not is_batches(data):
        raise UsageError(f"{what}: expected a pair (x, y), or batches of such pairs, found {type(data).__name__}")
    source = data() if callable(data) and not hasattr(data, "__iter__") else data
    pairs = [pair_of(batch, f"{what}, batch {i + 1}") for i, batch in enumerate(source)]
    if not pairs:
        raise UsageError("the iterable brings no batch: it ends at once")
    try:
        return (
            np.concatenate([as_array(x, "x") for x, _ in pairs]),
            np.concatenate([as_array(y, "y") for _, y in pairs]),
        )
    except ValueError as error:
        raise UsageError(f"the batches differ in the shape of their samples: {error}") from error
