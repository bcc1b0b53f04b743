"""Networks trained on arrays and on batches, against the same experiment from YAML and against bad input."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn as gnn
from gpunn._core import LoaderReport

Array = npt.NDArray[Any]


def blobs(rows: int = 200, features: int = 8, classes: int = 3, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    centres = rng.normal(size=(classes, features)) * 2
    return (centres[y] + rng.normal(size=(rows, features))).astype(np.float32), y


def perceptron(**more: Any) -> gnn.Sequential:
    return gnn.Sequential([gnn.Linear(8, 16), gnn.ReLU(), gnn.Dropout(0.2), gnn.Linear(16, 3)], **more)


def compiled(**more: Any) -> gnn.Network:
    return perceptron().compile("adam", learning_rate=0.01, backend="cpu", **more)


def same(a: gnn.Network, b: gnn.Network) -> bool:
    one, other = a.state_dict(), b.state_dict()
    return list(one) == list(other) and all(np.array_equal(one[name], other[name]) for name in one)


EXPERIMENT = """
name: same
model:
  input: [1, 6, 6]
  layers:
    - conv2d: {filters: 4, kernel: 3}
    - batch_norm
    - relu
    - flatten
    - dropout: {p: 0.25}
    - linear: {units: 4}
data: {dataset: hdf5, path: set.h5, train_samples: x, train_labels: y, test_samples: vx, test_labels: vy,
  batch_size: 16, mean: [0], stddev: [1]}
optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9, weight_decay: 1e-4}
training: {epochs: 2, seed: 7}
backend: cpu
"""


def test_code_and_yaml_are_one_model_with_the_same_bits(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(4)
    x = rng.integers(0, 256, (100, 1, 6, 6), dtype=np.uint8)
    y = rng.integers(0, 4, 100)
    with h5py.File(tmp_path / "set.h5", "w") as file:
        for name, values in {"x": x[:80], "y": y[:80], "vx": x[80:], "vy": y[80:]}.items():
            file[name] = values
    (tmp_path / "same.yaml").write_text(EXPERIMENT)
    program = Path(gnn.__file__).parent / "bin" / "gpunn"
    command: list[str | Path] = [program, "run", tmp_path / "same.yaml", "--set", f"runs={tmp_path / 'runs'}"]
    subprocess.run(command, check=True, capture_output=True)
    (run,) = (tmp_path / "runs" / "same").iterdir()
    network = gnn.Sequential(
        [gnn.Conv2d(1, 4, 3), gnn.BatchNorm2d(4), gnn.ReLU(), gnn.Flatten(), gnn.Dropout(0.25), gnn.Linear(64, 4)],
        input_shape=(1, 6, 6),
        seed=7,
    )
    network.compile({"type": "sgd", "momentum": 0.9, "weight_decay": 1e-4}, learning_rate=0.05, backend="cpu")
    untrained = network.state_dict()
    history = network.fit(x[:80], y[:80], epochs=2, batch_size=16, validation_data=(x[80:], y[80:]), drop_last=True)
    of_yaml = gnn.Network.load(run / "last.h5")
    assert same(network, of_yaml)
    again = gnn.from_yaml(network.to_yaml(), seed=7).state_dict()
    assert all(np.array_equal(again[name], untrained[name]) for name in untrained)
    assert of_yaml.evaluate(x[80:], y[80:])["loss"] == history["val_loss"][-1]
    assert np.array_equal(of_yaml.predict(x), network.predict(x))


def test_fit_evaluate_predict() -> None:
    x, y = blobs()
    network = compiled()
    history = network.fit(x, y, epochs=20, validation_split=0.2)
    assert len(history) == 20
    assert set(history.history) >= {"loss", "accuracy", "val_loss", "val_accuracy", "epoch", "learning_rate"}
    assert history["loss"][-1] < history["loss"][0]
    scores = network.evaluate(x, y)
    assert scores["accuracy"] > 0.9
    probabilities = network.predict(x)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert scores["accuracy"] == pytest.approx((probabilities.argmax(axis=1) == y).mean())
    assert scores["loss"] == pytest.approx(gnn.cross_entropy_loss(network.forward(x), y), rel=1e-4)


def test_a_later_fit_goes_on() -> None:
    x, y = blobs()
    once, twice = compiled(), compiled()
    once.fit(x, y, epochs=4)
    twice.fit(x, y, epochs=1)
    assert twice.fit(x, y, epochs=3)["epoch"] == [2, 3, 4]
    assert same(once, twice)
    assert len(twice.history) == 4
    twice.compile("adam", learning_rate=0.01, backend="cpu")
    assert same(once, twice)
    assert twice.fit(x, y)["epoch"] == [1]
    x2, y2 = blobs(50, seed=3)
    twice.fit(x2, y2, batch_size=10)


def test_tasks_follow_from_the_targets_and_the_loss() -> None:
    x, y = blobs()
    numbers = x[:, :2] @ np.array([[1.0, 2], [3, 4]]) + 5
    regression = gnn.Sequential([gnn.Linear(8, 16), gnn.ReLU(), gnn.Linear(16, 2)]).compile(
        "adam", learning_rate=0.02, backend="cpu"
    )
    regression.fit(x, numbers, epochs=60)
    assert regression.evaluate(x, numbers)["r2"] > 0.9
    assert regression.forward(x).kind == "values"
    assert np.array_equal(regression.predict(x), regression.forward(x))
    assert regression.evaluate(x, numbers)["loss"] == pytest.approx(
        gnn.mse_loss(regression.predict(x), numbers), rel=1e-3
    )
    scaled = gnn.Sequential([gnn.Linear(8, 16), gnn.ReLU(), gnn.Linear(16, 2)]).compile(
        "adam", learning_rate=0.02, backend="cpu", scale_targets=True
    )
    scaled.fit(x, 1000 * numbers, epochs=60)
    assert scaled.evaluate(x, 1000 * numbers)["r2"] > 0.9
    assert np.abs(scaled.predict(x)).max() > 1000

    labels = np.stack([y == 0, y != 2], axis=1).astype(np.int64)
    several = gnn.Sequential([gnn.Linear(8, 16), gnn.ReLU(), gnn.Linear(16, 2), gnn.Sigmoid()]).compile(
        "adam", learning_rate=0.02, backend="cpu"
    )
    several.fit(x, labels, epochs=40)
    assert several.evaluate(x, labels)["exact_match"] > 0.9
    assert np.array_equal(several.predict(x), several.forward(x))

    one = gnn.Sequential([gnn.Linear(8, 16), gnn.ReLU(), gnn.Linear(16, 1)]).compile(
        "adam", loss="bce", learning_rate=0.02, backend="cpu"
    )
    one.fit(x, (y == 1).astype(int), epochs=40)
    assert one.evaluate(x, y == 1)["accuracy"] > 0.9
    assert one.predict(x).shape == (200, 2)

    hot = compiled(loss="cross_entropy")
    plain = compiled()
    hot.fit(x, np.eye(3)[y])
    plain.fit(x, y)
    assert same(hot, plain)


def test_a_softmax_at_the_end_changes_nothing_but_what_forward_gives() -> None:
    x, y = blobs()
    plain = gnn.Sequential([gnn.Linear(8, 3)]).compile("sgd", backend="cpu")
    ending = gnn.Sequential([gnn.Linear(8, 3), gnn.Softmax()]).compile("sgd", loss="cross_entropy", backend="cpu")
    plain.fit(x, y, epochs=3)
    ending.fit(x, y, epochs=3)
    assert same(plain, ending)
    assert np.allclose(plain.predict(x), ending.forward(x), atol=1e-6)


class Batches:
    """A loader of a few batches, which counts its passes and moves the samples in each."""

    def __init__(self, x: Array, y: Array, size: int) -> None:
        self.x, self.y, self.size, self.passes = x, y, size, 0

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        self.passes += 1
        shift = np.float32(self.passes)
        for i in range(0, len(self.x), self.size):
            yield self.x[i : i + self.size] + shift, self.y[i : i + self.size]


class Sized(Batches):
    def __len__(self) -> int:
        return (len(self.x) + self.size - 1) // self.size


@pytest.mark.parametrize("loader", [Batches, Sized])
def test_batches_are_asked_for_anew_in_each_epoch(loader: type[Batches]) -> None:
    x, y = blobs(90)
    source = loader(x, y, 40)
    streamed = compiled()
    loaders: list[LoaderReport | None] = []

    class Loaders(gnn.Callback):
        def on_epoch(self, epoch: gnn.EpochReport) -> None:
            loaders.append(epoch.loader)

    streamed.fit(source, epochs=3, callbacks=[Loaders()])
    assert all(one is not None and one.samples_per_second > 0 and one.waited_seconds >= 0 for one in loaders)
    assert len(loaders) == 3
    assert source.passes == 3
    expected = compiled()
    for epoch in range(3):
        expected.fit(x + np.float32(epoch + 1), y, batch_size=40, shuffle=False)
    assert same(streamed, expected)


def test_generators_functions_and_lists_of_batches() -> None:
    x, y = blobs(80)
    pairs = [(x[i : i + 40], y[i : i + 40]) for i in (0, 40)]
    networks = [compiled() for _ in range(4)]
    networks[0].fit(pairs, epochs=2)
    networks[1].fit(lambda: iter(pairs), epochs=2)
    networks[2].fit(iter(pairs * 2), epochs=2, steps_per_epoch=2)
    networks[3].fit(iter(pairs), epochs=1)
    networks[3].fit(iter(pairs), epochs=1)
    assert all(same(networks[0], other) for other in networks[1:])
    assert networks[0].evaluate(pairs) == networks[0].evaluate(x, y)
    assert networks[0].fit(pairs, validation_data=pairs)["val_loss"][0] > 0


def test_pytorchs_loaders_and_tensors() -> None:
    torch = pytest.importorskip("torch")
    x, y = blobs(96)
    data = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
    network = compiled()
    network.fit(torch.utils.data.DataLoader(data, batch_size=32), epochs=2)
    expected = compiled()
    expected.fit(x, y, batch_size=32, epochs=2, shuffle=False)
    assert same(network, expected)
    assert np.array_equal(network.predict(torch.tensor(x)), network.predict(x))


def broken(x: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    yield x[:40], y[:40]
    raise LookupError("no more files")


@pytest.mark.parametrize(
    ("make", "arguments", "error", "message"),
    [
        (lambda x, y: iter([(x, y)]), {"epochs": 2}, gnn.UsageError, "gone through once"),
        (lambda x, y: [], {}, gnn.UsageError, "no batch|expected an array|y: a training"),
        (lambda x, y: iter([]), {}, gnn.UsageError, "ends at once"),
        (
            lambda x, y: iter([(x, y)] * 3),
            {"epochs": 2, "steps_per_epoch": 2},
            gnn.UsageError,
            "ended before batch 2 of epoch 2: 2 were expected",
        ),
        (
            lambda x, y: [(x[:40], y[:40]), (x[:, :5], y)],
            {},
            gnn.UsageError,
            r"batch 2 of epoch 1, x: the network takes samples of \[8\], found \[5\]",
        ),
        (lambda x, y: [(x[:40], y[:40]), (x, y)], {}, gnn.UsageError, "has 80 rows, more than the 40"),
        (lambda x, y: [(x[:40], y[:40]), (x[:40], y[:39])], {}, gnn.UsageError, "one entry for each of the 40"),
        (lambda x, y: [(x[:40], y[:40]), (x[:40], y[:40] + 5)], {}, gnn.UsageError, "batch 2 of epoch 1, y: the label"),
        (lambda x, y: [(x[:40], y[:40]), (x[:40] * np.nan, y[:40])], {}, gnn.UsageError, "NaN"),
        (broken, {"steps_per_epoch": 2}, LookupError, "no more files"),
        (lambda x, y: iter([x, y]), {}, gnn.UsageError, "expected a pair"),
    ],
)
def test_batches_that_go_wrong_are_told_and_the_weights_stand(
    make: Any, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    x, y = blobs(80)
    network = compiled()
    network.fit(x, y)
    before = network.state_dict()
    with pytest.raises(error, match=message):
        network.fit(make(x, y), **arguments)
    after = network.state_dict()
    if "epoch 2" not in message:  # a whole epoch was learnt before
        assert all(np.array_equal(before[name], after[name]) for name in before)
    network.fit(x, y)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x, y: (x.astype(complex), y), "dtype complex128"),
        (lambda x, y: (x.astype(str), y), "array of numbers"),
        (lambda x, y: (x[0], y[:1]), r"one sample is x\[None\]"),
        (lambda x, y: (x[:0], y[:0]), "empty"),
        (lambda x, y: (x[:, :0], y), "empty"),
        (lambda x, y: (x[:, :7], y), r"samples of \[8\], found \[7\]|in_features"),
        (lambda x, y: (x, y[:-1]), "each of the 200 samples"),
        (lambda x, y: (x, y + 1), "is 3; the network has 3 outputs, so labels are 0 to 2"),
        (lambda x, y: (x, y - 1), "is -1"),
        (lambda x, y: (x, np.where(y == 0, np.nan, y)), "NaN in row"),
        (lambda x, y: (x, y + 0.5), "classes are integers"),
        (lambda x, y: (x, [str(one) for one in y]), "array of numbers"),
        (lambda x, y: (np.where(x > 2, np.nan, x), y), "samples hold NaN in row"),
        (lambda x, y: (np.where(x > 2, np.inf, x), y), "samples hold an infinity"),
        (lambda x, y: (np.where(x > 2, 1e40, x.astype(np.float64)), y), r"samples hold 1e\+40, which is beyond f32"),
        (lambda x, y: (x, None), "needs targets"),
    ],
)
def test_arrays_that_do_not_fit_are_told(spoil: Any, message: str) -> None:
    x, y = spoil(*blobs())
    with pytest.raises(gnn.UsageError, match=message):
        compiled(loss="cross_entropy").fit(x, y)


def test_arrays_of_any_layout_are_taken() -> None:
    x, y = blobs()
    expected = compiled()
    expected.fit(x, y)
    others = [np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], x.astype(np.float64), x.astype(">f4"), x.tolist()]
    for other in others:
        network = compiled()
        network.fit(other, y.astype(np.uint8))
        assert same(network, expected)
    one_image = gnn.Sequential([gnn.Conv2d(1, 2, 3), gnn.Flatten(), gnn.Linear(None, 2)])
    pixels = np.arange(4 * 6 * 6, dtype=np.uint8).reshape(4, 6, 6)
    assert np.array_equal(one_image(pixels), one_image(pixels[:, None]))
    assert np.allclose(one_image(pixels), one_image(pixels[:, None] / np.float32(255)), atol=1e-5)
    one_image.fit(pixels, [0, 1, 0, 1])
    with pytest.raises(gnn.UsageError, match="uint8 pixels from 0 to 255"):
        one_image(pixels.astype(np.float32))


def test_callbacks_see_and_stop_a_training() -> None:
    x, y = blobs()
    seen: list[Any] = []

    class Watcher:
        def on_start(self, start: gnn.RunStart) -> None:
            seen.append(start.backend)

        def on_epoch(self, epoch: dict[str, Any]) -> bool:
            seen.append(epoch["epoch"])
            return len(seen) == 4

    network = compiled()
    history = network.fit(x, y, epochs=50, callbacks=[Watcher(), lambda epoch: seen.append(epoch["loss"])])
    assert seen[0] == "cpu"
    assert len(history) < 50

    def fail(epoch: dict[str, Any]) -> None:
        if epoch["epoch"] == 2:
            raise ValueError("enough")

    network, expected = compiled(), compiled()
    with pytest.raises(ValueError, match="enough"):
        network.fit(x, y, epochs=5, callbacks=[fail])
    expected.fit(x, y, epochs=2)
    assert same(network, expected)


def test_networks_are_saved_loaded_and_pickled(tmp_path: Path) -> None:
    x, y = blobs()
    network = compiled()
    network.fit(x, y, epochs=2)
    network.save(tmp_path / "n.h5")
    loaded = gnn.Network.load(tmp_path / "n.h5")
    assert isinstance(loaded, gnn.Sequential)
    assert np.array_equal(loaded.predict(x), network.predict(x))
    pickled = pickle.loads(pickle.dumps(network))
    for other in (loaded, pickled):
        assert other.evaluate(x, y) == network.evaluate(x, y)
        other.fit(x, y, epochs=2)
    network.fit(x, y, epochs=2)
    assert same(network, loaded)
    assert same(network, pickled)
    with pytest.raises(gnn.UsageError, match=r"n\.onnx: expected a name that ends in \.h5"):
        network.save(tmp_path / "n.onnx")
    network.save(tmp_path / "n.safetensors")
    fresh = perceptron(input_shape=(8,))
    assert "4 of 4 tensors" in fresh.load_weights(tmp_path / "n.safetensors")
    assert same(fresh, network)
    with pytest.raises(gnn.MissingError):
        gnn.Network.load(tmp_path / "nothing.h5")


def test_what_a_training_measured_stays_with_the_network(tmp_path: Path) -> None:
    x, y = blobs()
    x = 100 + 30 * x
    network = compiled(normalize="data")
    network.fit(x, y, epochs=10)
    assert network.evaluate(x, y)["accuracy"] > 0.9
    network.save(tmp_path / "n.h5")
    loaded = gnn.Network.load(tmp_path / "n.h5")
    loaded.compile("sgd", learning_rate=1e-6, backend="cpu")
    assert np.array_equal(loaded.predict(x), network.predict(x))
    loaded.fit(x, y)
    assert loaded.evaluate(x, y)["accuracy"] > 0.9
    numbers = 1000 * x[:, :1]
    regression = gnn.Sequential([gnn.Linear(8, 1)]).compile("adam", backend="cpu", normalize="data", scale_targets=True)
    regression.fit(x, numbers, epochs=100)
    regression.save(tmp_path / "r.h5")
    again = gnn.Network.load(tmp_path / "r.h5")
    assert np.array_equal(again.predict(x), regression.predict(x))
    assert again.evaluate(x, numbers) == regression.evaluate(x, numbers)
    assert again.evaluate(x, numbers)["r2"] > 0.9


def test_images_are_augmented_and_half_precision_trains() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 128)
    x = rng.integers(0, 60, (128, 3, 12, 12), dtype=np.uint8)
    x[:, :, 2:10, 2:10] += (150 * y[:, None, None, None]).astype(np.uint8)
    layers = [gnn.Conv2d(3, 4, 3), gnn.BatchNorm2d(4), gnn.ReLU(), gnn.GlobalAvgPool2d(), gnn.Linear(4, 2)]
    network = gnn.Sequential(layers, input_shape=(3, 12, 12)).compile(
        "adam",
        backend="cpu",
        precision="bf16",
        augmentation={"flip": 0.5, "translate": [1, 1]},
        training={"ema": 0.9},
        schedule={"type": "cosine"},
    )
    network.fit(x, y, epochs=20, batch_size=16)
    assert network.evaluate(x, y)["accuracy"] > 0.9
    with pytest.raises(gnn.UsageError, match="augmentation is for images"):
        compiled(augmentation={"flip": 0.5}).fit(*blobs())


def test_weights_by_name_and_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Flatten(), torch.nn.Linear(48, 4)
    ).eval()
    ours = gnn.Sequential(
        [gnn.Conv2d(2, 3, 3, name="0"), gnn.BatchNorm2d(3, name="1"), gnn.Flatten(), gnn.Linear(48, 4, name="3")],
        input_shape=(2, 6, 6),
    )
    ours.load_state_dict(theirs.state_dict())
    x = np.random.default_rng(0).normal(size=(5, 2, 6, 6)).astype(np.float32)
    assert np.allclose(ours(x), theirs(torch.tensor(x)).detach().numpy(), atol=1e-5)
    with pytest.raises(gnn.UsageError, match=r"missing: 3\.bias"):
        ours.load_state_dict({name: value for name, value in ours.state_dict().items() if name != "3.bias"})
    with pytest.raises(gnn.UsageError, match=r"3\.bias: expected \[4\], found \[5\]"):
        ours.load_state_dict(ours.state_dict() | {"3.bias": np.zeros(5)})
    assert np.allclose(ours(x), theirs(torch.tensor(x)).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "adma"}, "adam"),
        ({"optimizer": {"type": "adam", "lr": 0.1}}, "learning_rate"),
        ({"loss": "crossentropy"}, "cross_entropy"),
        ({"schedule": "cosin"}, "cosine"),
        ({"precision": "fp8"}, "fp32"),
        ({"normalize": "batch"}, "'data'"),
        ({"task": "classify"}, "classification"),
    ],
)
def test_compile_tells_what_is_wrong_at_once(arguments: dict[str, Any], message: str) -> None:
    network = compiled()
    with pytest.raises(gnn.UsageError, match=message):
        network.compile(**arguments)
    x, y = blobs()
    network.fit(x, y)  # as it was compiled before


def test_a_run_folder_can_be_written(tmp_path: Path) -> None:
    x, y = blobs()
    network = compiled(early_stopping={"monitor": "loss", "patience": 3, "restore_best": False})
    network.fit(x, y, epochs=3, validation_split=0.2, run_folder=tmp_path / "run")
    assert (tmp_path / "run" / "metrics.csv").read_text().count("\n") == 4
    assert same(gnn.Network.load(tmp_path / "run" / "last.h5"), network)


INTERRUPTED = """
import numpy as np, gpunn as gnn
x = np.random.default_rng(0).normal(size=(2000, 64)).astype("f4")
network = gnn.Sequential([gnn.Linear(64, 64), gnn.ReLU(), gnn.Linear(64, 2)]).compile(backend="cpu")
first = network.fit(x, x[:, 0] > 0).epochs[-1]["global_step"]
print("ready", flush=True)
try:
    network.fit(x, x[:, 0] > 0, epochs=20000)
except KeyboardInterrupt:
    print(network._core.steps > first, len(network.fit(x, x[:, 0] > 0)))
"""


def test_ctrl_c_keeps_the_weights_and_the_interpreter() -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=120)[0] == "True 1\n"
        assert process.returncode == 0


def test_threads_that_ask_at_once_get_right_answers() -> None:
    x, y = blobs()
    network = compiled()
    network.fit(x, y)
    expected = network.predict(x)
    wrong: list[int] = []

    def ask() -> None:
        for i in range(100):
            if not np.array_equal(network.predict(x), expected):
                wrong.append(i)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_network_that_is_trained_is_not_another_threads() -> None:
    x, y = blobs()
    network = compiled()
    network.fit(x, y)
    expected = network.predict(x)
    told: list[str] = []

    def ask(_: object) -> None:
        assert network.predict(x[:4]).shape == expected[:4].shape  # the training's own thread may read

        def save() -> None:
            try:
                network.save("other.h5")
            except gnn.UsageError as error:
                told.append(str(error))

        thread = threading.Thread(target=save)
        thread.start()
        thread.join()
        with pytest.raises(gnn.UsageError, match="callback"):
            network.fit(x, y)

    network.fit(x, y, epochs=1, callbacks=[ask])
    assert told
    assert all("in use" in text for text in told)


def test_a_callback_sees_the_weights_of_its_epoch() -> None:
    x, y = blobs()
    network = compiled()
    seen: list[float] = []
    told: list[float] = []

    def look(epoch: dict[str, Any]) -> np.bool_:
        answer = network.predict(x)
        seen.append(float(np.mean(np.argmax(answer, axis=1) == y)))
        told.append(epoch["val_accuracy"])
        return np.bool_(len(seen) == 2)

    network.fit(x, y, epochs=3, validation_data=(x, y), callbacks=[look])
    assert seen == pytest.approx(told, abs=1e-6)
    assert len(seen) == 2
    assert np.mean(np.argmax(network.predict(x), axis=1) == y) == pytest.approx(told[-1], abs=1e-6)


@pytest.mark.parametrize("callback", [3, object(), gnn.Callback])
def test_what_is_no_callback_is_refused(callback: Any) -> None:
    x, y = blobs()
    with pytest.raises(gnn.UsageError, match="on_epoch"):
        compiled().fit(x, y, callbacks=[callback])


def test_settings_may_be_arrays_and_rows_may_be_lists_of_numpys_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)

    def trained(samples: Any, weights: Any) -> gnn.Network:
        network = gnn.Sequential([gnn.Linear(2, 2)]).compile(
            backend="cpu", loss={"type": "cross_entropy", "class_weights": weights}
        )
        network.fit(samples, y)
        return network

    assert same(trained(x, [1, 2]), trained([list(row) for row in x], np.array([1.0, 2.0])))


def test_settings_and_data_of_other_types_are_refused() -> None:
    x, y = np.zeros((8, 4), np.float32), np.zeros(8, int)
    network = gnn.Sequential([gnn.Linear(4, 3)])
    with pytest.raises(gnn.UsageError, match="optimizer: expected a name or a map of its keys, found int"):
        network.compile(optimizer=3)  # type: ignore[arg-type]
    with pytest.raises(gnn.UsageError, match=r"validation_data: expected a pair \(x, y\).*, found ndarray"):
        network.fit(x, y, validation_data=x)
    with pytest.raises(gnn.UsageError, match="validation_data or validation_split, not both"):
        network.fit(x, y, validation_data=(x, y), validation_split=0.5)


def test_refused_settings_leave_the_weights() -> None:
    x, y = blobs()
    network = compiled()
    network.fit(x, y)
    expected = network.predict(x)
    with pytest.raises(gnn.Error, match="freeze"):
        network.compile(training={"freeze": ["*"]})
    assert np.array_equal(network.predict(x), expected)
    network.fit(x, y)


def test_importing_loads_no_layers() -> None:
    code = "import gpunn, sys; print([m for m in sys.modules if m.startswith('gpunn.') or m == 'sklearn'])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "gpunn.layers" not in loaded
    assert "sklearn" not in loaded


def test_callbacks_of_run_serve_fit_and_evaluate_the_weights_of_their_epoch() -> None:
    x, y = blobs()
    network = compiled()
    told: list[Any] = []

    class Both(gnn.Callback):
        def on_start(self, start: gnn.RunStart) -> None:
            told.append((start.backend, start.path))

        def on_epoch(self, epoch: gnn.EpochReport) -> None:
            assert network.evaluate(x, y)["loss"] == pytest.approx(epoch["val_loss"], rel=1e-6)
            assert epoch.evaluation.loss == epoch["val_loss"]
            assert network.predict(x).shape == (200, 3)
            if epoch.epoch == 2:
                raise gnn.StopTraining

        def on_end(self, run: Any) -> None:
            told.append(run)

    history = network.fit(x, y, epochs=9, validation_data=(x, y), callbacks=[Both()])
    assert told == [("cpu", None), history]
    assert history["epoch"] == [1, 2]
    expected = compiled()
    expected.fit(x, y, epochs=2)
    assert same(network, expected)


def test_control_c_reaches_a_source_of_batches_that_waits() -> None:
    x, y = blobs(80)
    network, expected = compiled(), compiled()
    expected.fit(x[:40], y[:40], batch_size=40, shuffle=False)
    ended: list[str] = []

    def batches() -> Iterator[tuple[Array, Array]]:
        try:
            yield x[:40], y[:40]
            timer.start()
            time.sleep(60)
            yield x[40:], y[40:]
        finally:
            ended.append(threading.current_thread().name)

    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        network.fit(batches(), steps_per_epoch=2)
    assert time.monotonic() - start < 20
    assert ended == [threading.current_thread().name]
    assert same(network, expected)


def test_a_source_of_batches_may_not_read_the_network_that_learns_them() -> None:
    x, y = blobs(80)
    network = compiled()

    def batches() -> Iterator[tuple[Array, Array]]:
        yield x[:40], y[:40]
        network.predict(x)
        yield x[40:], y[40:]

    with pytest.raises(gnn.UsageError, match="source of its batches may not"):
        network.fit(batches(), steps_per_epoch=2)
