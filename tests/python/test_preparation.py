"""The preparation of samples travels with the weights: whoever loads them answers as the network that learnt them."""

from __future__ import annotations

import copy
import json
import pickle
import struct
import subprocess
import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn as gnn
import small

Array = npt.NDArray[Any]


def samples(rows: int = 120, seed: int = 0) -> tuple[Array, Array]:
    """Features far from 0, which a network without its normalisation can't tell apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    centres = rng.normal(size=(3, 6))
    return (5000 + 40 * (centres[y] + 0.2 * rng.normal(size=(rows, 6)))).astype(np.float32), y


def layers(outputs: int) -> gnn.Sequential:
    return gnn.Sequential([gnn.Linear(6, 16), gnn.ReLU(), gnn.Linear(16, outputs)], input_shape=(6,))


def classifier() -> gnn.Network:
    x, y = samples()
    network = layers(3).compile("adam", learning_rate=0.05, backend="cpu", normalize="data")
    network.fit(x, y, epochs=8)
    assert network.evaluate(x, y)["accuracy"] > 0.95
    return network


def by_state(network: gnn.Network, fresh: gnn.Network, _: Path) -> None:
    fresh.load_state_dict(network.state_dict())


def by_copied_state(network: gnn.Network, fresh: gnn.Network, _: Path) -> None:
    fresh.load_state_dict(pickle.loads(pickle.dumps(copy.deepcopy(network.state_dict()))))


def by_copy_of_state(network: gnn.Network, fresh: gnn.Network, _: Path) -> None:
    state = network.state_dict()
    copied = state.copy() | {name: value.copy() for name, value in state.items()}
    loaded = pickle.loads(pickle.dumps(copied))
    assert type(loaded) is OrderedDict
    fresh.load_state_dict(copied)


def by_safetensors(network: gnn.Network, fresh: gnn.Network, folder: Path) -> None:
    network.save(folder / "weights.safetensors")
    report = fresh.load_weights(folder / "weights.safetensors")
    assert "4 of 4 tensors" in report
    assert "normalisation: taken with the weights (mean " in report


def by_checkpoint(network: gnn.Network, fresh: gnn.Network, folder: Path) -> None:
    network.save(folder / "weights.h5")
    assert "normalisation: taken" in fresh.load_weights(folder / "weights.h5")


def by_export(network: gnn.Network, fresh: gnn.Network, folder: Path) -> None:
    network.save(folder / "network.h5")
    gnn.export(folder / "network.h5", folder / "exported.safetensors")
    assert "normalisation: taken" in fresh.load_weights(folder / "exported.safetensors")


def by_onnx(network: gnn.Network, fresh: gnn.Network, folder: Path) -> None:
    network.save(folder / "network.h5")
    gnn.export(folder / "network.h5", folder / "exported.onnx")
    assert "normalisation: taken" in fresh.load_weights(folder / "exported.onnx")


def by_arrays_of_a_file(network: gnn.Network, fresh: gnn.Network, folder: Path) -> None:
    network.save(folder / "arrays.h5")
    fresh.load_state_dict(gnn.load_weights(folder / "arrays.h5"))


def by_arrays_of_safetensors(network: gnn.Network, fresh: gnn.Network, folder: Path) -> None:
    network.save(folder / "arrays.safetensors")
    fresh.load_state_dict(gnn.load_weights(folder / "arrays.safetensors"))


WAYS = [
    by_state,
    by_copied_state,
    by_copy_of_state,
    by_safetensors,
    by_checkpoint,
    by_export,
    by_onnx,
    by_arrays_of_a_file,
    by_arrays_of_safetensors,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("settings", [None, {}, {"normalize": "data"}], ids=["bare", "compiled", "measuring"])
def test_loaded_weights_answer_as_those_that_were_learnt(
    way: Callable[[gnn.Network, gnn.Network, Path], None], settings: dict[str, Any] | None, tmp_path: Path
) -> None:
    x, y = samples()
    network, fresh = classifier(), layers(3)
    if settings is not None:
        fresh.compile("adam", learning_rate=1e-6, backend="cpu", **settings)
    way(network, fresh, tmp_path)
    assert np.array_equal(fresh.predict(x), network.predict(x))
    assert fresh.evaluate(x, y)["accuracy"] == network.evaluate(x, y)["accuracy"]
    fresh.save(tmp_path / "again.h5")
    assert np.array_equal(gnn.Network.load(tmp_path / "again.h5").predict(x), network.predict(x))
    fresh.compile("adam", learning_rate=1e-6, backend="cpu", normalize="data")  # that of the weights stays
    assert np.array_equal(fresh.predict(x), network.predict(x))
    fresh.fit(x[:40] + 1000, y[:40])
    assert fresh.evaluate(x, y)["accuracy"] > 0.9


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_scale_of_targets_comes_with_the_weights(
    way: Callable[[gnn.Network, gnn.Network, Path], None], tmp_path: Path
) -> None:
    x, _ = samples()
    y = 1e4 + 100 * x[:, :2].astype(np.float64)
    network = layers(2).compile("adam", backend="cpu", normalize="data", scale_targets=True)
    network.fit(x, y, epochs=30)
    fresh = layers(2)
    way(network, fresh, tmp_path)
    assert np.array_equal(fresh.predict(x), network.predict(x))
    assert fresh.evaluate(x, y) == network.evaluate(x, y)


def test_pictures_as_bytes_keep_their_type_and_normalisation(tmp_path: Path) -> None:
    run = gnn.run(small.experiment(training={"epochs": 1, "seed": 3}, runs=str(tmp_path)))
    images = gnn.load_dataset("digits", synthetic_train=400, synthetic_test=100).x_test
    learnt = gnn.Network.load(run.path)
    expected = learnt.predict(images)
    learnt.save(tmp_path / "lenet.safetensors")
    for file in (run.path, tmp_path / "lenet.safetensors"):
        fresh = gnn.from_yaml(learnt.to_yaml())
        assert "normalisation: taken with the weights (mean 0." in fresh.load_weights(file)
        assert np.array_equal(fresh.predict(images), expected)


def test_a_pair_of_numbers_replaces_the_normalisation_with_a_warning(tmp_path: Path) -> None:
    network, fresh = classifier(), layers(3)
    network.save(tmp_path / "n.safetensors")
    fresh.compile("adam", backend="cpu", normalize=([0.0] * 6, [1.0] * 6))
    with pytest.warns(UserWarning, match="replaces that"):
        report = fresh.load_weights(tmp_path / "n.safetensors")
    assert "The weights were learnt with mean" in report
    x, _ = samples()
    plain = layers(3)
    plain.load_state_dict(dict(network.state_dict()))
    assert np.array_equal(fresh.forward(x), plain.forward(x))


def test_weights_that_say_nothing_leave_the_network_as_it_is(tmp_path: Path) -> None:
    x, _ = samples()
    network = classifier()
    expected = network.predict(x)
    network.load_state_dict({name: value.copy() for name, value in network.state_dict().items()})
    assert np.array_equal(network.predict(x), expected)
    fresh = layers(3)
    fresh.save(tmp_path / "first.safetensors")  # never trained, nothing measured: nothing to say
    assert "normalisation: the weights say nothing of one" in network.load_weights(tmp_path / "first.safetensors")
    measuring = layers(3).compile("adam", learning_rate=0.02, backend="cpu", normalize="data")
    measuring.load_state_dict(fresh.state_dict())
    measuring.fit(*samples(), epochs=20)
    assert measuring.evaluate(*samples())["accuracy"] > 0.95


def test_other_channels_keep_their_own_normalisation(tmp_path: Path) -> None:
    network = classifier()
    network.save(tmp_path / "n.safetensors")
    other = gnn.Sequential([gnn.Linear(4, 16), gnn.ReLU(), gnn.Linear(16, 3)], input_shape=(4,))
    assert "from 6 channels or features and the network takes 4" in other.load_weights(
        tmp_path / "n.safetensors", strict=False
    )
    assert np.isfinite(other.predict(np.zeros((1, 4), np.float32))).all()


def test_the_file_is_that_of_other_programs_and_damage_is_found(tmp_path: Path) -> None:
    network = classifier()
    file = tmp_path / "n.safetensors"
    network.save(file)
    content = file.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    assert set(header) - {"__metadata__"} == set(network.state_dict())
    fields = json.loads(header["__metadata__"]["model"])["fields"]
    assert np.allclose(fields[0]["mean"], samples()[0].mean(0), rtol=1e-6)
    header["__metadata__"]["model"] = "{}"
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])
    with pytest.raises(gnn.UsageError, match="description of the model in its metadata is damaged"):
        layers(3).load_weights(file)
    for damaged in (b"", content[:4], content[:40], content[:-4], content.replace(b'"F32"', b'"F99"')):
        file.write_bytes(damaged)
        with pytest.raises(gnn.Error, match=r"n\.safetensors: expected a \.safetensors file"):
            gnn.load_weights(file)
    with pytest.raises(gnn.MissingError, match="No such file"):
        gnn.load_weights(tmp_path / "none.safetensors")


def test_pytorch_takes_the_state_and_gives_its_own() -> None:
    torch = pytest.importorskip("torch")
    ours = gnn.Sequential(
        [gnn.Linear(6, 4, name="0"), gnn.BatchNorm1d(4, name="1"), gnn.Linear(4, 3, name="2")], input_shape=(6,)
    )
    ours.compile("adam", backend="cpu", normalize="data")
    x, y = samples()
    ours.fit(x, y)
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3)).eval()
    state = ours.state_dict()
    for name in state:
        state[name] = torch.from_numpy(state[name])
    theirs.load_state_dict(state)  # strict, and with our description in the attribute _metadata
    with torch.no_grad():
        expected = theirs(torch.from_numpy((x - x.mean(0)) / x.std(0))).numpy()
    assert np.allclose(ours.forward(x), expected, rtol=1e-3, atol=1e-3)
    before = ours.predict(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.load_state_dict(theirs.state_dict())
    assert np.array_equal(ours.predict(x), before)


def test_a_run_that_starts_from_weights_says_which_normalisation_is_used(tmp_path: Path) -> None:
    settings = {"training": {"epochs": 1, "seed": 3}, "runs": str(tmp_path / "runs")}
    first = gnn.run(small.experiment(**settings))
    program = Path(gnn.__file__).parent / "bin" / "gpunn"
    for own, expected in (({}, False), ({"mean": [0.5], "stddev": [0.25]}, True)):
        data = small.experiment()["data"] | own
        again = small.experiment(**settings, data=data, init_from={"file": str(first.path)})
        (tmp_path / "again.yaml").write_text(gnn.load_experiment(again).yaml())
        done = subprocess.run([program, "run", tmp_path / "again.yaml"], check=True, capture_output=True, text=True)
        text = done.stdout + done.stderr
        assert "starts from" in text
        assert ("the weights were learnt with another (mean 0." in text) is expected
