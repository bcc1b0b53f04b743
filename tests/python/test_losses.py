from __future__ import annotations

import math

import numpy as np
import pytest

import gpunn as gnn


def test_the_example_of_the_first_hour() -> None:
    model = gnn.Sequential(
        [
            gnn.Linear(784, 256),
            gnn.ReLU(),
            gnn.Linear(256, 128),
            gnn.ReLU(),
            gnn.Linear(128, 10),
            gnn.Softmax(),
        ]
    )
    x = np.random.default_rng(1).normal(size=(32, 784)).astype(np.float32)
    y = np.random.default_rng(2).integers(0, 10, 32)
    predictions = model.forward(x)
    assert predictions.shape == (32, 10)
    assert predictions.dtype == np.float32
    assert np.allclose(predictions.sum(axis=1), 1, atol=1e-5)
    expected = -np.log(predictions[np.arange(32), y]).mean()
    assert gnn.cross_entropy_loss(predictions, y) == pytest.approx(float(expected), rel=1e-5)
    logits = gnn.Sequential(model.layers[:-1])
    logits.load_state_dict(model.state_dict())
    assert gnn.cross_entropy_loss(logits(x), y) == pytest.approx(float(expected), rel=1e-5)


def test_what_predictions_are_is_told_by_the_network_or_by_the_caller() -> None:
    row = np.array([[0.2, 0.8]], np.float32)
    as_probabilities = -math.log(0.8)
    as_logits = math.log(math.exp(0.2) + math.exp(0.8)) - 0.8
    assert gnn.cross_entropy_loss(row, [1]) == pytest.approx(as_probabilities, rel=1e-5)
    assert gnn.cross_entropy_loss(row, [1], from_logits=True) == pytest.approx(as_logits, rel=1e-5)
    assert gnn.cross_entropy_loss(row * 3, [1]) != pytest.approx(gnn.cross_entropy_loss(row, [1]))
    identity = gnn.Sequential([gnn.Linear(2, 2)])
    identity.load_state_dict({"linear1.weight": np.eye(2), "linear1.bias": np.zeros(2)})
    outputs = identity(row)
    assert outputs.kind == "logits"
    assert gnn.cross_entropy_loss(outputs, [1]) == pytest.approx(as_logits, rel=1e-5)
    assert not isinstance(outputs * 2, gnn.Outputs)
    assert not isinstance(outputs.sum(), np.ndarray)
    assert getattr(outputs[:1], "kind", None) == "logits"


def test_against_pytorch() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    labels = rng.integers(0, 4, 6)
    ta, tb, tl = torch.tensor(a), torch.tensor(b), torch.tensor(labels)
    f = torch.nn.functional
    assert gnn.cross_entropy_loss(a, labels) == pytest.approx(f.cross_entropy(ta, tl).item())
    assert gnn.cross_entropy_loss(a, labels, label_smoothing=0.1) == pytest.approx(
        f.cross_entropy(ta, tl, label_smoothing=0.1).item()
    )
    assert gnn.mse_loss(a, b) == pytest.approx(f.mse_loss(ta, tb).item())
    assert gnn.l1_loss(a, b) == pytest.approx(f.l1_loss(ta, tb).item())
    assert gnn.huber_loss(a, b, delta=0.7) == pytest.approx(f.huber_loss(ta, tb, delta=0.7).item())
    assert gnn.hinge_loss(a, labels) == pytest.approx(f.multi_margin_loss(ta, tl).item())
    zeros = (b > 0).astype(float)
    assert gnn.binary_cross_entropy_loss(a, zeros) == pytest.approx(
        f.binary_cross_entropy_with_logits(ta, torch.tensor(zeros)).item()
    )
    probabilities = 1 / (1 + np.exp(-a))
    assert gnn.binary_cross_entropy_loss(probabilities, zeros) == pytest.approx(gnn.binary_cross_entropy_loss(a, zeros))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gnn.cross_entropy_loss([[1.0, 2.0]], [2]), "labels are 0 to 1, found 2"),
        (lambda: gnn.cross_entropy_loss([[1.0, 2.0]], [-1]), "found -1"),
        (lambda: gnn.cross_entropy_loss([[1.0, 2.0]], [0, 1]), "a class for each of the 1 rows"),
        (lambda: gnn.cross_entropy_loss([[1.0, 2.0]], [0.5]), "integers"),
        (lambda: gnn.cross_entropy_loss([1.0], [0]), "rows, classes"),
        (lambda: gnn.cross_entropy_loss([[-1.0, 2.0]], [0], from_logits=False), "from_logits=True"),
        (lambda: gnn.mse_loss([[1.0, 2.0]], [1.0]), "shape of the predictions"),
        (lambda: gnn.mse_loss([], []), r"expected \[rows"),
        (lambda: gnn.mse_loss(["a"], [1]), "array of numbers"),
    ],
)
def test_wrong_arrays_are_told(call: object, message: str) -> None:
    with pytest.raises(gnn.UsageError, match=message):
        call()  # type: ignore[operator]
