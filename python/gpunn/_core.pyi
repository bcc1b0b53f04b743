# Made by python/tools/make_stub.py with nanobind 3.1.0.
"""
The public C++ API of libgpunn. Use the package gpunn, which is built on it.
"""

from collections.abc import Callable, Sequence

from pathlib import Path

from typing import Any, TypeAlias

import numpy as np

import numpy.typing as npt

_Ends: TypeAlias = tuple[list[tuple[str, list[int], str]], list[tuple[str, str]]]

_Normalisations: TypeAlias = Sequence[tuple[Sequence[float], Sequence[float]]]

_Array: TypeAlias = tuple[int, int, Sequence[int], Sequence[int] | None]

from collections.abc import Sequence

import os

import pathlib

from typing import Annotated, Any

import numpy

from numpy.typing import NDArray

def version() -> str:
    """The version of libgpunn, as "0.2.0"."""

def build_record() -> str:
    """Compiler, flags and library versions, a line each."""

class Metric:
    """A number that says how good a model is."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str:
        """In experiments and records: "top5_accuracy"."""

    @property
    def title(self) -> str:
        """For readers: "top-5 accuracy"."""

    @property
    def larger_is_better(self) -> bool: ...

    @property
    def is_share(self) -> bool:
        """Lies between 0 and 1."""

class LossScale:
    """What a training in f16 multiplies its loss by."""

    def __repr__(self) -> str: ...

    @property
    def scale(self) -> float: ...

    @property
    def skipped_steps(self) -> int:
        """Steps so far whose gradients overflowed."""

class LoaderReport:
    """Of batches that the host makes or gathers while the device trains."""

    def __repr__(self) -> str: ...

    @property
    def samples_per_second(self) -> float:
        """While the host is at work."""

    @property
    def waited_seconds(self) -> float:
        """That the device had nothing to do because a batch was not there."""

class StepReport:
    """Where a training is. Times in seconds."""

    def __repr__(self) -> str: ...

    @property
    def epoch(self) -> int:
        """Counts from 1."""

    @property
    def epochs(self) -> int: ...

    @property
    def step(self) -> int:
        """Steps done in this epoch."""

    @property
    def steps(self) -> int:
        """Steps of an epoch."""

    @property
    def global_step(self) -> int:
        """Steps done in all."""

    @property
    def loss(self) -> float:
        """The running mean of this epoch."""

    @property
    def metrics(self) -> dict[str, float]:
        """By name, the most telling first; NaN if a metric is undefined."""

    @property
    def learning_rate(self) -> float: ...

    @property
    def samples_per_second(self) -> float: ...

    @property
    def seconds_left(self) -> float: ...

    @property
    def gradient_norm(self) -> float | None:
        """Of this step, where it is recorded."""

    @property
    def loss_scale(self) -> LossScale | None:
        """Of a training in f16."""

    def keys(self) -> list[str]: ...

    def __getitem__(self, arg: str, /) -> float: ...

    def __contains__(self, arg: object, /) -> bool: ...

class NonFiniteRows:
    """Evaluated rows whose outputs or loss are NaN or infinite."""

    def __repr__(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def first(self) -> int:
        """Counts from 0."""

    @property
    def cause(self) -> str:
        """The likely one."""

class EvalReport:
    """How a model does on data that it was not trained on."""

    def __repr__(self) -> str: ...

    @property
    def part(self) -> str:
        """"test" or "validation"."""

    @property
    def loss(self) -> float: ...

    @property
    def metrics(self) -> dict[str, float]:
        """By name, the most telling first; NaN if a metric is undefined."""

    @property
    def rows(self) -> int: ...

    @property
    def seconds(self) -> float: ...

    @property
    def non_finite(self) -> NonFiniteRows | None:
        """Of an evaluation that looks at each row, as gpunn.evaluate does."""

    def keys(self) -> list[str]: ...

    def __getitem__(self, arg: str, /) -> float: ...

    def __contains__(self, arg: object, /) -> bool: ...

class EpochReport:
    """An epoch that is over."""

    def __repr__(self) -> str: ...

    @property
    def epoch(self) -> int:
        """Counts from 1."""

    @property
    def global_step(self) -> int: ...

    @property
    def train_loss(self) -> float: ...

    @property
    def train_metrics(self) -> dict[str, float]:
        """By name, the most telling first; NaN if a metric is undefined."""

    @property
    def evaluation(self) -> EvalReport: ...

    @property
    def learning_rate(self) -> float: ...

    @property
    def train_seconds(self) -> float: ...

    @property
    def samples_per_second(self) -> float: ...

    @property
    def best(self) -> bool:
        """The best epoch so far, by checkpoint.monitor."""

    @property
    def loss_scale(self) -> LossScale | None:
        """Of a training in f16."""

    @property
    def loader(self) -> LoaderReport | None:
        """Where the host makes or gathers the batches."""

    def keys(self) -> list[str]: ...

    def __getitem__(self, arg: str, /) -> float: ...

    def __contains__(self, arg: object, /) -> bool: ...

class ProfiledOp:
    """An op of the training step, over all measured steps. Times in seconds."""

    def __repr__(self) -> str: ...

    @property
    def op(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def count(self) -> int: ...

    @property
    def seconds(self) -> float: ...

    @property
    def share(self) -> float: ...

    @property
    def flops(self) -> float: ...

    @property
    def bytes(self) -> float: ...

    @property
    def gflops(self) -> float: ...

    @property
    def gigabytes(self) -> float: ...

    @property
    def ceiling_share(self) -> float: ...

class ProfileReport:
    """Where the time of training steps goes. Times in seconds."""

    def __repr__(self) -> str: ...

    @property
    def file(self) -> pathlib.Path: ...

    @property
    def backend(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def steps(self) -> int: ...

    @property
    def step_seconds(self) -> float: ...

    @property
    def whole_step_seconds(self) -> float: ...

    @property
    def captured(self) -> bool: ...

    @property
    def subgraphs(self) -> list[str]: ...

    @property
    def ceiling_gflops(self) -> float: ...

    @property
    def ceiling_gigabytes(self) -> float: ...

    @property
    def ops(self) -> list[ProfiledOp]: ...

class BackendComparison:
    """Of backend "check:A,B": how far B came from A, which trained."""

    def __repr__(self) -> str: ...

    @property
    def trained(self) -> str: ...

    @property
    def checked(self) -> str: ...

    @property
    def steps(self) -> int: ...

    @property
    def op_error(self) -> float: ...

    @property
    def op(self) -> str: ...

    @property
    def parameter_difference(self) -> float: ...

    @property
    def parameter(self) -> str: ...

class RunResult:
    """What a training ends with. Times in seconds."""

    def __repr__(self) -> str: ...

    @property
    def run(self) -> pathlib.Path:
        """The run folder."""

    @property
    def backend(self) -> str: ...

    @property
    def epochs(self) -> list[EpochReport]:
        """Those of this call."""

    @property
    def final_evaluation(self) -> EvalReport: ...

    @property
    def monitor(self) -> Metric:
        """What best_metric is."""

    @property
    def best_metric(self) -> float:
        """NaN without a best epoch."""

    @property
    def best_epoch(self) -> int:
        """0: there is none."""

    @property
    def stopped_early(self) -> bool: ...

    @property
    def interrupted(self) -> bool: ...

    @property
    def train_seconds(self) -> float:
        """Of the steps alone."""

    @property
    def total_seconds(self) -> float: ...

    @property
    def arena_bytes(self) -> int: ...

    @property
    def persistent_bytes(self) -> int: ...

    @property
    def data_bytes(self) -> int: ...

    @property
    def profile(self) -> ProfileReport | None: ...

    @property
    def comparison(self) -> BackendComparison | None: ...

class Experiment:
    """An experiment that was read and checked."""

    @property
    def name(self) -> str: ...

    @property
    def task(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def epochs(self) -> int: ...

    @property
    def seed(self) -> int: ...

    @property
    def model(self) -> str:
        """The name of its model."""

    @property
    def dataset(self) -> str:
        """The name of its data set."""

    @property
    def runs(self) -> pathlib.Path:
        """The folder of run folders."""

    @runs.setter
    def runs(self, arg: str | os.PathLike[str], /) -> None: ...

    @property
    def plugins(self) -> list[pathlib.Path]:
        """Files and folders to find backends in, besides the usual ones."""

    @plugins.setter
    def plugins(self, arg: Sequence[str | os.PathLike[str]], /) -> None: ...

    @property
    def kernels(self) -> list[str]:
        """Wanted by name, as "gemm:3"."""

    @kernels.setter
    def kernels(self, arg: Sequence[str], /) -> None: ...

    def yaml(self) -> str:
        """One YAML document with every key, and the model inline."""

    def __repr__(self) -> str: ...

def load_experiment(file: str | os.PathLike[str], settings: Sequence[tuple[str, str]] = []) -> Experiment:
    """Reads an experiment's file and checks it."""

def parse_experiment(text: str, origin: str, settings: Sequence[tuple[str, str]] = []) -> Experiment:
    """
    Reads an experiment from YAML and checks it. Files that it names are looked for from the working directory; errors call it `origin`.
    """

def data_settings(name: str) -> list[tuple[str, str]]:
    """
    The keys of the data that an experiment's file or a data set's name stands for.
    """

def train(experiment: Experiment, listener: object | None, run_folder: str | os.PathLike[str], profile: tuple[str | os.PathLike[str], int] | None, program: str | os.PathLike[str]) -> RunResult:
    """Trains in a new run folder; an empty one is <runs>/<name>/<time>."""

def resume(run: str | os.PathLike[str], settings: Sequence[tuple[str, str]], listener: object | None, profile: tuple[str | os.PathLike[str], int] | None, program: str | os.PathLike[str], keep_schedule: bool) -> RunResult:
    """Goes on from the last checkpoint of a run folder, in the same folder."""

class ClassReport:
    """One class of the evaluated data."""

    def __repr__(self) -> str: ...

    @property
    def index(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> int:
        """Of this class."""

    @property
    def predicted(self) -> int:
        """Taken for this class, rightly or not."""

    @property
    def correct(self) -> int:
        """Both."""

    @property
    def precision(self) -> float: ...

    @property
    def recall(self) -> float: ...

    @property
    def f1(self) -> float: ...

class Mistake:
    """A row that was taken for another class than its own."""

    def __repr__(self) -> str: ...

    @property
    def row(self) -> int:
        """Counts from 0."""

    @property
    def label(self) -> int: ...

    @property
    def predicted(self) -> int: ...

    @property
    def probability(self) -> float:
        """Of the predicted class."""

    @property
    def label_probability(self) -> float:
        """Of its own class."""

    @property
    def loss(self) -> float: ...

class OutputReport:
    """A target column, a label or a class of pixels of the evaluated data."""

    def __repr__(self) -> str: ...

    @property
    def index(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> int | None:
        """Of a label: the rows that have it. Of a class of pixels: its pixels."""

    @property
    def metrics(self) -> dict[str, float]:
        """By name, the most telling first; NaN if a metric is undefined."""

class DetectedClass:
    """One class of evaluated images with boxes. NaN without objects."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def objects(self) -> int: ...

    @property
    def detections(self) -> int: ...

    @property
    def ap(self) -> float:
        """VOC's average precision at an overlap of 0.5."""

    @property
    def coco_ap(self) -> float:
        """COCO's: the mean over the overlaps 0.5, 0.55, ..., 0.95."""

class RowReport:
    """A row that was foretold badly."""

    def __repr__(self) -> str: ...

    @property
    def row(self) -> int:
        """Counts from 0."""

    @property
    def loss(self) -> float: ...

    @property
    def target(self) -> str: ...

    @property
    def prediction(self) -> str: ...

class ClassEvalReport:
    """A model on its test data, class by class or output by output."""

    def __repr__(self) -> str: ...

    @property
    def total(self) -> EvalReport: ...

    @property
    def classes(self) -> list[ClassReport]: ...

    @property
    def macro_precision(self) -> float: ...

    @property
    def macro_recall(self) -> float: ...

    @property
    def macro_f1(self) -> float: ...

    @property
    def mistakes(self) -> list[Mistake]:
        """Those with the largest loss, by falling loss."""

    @property
    def outputs(self) -> list[OutputReport]:
        """Of data without classes."""

    @property
    def detected_classes(self) -> list[DetectedClass]:
        """Of images with boxes."""

    @property
    def figures(self) -> dict[str, float]:
        """
        Of images with boxes: COCO's and VOC's figures by name; NaN if undefined.
        """

    @property
    def worst_rows(self) -> list[RowReport]:
        """Likewise: those with the largest loss, by falling loss."""

    @property
    def confusion(self) -> NDArray[numpy.int64]:
        """
        int64 [classes, classes]: counts by the true class, and within it by the predicted one. Of boxes the last row and column are for no object. Empty without classes, or with more than 4096.
        """

    @property
    def target_values(self) -> NDArray[numpy.float64]:
        """float64 [rows, outputs] of a regression, in the units of the data."""

    @property
    def predicted_values(self) -> NDArray[numpy.float64]:
        """float64 [rows, outputs] of a regression, in the units of the data."""

def evaluate(path: str | os.PathLike[str], settings: Sequence[tuple[str, str]], mistakes: int, listener: object | None) -> ClassEvalReport:
    """A run folder or checkpoint on its test data."""

def write_report(run: str | os.PathLike[str], file: str | os.PathLike[str], settings: Sequence[tuple[str, str]], mistakes: int, listener: object | None) -> pathlib.Path:
    """
    Writes what there is to see of a run as one HTML page; returns the file.
    """

class ExportReport:
    """A file of weights that was written."""

    def __repr__(self) -> str: ...

    @property
    def file(self) -> pathlib.Path: ...

    @property
    def tensors(self) -> int: ...

    @property
    def numbers(self) -> int: ...

    @property
    def unnamed(self) -> list[str]:
        """Tensors that the table of names has no row for."""

def export_weights(model: str | os.PathLike[str], file: str | os.PathLike[str], names: str | os.PathLike[str], settings: Sequence[tuple[str, str]]) -> ExportReport:
    """Writes weights as a .safetensors file."""

class OnnxExportReport:
    """An ONNX model that was written."""

    def __repr__(self) -> str: ...

    @property
    def file(self) -> pathlib.Path: ...

    @property
    def data(self) -> pathlib.Path:
        """The file with the weights; empty where the model has them."""

    @property
    def opset(self) -> int: ...

    @property
    def ir_version(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def tensors(self) -> int: ...

    @property
    def numbers(self) -> int: ...

    @property
    def warnings(self) -> list[str]:
        """Columns that the file's float32 rounds too coarsely."""

def export_onnx(model: str | os.PathLike[str], file: str | os.PathLike[str], opset: int, raw_input: bool, with_preprocessing: bool, fold_batch_norm: bool, external_data: bool, settings: Sequence[tuple[str, str]]) -> OnnxExportReport:
    """Writes a model as an ONNX file."""

class EngineExportReport:
    """An engine that was written."""

    def __repr__(self) -> str: ...

    @property
    def file(self) -> pathlib.Path: ...

    @property
    def backend(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def batches(self) -> list[int]:
        """The numbers of rows that there is a program for."""

    @property
    def ops(self) -> int: ...

    @property
    def constants(self) -> int: ...

    @property
    def file_bytes(self) -> int: ...

def export_engine(model: str | os.PathLike[str], file: str | os.PathLike[str], batches: Sequence[int], settings: Sequence[tuple[str, str]]) -> EngineExportReport:
    """Writes a model as an engine, planned for one device."""

class ModelTensor:
    """An input or output of a model; a batch is [rows, *shape]."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row."""

    @property
    def dtype(self) -> str:
        """"u8", "f32", ..."""

class Field:
    """A named part of every sample: an input, a target, a weight or an id."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str:
        """"input", "target", "weight" or "id"."""

    @property
    def kind(self) -> str:
        """"image", "numbers", "class", ..."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample: (C, H, W) or (features,)."""

    @property
    def dtype(self) -> str:
        """"u8", "f32", "i32", ..."""

    @property
    def mean(self) -> list[float]:
        """By channel or feature, of values scaled by 1/255 where u8."""

    @property
    def stddev(self) -> list[float]: ...

    @property
    def names(self) -> list[str]:
        """The names of the classes, labels or columns; empty: they have none."""

    @property
    def ids(self) -> list[int]:
        """COCO's category id of each class; empty: the data has none."""

    @property
    def columns(self) -> list[str]:
        """The same as `names`, of an input."""

class ModelInfo:
    """What a trained model is."""

    def __repr__(self) -> str: ...

    @property
    def task(self) -> str: ...

    @property
    def fields(self) -> list[Field]:
        """All inputs and targets."""

    @property
    def input(self) -> Field:
        """The first input."""

    @property
    def outputs(self) -> list[str]:
        """The names of classes, labels or numbers."""

    @property
    def output_ids(self) -> list[int]:
        """COCO's category id of each class; empty if the data has none."""

class ClassProbability:
    """A class, and how probable it is."""

    def __repr__(self) -> str: ...

    @property
    def index(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def probability(self) -> float: ...

    def __getstate__(self) -> tuple[int, str, float]: ...

    def __setstate__(self, arg: tuple[int, str, float], /) -> None: ...

class NamedValue:
    """A number of a regression, in the units of the data."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> float: ...

    def __getstate__(self) -> tuple[str, float]: ...

    def __setstate__(self, arg: tuple[str, float], /) -> None: ...

class DetectedBox:
    """An object in an image."""

    def __repr__(self) -> str: ...

    @property
    def left(self) -> float:
        """In pixels."""

    @property
    def top(self) -> float: ...

    @property
    def right(self) -> float: ...

    @property
    def bottom(self) -> float: ...

    @property
    def index(self) -> int:
        """Of its class."""

    @property
    def name(self) -> str: ...

    @property
    def score(self) -> float: ...

    def __getstate__(self) -> tuple[float, float, float, float, int, str, float]: ...

    def __setstate__(self, arg: tuple[float, float, float, float, int, str, float], /) -> None: ...

class LabelMap:
    """The class of each pixel of an image."""

    def __repr__(self) -> str: ...

    @property
    def height(self) -> int: ...

    @property
    def width(self) -> int: ...

    @property
    def classes(self) -> NDArray[numpy.uint8]:
        """uint8 [height, width]. 255: the model did not see the pixel."""

    def __getstate__(self) -> tuple[int, int, list[int]]: ...

    def __setstate__(self, arg: tuple[int, int, Sequence[int]], /) -> None: ...

class Prediction:
    """What a model makes of a sample."""

    def __repr__(self) -> str: ...

    @property
    def source(self) -> str:
        """The file, "table.csv:12" of a line, or "row 7"."""

    @property
    def top(self) -> list[ClassProbability]:
        """
        Of classes or labels: the most probable first. Of a segmentation: the shares of the classes.
        """

    @property
    def values(self) -> list[NamedValue]:
        """Of a regression."""

    @property
    def label(self) -> int | None:
        """Where it is known."""

    @property
    def boxes(self) -> list[DetectedBox]:
        """
        Of a detection, the most certain first: in pixels of the image file or row.
        """

    @property
    def map(self) -> LabelMap | None:
        """Of a segmentation: in pixels of the image file or row."""

    def __getstate__(self) -> tuple[str, list[ClassProbability], list[NamedValue], int | None, list[DetectedBox], LabelMap | None]: ...

    def __setstate__(self, arg: tuple[str, Sequence[ClassProbability], Sequence[NamedValue], int | None, Sequence[DetectedBox], LabelMap | None], /) -> None: ...

class Model:
    """A trained model, loaded once. Threads may call it at the same time."""

    @staticmethod
    def load(path: str | os.PathLike[str], backend: str = '', device: int | None = None, threads: int | None = None, max_batch: int = 64, plugins: Sequence[str | os.PathLike[str]] = [], calls: int = 0, settings: Sequence[tuple[str, str]] = [], without: Sequence[str] = []) -> Model: ...

    def run(self, inputs: Sequence[Annotated[NDArray[Any], dict(device='cpu', writable=False)]], outputs: Sequence[int]) -> list[NDArray[Any]]:
        """
        The outputs of those numbers for an array [rows, ...] for each input, in host memory, packed.
        """

    def predict(self, inputs: Sequence[Annotated[NDArray[Any], dict(device='cpu', writable=False)]], top: int) -> list[Prediction]: ...

    def predict_files(self, files: Sequence[str | os.PathLike[str]], rows: Sequence[int], top: int, damaged: str) -> list[Prediction]: ...

    def explain(self, input: Annotated[NDArray[Any], dict(device='cpu', writable=False)], class_index: int | None, class_name: str, layer: str, method: str) -> NDArray[numpy.float32]: ...

    def read_images(self, files: Sequence[str | os.PathLike[str]]) -> NDArray[numpy.uint8]: ...

    @property
    def info(self) -> ModelInfo: ...

    @property
    def experiment(self) -> Experiment: ...

    @property
    def inputs(self) -> list[ModelTensor]: ...

    @property
    def outputs(self) -> list[ModelTensor]: ...

    @property
    def max_batch(self) -> int: ...

    @property
    def backend(self) -> str: ...

    @property
    def device(self) -> str: ...

class QuantizedLayer:
    """A tensor in eight bits."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str:
        """Of the layer that gives it."""

    @property
    def scale(self) -> float:
        """What one step of the integer stands for."""

    @property
    def zero_point(self) -> int:
        """The integer that stands for 0."""

    @property
    def decibels(self) -> float:
        """Of the tensor over its error."""

class QuantizeReport:
    """What was put in eight bits, and what it costs."""

    def __repr__(self) -> str: ...

    @property
    def file(self) -> pathlib.Path:
        """The ONNX file."""

    @property
    def images(self) -> int:
        """Samples of the calibration."""

    @property
    def from_cache(self) -> bool: ...

    @property
    def layers(self) -> list[QuantizedLayer]: ...

    @property
    def convolutions(self) -> list[str]:
        """Those that run in eight bits."""

    @property
    def dense(self) -> list[str]:
        """Dense layers that run in eight bits."""

    @property
    def rows(self) -> int:
        """Test rows that the figures are of."""

    @property
    def metric(self) -> str | None:
        """The metric that decides, by its name; None where nothing was measured."""

    @property
    def before(self) -> float | None:
        """The metric of the model itself."""

    @property
    def after(self) -> float | None:
        """The metric of the model in eight bits."""

    @property
    def lost(self) -> float | None:
        """Points of a metric in percent, else percent of its value before."""

    @property
    def not_measured(self) -> str:
        """Why nothing was measured; else empty."""

    @property
    def accuracy_before(self) -> float | None:
        """0 to 1; None where there are no classes."""

    @property
    def accuracy_after(self) -> float | None:
        """0 to 1; None where there are no classes."""

def quantize(model: str | os.PathLike[str], file: str | os.PathLike[str], method: str, percentile: float, images: int, part: str, most_lost: float | None, cache: str | os.PathLike[str], settings: Sequence[tuple[str, str]], listener: object | None) -> QuantizeReport:
    """
    Writes a model whose convolutions and dense layers are in eight bits as an ONNX file.
    """

class StylizeRequest:
    """A picture to paint."""

    def __init__(self) -> None: ...

    @property
    def content(self) -> pathlib.Path: ...

    @content.setter
    def content(self, arg: str | os.PathLike[str], /) -> None: ...

    @property
    def style(self) -> pathlib.Path: ...

    @style.setter
    def style(self, arg: str | os.PathLike[str], /) -> None: ...

    @property
    def to(self) -> pathlib.Path: ...

    @to.setter
    def to(self, arg: str | os.PathLike[str], /) -> None: ...

    @property
    def features(self) -> str: ...

    @features.setter
    def features(self, arg: str, /) -> None: ...

    @property
    def weights(self) -> pathlib.Path: ...

    @weights.setter
    def weights(self, arg: str | os.PathLike[str], /) -> None: ...

    def set_colours(self, arg: str, /) -> None: ...

    @property
    def content_layers(self) -> list[str]: ...

    @content_layers.setter
    def content_layers(self, arg: Sequence[str], /) -> None: ...

    @property
    def style_layers(self) -> list[str]: ...

    @style_layers.setter
    def style_layers(self, arg: Sequence[str], /) -> None: ...

    @property
    def steps(self) -> int: ...

    @steps.setter
    def steps(self, arg: int, /) -> None: ...

    @property
    def optimizer(self) -> str: ...

    @optimizer.setter
    def optimizer(self, arg: str, /) -> None: ...

    @property
    def learning_rate(self) -> float | None: ...

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | None) -> None: ...

    @property
    def history(self) -> int: ...

    @history.setter
    def history(self, arg: int, /) -> None: ...

    @property
    def content_weight(self) -> float | None: ...

    @content_weight.setter
    def content_weight(self, content_weight: float | None) -> None: ...

    @property
    def style_weight(self) -> float | None: ...

    @style_weight.setter
    def style_weight(self, style_weight: float | None) -> None: ...

    @property
    def variation_weight(self) -> float: ...

    @variation_weight.setter
    def variation_weight(self, arg: float, /) -> None: ...

    @property
    def original_colours(self) -> bool: ...

    @original_colours.setter
    def original_colours(self, arg: bool, /) -> None: ...

    @property
    def from_noise(self) -> bool: ...

    @from_noise.setter
    def from_noise(self, arg: bool, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def size(self) -> int: ...

    @size.setter
    def size(self, arg: int, /) -> None: ...

    @property
    def style_size(self) -> int: ...

    @style_size.setter
    def style_size(self, arg: int, /) -> None: ...

    @property
    def preview_every(self) -> int: ...

    @preview_every.setter
    def preview_every(self, arg: int, /) -> None: ...

    def set_precision(self, arg: str, /) -> None: ...

    @property
    def backend(self) -> str: ...

    @backend.setter
    def backend(self, arg: str, /) -> None: ...

    @property
    def device(self) -> int: ...

    @device.setter
    def device(self, arg: int, /) -> None: ...

    @property
    def threads(self) -> int: ...

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

class StyleLosses:
    """The weighted losses of a picture while it is painted."""

    def __repr__(self) -> str: ...

    @property
    def total(self) -> float: ...

    @property
    def content(self) -> float: ...

    @property
    def style(self) -> float: ...

    @property
    def variation(self) -> float: ...

class StylizeReport:
    """How far a painting is."""

    def __repr__(self) -> str: ...

    @property
    def step(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def losses(self) -> StyleLosses:
        """In front of the step."""

    @property
    def seconds(self) -> float: ...

class StylizedImage:
    """A picture that was painted, and how its loss fell."""

    def __repr__(self) -> str: ...

    @property
    def to(self) -> pathlib.Path:
        """The PNG file."""

    @property
    def height(self) -> int: ...

    @property
    def width(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def first(self) -> StyleLosses:
        """Losses of the start."""

    @property
    def last(self) -> StyleLosses:
        """Losses of the result."""

    @property
    def seconds(self) -> float:
        """In the steps."""

    @property
    def notes(self) -> list[str]: ...

    @property
    def history(self) -> list[float]:
        """The total in front of each step."""

class PaintedImage:
    """An image that a trained network painted in one style."""

    def __repr__(self) -> str: ...

    @property
    def source(self) -> pathlib.Path: ...

    @property
    def to(self) -> pathlib.Path:
        """The PNG file."""

    @property
    def height(self) -> int: ...

    @property
    def width(self) -> int: ...

    @property
    def style(self) -> int:
        """Counts from 0."""

    @property
    def seconds(self) -> float:
        """In the model, for all styles."""

    @property
    def notes(self) -> list[str]:
        """What of the picture the result does not have."""

def stylize(request: StylizeRequest, report: object | None) -> StylizedImage:
    """Paints a picture in the style of another."""

def paint(model: str | os.PathLike[str], images: Sequence[str | os.PathLike[str]], to: str | os.PathLike[str], size: int, style: int | None, original_colours: bool, damaged: str, settings: Sequence[tuple[str, str]]) -> list[PaintedImage]:
    """Paints images by a trained network."""

class PlannedTensor:
    """A tensor of a training step, and where it lies."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str:
        """"f32[128, 10]"."""

    @property
    def storage(self) -> str: ...

    @property
    def offset(self) -> int:
        """In its storage, in bytes."""

    @property
    def bytes(self) -> int: ...

    @property
    def first_op(self) -> int: ...

    @property
    def last_op(self) -> int: ...

class PlannedOp:
    """An op of a training step."""

    def __repr__(self) -> str: ...

    @property
    def op(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def kernel(self) -> str:
        """The wanted one; empty: the backend's own choice."""

    @property
    def refusal(self) -> str:
        """Why the plugins above `backend` do not run it."""

    @property
    def attributes(self) -> str: ...

    @property
    def inputs(self) -> list[str]: ...

    @property
    def outputs(self) -> list[str]: ...

    @property
    def workspace_bytes(self) -> int: ...

    @property
    def flops(self) -> float: ...

    @property
    def subgraph(self) -> int:
        """Its fused subgraph, an index; -1: none."""

class PlannedSubgraph:
    """Consecutive ops that a plugin fuses."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def first_op(self) -> int: ...

    @property
    def last_op(self) -> int: ...

    @property
    def workspace_bytes(self) -> int: ...

class PlanReport:
    """A training step as it would run."""

    def __repr__(self) -> str: ...

    @property
    def notice(self) -> str: ...

    @property
    def data(self) -> str: ...

    @property
    def start(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def chain(self) -> list[str]:
        """The backend and its bases."""

    @property
    def ops(self) -> list[PlannedOp]: ...

    @property
    def subgraphs(self) -> list[PlannedSubgraph]: ...

    @property
    def not_fused(self) -> list[str]: ...

    @property
    def tensors(self) -> list[PlannedTensor]: ...

    @property
    def parameters(self) -> int: ...

    @property
    def trainable(self) -> int: ...

    @property
    def arena_bytes(self) -> int: ...

    @property
    def persistent_bytes(self) -> int: ...

    @property
    def data_bytes(self) -> int: ...

    @property
    def residency(self) -> str: ...

    @property
    def peak_bytes(self) -> int: ...

class SchedulePoint:
    """A step at which a learning rate begins, turns or ends."""

    def __repr__(self) -> str: ...

    @property
    def step(self) -> int:
        """Counts from 1."""

    @property
    def epoch(self) -> float: ...

    @property
    def learning_rate(self) -> float: ...

    @property
    def what(self) -> str: ...

class ScheduleReport:
    """The learning rates that a training will have."""

    def __repr__(self) -> str: ...

    @property
    def notice(self) -> str: ...

    @property
    def experiment(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def steps_per_epoch(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def reacts(self) -> bool: ...

    @property
    def points(self) -> list[SchedulePoint]: ...

    @property
    def learning_rates(self) -> list[float]:
        """Of each step."""

class SummaryLayer:
    """A layer of a model. FLOPs are of one batch."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def output(self) -> tuple[int, ...]:
        """The shape of a batch."""

    @property
    def parameters(self) -> int: ...

    @property
    def trainable(self) -> int: ...

    @property
    def buffers(self) -> int: ...

    @property
    def forward_flops(self) -> float: ...

    @property
    def step_flops(self) -> float: ...

class SummaryReport:
    """What a model is made of, and what training it takes."""

    def __repr__(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def data(self) -> str: ...

    @property
    def start(self) -> str: ...

    @property
    def notice(self) -> str: ...

    @property
    def sample(self) -> tuple[int, ...]:
        """(C, H, W) or (features,)."""

    @property
    def batch_size(self) -> int: ...

    @property
    def samples_per_step(self) -> int: ...

    @property
    def layers(self) -> list[SummaryLayer]: ...

    @property
    def parameters(self) -> int: ...

    @property
    def trainable(self) -> int: ...

    @property
    def buffers(self) -> int: ...

    @property
    def forward_flops(self) -> float: ...

    @property
    def step_flops(self) -> float: ...

    @property
    def parameter_bytes(self) -> int: ...

    @property
    def gradient_bytes(self) -> int: ...

    @property
    def optimizer_bytes(self) -> int: ...

    @property
    def activation_bytes(self) -> int: ...

    @property
    def total_bytes(self) -> int: ...

def plan(experiment: Experiment) -> PlanReport:
    """Plans a training step without running it."""

def plan_schedule(experiment: Experiment) -> ScheduleReport:
    """The learning rates that a training will have."""

def summary(file: str | os.PathLike[str], settings: Sequence[tuple[str, str]], input: Sequence[int]) -> SummaryReport:
    """What a model is made of. No device is touched."""

class RaceEntry:
    """One backend's part in a race. Times in seconds."""

    def __repr__(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def failure(self) -> str:
        """Why it did not finish; empty: it did."""

    @property
    def finished(self) -> bool: ...

    @property
    def steps(self) -> int: ...

    @property
    def step_seconds(self) -> float: ...

    @property
    def samples_per_second(self) -> float: ...

    @property
    def speed_up(self) -> float:
        """Over the first entry that finished; 0: unknown."""

    @property
    def peak_bytes(self) -> int: ...

    @property
    def result(self) -> RunResult:
        """As far as it came."""

    @property
    def losses(self) -> list[float]:
        """Of each step."""

class RaceReport:
    """The same experiment on one backend after another."""

    def __repr__(self) -> str: ...

    @property
    def experiment(self) -> str: ...

    @property
    def folder(self) -> pathlib.Path:
        """Of the run folders."""

    @property
    def chart(self) -> pathlib.Path:
        """The SVG file of the learning curves."""

    @property
    def entries(self) -> list[RaceEntry]:
        """In the order in which they ran."""

    @property
    def ok(self) -> bool:
        """Every entry finished."""

    @property
    def interrupted(self) -> bool: ...

def race(experiment: Experiment, backends: Sequence[str], chart: str | os.PathLike[str], listener: object | None) -> RaceReport:
    """Trains an experiment on one backend after another."""

class BenchReport:
    """An experiment's training step, timed. Times in seconds."""

    def __repr__(self) -> str: ...

    @property
    def what(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def notice(self) -> str: ...

    @property
    def repeats(self) -> int: ...

    @property
    def median_seconds(self) -> float: ...

    @property
    def min_seconds(self) -> float: ...

    @property
    def max_seconds(self) -> float: ...

    @property
    def gflops(self) -> float: ...

    @property
    def samples_per_second(self) -> float: ...

    @property
    def peak_bytes(self) -> int: ...

    @property
    def arena_bytes(self) -> int: ...

    @property
    def persistent_bytes(self) -> int: ...

    @property
    def data_bytes(self) -> int: ...

    @property
    def allocations(self) -> int: ...

    @property
    def synchronizations(self) -> int: ...

    @property
    def captured(self) -> bool: ...

    @property
    def eager_reason(self) -> str: ...

class OpBenchRow:
    """One op by one backend and kernel. Times in seconds."""

    def __repr__(self) -> str: ...

    @property
    def op(self) -> str: ...

    @property
    def shape(self) -> str: ...

    @property
    def precision(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def served_by(self) -> str: ...

    @property
    def kernel(self) -> str:
        """The named one; empty: the plugin's own choice."""

    @property
    def failure(self) -> str:
        """Why it was not measured; empty: it was."""

    @property
    def repeats(self) -> int: ...

    @property
    def runs(self) -> int: ...

    @property
    def captured(self) -> bool: ...

    @property
    def median_seconds(self) -> float: ...

    @property
    def min_seconds(self) -> float: ...

    @property
    def max_seconds(self) -> float: ...

    @property
    def flops(self) -> float: ...

    @property
    def bytes(self) -> float: ...

    @property
    def teraflops(self) -> float: ...

    @property
    def gigabytes(self) -> float: ...

    @property
    def speed_up(self) -> float:
        """Over the first backend's row; 0: unknown."""

    @property
    def ceiling_share(self) -> float:
        """0: unknown."""

    @property
    def error(self) -> float:
        """Against float64; negative: not known."""

    @property
    def error_allowed(self) -> float: ...

    @property
    def wrong(self) -> str:
        """What is beyond the tolerance; empty: nothing."""

class OpBenchReport:
    """Ops of the catalogue, timed."""

    def __repr__(self) -> str: ...

    @property
    def rows(self) -> list[OpBenchRow]: ...

    @property
    def ok(self) -> bool:
        """Nothing is wrong, and something was measured."""

def bench_experiment(experiment: Experiment, repeats: int, warmup: int) -> BenchReport:
    """Times the training step of an experiment."""

def bench_ops(what: Sequence[tuple[str, str]], backends: Sequence[str], plugins: Sequence[str | os.PathLike[str]], kernels: Sequence[str], precisions: Sequence[str], dtype: str, layout: str, repeats: int, warmup: int, threads: int, cold: bool, ceilings: bool, seed: int, chart: str | os.PathLike[str]) -> OpBenchReport:
    """Times ops, each given by its name and shape."""

def bench_op_names() -> list[str]:
    """The ops that can be timed."""

def bench_preset(name: str) -> list[tuple[str, str]]:
    """The ops and shapes of a preset."""

def bench_presets() -> list[str]:
    """The names of presets."""

class CheckCase:
    """One case of the conformance suites."""

    def __repr__(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def suite(self) -> str: ...

    @property
    def op(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def kernel(self) -> str: ...

    @property
    def plugin(self) -> str: ...

    @property
    def refusal(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def verdict(self) -> str: ...

    @property
    def detail(self) -> str:
        """Of a failure: where, expected, found, tolerance."""

    @property
    def error(self) -> float:
        """The largest, in units of the tolerance."""

    @property
    def seconds(self) -> float: ...

    @property
    def gflops(self) -> float: ...

    @property
    def gigabytes(self) -> float: ...

class CheckReport:
    """Whether a backend's kernels are right."""

    def __repr__(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def passed(self) -> int: ...

    @property
    def failed(self) -> int: ...

    @property
    def skipped(self) -> int: ...

    @property
    def ok(self) -> bool: ...

    @property
    def cases(self) -> list[CheckCase]: ...

def check(backend: str, plugins: Sequence[str | os.PathLike[str]], suites: Sequence[str], ops: Sequence[str], cases: Sequence[str], without: Sequence[str], kernels: Sequence[str], profile: str, precision: str, reference: str, seed: int, threads: int, strict: bool, limit_seconds: int, on_case: object | None) -> CheckReport:
    """Runs the conformance suites. The backend is opened in child processes."""

def check_suites() -> list[str]:
    """The names of suites."""

def check_ops() -> list[str]:
    """The names of ops."""

def check_profiles() -> list[tuple[str, str]]:
    """The names of profiles, and what each requires."""

class DatasetInfo:
    """A data set that experiments may name."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def synthetic(self) -> bool:
        """Drawn by gpunn: it needs no files."""

    @property
    def users_own(self) -> bool:
        """Read from data.path."""

    @property
    def found(self) -> pathlib.Path | None:
        """Its folder; None: it is not on this machine."""

    @property
    def searched(self) -> list[pathlib.Path]: ...

def list_datasets() -> list[DatasetInfo]:
    """The data sets that experiments may name."""

def download_dataset(name: str) -> pathlib.Path:
    """Fetches a data set into the user's cache folder, and returns that."""

class Dataset:
    """A data set in host memory, as numpy arrays that are copies."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def class_names(self) -> list[str]: ...

    @property
    def fields(self) -> list[Field]: ...

    @property
    def columns(self) -> list[str]:
        """The names of the features; empty: they have none."""

    @property
    def x_train(self) -> NDArray[Any]:
        """uint8, float32 or float64 [rows, C, H, W] or [rows, features]."""

    @property
    def y_train(self) -> NDArray[Any]:
        """
        Classes, int32 [rows]; [rows, outputs] of numbers, float64, or labels, float32; or label maps, uint8 [rows, H, W].
        """

    @property
    def x_test(self) -> NDArray[Any]: ...

    @property
    def y_test(self) -> NDArray[Any]: ...

def load_dataset(experiment: Experiment) -> Dataset:
    """The data set of an experiment."""

class PluginReport:
    """What became of one file that looked like a plugin."""

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def status(self) -> str:
        """"OK", "NO_DEVICE", "DEPENDENCY_MISSING", ..."""

    @property
    def detail(self) -> str:
        """Why it is not OK."""

    @property
    def version(self) -> str: ...

    @property
    def build(self) -> str: ...

    @property
    def base(self) -> str: ...

    @property
    def priority(self) -> int: ...

    @property
    def devices(self) -> int: ...

    @property
    def path(self) -> pathlib.Path: ...

def list_plugins(extra: Sequence[str | os.PathLike[str]]) -> list[PluginReport]:
    """Every plugin that is found, and whether it can be used."""

class WorkReport:
    """How far a piece of long work is."""

    def __repr__(self) -> str: ...

    @property
    def id(self) -> int: ...

    @property
    def what(self) -> str: ...

    @property
    def detail(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int:
        """0: not known."""

    @property
    def seconds(self) -> float:
        """Since it began."""

def long_work() -> list[WorkReport]:
    """All that goes on in this process, the oldest first."""

class Network:
    def __init__(
        self,
        text: str,
        origin: str,
        inputs: Sequence[tuple[str, str, str, Sequence[int]]],
        normalisations: _Normalisations,
        outputs: Sequence[str],
    ) -> None: ...
    @staticmethod
    def load(path: Path) -> Network: ...
    def set(
        self,
        text: str,
        origin: str,
        settings: Sequence[tuple[str, str]],
        normalisations: _Normalisations,
        outputs: Sequence[str],
    ) -> None: ...
    def copy(self) -> Network: ...
    def info(self) -> dict[str, Any]: ...
    def resolved(self) -> str: ...
    def layers(self) -> list[Any]: ...
    def ends(self) -> _Ends: ...
    def tensors(self) -> list[tuple[str, str, tuple[int, ...], bool, bool]]: ...
    def read(self, name: str) -> npt.NDArray[np.float32]: ...
    def write(self, name: str, values: npt.NDArray[np.float32]) -> None: ...
    def read_file(self, file: Path, names: Path | str, strict: bool) -> str: ...
    def set_dtypes(self, dtypes: Sequence[str]) -> None: ...
    @property
    def is_prepared(self) -> bool: ...
    @property
    def learnt_task(self) -> str: ...
    def preparation(self) -> str: ...
    def take_preparation(self, description: str) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    def forget_training(self) -> None: ...
    def save(self, file: Path) -> None: ...
    def train(
        self,
        samples: Sequence[npt.NDArray[Any]],
        targets: npt.NDArray[Any] | None,
        weights: npt.NDArray[np.float64] | None,
        val_samples: Sequence[npt.NDArray[Any]] | None,
        val_targets: npt.NDArray[Any] | None,
        next: Callable[[int], tuple[Sequence[npt.NDArray[Any]], npt.NDArray[Any]]] | None,
        rows: int,
        listener: Any,
        run_folder: str,
        rounded_to: str,
    ) -> None: ...
    def evaluate(
        self, samples: Sequence[npt.NDArray[Any]], targets: npt.NDArray[Any], weights: npt.NDArray[np.float64] | None
    ) -> EvalReport: ...
    def model(self, max_batch: int) -> Model: ...

def summarize(text: str, origin: str, shape: Sequence[int]) -> SummaryReport: ...

def read_model(text: str, origin: str) -> tuple[str, _Ends, list[Any]]: ...

def layer_types() -> list[dict[str, Any]]: ...

def experiment_keys() -> list[dict[str, Any]]: ...

def op_catalogue() -> list[dict[str, Any]]: ...

def describe_array(array: Any) -> tuple[tuple[int, int, tuple[int, ...], tuple[int, ...]], int, int, Any]: ...

class Op:
    def __init__(self, name: str, attributes: dict[str, Any]) -> None: ...
    def output_types(self, inputs: Sequence[_Array]) -> list[tuple[int, tuple[int, ...]]]: ...
    def gradient_needs(self, inputs: Sequence[_Array], wanted: Sequence[bool]) -> tuple[list[bool], list[bool]]: ...

class PoolTensor:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def on_host(self) -> bool: ...
    @property
    def device(self) -> int: ...
    def share(self, reader: int | None = None) -> Any: ...

class Engine:
    @staticmethod
    def open(
        backend: str,
        device: int = 0,
        threads: int = 0,
        precision: str = "fp32",
        deterministic: bool = False,
        alternatives: bool = True,
        plugins: list[str] = ...,
        kernels: list[str] = ...,
    ) -> Engine: ...
    @property
    def name(self) -> str: ...
    @property
    def chain(self) -> list[str]: ...
    @property
    def device(self) -> str: ...
    @property
    def memory_domain(self) -> str: ...
    @property
    def on_host(self) -> bool: ...
    @property
    def alignment(self) -> int: ...
    @property
    def plans(self) -> int: ...
    def pool_statistics(self) -> dict[str, int]: ...
    def trim_pool(self) -> None: ...
    def explain(self, op: Op, inputs: Sequence[_Array], outputs: Sequence[_Array]) -> list[str]: ...
    def allocate(self, dtype: int, shape: Sequence[int], stream: int = 0, device: int = 0) -> PoolTensor: ...
    def synchronize(self, stream: int = 0) -> None: ...

class Call:
    """An op, or its gradient, on arrays of settled types."""

    def __init__(self, engine: Engine, op: Op, inputs: Sequence[_Array], outputs: Sequence[_Array]) -> None: ...
    @staticmethod
    def gradient(
        engine: Engine,
        op: Op,
        cotangent: _Array,
        inputs: Sequence[_Array],
        outputs: Sequence[_Array],
        wanted: Sequence[bool],
        gradients: Sequence[_Array],
    ) -> Call: ...
    def scratch_bytes(self, capturing: bool = False, addresses: Sequence[int] | None = None) -> int:
        """Bytes of temporary memory that `run` needs."""

    def run(
        self,
        stream: int = 0,
        capturing: bool = False,
        scratch: int = 0,
        scratch_bytes: int = 0,
        addresses: Sequence[int] | None = None,
    ) -> None:
        """`addresses`: of inputs and outputs; of a gradient also of the gradients, then of the cotangent."""

class TensorCall:
    """A call on tensors of PyTorch."""

    def __init__(
        self,
        call: Call,
        device: int,
        places: Sequence[int],
        fresh: Sequence[tuple[tuple[int, ...], tuple[int, ...], Any]],
        results: Sequence[int],
        empty: Callable[..., Any],
        scratch: Callable[[int], Any],
        stream: Callable[[int], int] | None,
        capturing: Callable[[], bool] | None,
    ) -> None: ...
    def run(self, tensors: tuple[Any, ...], last: Any) -> tuple[Any, ...]:
        """Makes the fresh tensors and returns the results as a tuple."""

class ModuleCall:
    """A call of a module of PyTorch, to be recognised."""

    def __init__(
        self,
        guard: Callable[..., bool],
        count: int,
        attributes: Sequence[tuple[str, Any, bool]],
        parameters: Sequence[tuple[str, bool, int]],
        buffers: Sequence[tuple[str, bool, int]],
        watched: Sequence[tuple[dict[str, Any], str, Any]],
        conditions: Sequence[tuple[Callable[..., Any], tuple[Any, ...], Any]],
    ) -> None: ...
    def match(self, dictionary: dict[str, Any], input: Any) -> tuple[Any, ...] | None:
        """The input and the module's tensors, or None if anything is otherwise than it was."""
