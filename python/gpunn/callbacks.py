"""Callbacks of a training: what is called on its way, in the thread that called :func:`gpunn.run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpunn._core import EpochReport, Experiment, StepReport

if TYPE_CHECKING:
    from gpunn._run import Run


class StopTraining(Exception):  # noqa: N818  # not an error
    """Raised by a callback to end the training after the current step. A checkpoint is written; ``run`` returns."""


class RunStart(NamedTuple):
    """A training that begins."""

    experiment: Experiment
    path: Path
    """The run folder."""
    backend: str
    device: str
    """The name of the device."""


class Callback:
    """Derive from this, or write any class with some of these methods.

    An exception in a callback ends the training after the current step; a checkpoint is written, and the exception
    reaches the caller of ``run``. :class:`StopTraining` ends it without an exception.
    """

    def on_start(self, start: RunStart) -> None:
        """Before the first step."""

    def on_step(self, step: StepReport) -> None:
        """How far the training is: at most about ten times a second, and whenever a step is recorded."""

    def on_losses(self, first: int, losses: list[float]) -> None:
        """The loss of every step, in order and some steps late; ``first`` counts from 0."""

    def on_epoch(self, epoch: EpochReport) -> None:
        """After the evaluation of an epoch."""

    def on_end(self, run: Run) -> None:
        """After the last step, also of a training that was stopped; not after an exception."""


METHODS = ("on_start", "on_step", "on_losses", "on_epoch", "on_end")
