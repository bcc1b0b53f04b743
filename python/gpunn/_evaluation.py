"""Evaluations of trained models, and the reports and exports made of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from gpunn import _core
from gpunn._core import (
    ClassEvalReport,
    ClassReport,
    DetectedClass,
    EngineExportReport,
    ExportReport,
    Mistake,
    NonFiniteRows,
    OnnxExportReport,
    OutputReport,
    RowReport,
)
from gpunn._experiment import PathLike, Settings, model_settings, settings_of
from gpunn._listener import Listener
from gpunn._numbers import metric_text
from gpunn.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_OF_CLASS = ("name", "rows", "predicted", "correct", "precision", "recall", "f1")
_OF_DETECTED = ("name", "objects", "detections", "ap", "coco_ap")


class Evaluation:
    """A model's results on its test data, for each class, or for each output if there are no classes."""

    def __init__(self, core: ClassEvalReport) -> None:
        self._core = core

    @property
    def part(self) -> str:
        """``"test"`` or ``"validation"``."""
        return self._core.total.part

    @property
    def rows(self) -> int:
        return self._core.total.rows

    @property
    def loss(self) -> float:
        return self._core.total.loss

    @property
    def non_finite(self) -> NonFiniteRows | None:
        """The rows whose outputs or loss are NaN or infinite: how many, the first, and the likely cause."""
        return self._core.total.non_finite

    @property
    def metrics(self) -> dict[str, float]:
        """By name, the most informative first; a share lies between 0 and 1. NaN: the data does not
        define it."""
        return self._core.total.metrics

    @property
    def classes(self) -> list[ClassReport]:
        return self._core.classes

    @property
    def outputs(self) -> list[OutputReport]:
        """The targets or labels, for data without classes."""
        return self._core.outputs

    @property
    def detected_classes(self) -> list[DetectedClass]:
        """The classes, for images with boxes."""
        return self._core.detected_classes

    @property
    def figures(self) -> dict[str, float]:
        """COCO's and VOC's figures by name, for images with boxes. NaN: the data does not define it."""
        return self._core.figures

    @property
    def mistakes(self) -> list[Mistake]:
        """Rows that were predicted as another class, the largest loss first."""
        return self._core.mistakes

    @property
    def worst_rows(self) -> list[RowReport]:
        """The rows with the largest loss first, for data without classes."""
        return self._core.worst_rows

    @property
    def confusion(self) -> npt.NDArray[np.int64]:
        """int64 [classes, classes]: true class by row, predicted class by column. Empty without classes, or with
        more than 4096."""
        return self._core.confusion

    @property
    def targets(self) -> npt.NDArray[np.float64]:
        """float64 [rows, outputs] of a regression, in the units of the data."""
        return self._core.target_values

    @property
    def predictions(self) -> npt.NDArray[np.float64]:
        """float64 [rows, outputs] of a regression, in the units of the data."""
        return self._core.predicted_values

    def records(self) -> list[dict[str, Any]]:
        """A dictionary for each class or output."""
        if self.classes:
            return [{name: getattr(one, name) for name in _OF_CLASS} for one in self.classes]
        if self.detected_classes:
            return [{name: getattr(one, name) for name in _OF_DETECTED} for one in self.detected_classes]
        return [{"name": one.name, "rows": one.rows, **one.metrics} for one in self.outputs]

    def frame(self) -> pd.DataFrame:
        """The classes or outputs as a frame of pandas."""
        import pandas as pd

        frame = pd.DataFrame(self.records())
        return frame.set_index("name") if "name" in frame else frame

    def plot(self, *, axes: Axes | None = None) -> Axes:
        """The confusion matrix, with matplotlib: ``gpunn.plots.confusion``."""
        from gpunn.plots import confusion

        return confusion(self, axes=axes)

    def __repr__(self) -> str:
        metrics = ", ".join(f"{name} {metric_text(value)}" for name, value in self.metrics.items())
        return f"<Evaluation of {self.rows} {self.part} rows: loss {self.loss:.4g}, {metrics}>"

    def _repr_html_(self) -> str:
        records = self.records()
        titles = "".join(f"<th>{escape(str(name))}</th>" for name in (records[0] if records else {}))
        lines = "".join(
            "<tr>"
            + "".join(
                f"<td>{escape(metric_text(value) if isinstance(value, float) else str(value))}</td>"
                for value in row.values()
            )
            + "</tr>"
            for row in records[:100]
        )
        return f"<p>{escape(repr(self)[1:-1])}</p><table><tr>{titles}</tr>{lines}</table>"


def evaluate(
    model: PathLike,
    *,
    data: PathLike | None = None,
    backend: str | None = None,
    set: Settings | None = None,
    mistakes: int = 24,
) -> Evaluation:
    """A run, a run folder (its best checkpoint, else the last), a checkpoint or an ONNX file on its test data.

    data: of an ONNX file, which names none: an experiment's YAML file or a data set's name.
    mistakes: so many of the worst are told at most.

    Warns with RuntimeWarning if outputs are NaN or infinite.
    """
    evaluation = Evaluation(_core.evaluate(Path(model), model_settings(data, set, backend), mistakes, Listener()))
    if (found := evaluation.non_finite) is not None:
        warnings.warn(
            f"the outputs or the loss of {found.rows} of {evaluation.rows} {evaluation.part} rows are NaN or infinite, "
            f"first of row {found.first}: {found.cause}",
            RuntimeWarning,
            stacklevel=2,
        )
    return evaluation


def report(
    run: PathLike,
    file: PathLike | None = None,
    *,
    backend: str | None = None,
    set: Settings | None = None,
    mistakes: int = 24,
) -> Path:
    """Writes a run's figures and pictures as one HTML page, by default ``report.html`` in the run; returns its path."""
    target = Path(file) if file is not None else ""
    return _core.write_report(Path(run), target, settings_of(set, backend=backend), mistakes, Listener())


@overload
def export(
    model: PathLike,
    file: PathLike,
    *,
    names: PathLike | None = None,
    opset: int | None = None,
    raw_input: bool = False,
    with_preprocessing: bool = False,
    fold_batch_norm: bool = False,
    external_data: bool = False,
    input_shape: Sequence[int] | None = None,
) -> ExportReport | OnnxExportReport: ...
@overload
def export(
    model: PathLike,
    file: PathLike,
    *,
    batch: Sequence[int],
    backend: str | None = None,
    precision: str | None = None,
    input_shape: Sequence[int] | None = None,
) -> EngineExportReport: ...
def export(
    model: PathLike,
    file: PathLike,
    *,
    names: PathLike | None = None,
    opset: int | None = None,
    raw_input: bool = False,
    with_preprocessing: bool = False,
    fold_batch_norm: bool = False,
    external_data: bool = False,
    input_shape: Sequence[int] | None = None,
    batch: Sequence[int] | None = None,
    backend: str | None = None,
    precision: str | None = None,
) -> ExportReport | OnnxExportReport | EngineExportReport:
    """Writes a run or a checkpoint for other programs: ``NAME.safetensors`` has the weights, ``NAME.onnx`` the model.

    ``NAME.engine`` is the model planned for one device, which ``gpunn.load`` opens without planning.

    input_shape: sizes of the input of an ONNX file that leaves them open, with or without the batch.

    names: of weights, a table of names, as ``init_from.names`` takes it: the tensors have the names on its left.

    Of ONNX alone: ``opset`` is 13 to 21, by default 18. With ``raw_input`` the graph takes samples as the data set has
    them (uint8 images) and normalises them. ``with_preprocessing`` is for pictures of any size, uint8
    ``[height, width, channels]``, one at a time: the graph also scales and crops them as ``gpunn predict`` does.
    ``fold_batch_norm`` folds each batch norm into the layer in front of it. ``external_data`` writes the weights to
    ``NAME.onnx.data``, as is done above 2 GB in any case.

    Of an engine alone: ``batch`` are the numbers of rows that it has a program for; ``backend`` computes, by default
    the experiment's, in ``precision`` (``"fp32"``, ``"bf16"``), by default the training's.
    """
    of_onnx = opset is not None or raw_input or with_preprocessing or fold_batch_norm or external_data
    of_engine = backend is not None or precision is not None or batch is not None
    if Path(file).suffix == ".engine":
        if of_onnx or names is not None:
            raise UsageError("names and the arguments of ONNX files are not for NAME.engine")
        if batch is None:
            raise UsageError("an engine needs batch, the numbers of rows that it has a program for, as batch=[1, 8]")
        set = {} if precision is None else {"training.precision": precision}
        settings = settings_of(set, backend=backend, input_shape=input_shape)
        return _core.export_engine(Path(model), Path(file), list(batch), settings)
    if of_engine:
        raise UsageError("backend, precision and batch are for NAME.engine")
    if Path(file).suffix == ".onnx":
        if names is not None:
            raise UsageError("names is for NAME.safetensors; tensors in an ONNX file have the model's names")
        report = _core.export_onnx(
            Path(model),
            Path(file),
            18 if opset is None else opset,
            raw_input,
            with_preprocessing,
            fold_batch_norm,
            external_data,
            settings_of(input_shape=input_shape),
        )
        for warning in report.warnings:
            warnings.warn(warning, RuntimeWarning, stacklevel=2)
        return report
    if of_onnx:
        raise UsageError("opset, raw_input, with_preprocessing, fold_batch_norm and external_data are for NAME.onnx")
    table = Path(names) if names is not None else ""
    return _core.export_weights(Path(model), Path(file), table, settings_of(input_shape=input_shape))
