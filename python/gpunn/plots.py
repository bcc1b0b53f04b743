"""Pictures of runs, with matplotlib. Each function draws on ``axes``, by default new ones, and returns them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpunn._records import by_column, epochs_of, require_run
from gpunn._weights import load_weights
from gpunn.errors import UsageError

if TYPE_CHECKING:
    from gpunn._core import ClassReport, RaceReport
    from gpunn._experiment import PathLike


class HasConfusion(Protocol):
    """A :class:`gpunn.Evaluation`."""

    @property
    def confusion(self) -> npt.NDArray[np.int64]: ...
    @property
    def classes(self) -> Sequence[ClassReport]: ...


def curves(run: PathLike, names: Sequence[str] | None = None, *, axes: Axes | None = None) -> Axes:
    """The records of a run by epoch; ``names``, by default the losses, are columns of ``run.metrics``."""
    folder = Path(run)
    require_run(folder)
    metrics = by_column(epochs_of(folder))
    chosen = [name for name in metrics if name.endswith("loss")] if names is None else list(names)
    for name in chosen:
        if name not in metrics:
            raise UsageError(f"the run has no record {name!r}; it has {', '.join(metrics) or 'none yet'}")
    axes = axes if axes is not None else plt.subplots()[1]
    for name in chosen:
        axes.plot(metrics["epoch"], metrics[name], label=name.replace("_", " "))
    axes.set_xlabel("epoch")
    if chosen:
        axes.legend()
    return axes


def confusion(evaluation: HasConfusion, *, normalise: bool = True, axes: Axes | None = None) -> Axes:
    """The confusion matrix; ``normalise``: as shares of the rows of a class."""
    matrix: npt.NDArray[Any] = evaluation.confusion
    if matrix.size == 0:
        raise UsageError("there is no confusion matrix: the data has no classes, or more than 4096")
    if normalise:
        matrix = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    names = [one.name for one in evaluation.classes]
    axes = axes if axes is not None else plt.subplots()[1]
    image = axes.imshow(matrix, cmap="Blues", vmin=0)
    axes.set_xlabel("predicted")
    axes.set_ylabel("class")
    if len(names) <= 40:
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
    axes.figure.colorbar(image, ax=axes)
    return axes


def filters(run: PathLike, name: str | None = None, *, columns: int = 8) -> Figure:
    """The filters of a convolution, by default the first one: those of 3 input channels in colour, others by their
    first channel. ``name`` is that of a weight, as ``gpunn.load_weights`` has it."""
    weights = load_weights(run)
    images = {key: value for key, value in weights.items() if value.ndim == 4}
    if name is None and images:
        name = next(iter(images))
    if name is None or name not in images:
        raise UsageError(f"the model has no convolution {name or ''!r}; it has {', '.join(images) or 'none'}")
    weight = images[name]
    low, high = float(weight.min()), float(weight.max())
    shown = (weight - low) / max(high - low, 1e-12)
    rows = -(-len(shown) // columns)
    figure, all_axes = plt.subplots(rows, columns, squeeze=False, figsize=(columns, rows))
    for number, axes in enumerate(all_axes.flat):
        axes.axis("off")
        if number < len(shown):
            filter_ = shown[number]
            axes.imshow(filter_.transpose(1, 2, 0) if len(filter_) == 3 else filter_[0], cmap="gray", vmin=0, vmax=1)
    figure.suptitle(name)
    return figure


def race(report: RaceReport, *, axes: Axes | None = None) -> Axes:
    """The loss of each step on each backend."""
    axes = axes if axes is not None else plt.subplots()[1]
    for entry in report.entries:
        axes.plot(entry.losses, label=Path(entry.backend).name)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend()
    return axes
