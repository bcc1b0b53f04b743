"""Progress bars, of tqdm: in a terminal or in a notebook."""

from __future__ import annotations

import sys
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gpunn._numbers import metric_text

if TYPE_CHECKING:
    from gpunn._core import EpochReport, StepReport
    from gpunn.callbacks import RunStart


def is_shown(progress: bool | None) -> bool:
    """None: shown in a terminal or notebook."""
    if progress is not None:
        return progress
    return sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and shell.has_trait("kernel")


def _tqdm() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a notebook without ipywidgets: the bar is text there
        from tqdm.auto import tqdm
    return tqdm


class TrainingBar:
    """A bar over all steps of a training."""

    def __init__(self) -> None:
        self._tqdm = _tqdm()
        self._bar: Any = None
        self._told: dict[str, str] = {}
        self._backend = ""

    def __enter__(self) -> TrainingBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, text: str) -> None:
        self._tqdm.write(text, file=sys.stderr)

    def begin(self, backend: str) -> None:
        """The next training is one of several."""
        self.close()
        self._backend = f"{backend}: "

    def on_start(self, start: RunStart) -> None:
        self.close()
        self._told = {}
        self._bar = self._tqdm(desc=f"{self._backend}{start.experiment.name} on {start.backend}", unit="step")

    def on_step(self, report: StepReport) -> None:
        if self._bar is None:
            return
        self._bar.total = max(report.steps * report.epochs, report.global_step)
        self._bar.set_description(f"{self._backend}epoch {report.epoch}/{report.epochs}", refresh=False)
        self._bar.set_postfix({"loss": f"{report.loss:.4g}", **self._told}, refresh=False)
        self._reach(report.global_step)

    def on_epoch(self, report: EpochReport) -> None:
        if self._bar is None:
            return
        part = report.evaluation.part
        first = next(iter(report.evaluation.metrics.items()), None)
        self._told = {f"{part}_loss": f"{report.evaluation.loss:.4g}"}
        if first is not None:
            self._told[f"{part}_{first[0]}"] = metric_text(first[1])
        self._bar.set_postfix({"loss": f"{report.train_loss:.4g}", **self._told}, refresh=False)
        self._reach(report.global_step)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _reach(self, step: int) -> None:
        self._bar.update(step - self._bar.n)
        self._bar.refresh()
