"""The listener that the training in C++ calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpunn._core import EpochReport, Experiment, StepReport
from gpunn._numbers import metric_text
from gpunn.callbacks import METHODS, Callback, RunStart, StopTraining
from gpunn.errors import UsageError

if TYPE_CHECKING:
    from gpunn._history import History
    from gpunn._progress import TrainingBar

_log = logging.getLogger("gpunn")


class Listener:
    """Informs callbacks and the progress bar. A method returns whether the training should stop."""

    def __init__(self, callbacks: Sequence[Callback | Any] = (), bar: TrainingBar | None = None) -> None:
        if isinstance(callbacks, str) or not hasattr(callbacks, "__iter__"):
            raise UsageError(f"callbacks: expected a list of callbacks, found {callbacks!r}")
        for callback in callbacks:
            has_some = callable(callback) or any(callable(getattr(callback, name, None)) for name in METHODS)
            if isinstance(callback, type) or not has_some:
                raise UsageError(
                    f"a callback is a function of an epoch, or an object with some of {', '.join(METHODS)}; "
                    f"found {callback!r}"
                )
        self._callbacks = list(callbacks)
        self._bar = bar
        self.path: Path | None = None
        self.wants_losses = any(
            getattr(type(one), "on_losses", None) is not Callback.on_losses and hasattr(one, "on_losses")
            for one in self._callbacks
        )

    def on_message(self, text: str) -> bool:
        if self._bar is not None:
            self._bar.write(text)
        else:
            _log.warning("%s", text)
        return False

    def on_begin(self, backend: str) -> bool:
        if self._bar is not None:
            self._bar.begin(backend)
        return False

    def on_start(self, experiment: Experiment, path: Path, backend: str, device: str) -> bool:
        self.path = None if path == Path() else path
        start = RunStart(experiment, self.path, backend, device)
        if self._bar is not None:
            self._bar.on_start(start)
        return self._tell("on_start", start)

    def on_step(self, report: StepReport) -> bool:
        if self._bar is not None:
            self._bar.on_step(report)
        return self._tell("on_step", report)

    def on_losses(self, first: int, losses: list[float]) -> bool:
        return self._tell("on_losses", first, losses)

    def on_epoch(self, report: EpochReport) -> bool:
        if self._bar is not None:
            self._bar.on_epoch(report)
        return self._tell("on_epoch", report)

    def on_end(self, run: Any) -> None:
        self._tell("on_end", run)

    def _tell(self, name: str, *arguments: Any) -> bool:
        stop = False
        for callback in self._callbacks:
            method: Callable[..., Any] | None = getattr(callback, name, None)
            if method is None and name == "on_epoch" and callable(callback):
                method = callback
            if method is None:
                continue
            try:
                answer = method(*arguments)
            except StopTraining:
                stop = True
            else:
                stop = stop or (isinstance(answer, bool | np.bool_) and bool(answer))
        return stop


class FitListener(Listener):
    """Keeps the history of a network's training, and prints it if requested."""

    def __init__(
        self,
        callbacks: Sequence[Callback | Any],
        history: History,
        verbose: bool,
        new_weights: Callable[[], None],
    ) -> None:
        super().__init__(callbacks)
        self._history = history
        self._verbose = verbose
        self._new_weights = new_weights

    def on_message(self, text: str) -> bool:
        if self._verbose:
            print(text)
        else:
            told = [line for line in text.splitlines() if line.startswith("WARNING")]
            if told:
                super().on_message("\n".join(told))
        return False

    def on_start(self, experiment: Experiment, path: Path, backend: str, device: str) -> bool:
        if self._verbose:
            print(f"training on {backend}, {device}")
        return super().on_start(experiment, path, backend, device)

    def on_epoch(self, report: EpochReport) -> bool:
        epoch = dict(report)
        self._history.epochs.append(epoch)
        self._new_weights()
        if self._verbose:
            shown = {k: v for k, v in epoch.items() if isinstance(v, float) and k != "samples_per_second"}
            print(f"epoch {epoch['epoch']}: " + ", ".join(f"{k} {metric_text(v)}" for k, v in shown.items()))
        return super().on_epoch(report)
