"""What the training in C++ talks to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpunn._core import EpochReport, Experiment, StepReport
from gpunn.callbacks import METHODS, Callback, RunStart, StopTraining
from gpunn.errors import UsageError

if TYPE_CHECKING:
    from gpunn._progress import TrainingBar

_log = logging.getLogger("gpunn")


class Listener:
    """Tells callbacks and the progress bar. A method returns whether the training is to stop."""

    def __init__(self, callbacks: Sequence[Callback | Any] = (), bar: TrainingBar | None = None) -> None:
        for callback in callbacks:
            if isinstance(callback, type) or not any(callable(getattr(callback, name, None)) for name in METHODS):
                raise UsageError(f"a callback is an object with some of {', '.join(METHODS)}, found {callback!r}")
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
        self.path = path
        start = RunStart(experiment, path, backend, device)
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
            method: Callable[..., None] | None = getattr(callback, name, None)
            if method is None:
                continue
            try:
                method(*arguments)
            except StopTraining:
                stop = True
        return stop
