"""Everything that brings batches or arrays is read in one way, whatever its type and whatever it does with its memory.

The result is compared with that of the same rows as plain arrays.
"""

from __future__ import annotations

import array as python_arrays
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn as gnn

Array = npt.NDArray[Any]
ROWS, SIZE, FEATURES = 60, 20, 5


def rows() -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return x, (x[:, 0] > x[:, 1]).astype(np.int64) + (x[:, 2] > 1)


def network() -> gnn.Network:
    return gnn.Sequential([gnn.Linear(FEATURES, 8), gnn.Tanh(), gnn.Linear(8, 3)]).compile(
        "sgd", learning_rate=0.1, loss="cross_entropy", backend="cpu", threads=1
    )


def weights_of(fitted: gnn.Network) -> list[Array]:
    return list(fitted.state_dict().values())


def trained_on_rows(epochs: int) -> gnn.Network:
    expected = network()
    expected.fit(*rows(), epochs=epochs, batch_size=SIZE, shuffle=False)
    return expected


def refilled() -> Iterator[tuple[Array, Array]]:
    """Yields one pair of arrays three times, filled with the next rows each time."""
    x, y = rows()
    samples, labels = np.empty_like(x[:SIZE]), np.empty_like(y[:SIZE])
    for i in range(0, ROWS, SIZE):
        samples[...], labels[...] = x[i : i + SIZE], y[i : i + SIZE]
        yield samples, labels
    samples[...], labels[...] = 1e9, 0


class Refilling:
    """Fills the same arrays again in each pass."""

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return refilled()


class Sized(Refilling):
    def __len__(self) -> int:
        return ROWS // SIZE


class Indexed:
    """Has ``__getitem__`` and ``__len__`` only, and any index is right: ``len()`` alone ends it."""

    def __init__(self, length: int = ROWS // SIZE) -> None:
        self.length = length
        self.samples, self.labels = np.empty((SIZE, FEATURES), np.float32), np.empty(SIZE, np.int64)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Array, Array]:
        x, y = rows()
        first = index * SIZE % ROWS
        self.samples[...], self.labels[...] = x[first : first + SIZE], y[first : first + SIZE]
        return self.samples, self.labels


class Ending:
    """Has ``__getitem__`` only: IndexError ends it."""

    def __getitem__(self, index: int) -> tuple[Array, Array]:
        if index >= ROWS // SIZE:
            raise IndexError(index)
        return Indexed()[index]


class Stopping:
    """Has ``__getitem__`` only: StopIteration ends it, which Python's own iteration by index allows."""

    def __getitem__(self, index: int) -> tuple[Array, Array]:
        return next(iter([Indexed()[index]] if index < ROWS // SIZE else []))


class Unsized(Sized):
    """Has a ``__len__`` that knows nothing, as PyTorch's loader of an iterable data set."""

    def __len__(self) -> int:
        raise TypeError("no length")


class Unfinished(Sized):
    """Has a ``__len__`` that its author left out."""

    def __len__(self) -> int:
        raise NotImplementedError


class Endless(Sized):
    """Begins again for ever, as a generator of augmented images does."""

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        while True:
            yield from super().__iter__()


class Cycle:
    """An iterator without an end that has a length, as Keras' generators of images."""

    def __init__(self) -> None:
        self.number = 0
        self.source = Indexed()

    def __len__(self) -> int:
        return ROWS // SIZE

    def __iter__(self) -> Cycle:
        return self

    def __next__(self) -> tuple[Array, Array]:
        self.number += 1
        return self.source[self.number - 1]


SOURCES: list[Callable[[], Any]] = [
    Refilling,
    Sized,
    Indexed,
    Ending,
    Stopping,
    Unsized,
    Unfinished,
    Endless,
    Cycle,
    lambda: refilled,
    lambda: Indexed,
    lambda: list(zip(*(np.split(part, 3) for part in rows()), strict=True)),
    lambda: [[x.tolist(), y.tolist()] for x, y in zip(*(np.split(part, 3) for part in rows()), strict=True)],
]


@pytest.mark.parametrize("make", SOURCES)
def test_batches_in_memory_that_is_filled_again_are_learnt_and_evaluated(make: Callable[[], Any]) -> None:
    expected = trained_on_rows(epochs=2)
    streamed = network()
    streamed.fit(make(), epochs=2)
    assert all(map(np.array_equal, weights_of(streamed), weights_of(expected)))
    assert streamed.evaluate(make()) == expected.evaluate(*rows())


@pytest.mark.parametrize("make", [refilled, lambda: iter(Sized()), lambda: iter(Indexed()[i] for i in range(3))])
def test_generators_that_fill_one_buffer(make: Callable[[], Any]) -> None:
    expected = trained_on_rows(epochs=1)
    streamed = network()
    streamed.fit(make(), epochs=1)
    assert all(map(np.array_equal, weights_of(streamed), weights_of(expected)))
    assert streamed.evaluate(make()) == expected.evaluate(*rows())
    history = network().fit(*rows(), batch_size=SIZE, shuffle=False, validation_data=make())
    assert history["val_loss"][0] == expected.evaluate(*rows())["loss"]


@pytest.mark.parametrize("name", ["epochs", "batch_size", "steps_per_epoch"])
def test_counts_are_integers_of_any_type(name: str) -> None:
    wrong: list[tuple[Any, str]] = [(2.0, "an integer, found 2.0"), ("2", "found '2'"), (0, "at least 1, found 0")]
    for value, message in wrong:
        arguments = {name: value}
        with pytest.raises(gnn.UsageError, match=f"{name}: .*{message}"):
            network().fit(Sized(), **arguments)
    right: dict[str, Any] = {"steps_per_epoch": np.int8(2), name: np.uint64(20)}
    assert len(network().fit(Sized(), **right)) == (20 if name == "epochs" else 1)


def test_steps_per_epoch_cut_what_has_no_end() -> None:
    def endless() -> Iterator[tuple[Array, Array]]:
        while True:
            yield from refilled()

    expected = trained_on_rows(epochs=2)
    for source in (endless(), endless, Refilling(), Cycle(), Indexed(10**9)):
        streamed = network()
        streamed.fit(source, epochs=2, steps_per_epoch=3)
        assert all(map(np.array_equal, weights_of(streamed), weights_of(expected)))


class Used:
    """An iterable whose second pass is empty."""

    def __init__(self) -> None:
        self.only = refilled()

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return self.only


class Liar(Sized):
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def broken_at(number: int, spoil: Callable[[Array, Array], Any]) -> list[Any]:
    pairs = [(x.copy(), y.copy()) for x, y in refilled()]
    pairs[number] = spoil(*pairs[number])
    return pairs


@pytest.mark.parametrize(
    ("source", "epochs", "message"),
    [
        (refilled(), 2, "gone through once"),
        (Used(), 2, "ended before batch 1 of epoch 2: 3 were expected; it can be gone through once only"),
        (iter([]), 1, "ends at once"),
        (Liar(0), 1, "ends at once"),
        (Liar(4), 1, "ended before batch 4 of epoch 1: 4 were expected"),
        (lambda: None, 1, "an iterable of pairs .*, found NoneType"),
        ({"x": 1}, 1, "y: a training needs targets"),
        (iter([{"x": 1, "y": 2}]), 1, "batch 1: expected a pair .*, found dict"),
        (iter([(1, 2, 3)]), 1, "batch 1: expected a pair .*, found 3 parts"),
        (broken_at(1, lambda x, y: (x[:, :4], y)), 1, r"batch 2 of epoch 1, x: .* samples of \[5\], found \[4\]"),
        (broken_at(1, lambda x, y: (x, y[:3])), 1, "batch 2 of epoch 1, y: expected one entry for each of the 20"),
        (broken_at(2, lambda x, y: (x[:0], y[:0])), 1, "batch 3 of epoch 1, x: the array is empty"),
        (broken_at(2, lambda x, y: (x.astype(str), y)), 1, "batch 3 of epoch 1, x: .* found dtype <U"),
        (broken_at(2, lambda x, y: (x, y + 0.5)), 1, "batch 3 of epoch 1, y: classes are integers"),
        (broken_at(0, lambda x, y: (x, [None] * len(y))), 1, "batch 1, y: .* found dtype object"),
    ],
)
def test_batches_that_do_not_fit_are_named(source: Any, epochs: int, message: str) -> None:
    with pytest.raises(gnn.UsageError, match=message):
        network().fit(source, epochs=epochs)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (iter([]), "ends at once"),
        (Liar(4), r"its len\(\) is 4, and it ends after 3 batches"),
        (broken_at(1, lambda x, y: (x[:, :4], y)), r"batch 2, x: expected rows of \[5\] like the first batch, found"),
        (lambda: broken_at(2, lambda x, y: x), "batch 3: expected a pair"),
        (broken_at(2, lambda x, y: (x, np.ma.masked_equal(y, 0))), "batch 3, y: .* values are masked"),
    ],
)
def test_evaluations_and_validation_name_them_too(source: Any, message: str) -> None:
    if not hasattr(source, "__next__"):
        with pytest.raises(gnn.UsageError, match=f"validation_data.*{message}"):
            network().fit(*rows(), validation_data=source)
    with pytest.raises(gnn.UsageError, match=message):
        network().evaluate(source)
    with pytest.raises(gnn.UsageError, match="leave y out"):
        network().evaluate(refilled(), rows()[1])


def test_an_exception_of_a_generator_reaches_the_caller() -> None:
    def failing() -> Iterator[tuple[Array, Array]]:
        yield from list(refilled())[:2]
        raise LookupError("no third file")

    for call in (network().fit, network().evaluate):
        with pytest.raises(LookupError, match="no third file"):
            call(failing())


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype(">f8"),
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1][::-1],
        lambda x: x.astype(object),
        np.ma.masked_invalid,
        lambda x: np.lib.stride_tricks.as_strided(x, writeable=False),
        lambda x: x.astype(np.longdouble),
        lambda x: x.tolist(),
        memoryview,
    ],
)
def test_arrays_of_any_kind_are_the_same_numbers(change: Callable[[Array], Any]) -> None:
    x, y = rows()
    expected, other = network(), network()
    expected.fit(x, y)
    other.fit(change(x), y)
    assert all(map(np.array_equal, weights_of(other), weights_of(expected)))
    assert np.array_equal(expected.predict(change(x)), expected.predict(x))
    assert expected.evaluate(change(x), python_arrays.array("q", y.tolist())) == expected.evaluate(x, y)


def test_masked_and_sparse_arrays_are_refused() -> None:
    x, y = rows()
    fitted = network()
    fitted.fit(x, y)
    with pytest.raises(gnn.UsageError, match=r"x: \d+ values are masked; replace them"):
        fitted.predict(np.ma.masked_less(x, 0))
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(gnn.UsageError, match="x: expected a dense array, found a sparse one"):
        fitted.fit(sparse.csr_matrix(x), y)


def test_answers_belong_to_the_caller(tmp_path: Any) -> None:
    x, y = rows()
    fitted = network()
    fitted.fit(x, y)
    fitted.save(tmp_path / "network.h5")
    model = gnn.load(tmp_path / "network.h5")
    for call in (fitted.predict, fitted.forward, model.run, lambda one: next(iter(fitted.state_dict().values()))):
        first = call(x[:8])
        kept = np.array(first)
        first_again = call(x[:8])
        call(x[8:16])
        assert np.array_equal(first, kept)
        assert first.flags.writeable
        first[...] = 7
        assert np.array_equal(first_again, kept)
        assert np.array_equal(call(x[:8]), kept)


def test_reports_that_a_callback_keeps_stay_as_they_were() -> None:
    kept: list[Any] = []
    shown: list[str] = []

    class Keeps(gnn.Callback):
        def on_step(self, step: gnn.StepReport) -> None:
            kept.append(step)
            shown.append(repr(step))

        def on_epoch(self, epoch: gnn.EpochReport) -> None:
            kept.append(epoch)
            shown.append(repr(epoch))

        def on_losses(self, first: int, losses: list[float]) -> None:
            kept.append(losses)
            shown.append(repr(losses))

    network().fit(Refilling(), epochs=4, callbacks=[Keeps()])
    assert [repr(one) for one in kept] == shown
    assert len(kept) >= 8


def test_pytorchs_loaders_of_every_kind() -> None:
    torch = pytest.importorskip("torch")
    x, y = rows()
    expected = trained_on_rows(epochs=2)

    class Streamed(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[tuple[Any, Any]]:
            return iter(zip(torch.tensor(x), torch.tensor(y), strict=True))

    data = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
    for source in (
        torch.utils.data.DataLoader(data, batch_size=SIZE),
        torch.utils.data.DataLoader(Streamed(), batch_size=SIZE),
    ):
        streamed = network()
        streamed.fit(source, epochs=2)
        assert all(map(np.array_equal, weights_of(streamed), weights_of(expected)))
        assert streamed.evaluate(source) == expected.evaluate(x, y)
    brain = torch.tensor(x[:4]).to(torch.bfloat16).requires_grad_()
    assert np.array_equal(expected.predict(brain), expected.predict(brain.detach().float().numpy()))
