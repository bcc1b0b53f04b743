"""``gpunn.run`` and ``gpunn.resume``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gpunn import _core
from gpunn._core import Experiment, RunResult
from gpunn._experiment import ExperimentLike, PathLike, Settings, load_experiment, settings_of
from gpunn._listener import Listener
from gpunn._progress import TrainingBar, is_shown
from gpunn._run import Run
from gpunn.callbacks import Callback

_PROGRAM = Path(__file__).parent / "bin" / "gpunn"

_Profile = tuple[str, int] | None


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
