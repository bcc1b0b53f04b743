"""Batches that a program supplies: any iterable of pairs (samples, targets).

Iterators, generators, functions that make them, loaders, lists, and sequences by ``__getitem__`` are read in one way.
``len()``, if there is one, is the number of batches: it ends what does not end by itself. A batch belongs to the
caller, who may fill its arrays with the next one: it is copied or consumed before the next one is requested.
"""

from __future__ import annotations

import array as python_arrays
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from gpunn._arrays import Array, as_array, count_of
from gpunn.errors import UsageError

Samples = Array | dict[str, Array]  # of several inputs by their names
Convert = Callable[[Any, Any, str], tuple[list[Array], Array]]
Pair = tuple[Samples, Array]

_ARRAYS = ("__array__", "__array_interface__", "__dlpack__", "dtype", "toarray")
_NO_BATCH = "the iterable brings no batch: it ends at once"


def is_batches(x: Any, *, alone: bool = False) -> bool:
    """Whether ``x`` supplies batches instead of being an array: an iterator, a loader, a function that makes one, a
    list of pairs. ``alone``: no targets came with ``x``, so that a list of pairs of lists can only be batches."""
    if any(hasattr(x, name) for name in _ARRAYS):
        return False
    if isinstance(x, str | bytes | bytearray | memoryview | python_arrays.array | Mapping):
        return False
    if isinstance(x, list | tuple):
        return (
            len(x) > 0
            and all(isinstance(one, list | tuple) and len(one) == 2 for one in x)
            # else a list of rows, each with two numbers
            and (getattr(x[0][0], "ndim", 0) > 0 or (alone and isinstance(x[0][0], list | tuple)))
        )
    return callable(x) or hasattr(x, "__iter__") or hasattr(x, "__getitem__")


def pair_of(batch: Any, what: str) -> tuple[Any, Any]:
    if isinstance(batch, list | tuple) and len(batch) == 2:
        return batch[0], batch[1]
    found = f"{len(batch)} parts" if isinstance(batch, list | tuple) else type(batch).__name__
    raise UsageError(f"{what}: expected a pair (samples, targets), found {found}")


def owned(batch: Any, what: str) -> Pair:
    """A copy of a batch, which stays when the caller fills its arrays with the next one."""
    x, y = pair_of(batch, what)
    targets = np.array(as_array(y, f"{what}, y"))
    if isinstance(x, Mapping):
        return {str(name): np.array(as_array(one, f"{what}, x[{name!r}]")) for name, one in x.items()}, targets
    return np.array(as_array(x, f"{what}, x")), targets


def _parts(samples: Samples) -> dict[str, Array]:
    """The arrays, with what stands behind ``x`` in messages."""
    return {f"[{name!r}]": one for name, one in samples.items()} if isinstance(samples, dict) else {"": samples}


def _makes(source: Any) -> bool:
    """Whether ``source`` is a function, or a class, that makes an iterable."""
    return isinstance(source, type) or (callable(source) and not hasattr(source, "__iter__") and not _has_items(source))


def _has_items(source: Any) -> bool:
    return hasattr(source, "__getitem__")


def length_of(source: Any) -> int | None:
    """The number of batches of a pass, if the source knows it."""
    if _makes(source) or not hasattr(source, "__len__"):
        return None
    try:
        return len(source)
    except (TypeError, NotImplementedError):  # loaders can have a __len__ whatever they load
        return None


def pass_of(source: Any) -> Iterator[Any]:
    """Begins a pass through the caller's batches. ``len()`` ends it, if nothing else does before."""
    made = source() if _makes(source) else source
    if not hasattr(made, "__iter__") and not _has_items(made):
        raise UsageError(f"expected an iterable of pairs (samples, targets), found {type(made).__name__}")
    return islice(iter(made), length_of(made))


def _collected(batches: Iterable[Any], what: str) -> Iterator[Pair]:
    """Copies of batches, as long as they fit into memory."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    taken = 0
    for number, batch in enumerate(batches, 1):
        pair = owned(batch, f"{what}batch {number}")
        taken += sum(one.nbytes for one in _parts(pair[0]).values()) + pair[1].nbytes
        if taken > most:
            raise UsageError(
                f"{what}{number} batches take half of the memory, and their end is not reached; give an iterable that "
                "ends, a len(), or steps_per_epoch"
            )
        yield pair


class Batches:
    """Iterates over the caller's batches again in each epoch, so that a stream that augments takes effect.

    The steps of an epoch are ``steps`` if given, else the length of the iterable, else those of its first pass, which
    is copied until it is learnt.
    """

    def __init__(self, source: Any, steps: int | None, epochs: int) -> None:
        self._source = source
        self._once = hasattr(source, "__next__")
        length = length_of(source)
        # A pass continues where the last epoch ended.
        self._endless = steps is not None or (self._once and length is not None)
        self._kept: deque[Pair] = deque()
        self._iterator: Iterator[Any] | None = None
        self._epoch = self._done = 0
        self._convert: Convert | None = None
        if self._once and not self._endless and epochs > 1:
            raise UsageError(
                f"a generator can be gone through once, and epochs={epochs}: give a function that makes it "
                "(fit(make_batches, ...)), an iterable that can be begun again, or steps_per_epoch"
            )
        steps = length if steps is None else count_of(steps, "steps_per_epoch")
        if steps is None:
            self._kept.extend(_collected(pass_of(source), ""))
            steps = len(self._kept)
        else:
            self._iterator = pass_of(source)
            for first in self._iterator:
                self._kept.append(owned(first, "batch 1"))
                break
        if not self._kept or steps < 1:
            raise UsageError(_NO_BATCH)
        self.steps = steps
        self.first = self._kept[0]

    def begin(self, convert: Convert) -> Callable[[int], tuple[list[Array], Array]]:
        """The function that the library calls for each step in turn; ``convert`` checks a batch. The library copies
        what it returns before it calls again."""
        self._convert = convert
        return self._read

    def _read(self, _step: int) -> tuple[list[Array], Array]:
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
            return self._kept.popleft()
        for batch in () if self._iterator is None else self._iterator:
            return batch
        if self._endless or self._done == 0:  # begun again, as often as steps_per_epoch wants
            self._iterator = pass_of(self._source)
            for batch in self._iterator:
                return batch
        hint = ""
        if self._epoch > 0 and (self._once or self._done == 0):
            hint = "; it can be gone through once only: give a function that makes it, or an iterable that begins again"
        raise UsageError(
            f"the batches of epoch {self._epoch + 1} ended before {what}: {self.steps} were expected{hint}"
        )

    def _finish_pass(self) -> None:
        """An epoch with more batches than the first one is an error: it is not cut silently."""
        if self._endless or self._iterator is None:
            return
        for _ in self._iterator:
            raise UsageError(f"epoch {self._epoch + 1} has more than the {self.steps} batches that were expected")


def gathered(data: Any, what: str, *, alone: bool = False) -> tuple[Any, Any]:
    """Samples and targets of a pair, or of all batches together."""
    if isinstance(data, list | tuple) and len(data) == 2 and not is_batches(data, alone=alone):
        return data[0], data[1]
    if not is_batches(data, alone=alone):
        raise UsageError(f"{what}: expected a pair (x, y), or batches of such pairs, found {type(data).__name__}")
    length = length_of(data)
    pairs: list[Pair] = []
    for pair in _collected(pass_of(data), f"{what}, "):
        if pairs:
            _require_alike(pair, pairs[0], f"{what}, batch {len(pairs) + 1}")
        pairs.append(pair)
    if not pairs:
        raise UsageError(f"{what}: {_NO_BATCH}")
    if length is not None and len(pairs) < length:
        raise UsageError(f"{what}: its len() is {length}, and it ends after {len(pairs)} batches")
    targets = np.concatenate([y for _, y in pairs])
    if isinstance(pairs[0][0], dict):
        return {name: np.concatenate([x[name] for x, _ in pairs]) for name in pairs[0][0]}, targets
    return np.concatenate([x for x, _ in pairs]), targets


def _require_alike(pair: Pair, first: Pair, what: str) -> None:
    parts, others = ({f"x{at}": one for at, one in _parts(x).items()} | {"y": y} for x, y in (pair, first))
    if parts.keys() != others.keys():
        raise UsageError(f"{what}: expected {', '.join(others)} like the first batch, found {', '.join(parts)}")
    for name, found in parts.items():
        expected = others[name]
        if found.shape[1:] != expected.shape[1:] or found.ndim != expected.ndim:
            raise UsageError(
                f"{what}, {name}: expected rows of {list(expected.shape[1:])} like the first batch, found "
                f"{list(found.shape[1:]) if found.ndim else 'a single number'}"
            )
        if (found.dtype == np.uint8) != (expected.dtype == np.uint8) and found.ndim > 2:
            raise UsageError(f"{what}, {name}: the first batch has {expected.dtype} samples, this one {found.dtype}")
