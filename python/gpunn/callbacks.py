"""Callbacks of a training, which run in the thread that called ``gpunn.run`` or ``fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from gpunn._core import EpochReport, Experiment, StepReport


class StopTraining(Exception):  # noqa: N818  # not an error
    """Raised by a callback to end the training after the current step. ``run`` writes a checkpoint and returns; ``fit``
    keeps the weights and returns."""


class RunStart(NamedTuple):
    """A training that begins."""

    experiment: Experiment
    path: Path | None
    """The run folder; None: ``fit`` writes none."""
    backend: str
    device: str
    """The name of the device."""


class Callback:
    """Derive from this, or write any class with some of these methods. A function is called as ``on_epoch``.

    :class:`StopTraining` ends the training after the current step, and so does a method that returns True. Any other
    exception ends it too and reaches the caller of ``run`` or ``fit``; ``run`` writes a checkpoint before.

    Reports have attributes, and their numbers by the names of a history: ``epoch["val_loss"]``, ``dict(epoch)``.
    """

    def on_start(self, start: RunStart) -> bool | None:
        """Before the first step."""

    def on_step(self, step: StepReport) -> bool | None:
        """Reports progress: at most about ten times a second, and whenever a step is recorded."""

    def on_losses(self, first: int, losses: list[float]) -> bool | None:
        """Receives the loss of every step, in order and some steps late; ``first`` counts from 0."""

    def on_epoch(self, epoch: EpochReport) -> bool | None:
        """After the evaluation of an epoch."""

    def on_end(self, run: Any) -> None:
        """Receives the :class:`gpunn.Run`, or from ``fit`` the :class:`gpunn.History`. Called after the last step,
        also if the training was stopped, but not after an exception."""


METHODS = ("on_start", "on_step", "on_losses", "on_epoch", "on_end")
