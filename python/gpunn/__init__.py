"""gpunn trains neural networks, from YAML or from Python, on any backend plugin."""

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
    from gpunn import errors as errors
    from gpunn import sklearn as sklearn
    from gpunn.layers import (
        GELU as GELU,
    )
    from gpunn.layers import (
        AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    )
    from gpunn.layers import (
        Add as Add,
    )
    from gpunn.layers import (
        AvgPool2d as AvgPool2d,
    )
    from gpunn.layers import (
        BatchNorm1d as BatchNorm1d,
    )
    from gpunn.layers import (
        BatchNorm2d as BatchNorm2d,
    )
    from gpunn.layers import (
        ClassToken as ClassToken,
    )
    from gpunn.layers import (
        Concat as Concat,
    )
    from gpunn.layers import (
        Conv2d as Conv2d,
    )
    from gpunn.layers import (
        ConvTranspose2d as ConvTranspose2d,
    )
    from gpunn.layers import (
        Dropout as Dropout,
    )
    from gpunn.layers import (
        Flatten as Flatten,
    )
    from gpunn.layers import (
        GlobalAvgPool2d as GlobalAvgPool2d,
    )
    from gpunn.layers import (
        GlobalMaxPool2d as GlobalMaxPool2d,
    )
    from gpunn.layers import (
        GroupNorm as GroupNorm,
    )
    from gpunn.layers import (
        Input as Input,
    )
    from gpunn.layers import (
        InstanceNorm2d as InstanceNorm2d,
    )
    from gpunn.layers import (
        Layer as Layer,
    )
    from gpunn.layers import (
        LayerNorm as LayerNorm,
    )
    from gpunn.layers import (
        LeakyReLU as LeakyReLU,
    )
    from gpunn.layers import (
        Linear as Linear,
    )
    from gpunn.layers import (
        LocalResponseNorm as LocalResponseNorm,
    )
    from gpunn.layers import (
        LogSoftmax as LogSoftmax,
    )
    from gpunn.layers import (
        MaxPool2d as MaxPool2d,
    )
    from gpunn.layers import (
        MultiheadAttention as MultiheadAttention,
    )
    from gpunn.layers import (
        Multiply as Multiply,
    )
    from gpunn.layers import (
        Node as Node,
    )
    from gpunn.layers import (
        Permute as Permute,
    )
    from gpunn.layers import (
        PixelShuffle as PixelShuffle,
    )
    from gpunn.layers import (
        PositionEmbedding as PositionEmbedding,
    )
    from gpunn.layers import (
        ReLU as ReLU,
    )
    from gpunn.layers import (
        ReLU6 as ReLU6,
    )
    from gpunn.layers import (
        Reshape as Reshape,
    )
    from gpunn.layers import (
        Sigmoid as Sigmoid,
    )
    from gpunn.layers import (
        SiLU as SiLU,
    )
    from gpunn.layers import (
        Slice as Slice,
    )
    from gpunn.layers import (
        Softmax as Softmax,
    )
    from gpunn.layers import (
        Tanh as Tanh,
    )
    from gpunn.layers import (
        Upsample as Upsample,
    )
    from gpunn.layers import (
        ZeroPad2d as ZeroPad2d,
    )
    from gpunn.losses import (
        Outputs as Outputs,
    )
    from gpunn.losses import (
        binary_cross_entropy_loss as binary_cross_entropy_loss,
    )
    from gpunn.losses import (
        cross_entropy_loss as cross_entropy_loss,
    )
    from gpunn.losses import (
        hinge_loss as hinge_loss,
    )
    from gpunn.losses import (
        huber_loss as huber_loss,
    )
    from gpunn.losses import (
        l1_loss as l1_loss,
    )
    from gpunn.losses import (
        mse_loss as mse_loss,
    )
    from gpunn.network import (
        History as History,
    )
    from gpunn.network import (
        Network as Network,
    )
    from gpunn.network import (
        Sequential as Sequential,
    )
    from gpunn.network import (
        from_yaml as from_yaml,
    )

__version__: str = _version()

# What is imported when it is first asked for, so that `import gpunn` takes little time: the names of a module of the
# package, which may be itself among them.
_LAZY: dict[str, tuple[str, ...]] = {
    "errors": ("errors",),
    "layers": (
        "AdaptiveAvgPool2d",
        "Add",
        "AvgPool2d",
        "BatchNorm1d",
        "BatchNorm2d",
        "ClassToken",
        "Concat",
        "Conv2d",
        "ConvTranspose2d",
        "Dropout",
        "Flatten",
        "GELU",
        "GlobalAvgPool2d",
        "GlobalMaxPool2d",
        "GroupNorm",
        "Input",
        "InstanceNorm2d",
        "Layer",
        "LayerNorm",
        "LeakyReLU",
        "Linear",
        "LocalResponseNorm",
        "LogSoftmax",
        "MaxPool2d",
        "MultiheadAttention",
        "Multiply",
        "Node",
        "Permute",
        "PixelShuffle",
        "PositionEmbedding",
        "ReLU",
        "ReLU6",
        "Reshape",
        "SiLU",
        "Sigmoid",
        "Slice",
        "Softmax",
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
    "network": (
        "History",
        "Network",
        "Sequential",
        "from_yaml",
    ),
    "sklearn": ("sklearn",),
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
