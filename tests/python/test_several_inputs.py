"""Training on an image and a row of numbers at once. The class is whether exactly one of the two bits is set that they
show, so that neither input alone says anything of it.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from PIL import Image

import gpunn

PROGRAM = Path(gpunn.__file__).parent / "bin" / "gpunn"

MODEL = """
name: image_and_row
inputs: {image: data, row: data}
layers:
  - flatten: {from: image}
  - linear: {name: from_image, units: 8, activation: tanh}
  - linear: {name: from_row, units: 8, activation: tanh, from: row}
  - concat: {from: [from_image, from_row]}
  - linear: {units: 16, activation: relu}
  - linear: {units: 2}
"""

Samples = dict[str, npt.NDArray[Any]]


def samples(rows: int, seed: int) -> Samples:
    """Images [rows, 1, 6, 6] whose left or right half is bright, rows of three numbers far from 0, and classes."""
    random = np.random.default_rng(seed)
    in_image, in_row = random.integers(0, 2, (2, rows))
    image = random.integers(0, 60, (rows, 1, 6, 6))
    image[:, :, :, :3] += 120 * (in_image == 0)[:, None, None, None]
    image[:, :, :, 3:] += 120 * (in_image == 1)[:, None, None, None]
    row = random.normal(size=(rows, 3)) * [0.1, 5, 1e-3] + [1000, -7, 0.02]
    row[:, 0] += np.where(in_row == 1, 0.5, -0.5)
    return {"image": image.astype(np.uint8), "row": row, "class": (in_image ^ in_row).astype(np.uint8)}


TRAIN, TEST = samples(600, 1), samples(200, 2)


def experiment(data: dict[str, Any]) -> dict[str, Any]:
    Path("both.yaml").write_text(MODEL)
    return {
        "model": {"file": "both.yaml"},
        "data": {"batch_size": 20, **data},
        "optimizer": {"type": "adam", "learning_rate": 0.01},
        "training": {"epochs": 12, "seed": 3},
        "backend": "cpu",
    }


def arrays() -> dict[str, Any]:
    """The settings of a data set that is an HDF5 file."""
    with h5py.File("set.h5", "w") as file:
        for part, values in (("train", TRAIN), ("test", TEST)):
            for name, array in values.items():
                file[f"{part}/{name}"] = array
    return {
        "dataset": "hdf5",
        "path": "set.h5",
        "train_samples": "train/image",
        "train_inputs": ["train/row"],
        "train_labels": "train/class",
        "test_samples": "test/image",
        "test_inputs": ["test/row"],
        "test_labels": "test/class",
    }


def table() -> dict[str, Any]:
    """The settings of a data set that is a table of PNGs and numbers."""
    for part, values in (("train", TRAIN), ("test", TEST)):
        lines = ["file,class,a,b,c"]
        for number, (image, row, label) in enumerate(zip(values["image"], values["row"], values["class"], strict=True)):
            name = f"{part}{number}.png"
            Image.fromarray(image[0]).save(name)
            lines.append(",".join([name, f"c{label}", *(repr(float(value)) for value in row)]))
        Path(f"{part}.csv").write_text("\n".join(lines) + "\n")
    return {
        "dataset": "image_folder",
        "path": ".",
        "targets": "train.csv",
        "test_targets": "test.csv",
        "label_column": "class",
        "input_columns": ["a", "b", "c"],
        "channels": 1,
        "image_size": 6,
    }


def of_model(values: Samples) -> dict[str, Any]:
    return {"image": values["image"], "row": values["row"].astype(np.float32)}


@pytest.mark.parametrize("data", [arrays, table])
def test_a_class_of_two_inputs_is_learnt(data: Any) -> None:
    run = gpunn.run(experiment(data()))
    assert run.final["test_accuracy"] > 0.98
    model = gpunn.load(run)
    assert [tensor.name for tensor in model.inputs] == ["image", "row"]
    probabilities = model.run(of_model(TEST))
    accuracy = np.mean(probabilities.argmax(1) == TEST["class"])
    assert accuracy == pytest.approx(run.final["test_accuracy"])
    assert gpunn.evaluate(run).metrics["accuracy"] == pytest.approx(accuracy)

    # Each input counts: with the rows of other samples the classes are right no more often than by chance.
    mixed = {**of_model(TEST), "row": of_model(TEST)["row"][::-1]}
    assert np.mean(model.run(mixed).argmax(1) == TEST["class"]) < 0.65

    gpunn.export(run, "both.onnx", raw_input=True)
    session = onnxruntime.InferenceSession("both.onnx")
    answers = session.run(["probabilities"], of_model(TEST))[0]
    np.testing.assert_allclose(answers, probabilities, atol=1e-5)
    np.testing.assert_allclose(gpunn.load("both.onnx").run(of_model(TEST)), probabilities, atol=1e-5)
    gpunn.export(run, "normalised.onnx")
    np.testing.assert_allclose(gpunn.load("normalised.onnx").run(of_model(TEST)), probabilities, atol=1e-5)


def test_a_service_takes_the_inputs_in_any_order() -> None:
    run = gpunn.run(experiment(arrays()))
    tensors = [
        {"name": name, "datatype": datatype, "shape": values.shape, "data": values.ravel().tolist()}
        for name, datatype, values in (
            ("row", "FP32", of_model(TEST)["row"][:5]),
            ("image", "UINT8", TEST["image"][:5]),
        )
    ]
    call: list[str] = [str(PROGRAM), "serve", str(run.path), "--port", "0", "--backend", "cpu"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"serving (\S+):1 at (http://\S+)", server.stdout.readline())
            assert found is not None
            address = f"{found[2]}/v2/models/{found[1]}/infer"
            body = json.dumps({"inputs": tensors, "outputs": [{"name": "probabilities"}]}).encode()
            with urllib.request.urlopen(urllib.request.Request(address, body), timeout=30) as response:
                (output,) = json.load(response)["outputs"]
        finally:
            server.terminate()
    expected = gpunn.load(run).run({name: values[:5] for name, values in of_model(TEST).items()})
    np.testing.assert_allclose(np.reshape(output["data"], output["shape"]), expected, rtol=1e-5)


def test_a_resumed_run_is_the_whole_run() -> None:
    settings = experiment(arrays())
    whole = gpunn.run(settings)
    part = gpunn.run({**settings, "training": {"epochs": 5, "seed": 3}})
    resumed = gpunn.resume(part, epochs=12)
    for name, values in whole.weights().items():
        np.testing.assert_array_equal(resumed.weights()[name], values)


def test_a_network_of_python_takes_a_dictionary() -> None:
    image, row = gpunn.Input((1, 6, 6), name="image"), gpunn.Input((3,), name="row")
    of_image = gpunn.Tanh()(gpunn.Linear(36, 8)(gpunn.Flatten()(image)))
    both = gpunn.Concat()(of_image, gpunn.Tanh()(gpunn.Linear(3, 8)(row)))
    network = gpunn.Network([image, row], gpunn.Linear(16, 2)(gpunn.ReLU()(gpunn.Linear(16, 16)(both))))
    network.compile(optimizer="adam", learning_rate=0.01, normalize="data")
    given = [{name: part[name] for name in ("image", "row")} for part in (TRAIN, TEST)]
    labels = [part["class"].astype(np.int64) for part in (TRAIN, TEST)]
    network.fit(given[0], labels[0], epochs=15, batch_size=20)
    assert network.evaluate(given[1], labels[1])["accuracy"] > 0.98
    batches = [({name: x[at : at + 20] for name, x in given[0].items()}, labels[0][at : at + 20]) for at in (0, 20, 40)]
    network.fit(lambda: iter(batches), epochs=1)

    answers = network.predict(given[1])
    network.save("network.h5")
    np.testing.assert_array_equal(gpunn.Network.load("network.h5").predict(given[1]), answers)
    gpunn.export("network.h5", "network.onnx", raw_input=True)
    session = onnxruntime.InferenceSession("network.onnx")
    np.testing.assert_allclose(session.run(["probabilities"], of_model(TEST))[0], answers, atol=1e-5)
    with pytest.raises(gpunn.UsageError, match="missing: row"):
        network.predict({"image": TEST["image"]})
    with pytest.raises(gpunn.UsageError, match="different numbers of rows"):
        network.predict({"image": TEST["image"], "row": TEST["row"][:5]})


@pytest.mark.parametrize("with_row", [False, True])
def test_integers_reach_the_model_as_they_are(with_row: bool) -> None:
    random = np.random.default_rng(1)
    words, row = random.integers(0, 10, (300, 4)), random.normal(size=(300, 3)).astype(np.float32)
    labels = ((words[:, 0] > 4) ^ (words[:, 1] > 4)).astype(np.int64)
    first = gpunn.Input((4,), name="words", dtype="int32")
    second = gpunn.Input((3,), name="row")
    found = gpunn.Flatten()(gpunn.Embedding(10, 5)(first))
    joined = gpunn.Concat()(found, second) if with_row else found
    given = {"words": words, "row": row} if with_row else {"words": words}
    network = gpunn.Network(
        [first, second] if with_row else first, gpunn.Linear(None, 2)(gpunn.Tanh()(gpunn.Linear(None, 16)(joined)))
    )
    network.compile(optimizer="adam", learning_rate=0.02)
    network.fit(given, labels, epochs=40)
    answers = network.predict(given)
    assert np.mean(answers.argmax(1) == labels) > 0.95
    network.save("words.h5")
    gpunn.export("words.h5", "words.onnx")
    session = onnxruntime.InferenceSession("words.onnx")
    exact = {**given, "words": words.astype(np.int32)}
    np.testing.assert_allclose(session.run(["probabilities"], exact)[0], answers, atol=1e-5)
    np.testing.assert_allclose(gpunn.load("words.h5").run(exact), answers, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_inputs": ["train/class"], "test_inputs": ["test/class"]}, r"'train/class': .* found \[600\]"),
        ({"train_samples": "train/row", "test_samples": "test/row"}, "two fields are called 'row'"),
        ({"test_inputs": []}, "test_inputs"),
        ({"train_inputs": ["train/nothing"]}, "nothing"),
        ({"train_inputs": [], "test_inputs": []}, "row"),
        ({"train_inputs": ["test/row"]}, "600 rows.*200"),
    ],
)
def test_inputs_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    with pytest.raises(gpunn.Error, match=message):
        gpunn.run(experiment({**arrays(), **change}))
