"""``gpunn.load``: opens a trained model for predictions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from gpunn import _core
from gpunn._arrays import float_for, host_array
from gpunn._core import Experiment, ModelInfo, ModelTensor, Prediction
from gpunn._experiment import PathLike, Settings, paths_of, settings_of
from gpunn._model_files import ModelFiles, write_files
from gpunn.errors import UsageError

Array: TypeAlias = "npt.NDArray[Any]"
Files: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_TYPES: dict[str, Any] = {"u8": np.uint8, "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


class Model:
    """A trained model. It is loaded once, its weights are on the device, and it needs no data set.

    Threads may call it at the same time; the interpreter's lock is released meanwhile. :func:`gpunn.load` opens one.
    Copies are the same model. A pickle has its files and the options of ``gpunn.load``, and opens it again elsewhere.
    """

    def __init__(self, core: _core.Model, files: ModelFiles, options: tuple[Any, ...]) -> None:
        self._core = core
        self._files = files
        self._options = options
        self._run = core.run
        self._dtypes = [np.dtype(_TYPES[tensor.dtype]) for tensor in core.inputs]
        self._dtype = self._dtypes[0]
        self._rank = len(core.inputs[0].shape) + 1
        self._single = len(self._dtypes) == 1
        self._numbers = {tensor.name: number for number, tensor in enumerate(core.outputs)}
        # What `run` gives by default: what the task makes of the outputs, else all of them.
        self._default = list(self._numbers)[-1:] if core.info.outputs else list(self._numbers)

    def __call__(self, x: Any) -> npt.NDArray[Any]:
        """``run(x)``."""
        return self.run(x)

    @overload
    def run(self, x: Any, outputs: str | None = None) -> npt.NDArray[Any]: ...
    @overload
    def run(self, x: Any, outputs: Iterable[str]) -> dict[str, npt.NDArray[Any]]: ...
    def run(self, x: Any, outputs: str | Iterable[str] | None = None) -> npt.NDArray[Any] | dict[str, npt.NDArray[Any]]:
        """What the model makes of samples.

        x: an array [rows, *info.input.shape] of the type ``info.input.dtype``, in the form in which the data set has
            its samples: images as uint8 [rows, C, H, W], 0 to 255, not normalised; rows of tables as numbers of any
            type, from which the mean is subtracted in float64. A single sample is a batch of one. Whatever numpy or
            DLPack on the host takes for an array is taken. A model of several inputs takes a dictionary with an array
            for each of ``inputs``, of as many rows.
        outputs: the name of one output, or several of them, which gives a dictionary. None: what the task makes of
            the first output, ``"probabilities"`` of classes and labels, ``"values"`` of a regression. A model without
            a task gives its output, or a dictionary of several. ``"logits"`` and ``"outputs"`` are the first output
            itself, unless the model names it.

        Returns [rows, *shape of the output] in its type: float32, or float64 for the ``"values"`` of scaled targets.
        Raises :class:`UsageError` where the names, the type or the shape are not the model's.
        """
        if self._single and type(x) is np.ndarray and x.dtype == self._dtype:
            arrays = [x if x.ndim == self._rank and x.flags.c_contiguous else self._shaped(x, self._core.inputs[0])]
        else:
            arrays = self._arrays(x)
        if outputs is None:
            outputs = self._default[0] if len(self._default) == 1 else self._default
        if isinstance(outputs, str):
            return self._run(arrays, [self._number(outputs)])[0]
        names = list(outputs)
        return dict(zip(names, self._run(arrays, [self._number(name) for name in names]), strict=True))

    def predict(
        self, x: Any = None, *, top: int = 3, rows: Sequence[int] = (), damaged: str = "error"
    ) -> list[Prediction]:
        """What the model says of samples, in words.

        x: an array as :meth:`run` takes it; or the path of an image, a folder of images, a CSV file with a row of
            features a line, a pattern as ``"*.png"``, or a list of such.
        top: so many classes are told of each, the most probable first.
        rows: of the test data, counted from 0, which is read for them.
        damaged: what becomes of damaged image files. "error": all are read, then one error names the damaged ones;
            "skip": they have no prediction; "repair": the pixels that can be read are used.
        """
        if top < 1:
            raise UsageError(f"top must be at least 1, is {top}")
        predictions: list[Prediction] = []
        if x is not None and not _are_files(x):
            predictions = self._core.predict(self._arrays(x), top)
            if not rows:
                return predictions
            x = None
        files = [] if x is None else [Path(one) for one in ([x] if isinstance(x, (str, os.PathLike)) else x)]
        return predictions + self._core.predict_files(files, list(rows), top, damaged)

    def explain(
        self, images: Any, class_: int | str | None = None, layer: str | None = None, method: str = "gradcam"
    ) -> npt.NDArray[np.float32]:
        """Which parts of images speak for a class: class activation maps.

        images: an array as :meth:`run` takes it, or the path of an image file, or a list of such.
        class_: its number or its name; None: of each image the class that the model predicts.
        layer: whose output is weighed; None: the last one with more than one row or column.
        method: "gradcam" (Selvaraju et al., 2017) or "gradcam++" (Chattopadhay et al., 2018).

        Returns float32 [rows, height, width] from 0 to 1, of the size of the model's images. A map of zeros says that
        nothing speaks for the class. Raises :class:`UsageError` where the model takes no images, or has no such class
        or layer.
        """
        if _are_files(images):
            paths = [images] if isinstance(images, (str, os.PathLike)) else images
            array: Array = self._core.read_images([Path(one) for one in paths])
        else:
            array = self._arrays(images)[0]
        index, name = (None, class_) if isinstance(class_, str) else (class_, "")
        return self._core.explain(array, None if index is None else int(index), name, layer or "", method)

    @property
    def info(self) -> ModelInfo:
        """Its task, its input and the names of its outputs."""
        return self._core.info

    @property
    def inputs(self) -> list[ModelTensor]:
        return self._core.inputs

    @property
    def outputs(self) -> list[ModelTensor]:
        return self._core.outputs

    @property
    def experiment(self) -> Experiment:
        """The experiment of its training."""
        return self._core.experiment

    @property
    def backend(self) -> str:
        return self._core.backend

    @property
    def device(self) -> str:
        """The name of the device."""
        return self._core.device

    @property
    def max_batch(self) -> int:
        """Rows that go to the device at a time; more are split."""
        return self._core.max_batch

    def __copy__(self) -> Model:
        return Model(self._core, self._files, self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.__copy__()  # nothing of a model changes

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._files.contents(), self._options)

    def __repr__(self) -> str:
        info = self.info
        return (
            f"<gpunn.Model {self.experiment.model}: {info.input.name} {info.input.dtype}{list(info.input.shape)} -> "
            f"{len(info.outputs)} {self.outputs[-1].name}, on {self.backend}>"
        )

    def _number(self, output: str) -> int:
        if output not in self._numbers:
            raise UsageError(f"the model has no output {output!r}; it has {', '.join(self._numbers)}")
        return self._numbers[output]

    def _arrays(self, x: Any) -> list[Array]:
        """An array for each input of the model."""
        inputs = self._core.inputs
        if isinstance(x, Mapping):
            named = {str(name): value for name, value in x.items()}
            missing = [tensor.name for tensor in inputs if tensor.name not in named]
            unknown = [name for name in named if all(name != tensor.name for tensor in inputs)]
            if missing or unknown:
                names = ", ".join(repr(tensor.name) for tensor in inputs)
                raise UsageError(
                    f"the model takes {names}; found no {missing[0]!r}"
                    if missing
                    else f"the model takes {names}; found {unknown[0]!r} too"
                )
            given = [named[tensor.name] for tensor in inputs]
        elif self._single:
            given = [x]
        else:
            names = ", ".join(f"{tensor.name!r}: ..." for tensor in inputs)
            raise UsageError(f"the model takes {len(inputs)} inputs; give a dictionary {{{names}}}")
        return [
            self._shaped(_converted(value, tensor, dtype), tensor)
            for value, tensor, dtype in zip(given, inputs, self._dtypes, strict=True)
        ]

    def _shaped(self, array: Array, tensor: ModelTensor) -> Array:
        sample = tuple(tensor.shape)
        if array.ndim == len(sample) and array.shape == sample:
            array = array[np.newaxis]
        elif array.ndim == 0 and sample == (1,):
            array = array.reshape(1, 1)
        return np.ascontiguousarray(array)


def _converted(x: Any, tensor: ModelTensor, dtype: np.dtype[Any]) -> Array:
    """Samples in the type of an input, if no value changes by more than rounding."""
    array = host_array(x, "x")
    if array.dtype == dtype:
        return array
    wanted = f"{dtype.name} [rows, {', '.join(str(size) for size in tensor.shape)}]"
    if array.dtype.kind not in ("biuf" if dtype.kind == "f" else "biu"):
        hint = "; images are not normalised: 0 to 255" if dtype == np.uint8 else ""
        raise UsageError(f"the model takes {wanted}, found {array.dtype}{list(array.shape)}{hint}")
    if dtype.kind in "iu" and array.size and array.dtype.kind != "b":
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise UsageError(
                f"the model takes {wanted}, found {array.dtype} with values from {array.min()} to {array.max()}"
            )
    return array.astype(float_for(array.dtype) if dtype.kind == "f" else dtype, copy=False)


def load(
    path: PathLike,
    *,
    backend: str | None = None,
    device: int | None = None,
    threads: int | None = None,
    max_batch: int = 64,
    plugins: Sequence[PathLike] = (),
    calls: int = 0,
    input_shape: Sequence[int] | None = None,
    set: Settings | None = None,
    without: Sequence[str] = (),
) -> Model:
    """Opens a trained model: a run, a run folder (its best checkpoint, else the last), a checkpoint, an engine
    (:func:`gpunn.export`) or an ONNX file, one in eight bits (:func:`gpunn.quantize`) among them.

    backend, device, threads: where it computes; None: as its training did.
    max_batch: rows that go to the device at a time.
    calls: that may run at the same time; 0: one a processor, at most 8.
    input_shape: sizes of the input of an ONNX file that leaves them open, with or without the batch.
    set: keys of its experiment to change.
    without: engine passes to leave out, by the names in ``gpunn plan --inference``.

    Raises :class:`MissingError` where the file, the backend or the device is not there.
    """
    settings = settings_of(set, input_shape=input_shape)
    return _opened(
        Path(path),
        (backend or "", device, threads, max_batch, paths_of(plugins), calls, settings, list(without)),
    )


def _opened(path: Path, options: tuple[Any, ...]) -> Model:
    files = ModelFiles(path)
    return Model(_core.Model.load(path, *options), files, options)


def _restored(contents: dict[str, bytes], options: tuple[Any, ...]) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        return _opened(write_files(contents, Path(folder)), options)


def predict(
    model: PathLike,
    x: Any = None,
    *,
    backend: str | None = None,
    top: int = 3,
    rows: Sequence[int] = (),
    damaged: str = "error",
    set: Settings | None = None,
) -> list[Prediction]:
    """``load(model).predict(x)``: to call a model more than once, load it."""
    return load(model, backend=backend, set=set).predict(x, top=top, rows=rows, damaged=damaged)


def _are_files(x: Any) -> bool:
    if isinstance(x, (str, os.PathLike)):
        return True
    return isinstance(x, (list, tuple)) and len(x) > 0 and all(isinstance(one, (str, os.PathLike)) for one in x)
