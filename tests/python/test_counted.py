"""Steps that are counted over calls of fit, averaged statistics and batches of one row, against their definitions."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn as gnn
import small

Array = npt.NDArray[Any]


def numbers(rows: int, features: int = 3, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features)).astype(np.float32)
    return x, (x @ rng.normal(size=(features, 1)) + 0.5).astype(np.float32)


class Adam:
    """The update of Kingma and Ba on a linear layer and a mean squared error, in float64."""

    def __init__(self, weight: Array, bias: Array) -> None:
        self.values = [weight.astype(np.float64), bias.astype(np.float64)]
        self.m = [np.zeros_like(one) for one in self.values]
        self.v = [np.zeros_like(one) for one in self.values]
        self.steps = 0

    def step(self, x: Array, y: Array, rate: float) -> None:
        error = 2 * (x @ self.values[0].T + self.values[1] - y) / len(x)
        self.steps += 1
        for i, gradient in enumerate((error.T @ x, error.sum(0))):
            self.m[i] = 0.9 * self.m[i] + 0.1 * gradient
            self.v[i] = 0.999 * self.v[i] + 0.001 * gradient**2
            mean, square = self.m[i] / (1 - 0.9**self.steps), self.v[i] / (1 - 0.999**self.steps)
            self.values[i] -= rate * mean / (np.sqrt(square) + 1e-8)


@pytest.mark.parametrize("again", [(100, 40), (70, 10), (35, 35), (100, 7)])
def test_fit_again_with_other_batches_counts_steps(again: tuple[int, int]) -> None:
    """The optimizer's steps and the milestones of the schedule go on with the number of steps that were done."""
    network = gnn.Sequential([gnn.Linear(3, 1)]).compile(
        "adam",
        loss="mse",
        learning_rate=0.1,
        backend="cpu",
        schedule={"type": "multi_step", "per": "step", "milestones": [3, 22], "gamma": 0.5},
    )
    state = network.state_dict()
    expected = Adam(*(state[name] for name in sorted(state, reverse=True)))
    for (rows, batch), seed in (((100, 10), 0), (again, 1)):
        x, y = numbers(rows, seed=seed)
        network.fit(x, y, epochs=2, batch_size=batch, shuffle=False)
        steps = rows // batch if rows % batch < 2 else -(-rows // batch)
        for _ in range(2):
            for i in range(steps):
                part = slice(i * batch, rows if i + 1 == steps else (i + 1) * batch)
                rate = 0.1 * 0.5 ** ((expected.steps >= 3) + (expected.steps >= 22))
                expected.step(x[part], y[part], rate)
    found = network.state_dict()
    for name, value in zip(sorted(found, reverse=True), expected.values, strict=True):
        assert np.allclose(found[name], value, rtol=1e-4, atol=1e-5), name
    assert network.history["epoch"] == [1, 2, 3, 4]


def test_fit_after_an_epoch_that_was_cut_short() -> None:
    x, y = numbers(40)
    network = gnn.Sequential([gnn.Linear(3, 1)]).compile("sgd", loss="mse", backend="cpu")
    steps: list[int] = []

    class Steps(gnn.Callback):
        def on_epoch(self, report: Any) -> None:
            steps.append(report.global_step)

    network.fit(x, y, epochs=3, batch_size=10, callbacks=[Steps()], settings={"training.max_steps": 6})
    network.fit(x, y, epochs=2, batch_size=20, callbacks=[Steps()])
    network.fit(x[:30], y[:30], epochs=1, batch_size=10, callbacks=[Steps()])
    assert steps == [4, 6, 8, 10, 13]
    assert network.history["epoch"] == [1, 2, 3, 4, 5]


def normed() -> gnn.Sequential:
    return gnn.Sequential([gnn.Linear(3, 4), gnn.BatchNorm1d(), gnn.Linear(4, 1)])


def torch_twin(network: gnn.Network) -> Any:
    torch = pytest.importorskip("torch", reason="PyTorch defines the values")
    twin = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    kept = {name: one for name, one in twin.state_dict().items() if one.dim() > 0}
    ours = list(network.state_dict().values())
    assert len(ours) == len(kept)
    # By layer, and in a layer by shape and name: weights before biases, means before variances.
    state = dict(zip(kept, in_order_of(kept, network), strict=True))
    twin.load_state_dict({name: torch.tensor(one) for name, one in state.items()}, strict=False)
    return twin


def in_order_of(names: Any, network: gnn.Network) -> list[Array]:
    """The network's tensors in the order of PyTorch's names."""
    layers: dict[str, dict[str, Array]] = {}
    for name, value in network.state_dict().items():
        layer, _, kind = name.rpartition(".")
        layers.setdefault(layer, {})[kind] = value
    order = sorted(layers, key=[name.rpartition(".")[0] for name in network.state_dict()].index)
    places = {str(i): layer for i, layer in enumerate(order)}
    return [layers[places[name.split(".")[0]]][name.split(".")[1]] for name in names]


def learn(twin: Any, x: Array, y: Array) -> None:
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.05)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(twin(torch.tensor(x)), torch.tensor(y)).backward()
    optimizer.step()


def test_a_single_last_row_joins_the_batch_before_it() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch defines the values")
    x, y = numbers(33)
    network = normed().compile("sgd", loss="mse", learning_rate=0.05, backend="cpu")
    network.fit(x[:2], y[:2], batch_size=2)  # the weights are made
    twin = torch_twin(network).train()
    with pytest.raises(ValueError, match="more than 1 value"):
        twin(torch.tensor(x[:1]))
    network.fit(x, y, epochs=2, batch_size=16, shuffle=False)
    for _ in range(2):
        learn(twin, x[:16], y[:16])
        learn(twin, x[16:], y[16:])
    kept = {name: one for name, one in twin.state_dict().items() if one.dim() > 0}
    for (name, one), other in zip(kept.items(), in_order_of(kept, network), strict=True):
        assert np.allclose(one.numpy(), other, rtol=1e-4, atol=1e-5), name


def test_batches_of_one_row_are_kept_where_they_are_asked_for() -> None:
    x, y = numbers(5)
    network = gnn.Sequential([gnn.Linear(3, 1)]).compile("sgd", loss="mse", backend="cpu")
    seen: list[int] = []

    class Steps(gnn.Callback):
        def on_losses(self, first: int, losses: list[float]) -> None:
            seen.extend(range(first, first + len(losses)))

    network.fit(x, y, batch_size=1, callbacks=[Steps()])
    assert len(seen) == 5
    network.fit(x, y, batch_size=2, callbacks=[Steps()])
    assert len(seen) == 7
    network.fit(x[:1], y[:1], callbacks=[Steps()])
    assert len(seen) == 8
    network.fit([(x[:2], y[:2]), (x[2:3], y[2:3])], callbacks=[Steps()])  # batches of the caller
    assert len(seen) == 10


def test_an_average_has_the_averages_of_weights_and_statistics() -> None:
    """PyTorch trains; the average is that of all tensors of its state, from the first values on."""
    torch = pytest.importorskip("torch", reason="PyTorch defines the values")
    x, y = numbers(64)
    network = normed().compile("sgd", loss="mse", learning_rate=0.05, backend="cpu", training={"ema": 0.75})
    network.state_dict()
    network.predict(x)
    twin = torch_twin(network).train()
    average = {name: one.clone() for name, one in twin.state_dict().items() if one.dim() > 0}
    network.fit(x, y, epochs=2, batch_size=16, shuffle=False)
    for _ in range(2):
        for i in range(0, 64, 16):
            learn(twin, x[i : i + 16], y[i : i + 16])
            for name, one in average.items():
                one.mul_(0.75).add_(twin.state_dict()[name], alpha=0.25)
    for (name, one), other in zip(average.items(), in_order_of(average, network), strict=True):
        assert np.allclose(one.numpy(), other, rtol=1e-4, atol=1e-5), name
    kept = twin.state_dict()
    kept.update(average)
    twin.load_state_dict(kept)
    with torch.no_grad():
        assert np.allclose(twin.eval()(torch.tensor(x)).numpy(), network.predict(x).reshape(-1, 1), atol=1e-5)


def test_a_resumed_run_keeps_its_schedule(caplog: pytest.LogCaptureFixture) -> None:
    cosine = {"type": "cosine", "min_learning_rate": 0.01}
    stretched = gnn.run(small.experiment(schedule=cosine), progress=False)
    kept = gnn.run(small.experiment(schedule=cosine), progress=False)
    with caplog.at_level(logging.WARNING, "gpunn"):
        assert kept.resume(epochs=3, keep_schedule=True, progress=False).epochs[-1]["learning_rate"] == pytest.approx(
            0.01
        )
        assert "was made for" not in caplog.text
        assert stretched.resume(epochs=3, progress=False).epochs[2]["learning_rate"] < 0.012
    assert "schedule cosine was made for 40 steps and now extends over 60" in caplog.text
