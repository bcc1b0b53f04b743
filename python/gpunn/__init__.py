"""gpunn trains neural networks, from YAML or from Python, on any backend plugin.

import gpunn

run = gpunn.run("lenet_digits", epochs=2)
print(run.final["test_accuracy"])
print(gpunn.load(run).predict("seven.png"))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gpunn._core import version as _version
from gpunn.errors import (
    ConfigError,
    DeviceLostError,
    Diagnostic,
    DivergedError,
    Error,
    MissingError,
    UsageError,
)

if TYPE_CHECKING:
    from gpunn import callbacks as callbacks, errors as errors, ops as ops, plots as plots, sklearn as sklearn
    from gpunn._core import (
        EpochReport as EpochReport,
        Experiment as Experiment,
        Prediction as Prediction,
        StepReport as StepReport,
    )
    from gpunn._evaluation import Evaluation as Evaluation, evaluate as evaluate, export as export, report as report
    from gpunn._experiment import (
        load_experiment as load_experiment,
        shipped_experiments as shipped_experiments,
        shipped_models as shipped_models,
    )
    from gpunn._history import History as History
    from gpunn._model import Model as Model, load as load, predict as predict
    from gpunn._quantize import quantize as quantize
    from gpunn._run import Run as Run, open_run as open_run
    from gpunn._stylize import paint as paint, stylize as stylize
    from gpunn._tools import (
        bench as bench,
        bench_ops as bench_ops,
        check as check,
        datasets as datasets,
        download as download,
        load_dataset as load_dataset,
        plan as plan,
        plugins as plugins,
        race as race,
        schedule as schedule,
        summary as summary,
    )
    from gpunn._training import TrainingInterrupted as TrainingInterrupted, resume as resume, run as run
    from gpunn._weights import load_weights as load_weights
    from gpunn.callbacks import Callback as Callback, RunStart as RunStart, StopTraining as StopTraining
    from gpunn.layers import (
        CELU as CELU,
        ELU as ELU,
        GELU as GELU,
        SELU as SELU,
        Abs as Abs,
        AdaptiveAvgPool2d as AdaptiveAvgPool2d,
        Add as Add,
        Affine as Affine,
        AvgPool2d as AvgPool2d,
        BatchNorm1d as BatchNorm1d,
        BatchNorm2d as BatchNorm2d,
        Clamp as Clamp,
        ClassToken as ClassToken,
        Concat as Concat,
        ConditionalInstanceNorm2d as ConditionalInstanceNorm2d,
        Conv2d as Conv2d,
        ConvTranspose2d as ConvTranspose2d,
        DequantizeLinear as DequantizeLinear,
        Divide as Divide,
        Dropout as Dropout,
        DynamicQuantize as DynamicQuantize,
        Erf as Erf,
        Exp as Exp,
        FCOSHead as FCOSHead,
        Flatten as Flatten,
        GlobalAvgPool2d as GlobalAvgPool2d,
        GlobalMaxPool2d as GlobalMaxPool2d,
        GroupNorm as GroupNorm,
        Hardsigmoid as Hardsigmoid,
        Hardswish as Hardswish,
        Input as Input,
        InstanceNorm2d as InstanceNorm2d,
        L2Norm2d as L2Norm2d,
        Layer as Layer,
        LayerNorm as LayerNorm,
        LeakyReLU as LeakyReLU,
        Linear as Linear,
        LocalResponseNorm as LocalResponseNorm,
        Log as Log,
        LogSoftmax as LogSoftmax,
        Matmul as Matmul,
        Maximum as Maximum,
        MaxPool2d as MaxPool2d,
        Minimum as Minimum,
        Mish as Mish,
        MultiheadAttention as MultiheadAttention,
        Multiply as Multiply,
        Node as Node,
        NonMaximumSuppression as NonMaximumSuppression,
        Permute as Permute,
        PixelShuffle as PixelShuffle,
        PositionEmbedding as PositionEmbedding,
        Power as Power,
        PReLU as PReLU,
        Quantize as Quantize,
        QuantizeLinear as QuantizeLinear,
        Reduce as Reduce,
        ReLU as ReLU,
        ReLU6 as ReLU6,
        Reshape as Reshape,
        Resize2d as Resize2d,
        Sigmoid as Sigmoid,
        SiLU as SiLU,
        Slice as Slice,
        Softmax as Softmax,
        Softplus as Softplus,
        Softsign as Softsign,
        SSDHead as SSDHead,
        Subtract as Subtract,
        Tanh as Tanh,
        Upsample as Upsample,
        ZeroPad2d as ZeroPad2d,
    )
    from gpunn.losses import (
        Outputs as Outputs,
        binary_cross_entropy_loss as binary_cross_entropy_loss,
        cross_entropy_loss as cross_entropy_loss,
        hinge_loss as hinge_loss,
        huber_loss as huber_loss,
        l1_loss as l1_loss,
        mse_loss as mse_loss,
    )
    from gpunn.network import Network as Network, Sequential as Sequential, from_yaml as from_yaml

__version__: str = _version()

# What is imported when it is first asked for, so that `import gpunn` takes little time: the names of a module of the
# package, which may be itself among them. The imports above say the same to type checkers.
_LAZY: dict[str, tuple[str, ...]] = {
    "_core": ("EpochReport", "Experiment", "Prediction", "StepReport"),
    "_evaluation": ("Evaluation", "evaluate", "export", "report"),
    "_experiment": ("load_experiment", "shipped_experiments", "shipped_models"),
    "_history": ("History",),
    "_model": ("Model", "load", "predict"),
    "_quantize": ("quantize",),
    "_run": ("Run", "open_run"),
    "_stylize": ("paint", "stylize"),
    "_tools": (
        "bench",
        "bench_ops",
        "check",
        "datasets",
        "download",
        "load_dataset",
        "plan",
        "plugins",
        "race",
        "schedule",
        "summary",
    ),
    "_training": ("TrainingInterrupted", "resume", "run"),
    "_weights": ("load_weights",),
    "callbacks": ("Callback", "RunStart", "StopTraining", "callbacks"),
    "errors": ("errors",),
    "layers": (
        "Abs",
        "AdaptiveAvgPool2d",
        "Add",
        "Affine",
        "AvgPool2d",
        "BatchNorm1d",
        "BatchNorm2d",
        "CELU",
        "Clamp",
        "ClassToken",
        "Concat",
        "ConditionalInstanceNorm2d",
        "Conv2d",
        "ConvTranspose2d",
        "DequantizeLinear",
        "Divide",
        "Dropout",
        "DynamicQuantize",
        "ELU",
        "Erf",
        "Exp",
        "FCOSHead",
        "L2Norm2d",
        "SSDHead",
        "Flatten",
        "GELU",
        "GlobalAvgPool2d",
        "GlobalMaxPool2d",
        "GroupNorm",
        "Hardsigmoid",
        "Hardswish",
        "Input",
        "InstanceNorm2d",
        "Layer",
        "LayerNorm",
        "LeakyReLU",
        "Linear",
        "LocalResponseNorm",
        "Log",
        "LogSoftmax",
        "MaxPool2d",
        "Matmul",
        "Maximum",
        "Minimum",
        "Mish",
        "MultiheadAttention",
        "Multiply",
        "Node",
        "NonMaximumSuppression",
        "Permute",
        "PReLU",
        "PixelShuffle",
        "PositionEmbedding",
        "Power",
        "Quantize",
        "QuantizeLinear",
        "ReLU",
        "ReLU6",
        "Reduce",
        "Reshape",
        "Resize2d",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Slice",
        "Softmax",
        "Softplus",
        "Softsign",
        "Subtract",
        "Tanh",
        "Upsample",
        "ZeroPad2d",
    ),
    "losses": (
        "Outputs",
        "binary_cross_entropy_loss",
        "cross_entropy_loss",
        "hinge_loss",
        "huber_loss",
        "l1_loss",
        "mse_loss",
    ),
    "network": ("Network", "Sequential", "from_yaml"),
    "sklearn": ("sklearn",),
    "plots": ("plots",),
    "ops": ("ops",),
}
_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names}

__all__ = [
    "ConfigError",
    "DeviceLostError",
    "Diagnostic",
    "DivergedError",
    "Error",
    "MissingError",
    "UsageError",
    "__version__",
]
__all__ += _MODULE_OF  # noqa: PLE0605  # type checkers see the imports above


def __getattr__(name: str) -> Any:
    module_name = _MODULE_OF.get(name)
    if module_name is None:
        raise AttributeError(f"module 'gpunn' has no attribute '{name}'")
    module = importlib.import_module(f"gpunn.{module_name}")
    value = module if name == module_name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
