"""``gpunn.quantize``: a trained model in eight bits."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gpunn import _core
from gpunn._core import QuantizeReport
from gpunn._experiment import PathLike, Settings, model_settings
from gpunn._listener import Listener


def quantize(
    model: PathLike,
    file: PathLike,
    *,
    data: PathLike | None = None,
    method: Literal["maximum", "entropy", "percentile"] = "entropy",
    percentile: float = 99.99,
    images: int = 512,
    part: Literal["train", "validation", "test"] = "train",
    most_lost: float | None = None,
    cache: PathLike | None = None,
    backend: str | None = None,
    set: Settings | None = None,
) -> QuantizeReport:
    """Puts a trained model's convolutions and dense layers in eight bits, writes it as ONNX and says what that costs.

    :func:`gpunn.load`, :func:`gpunn.evaluate` and ONNX Runtime read the file. Weights have a scale for each output
    channel; the ranges of other tensors come from samples that the model is calibrated with.

    model: a run, a run folder (its best checkpoint), a checkpoint or an ONNX file.
    file: ``NAME.onnx``, to be written.
    data: of an ONNX file, which names none: an experiment's YAML file or a data set's name.
    method: how ranges follow from the numbers of the calibration. "percentile" keeps ``percentile`` per cent of a
        tensor's numbers other than 0 within the range.
    images: samples of the calibration, 8 or more, spread over the ``part`` of the data.
    most_lost: the most that the metric of the task may lose on the test data: points of a metric in percent, else
        percent of its value. None: 0.4, unless there is nothing to measure by; a given number is an error then.
    cache: a JSON file that keeps the ranges; they are taken from it where model, data and options are the same.

    Raises :class:`Error` if more is lost than ``most_lost``, and writes nothing then;
    :class:`UsageError` where an option is wrong or the model has no convolution and no dense layer.
    """
    return _core.quantize(
        Path(model),
        Path(file),
        method,
        percentile,
        images,
        part,
        most_lost,
        Path(cache) if cache is not None else "",
        model_settings(data, set, backend),
        Listener(),
    )
