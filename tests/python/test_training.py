from __future__ import annotations

import csv
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gpunn
import small
from gpunn._core import LoaderReport
from gpunn.callbacks import RunStart

YAML = """
model: {file: %s}
data: {dataset: digits, batch_size: 20, synthetic_train: 400, synthetic_test: 100}
optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}
training: {epochs: 2, seed: 3}
backend: cpu
"""


def same_weights(one: gpunn.Run, other: gpunn.Run) -> bool:
    left, right = one.weights(), other.weights()
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def test_file_text_and_dictionary_are_the_same_experiment(trained: gpunn.Run) -> None:
    text = YAML % gpunn.shipped_models()["lenet5"]
    Path("here.yaml").write_text(text)
    for given in (text, "here.yaml", Path("here.yaml"), gpunn.load_experiment(text)):
        assert same_weights(gpunn.run(given), trained)


def test_run_has_its_records(trained: gpunn.Run) -> None:
    with (trained.path / "metrics.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["epoch"] for row in trained.epochs] == [1, 2]
    assert trained.metrics["train_loss"] == [float(row["train_loss"]) for row in rows]
    assert trained.final == trained.epochs[-1]
    assert trained.best["test_accuracy"] == max(trained.metrics["test_accuracy"])
    assert [step["global_step"] for step in trained.steps] == [step for step in range(2, 40, 2) if step != 20]
    assert trained.result is not None
    assert trained.result.epochs[1].evaluation.metrics["accuracy"] == pytest.approx(trained.final["test_accuracy"])
    assert not trained.interrupted
    again = gpunn.open_run(trained.path)
    assert again.epochs == trained.epochs
    assert again.result is None
    with pytest.raises(gpunn.MissingError, match=r"resolved\.yaml"):
        gpunn.open_run("nowhere")


def test_run_shows_itself(trained: gpunn.Run) -> None:
    html = trained._repr_html_()
    assert "<table>" in html
    assert "test_accuracy" in html
    assert html.count("<tr") == 3
    assert str(trained.path) in repr(trained)


def test_frame_has_the_epochs(trained: gpunn.Run) -> None:
    pytest.importorskip("pandas")
    frame = trained.frame()
    assert list(frame.index) == [1, 2]
    assert list(frame["test_loss"]) == trained.metrics["test_loss"]


def test_settings_are_those_of_the_command_line() -> None:
    run = gpunn.run(
        small.experiment(), set={"optimizer.learning_rate": 0.5, "data.batch_size": 50}, epochs=1, run_folder="mine"
    )
    assert run.path == Path("mine")
    assert run.metrics["learning_rate"] == [0.5]
    assert run.metrics["global_step"] == [8]


def test_callbacks_are_told_in_order_on_the_callers_thread() -> None:
    told: list[str] = []
    losses: list[float] = []
    loaders: list[LoaderReport | None] = []
    threads = set()

    class Recorder(gpunn.Callback):
        def on_start(self, start: RunStart) -> None:
            threads.add(threading.get_ident())
            assert start.path is not None
            told.append(f"start {start.backend} {start.path.name}")

        def on_step(self, step: gpunn.StepReport) -> None:
            assert 1 <= step.epoch <= 2
            assert "accuracy" in step.metrics

        def on_losses(self, first: int, values: list[float]) -> None:
            assert first == len(losses)
            losses.extend(values)

        def on_epoch(self, epoch: gpunn.EpochReport) -> None:
            threads.add(threading.get_ident())
            told.append(f"epoch {epoch.epoch}")
            loaders.append(epoch.loader)

        def on_end(self, run: gpunn.Run) -> None:
            told.append(f"end {run.path.name}")

    run = gpunn.run(small.experiment(), run_folder="mine", callbacks=[Recorder()])
    assert told == ["start cpu mine", "epoch 1", "epoch 2", "end mine"]
    assert threads == {threading.get_ident()}
    assert len(losses) == 40
    assert loaders == [None, None]  # the data set is on the device
    assert np.mean(losses[:20]) == pytest.approx(run.epochs[0]["train_loss"], rel=1e-5)


class At(gpunn.Callback):
    """Raises after the first epoch."""

    def __init__(self, error: BaseException) -> None:
        self.error, self.ends = error, 0

    def on_epoch(self, epoch: gpunn.EpochReport) -> None:
        raise self.error

    def on_end(self, run: gpunn.Run) -> None:
        self.ends += 1


def test_exception_in_a_callback_stops_the_run_and_the_checkpoint_stands(trained: gpunn.Run) -> None:
    error = KeyError("mine")
    stopper = At(error)
    with pytest.raises(KeyError) as raised:
        gpunn.run(small.experiment(), run_folder="mine", callbacks=[stopper])
    assert raised.value is error
    assert any(entry.name == "on_epoch" for entry in raised.traceback)
    assert stopper.ends == 0
    assert [row["epoch"] for row in gpunn.open_run("mine").epochs] == [1]
    assert same_weights(gpunn.resume("mine"), trained)


def test_callback_may_ask_to_stop(trained: gpunn.Run) -> None:
    stopper = At(gpunn.StopTraining())
    run = gpunn.run(small.experiment(), callbacks=[stopper])
    assert run.interrupted
    assert stopper.ends == 1
    assert len(run.epochs) == 1
    assert same_weights(run.resume(), trained)


def test_no_callback() -> None:
    for wrong in (3, At, object()):
        with pytest.raises(gpunn.UsageError, match="on_start"):
            gpunn.run(small.experiment(), callbacks=[wrong])


def test_control_c_writes_a_checkpoint_and_raises() -> None:
    class Interrupter(gpunn.Callback):
        def on_losses(self, first: int, losses: list[float]) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(gpunn.TrainingInterrupted) as raised:
        gpunn.run(small.experiment(training={"epochs": 1000}), callbacks=[Interrupter()])
    assert isinstance(raised.value, KeyboardInterrupt)
    run = raised.value.run
    assert (run.path / "last.h5").is_file()
    done = gpunn.resume(run, set={"training.max_steps": 60})
    assert done.final["global_step"] == 60


def test_own_signal_handler_is_called_while_training() -> None:
    calls: list[int] = []
    former = signal.signal(signal.SIGALRM, lambda number, frame: calls.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        run = gpunn.run(small.experiment(training={"epochs": 4, "seed": 3}))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert calls == [signal.SIGALRM]
    assert len(run.epochs) == 4


def test_other_threads_go_on_while_training() -> None:
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    gpunn.run(small.experiment(training={"epochs": 20}))
    done.set()
    thread.join()
    assert len(ticks) >= 10


def test_mistakes_come_together_with_their_places() -> None:
    model = gpunn.shipped_models()["lenet5"]
    text = f"model: {{file: {model}}}\ndata: {{dataset: digitz}}\noptimizer:\n  type: sgd\n  lr: 0.1\n"
    Path("wrong.yaml").write_text(text)
    with pytest.raises(gpunn.ConfigError) as raised:
        gpunn.run("wrong.yaml")
    error = raised.value
    assert isinstance(error, ValueError)
    assert {(one.line, one.column) for one in error.diagnostics} >= {(2, 17), (5, 3)}
    assert all(one.file == "wrong.yaml" for one in error.diagnostics)
    assert error.file == "wrong.yaml"
    assert error.line == 2
    assert "learning_rate" in str(error)


@pytest.mark.parametrize(
    ("experiment", "error", "text"),
    [
        ("nowhere.yaml", gpunn.ConfigError, "nowhere.yaml"),
        ("lenet_digit", gpunn.UsageError, r"no experiment of that name comes with gpunn; did you mean 'lenet_digits'"),
        ({"model": "lenet6"}, gpunn.UsageError, r"no model of that name comes with gpunn; did you mean 'lenet5'"),
        (17, gpunn.UsageError, "found int"),
        ({"model": object()}, gpunn.UsageError, "found object"),
        ({}, gpunn.ConfigError, "model"),
        (small.experiment(backend="unheard"), gpunn.MissingError, "unheard"),
        (small.experiment(data={"dataset": "mnist", "path": "nowhere"}), gpunn.MissingError, "nowhere"),
    ],
)
def test_bad_experiments(
    experiment: object, error: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPUNN_DATA_DIR", raising=False)  # or the data set would be found there
    with pytest.raises(error, match=text):
        gpunn.run(experiment)  # type: ignore[arg-type]


def test_loss_that_is_not_finite() -> None:
    with pytest.raises(gpunn.DivergedError, match="learning_rate") as raised:
        gpunn.run(small.experiment(), set={"optimizer.learning_rate": 1000})
    assert raised.value.exit_code == 4


def test_progress_bar(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    gpunn.run(small.experiment(), progress=True)
    shown = capfd.readouterr().err
    assert "epoch 2/2" in shown
    assert "40/40" in shown
    assert "test_accuracy" in shown
    gpunn.run(small.experiment())
    assert capfd.readouterr().err == ""


def test_profile() -> None:
    run = gpunn.run(small.experiment(), profile="trace.json", epochs=1)
    assert Path("trace.json").is_file()
    assert run.result is not None
    assert run.result.profile is not None
    assert math.isclose(sum(op.share for op in run.result.profile.ops), 1, rel_tol=1e-6)


SCRIPTS = {
    # A daemon thread trains while the interpreter ends: it has to stop, with a checkpoint.
    "exit": """
class Started(gpunn.Callback):
    def on_step(self, step): started.set()
started = threading.Event()
experiment = small.experiment(training={"epochs": 100000})
arguments = {"run_folder": "mine", "callbacks": [Started()]}
threading.Thread(target=gpunn.run, args=(experiment,), kwargs=arguments, daemon=True).start()
assert started.wait(60)
print("leaving")
""",
    # A daemon thread is in a callback that does not return: the end says so and does not wait for it.
    "callback": """
class Sleeper(gpunn.Callback):
    def on_step(self, step):
        started.set()
        while True: time.sleep(0.01)
started = threading.Event()
experiment = small.experiment(training={"epochs": 100000})
arguments = {"run_folder": "mine", "callbacks": [Sleeper()]}
threading.Thread(target=gpunn.run, args=(experiment,), kwargs=arguments, daemon=True).start()
assert started.wait(60)
print("leaving")
""",
    # A child process cannot use the threads of its parent, and says so in place of waiting for them.
    "fork": """
run = gpunn.run(small.experiment(), epochs=1)
model = gpunn.load(run)
x = gpunn.load_dataset("digits", synthetic_train=20, synthetic_test=20).x_test
model(x)
child = os.fork()
if child == 0:
    try:
        model(x)
    except gpunn.Error as error:
        assert "spawn" in str(error), error
        del model
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
model(x)
print("leaving")
""",
    # A plugin that cannot load is told of, and the others serve.
    "plugin": """
open("libgpunn_backend_broken.so", "w").write("no library")
found = {plugin.path.name: plugin for plugin in gpunn.plugins(["libgpunn_backend_broken.so"])}
assert found["libgpunn_backend_broken.so"].status == "NOT_A_PLUGIN", found
assert found["libgpunn_backend_cpu.so"].status == "OK", found
gpunn.run(small.experiment(), epochs=1, plugins=["."])
try:
    gpunn.run(small.experiment(), backend="./libgpunn_backend_broken.so")
except gpunn.MissingError as error:
    print(error)
print("leaving")
""",
}


@pytest.mark.parametrize("name", sorted(SCRIPTS))
@pytest.mark.filterwarnings("ignore")
def test_end_of_the_process(name: str) -> None:
    head = f"import os, sys, threading, time\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport gpunn, small\n"
    command = [sys.executable, "-W", "ignore", "-c", head + SCRIPTS[name]]
    start = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if name == "callback":
        assert "waits for a training in another thread, for a callback" in done.stderr
        assert done.stderr.count("\n") == 1
        assert time.monotonic() - start < 30
        done.stderr = ""
    assert (done.returncode, done.stderr) == (0, "")
    assert "leaving" in done.stdout
    if name in ("exit", "callback"):
        assert (Path("mine") / "last.h5").is_file()
        assert "interrupted after step" in (Path("mine") / "log.txt").read_text()
