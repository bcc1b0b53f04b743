from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn


@pytest.fixture(scope="module")
def model(trained: gpunn.Run) -> gpunn.Model:
    return gpunn.load(trained, max_batch=8)


@pytest.fixture(scope="module")
def samples() -> Any:
    return gpunn.load_dataset("digits", synthetic_train=20, synthetic_test=50).x_test


def test_description(model: gpunn.Model, trained: gpunn.Run) -> None:
    info = model.info
    assert (info.task, info.input.dtype, info.input.shape) == ("classification", "u8", (1, 28, 28))
    assert info.outputs == [str(digit) for digit in range(10)]
    assert [(one.name, one.shape) for one in model.outputs] == [("logits", (10,)), ("probabilities", (10,))]
    assert (model.backend, model.max_batch, model.experiment.dataset) == ("cpu", 8, "digits")
    assert "lenet" in repr(model)


def test_any_number_of_rows(model: gpunn.Model, samples: Any) -> None:
    together = model(samples)
    assert together.shape == (50, 10)
    assert together.dtype == np.float32
    assert np.allclose(together.sum(axis=1), 1, atol=1e-5)
    one_by_one = np.concatenate([model(samples[i : i + 1]) for i in range(50)])
    assert np.allclose(together, one_by_one, atol=1e-6)
    assert np.array_equal(model(samples[3]), model(samples[3:4]))


def test_outputs_by_name(model: gpunn.Model, samples: Any) -> None:
    both = model.run(samples, ["logits", "probabilities"])
    assert list(both) == ["logits", "probabilities"]
    assert np.array_equal(both["logits"], model.run(samples, "logits"))
    powers = np.exp(both["logits"] - both["logits"].max(axis=1, keepdims=True))
    assert np.allclose(powers / powers.sum(axis=1, keepdims=True), both["probabilities"], atol=1e-5)


def test_arrays_of_other_kinds(model: gpunn.Model, samples: Any) -> None:
    right = model(samples)
    for other in (
        samples.astype(np.int64),
        samples.tolist(),
        np.asfortranarray(samples),
        np.repeat(samples, 2, axis=0)[::2],
        samples[:, :, ::-1][:, :, ::-1],
        memoryview(samples),
    ):
        assert np.array_equal(model(other), right)
    frozen = samples.copy()
    frozen.flags.writeable = False
    assert np.array_equal(model(frozen), right)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (np.zeros((2, 1, 28, 28), np.float32), "float32"),
        (np.zeros((2, 28, 28), np.uint8), r"\[rows, 1, 28, 28\]"),
        (np.zeros((0, 1, 28, 28), np.uint8), "one row"),
        (np.zeros((), np.uint8), r"\[rows, 1, 28, 28\]"),
        (np.zeros((2, 1, 27, 28), np.uint8), "27"),
        (np.full((2, 1, 28, 28), 256), "256"),
        (np.full((2, 1, 28, 28), -1), "-1"),
        (np.zeros((2, 1, 28, 28), np.complex64), "complex64"),
        (np.array(["a"]), "found"),
        ([[1], [1, 2]], "found"),
        (None, "found object"),
        (object(), "found object"),
    ],
)
def test_arrays_that_do_not_fit(model: gpunn.Model, wrong: Any, text: str) -> None:
    with pytest.raises(gpunn.UsageError, match=text):
        model.run(wrong)


def test_predictions(model: gpunn.Model, samples: Any, trained: gpunn.Run) -> None:
    predictions = model.predict(samples, top=2)
    assert len(predictions) == 50
    assert [one.source for one in predictions[:2]] == ["row 0", "row 1"]
    probabilities = model(samples)
    for row, one in enumerate(predictions):
        assert [found.index for found in one.top] == list(np.argsort(-probabilities[row], kind="stable")[:2])
        assert one.top[0].probability == pytest.approx(probabilities[row].max(), abs=1e-6)
        assert one.top[0].name == str(one.top[0].index)
    assert [one.top[0].index for one in gpunn.predict(trained, samples)] == [one.top[0].index for one in predictions]
    rows = model.predict(rows=[0, 7])
    assert rows[1].label is not None
    assert rows[1].source.endswith("row 7")
    with pytest.raises(gpunn.UsageError, match="100 test rows"):
        model.predict(rows=[100])
    with pytest.raises(gpunn.UsageError, match="nothing to predict"):
        model.predict()
    with pytest.raises(gpunn.UsageError, match="top"):
        model.predict(samples, top=0)
    with pytest.raises(gpunn.UsageError, match="logits"):
        model.run(samples, "logit")


def test_files(model: gpunn.Model, samples: Any) -> None:
    folder = Path("images")
    folder.mkdir()
    for number in range(3):
        header = b"P5 28 28 255\n"
        (folder / f"{number}.pgm").write_bytes(header + samples[number].tobytes())
    arrays = model.predict(samples[:3])
    for given in (folder, "images/*.pgm", [folder / f"{number}.pgm" for number in range(3)]):
        files = model.predict(given)
        assert [one.top[0].index for one in files] == [one.top[0].index for one in arrays]
        assert [Path(one.source).name for one in files] == ["0.pgm", "1.pgm", "2.pgm"]
    with pytest.raises(gpunn.MissingError, match="nowhere"):
        model.predict("nowhere.png")


def test_threads_get_right_answers(trained: gpunn.Run, samples: Any) -> None:
    model = gpunn.load(trained, calls=2)
    right = model(samples)
    wrong: list[str] = []

    def call(first: int) -> None:
        for turn in range(100):
            row = (first + turn) % 50
            if not np.allclose(model(samples[row : row + 1])[0], right[row], atol=1e-6):
                wrong.append(f"row {row}")

    threads = [threading.Thread(target=call, args=(first,)) for first in (0, 17, 31)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_no_leak(model: gpunn.Model, samples: Any) -> None:
    page = os.sysconf("SC_PAGE_SIZE")

    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * page

    def calls(count: int) -> None:
        for _ in range(count):
            model(samples[:1])

    calls(500)
    before = resident()
    calls(10000)
    assert resident() - before < 2 << 20


def test_what_is_not_there(trained: gpunn.Run) -> None:
    for path in ("nowhere", trained.path / "log.txt"):
        with pytest.raises(gpunn.Error, match=str(path)):
            gpunn.load(path)
    with pytest.raises(gpunn.MissingError, match="unheard"):
        gpunn.load(trained, backend="unheard")
    with pytest.raises(gpunn.UsageError, match="max_batch"):
        gpunn.load(trained, max_batch=0)


def test_weights(trained: gpunn.Run, model: gpunn.Model, samples: Any) -> None:
    weights = gpunn.load_weights(trained)
    assert {value.dtype for value in weights.values()} == {np.dtype(np.float32)}
    convolutions = [value.shape for value in weights.values() if value.ndim == 4]
    assert convolutions == [(6, 1, 5, 5), (16, 6, 5, 5)]
    file = gpunn.export(trained, "weights.safetensors")
    assert file.tensors == len(weights)
    assert file.numbers == sum(value.size for value in weights.values())


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of processes that have 600 MB together."""
    versions = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
    root, limit = next(((r, f) for r, f in versions if Path(r, "cgroup.procs").exists()), versions[0])
    folder = Path(root) / f"gpunn_test_{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"needs a control group of its own: {error}")
    try:
        (folder / limit).write_text(str(600_000_000))
    except OSError as error:
        folder.rmdir()
        pytest.skip(f"needs a control group that limits memory: {error}")
    yield folder
    folder.rmdir()


def test_a_call_that_no_memory_holds_is_refused_and_smaller_ones_run(tmp_path: Path, group: Path) -> None:
    network = gpunn.Sequential([gpunn.Linear(4, 500), gpunn.ReLU(), gpunn.Linear(500, 3)])
    network.compile("sgd", backend="cpu", threads=1, task="classification")
    network.save(tmp_path / "wide.h5")
    program = (
        "import sys, numpy, gpunn\n"
        "open(sys.argv[2], 'w').write('0')\n"
        "model = gpunn.load(sys.argv[1], max_batch=1 << 20, calls=1)\n"
        "try:\n    model.run(numpy.ones((400000, 4)))\n"
        "except gpunn.MissingError as error:\n    print(error)\n"
        "print(model.run(numpy.ones((1000, 4))).shape)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "wide.h5"), str(group / "cgroup.procs")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "calls of 400000 rows need" in done.stdout
    assert "are free; give fewer rows in a call\n(1000, 3)" in done.stdout
