"""``gpunn.run`` and ``gpunn.resume``, and a run: the folder that a training wrote."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpunn import _core
from gpunn._core import Experiment, RunResult
from gpunn._experiment import ExperimentLike, PathLike, Settings, load_experiment, settings_of
from gpunn._listener import Listener
from gpunn._numbers import metric_text
from gpunn._progress import TrainingBar, is_shown
from gpunn._records import by_column, epochs_of, require_run, steps_of
from gpunn.callbacks import Callback

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpunn._evaluation import Evaluation
    from gpunn._model import Model

_PROGRAM = Path(__file__).parent / "bin" / "gpunn"

_Profile = tuple[str, int] | None


class Run:
    """A run folder. Its records, figures and weights are read when they are requested.

    A Run is accepted wherever the path of a run folder is (``os.fspath``).
    """

    def __init__(self, path: PathLike, *, result: RunResult | None = None) -> None:
        self.path = Path(path)
        self.result = result
        """What this process saw of the training; None of a run that was opened."""
        require_run(self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __copy__(self) -> Run:
        return Run(self.path, result=self.result)

    def __deepcopy__(self, memo: dict[int, Any]) -> Run:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self.path,)  # elsewhere it is a run that was opened

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self.path.parent.name if self.result is None else self.result.run.parent.name

    @property
    def experiment_yaml(self) -> str:
        """The experiment with every key, and the model inline."""
        return (self.path / "resolved.yaml").read_text(encoding="utf-8")

    @property
    def interrupted(self) -> bool:
        """Whether the training was stopped before its end; ``resume()`` continues it."""
        return self.result is not None and self.result.interrupted

    @property
    def epochs(self) -> list[dict[str, float]]:
        """The record of each epoch: ``train_loss``, ``test_loss``, ``test_accuracy``, ``learning_rate``, ..."""
        return epochs_of(self.path)

    @property
    def steps(self) -> list[dict[str, float]]:
        """The records between epochs, about ten of each: ``loss`` is the running mean of its epoch."""
        return steps_of(self.path)

    @property
    def metrics(self) -> dict[str, list[float]]:
        """The records of epochs, with a list for each column."""
        return by_column(self.epochs)

    @property
    def final(self) -> dict[str, float]:
        """The record of the last epoch."""
        rows = self.epochs
        return rows[-1] if rows else {}

    @property
    def best(self) -> dict[str, float]:
        """The record of the best epoch, by ``checkpoint.monitor``."""
        return next((row for row in reversed(self.epochs) if row.get("best")), {})

    def frame(self) -> pd.DataFrame:
        """The records of epochs as a frame of pandas, by epoch."""
        import pandas as pd

        frame = pd.DataFrame(self.epochs)
        return frame.set_index("epoch") if "epoch" in frame else frame

    def model(self, **options: Any) -> Model:
        """The trained model: ``gpunn.load(run, **options)``."""
        from gpunn._model import load

        return load(self, **options)

    def weights(self) -> dict[str, Any]:
        """The weights by name, as arrays of numpy: those of the best epoch, else the last."""
        from gpunn._weights import load_weights

        return load_weights(self)

    def evaluate(self, *, backend: str | None = None, set: Settings | None = None, mistakes: int = 24) -> Evaluation:
        """The best checkpoint, else the last, on its test data."""
        from gpunn._evaluation import evaluate

        return evaluate(self, backend=backend, set=set, mistakes=mistakes)

    def resume(self, **options: Any) -> Run:
        """``gpunn.resume(run, **options)``."""
        return resume(self, **options)

    def report(self, file: PathLike | None = None) -> Path:
        """Writes one HTML page with all that there is to see; returns its path."""
        from gpunn._evaluation import report

        return report(self, file)

    def plot(self, names: Sequence[str] | None = None, *, axes: Axes | None = None) -> Axes:
        """The learning curves, with matplotlib: ``gpunn.plots.curves``."""
        from gpunn.plots import curves

        return curves(self, names, axes=axes)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        rows = self.epochs
        head = f"<p><b>{escape(self.name)}</b> <code>{escape(str(self.path))}</code>"
        if self.result is not None:
            head += f" on {escape(self.result.backend)}, {self.result.train_seconds:.1f} s of training"
            head += ", interrupted" if self.interrupted else ""
        if not rows:
            return head + ", no epoch is over</p>"
        names = [name for name in rows[0] if name not in ("global_step", "train_seconds", "best")]
        lines = "".join(
            ("<tr style='font-weight:bold'>" if row.get("best") else "<tr>")
            + "".join(f"<td>{metric_text(row[name], 5)}</td>" for name in names)
            + "</tr>"
            for row in _shortened(rows)
        )
        titles = "".join(f"<th>{escape(name)}</th>" for name in names)
        return f"{head}</p><table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"


def open_run(path: PathLike) -> Run:
    """Opens the run in a folder, from any process. Raises :class:`MissingError` if there is none."""
    return Run(path)


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C while training: the step was ended and a checkpoint written. ``run`` is the :class:`gpunn.Run`, and
    ``gpunn.resume(error.run)`` goes on with it. A second Ctrl-C does not wait for the step."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


def run(
    experiment: ExperimentLike,
    *,
    backend: str | None = None,
    set: Settings | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    run_folder: PathLike | None = None,
    runs: PathLike | None = None,
    plugins: Sequence[PathLike] = (),
    kernels: Sequence[str] = (),
    callbacks: Sequence[Callback | Any] = (),
    progress: bool | None = None,
    profile: bool | PathLike = False,
) -> Run:
    """Trains an experiment in a new run folder.

    experiment: the path of a YAML file, the name of a shipped experiment, YAML as text, or a dictionary of the same
        keys.
    backend: a plugin's name (``gpunn.plugins()`` lists them) or its file; None: the experiment's.
    set: keys to change, as in ``{"optimizer.learning_rate": 0.1}``.
    epochs, steps, seed, threads: the keys of ``training`` that are changed most; ``steps`` ends the training early.
    run_folder: must not exist yet; None: ``<runs>/<name>/<time>``, with ``runs`` or else the experiment's.
    plugins: files and folders to find backends in first. kernels: wanted by name, as ``"gemm:3"``.
    callbacks: see :class:`gpunn.Callback`.
    progress: whether a bar is shown; None: in a terminal and in a notebook.
    profile: True, or the file of a trace: the time of each op is in ``run.result.profile``.

    Raises :class:`ConfigError` before anything is trained, :class:`MissingError` where data, a plugin or a device is
    not there, :class:`DivergedError` where the loss is not finite, and :class:`TrainingInterrupted`, a
    KeyboardInterrupt, after Ctrl-C.
    """
    read = load_experiment(
        experiment,
        backend=backend,
        set=set,
        epochs=epochs,
        steps=steps,
        seed=seed,
        threads=threads,
        runs=runs,
        plugins=plugins,
        kernels=kernels,
    )
    folder = Path(run_folder) if run_folder is not None else ""
    return _train(
        lambda listener: _core.train(read, listener, folder, _profile(profile), _PROGRAM), read, callbacks, progress
    )


def resume(
    run: PathLike | Run,
    *,
    backend: str | None = None,
    set: Settings | None = None,
    epochs: int | None = None,
    keep_schedule: bool = False,
    callbacks: Sequence[Callback | Any] = (),
    progress: bool | None = None,
    profile: bool | PathLike = False,
) -> Run:
    """Goes on from the last checkpoint of a run, in its folder, and reaches the weights of a run that was not
    interrupted. ``epochs`` counts those that are done too. A schedule then extends over all of them; ``keep_schedule``
    keeps the length that it has had. The other arguments are as for :func:`gpunn.run`."""
    path = Path(run)
    settings = settings_of(set, backend=backend, epochs=epochs)
    return _train(
        lambda listener: _core.resume(path, settings, listener, _profile(profile), _PROGRAM, keep_schedule),
        None,
        callbacks,
        progress,
    )


def _profile(profile: bool | PathLike) -> _Profile:
    if profile is False:
        return None
    return ("" if profile is True else os.path.abspath(profile), 20)


def _train(
    training: Callable[[Listener], RunResult],
    experiment: Experiment | None,
    callbacks: Sequence[Callback | Any],
    progress: bool | None,
) -> Run:
    with ExitStack() as stack:
        bar = stack.enter_context(TrainingBar()) if is_shown(progress) else None
        listener = Listener(callbacks, bar)
        try:
            result = training(listener)
        except KeyboardInterrupt:
            if listener.path is None:
                raise
            raise TrainingInterrupted(
                f"the training was interrupted; gpunn.resume({str(listener.path)!r}) goes on", Run(listener.path)
            ) from None
    done = Run(result.run, result=result)
    listener.on_end(done)
    return done


def _shortened(rows: list[dict[str, float]], most: int = 20) -> list[dict[str, float]]:
    """The first, the best and the last ones."""
    if len(rows) <= most:
        return rows
    best = [row for row in rows[1:-most] if row.get("best")][-1:]
    return [rows[0], *best, *rows[-most:]]
