"""A run: the folder that a training wrote."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpunn._numbers import metric_text
from gpunn.errors import MissingError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpunn._core import RunResult
    from gpunn._evaluation import Evaluation
    from gpunn._experiment import Settings
    from gpunn._model import Model

PathLike = str | os.PathLike[str]


class Run:
    """A run folder. Its records, figures and weights are read when they are requested.

    A Run is accepted wherever the path of a run folder is (``os.fspath``).
    """

    def __init__(self, path: PathLike, *, result: RunResult | None = None) -> None:
        self.path = Path(path)
        self.result = result
        """What this process saw of the training; None of a run that was opened."""
        if not (self.path / "resolved.yaml").is_file():
            raise MissingError(
                f"{self.path} is not a run folder: it has no resolved.yaml. gpunn.run() returns one, and 'runs' has "
                "those of earlier trainings"
            )

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
        file = self.path / "metrics.csv"
        if not file.is_file():
            return []
        with file.open(newline="", encoding="utf-8") as lines:
            return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(lines)]

    @property
    def steps(self) -> list[dict[str, float]]:
        """The records between epochs, about ten of each: ``loss`` is the running mean of its epoch."""
        file = self.path / "metrics.jsonl"
        if not file.is_file():
            return []
        with file.open(encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        return [
            {key: _value(value) for key, value in record.items() if key != "kind"}
            for record in records
            if record.get("kind") == "step"
        ]

    @property
    def metrics(self) -> dict[str, list[float]]:
        """The records of epochs, with a list for each column."""
        rows = self.epochs
        return {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}

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
        from gpunn._training import resume

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


def _number(text: str | None) -> float:
    if not text:
        return float("nan")
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _value(recorded: Any) -> Any:
    """JSON has null for an undefined metric, and "inf" for an infinite one."""
    return float("nan") if recorded is None else float(recorded) if isinstance(recorded, str) else recorded


def _shortened(rows: list[dict[str, float]], most: int = 20) -> list[dict[str, float]]:
    """The first, the best and the last ones."""
    if len(rows) <= most:
        return rows
    best = [row for row in rows[1:-most] if row.get("best")][-1:]
    return [rows[0], *best, *rows[-most:]]
