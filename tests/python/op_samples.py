"""Inputs and attributes for each op of the catalogue: small, and away from kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Sample = tuple[list[Any], dict[str, Any]]


def floats(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def bytes_of(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(1, 256, shape).astype(np.uint8)


def apart(*shape: int, seed: int = 0) -> Array:
    """Numbers at least 0.1 apart from each other and from 0, in a mixed order."""
    count = int(np.prod(shape))
    values = (np.arange(count) - count // 2 + 0.5) * 0.1
    return np.random.default_rng(seed).permutation(values).reshape(shape).astype(np.float32)


def labels_of(*values: int) -> Array:
    return np.array(values, np.int32)


# Left, top, right, bottom: two that overlap, and two apart.
BOXES = np.array([[1.0, 1.0, 4.0, 5.0], [6.0, 0.5, 9.0, 3.0]], np.float32)
OTHER_BOXES = np.array([[2.0, 0.0, 5.5, 4.0], [1.0, 4.0, 3.0, 6.5]], np.float32)
# With a class, in one image.
OBJECTS = np.concatenate([BOXES, np.ones((2, 1), np.float32)], axis=1)[None]


def scalar(value: float) -> Array:
    return np.array(value, np.float32)


def counter(value: int = 3) -> Array:
    return np.array(value, np.int64)


def rows(value: int) -> Array:
    return np.array(value, np.int32)


def labels(*values: int) -> Array:
    return np.array(values, np.int32)


X = (2, 3, 6, 5)


def positive(*shape: int, seed: int = 0) -> Array:
    return floats(*shape, low=0.5, high=2.0, seed=seed)


def channels(seed: int = 0) -> Array:
    return positive(3, seed=seed)


def _pair(make: Callable[..., Array] = floats) -> Sample:
    return [make(3, 4), make(4, seed=1)], {}


def _one(make: Callable[..., Array] = floats, **attributes: Any) -> Sample:
    return [make(3, 4)], attributes


def _two(**attributes: Any) -> Sample:
    return [floats(3, 4), floats(3, 4, seed=1)], attributes


def _label_map() -> Array:
    return np.random.default_rng(0).integers(0, 5, (2, 6, 5)).astype(np.int32)


SAMPLES: dict[str, Callable[[], Sample]] = {
    "add": _pair,
    "sub": _pair,
    "mul": _pair,
    "div": lambda: ([floats(3, 4), positive(4, seed=1)], {}),
    "maximum": lambda: ([apart(3, 4), apart(4, seed=1) + np.float32(0.05)], {}),
    "minimum": lambda: ([apart(3, 4), apart(4, seed=1) + np.float32(0.05)], {}),
    "pow": lambda: ([positive(3, 4), positive(4, seed=1)], {}),
    "equal": _pair,
    "less": _pair,
    "less_equal": _pair,
    "select": lambda: ([labels(0, 1, 1, 0).astype(np.float32), floats(3, 4), floats(4, seed=1)], {}),
    "expand": lambda: ([floats(3, 1)], {"shape": [2, 3, 4]}),
    "exp": _one,
    "log": lambda: _one(positive),
    "sqrt": lambda: _one(positive),
    "rsqrt": lambda: _one(positive),
    "erf": _one,
    "scale": lambda: _one(factor=2.5),
    "copy": _one,
    "axpby": lambda: _two(alpha=0.5, beta=-2.0),
    "clamp": lambda: _one(apart, low=-0.32, high=0.32),
    "relu": lambda: _one(apart),
    "relu_backward": _two,
    "leaky_relu": lambda: _one(apart, slope=0.2),
    "leaky_relu_backward": lambda: _two(slope=0.2),
    "sigmoid": _one,
    "sigmoid_backward": _two,
    "tanh": _one,
    "tanh_backward": _two,
    "gelu": lambda: _one(tanh=True),
    "gelu_backward": _two,
    "silu": _one,
    "silu_backward": _two,
    "matmul": lambda: ([floats(3, 4), floats(5, 4, seed=1)], {"transpose_b": True}),
    "batch_matmul": lambda: ([floats(2, 3, 4), floats(2, 4, 5, seed=1)], {}),
    "bias_add": lambda: ([floats(*X), channels()], {}),
    "bias_backward": lambda: ([floats(*X)], {}),
    "matmul_bias_activation": lambda: (
        [floats(3, 4), floats(4, 5, seed=1), floats(5, seed=2)],
        {"activation": "none"},
    ),
    "bias_activation_backward": lambda: ([floats(*X), floats(*X, seed=1)], {"activation": "relu"}),
    "conv2d": lambda: ([floats(*X), floats(4, 3, 3, 2, seed=1)], {"stride": [2, 1], "pad": [1, 0]}),
    "conv2d_backward_data": lambda: (
        [floats(2, 4, 4, 4), floats(4, 3, 3, 2, seed=1)],
        {"input_size": [6, 5]},
    ),
    "conv2d_backward_filter": lambda: (
        [floats(2, 4, 4, 4), floats(*X, seed=1)],
        {"filter_size": [3, 2]},
    ),
    "conv2d_bias_activation": lambda: ([floats(*X), floats(4, 3, 3, 2, seed=1), floats(4, seed=2)], {}),
    "conv2d_bias_add_activation": lambda: (
        [floats(*X), floats(4, 3, 3, 2, seed=1), floats(4, seed=2), floats(2, 4, 4, 4, seed=3)],
        {},
    ),
    "all_reduce": lambda: ([floats(3, 4)], {"parts": 3}),
    "reduce_scatter": lambda: ([floats(3, 4)], {"parts": 3}),
    "all_gather": lambda: ([floats(3, 4)], {"parts": 3}),
    "assign_points": lambda: (
        [np.array([[2, 2, 4], [6, 2, 4], [2, 6, 4]], np.float32), OBJECTS],
        {"least_stride": 4.0, "most_stride": 4.0},
    ),
    "assign_anchors": lambda: ([OTHER_BOXES, OBJECTS], {}),
    "focal_loss": lambda: ([floats(4, 3), labels_of(0, 2, 1, 0)], {}),
    "focal_loss_backward": lambda: ([floats(4), floats(4, 3, seed=1), labels_of(0, 2, 1, 0)], {}),
    "giou_loss": lambda: ([BOXES, OTHER_BOXES], {}),
    "giou_loss_backward": lambda: ([floats(2), BOXES, OTHER_BOXES], {}),
    "top_mask": lambda: ([apart(2, 6), np.array([2, 4], np.float32)], {}),
    "non_maximum_suppression": lambda: (
        [np.concatenate([BOXES, BOXES[:1] + 0.25])[None], floats(1, 3, 2, low=0.1)],
        {"most": 3},
    ),
    "quantize": lambda: ([floats(3, 4)], {"scale": 1 / 64, "zero_point": 128}),
    "dequantize": lambda: ([bytes_of(3, 4)], {"scale": 1 / 64, "zero_point": 128}),
    "fake_quantize": lambda: ([floats(3, 4, low=-3.0, high=-1.0)], {"scale": 1 / 64}),
    "quantize_filter": lambda: ([floats(4, 3, 3, 2)], {}),
    "quantized_conv2d": lambda: (
        [bytes_of(*X), bytes_of(4, 3, 3, 2, seed=1), np.full(4, 1 / 512, np.float32), np.zeros(4, np.float32)],
        {"x_scale": 1 / 64, "y_scale": 1 / 16, "x_zero_point": 128, "y_zero_point": 128},
    ),
    "quantized_max_pool2d": lambda: ([bytes_of(*X)], {"window": [2, 2]}),
    "quantized_global_avg_pool2d": lambda: ([bytes_of(*X)], {"x_scale": 1 / 64, "y_scale": 1 / 128}),
    "quantized_concat": lambda: ([bytes_of(2, 3), bytes_of(2, 1, seed=1)], {"axis": 1}),
    "quantized_linear": lambda: (
        [bytes_of(3, 5), bytes_of(4, 5, seed=1), np.full(4, 1 / 512, np.float32), floats(4)],
        {"scale": 1 / 64, "zero_point": 128},
    ),
    "max_pool2d": lambda: ([apart(*X)], {"window": [2, 2]}),
    "max_pool2d_backward": lambda: (
        [floats(1, 1, 1, 1), np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), np.full((1, 1, 1, 1), 3, np.float32)],
        {"window": [2, 2]},
    ),
    "avg_pool2d": lambda: ([floats(*X)], {"window": [3, 3], "stride": [1, 1], "pad": [1, 1]}),
    "avg_pool2d_backward": lambda: ([floats(2, 3, 3, 2)], {"window": [2, 2], "input_size": [6, 5]}),
    "upsample2d": lambda: ([floats(*X)], {"factor": [2, 3], "mode": "bilinear"}),
    "upsample2d_backward": lambda: ([floats(2, 3, 4, 6)], {"factor": [2, 3]}),
    "reflect_pad2d": lambda: ([floats(*X)], {"before": [1, 2], "after": [0, 1]}),
    "reflect_pad2d_backward": lambda: ([floats(2, 3, 4, 6)], {"before": [1, 2], "after": [0, 1]}),
    "softmax": _one,
    "softmax_backward": _two,
    "log_softmax": _one,
    "log_softmax_backward": _two,
    "attention": lambda: (
        [floats(2, 3, 2, 4), floats(2, 5, 2, 4, seed=1), floats(2, 5, 2, 4, seed=2)],
        {"scale": 0.5},
    ),
    "attention_backward": lambda: (
        [
            floats(2, 3, 2, 4),
            floats(2, 3, 2, 4, seed=1),
            floats(2, 5, 2, 4, seed=2),
            floats(2, 5, 2, 4, seed=3),
            floats(2, 3, 2, 4, seed=4),
            positive(2, 2, 3),
        ],
        {"scale": 0.5},
    ),
    "batch_norm": lambda: (
        [floats(*X), channels(1), channels(2), np.zeros(3, np.float32), np.ones(3, np.float32)],
        {"momentum": 0.25},
    ),
    "batch_norm_backward": lambda: ([floats(*X), floats(*X, seed=1), channels(), channels(1), channels(2)], {}),
    "batch_norm_inference": lambda: ([floats(*X), channels(), channels(1), channels(2), channels(3)], {}),
    "layer_norm": lambda: ([floats(3, 4), positive(4), floats(4, seed=1)], {}),
    "layer_norm_backward": lambda: (
        [floats(3, 4), floats(3, 4, seed=1), positive(4), floats(3), positive(3)],
        {},
    ),
    "instance_norm": lambda: ([floats(*X), channels(), channels(1)], {}),
    "instance_norm_backward": lambda: (
        [floats(*X), floats(*X, seed=1), channels(), floats(2, 3), positive(2, 3)],
        {},
    ),
    "local_response_norm": lambda: ([floats(*X)], {"size": 3, "alpha": 0.5}),
    "local_response_norm_backward": lambda: ([floats(*X), floats(*X, seed=1)], {"size": 3}),
    "nll_loss": lambda: ([floats(3, 4), labels(0, 3, 1)], {}),
    "nll_loss_backward": lambda: ([floats(3), labels(0, 3, 1)], {"classes": 4}),
    "mse_loss": _two,
    "mse_loss_backward": lambda: ([floats(3), floats(3, 4), floats(3, 4, seed=1)], {}),
    "bce_logits_loss": lambda: ([floats(3, 4), floats(3, 4, low=0, seed=1)], {}),
    "bce_logits_loss_backward": lambda: ([floats(3), floats(3, 4), floats(3, 4, low=0, seed=1)], {}),
    "hinge_loss": lambda: ([floats(3, 4), labels(0, 3, 1)], {"power": 2}),
    "hinge_loss_backward": lambda: ([floats(3), floats(3, 4), labels(0, 3, 1)], {}),
    "huber_loss": lambda: _two(delta=10.0),
    "huber_loss_backward": lambda: ([floats(3), floats(3, 4), floats(3, 4, seed=1)], {}),
    "softmax_cross_entropy": lambda: ([floats(3, 4), labels(0, 3, 1)], {}),
    "softmax_cross_entropy_backward": lambda: ([floats(3), floats(3, 4), labels(0, 3, 1)], {}),
    "soft_cross_entropy": lambda: ([floats(3, 4), floats(3, 4, low=0, seed=1)], {}),
    "soft_cross_entropy_backward": lambda: ([floats(3), floats(3, 4), floats(3, 4, low=0, seed=1)], {}),
    "cross_entropy": lambda: (
        [floats(2, 3, 4), labels(0, 2, 1, 255, 1, 0, 2, 2).reshape(2, 4), positive(3)],
        {"ignore_index": 255, "label_smoothing": 0.1},
    ),
    "cross_entropy_backward": lambda: (
        [floats(3), floats(3, 4, seed=1), labels(0, 3, 1), positive(3, seed=2)],
        {},
    ),
    "argmax": _one,
    "reduce": lambda: ([apart(2, 3, 4)], {"kind": "mean", "axes": [0, 2]}),
    "mean_rows": lambda: ([floats(5), rows(3)], {}),
    "mean_rows_backward": lambda: ([scalar(0.5), rows(3)], {"rows": 5}),
    "norm": _one,
    "pad": lambda: _one(before=[1, 0], after=[0, 2]),
    "slice": lambda: _one(start=[1, 0], size=[2, 3]),
    "transpose": lambda: ([floats(2, 3, 4)], {"permutation": [2, 0, 1]}),
    "cumsum": lambda: _one(axis=1, reverse=True),
    "tril": lambda: _one(diagonal=1),
    "concat": lambda: ([floats(2, 3), floats(2, 1, seed=1), floats(2, 2, seed=2)], {"axis": 1}),
    "sgd_update": lambda: ([floats(6), floats(6, seed=1), scalar(0.1), floats(6, seed=2)], {"momentum": 0.9}),
    "adam_update": lambda: (
        [floats(6), floats(6, seed=1), scalar(0.1), counter(), floats(6, seed=2), positive(6)],
        {"weight_decay": 0.01},
    ),
    "rmsprop_update": lambda: ([floats(6), floats(6, seed=1), scalar(0.1), positive(6)], {}),
    "adagrad_update": lambda: ([floats(6), floats(6, seed=1), scalar(0.1), positive(6)], {}),
    "lion_update": lambda: ([floats(6), floats(6, seed=1), scalar(0.1), floats(6, seed=2)], {}),
    "lars_update": lambda: (
        [floats(6), floats(6, seed=1), scalar(0.1), floats(6, seed=2), np.array([0, 2, 6], np.int64)],
        {},
    ),
    "lbfgs_update": lambda: (
        [
            floats(6),
            floats(6, seed=1),
            scalar(0.1),
            counter(),
            floats(6, seed=2),
            floats(6, seed=3),
            positive(2, 6),
            positive(2, 6),
        ],
        {},
    ),
    "clip_norm": lambda: ([floats(6), scalar(3.0)], {"max_norm": 1.0}),
    "l1_gradient": lambda: ([floats(6), floats(6, seed=1)], {"weight": 0.1}),
    "random_uniform": lambda: ([counter()], {"shape": [4, 3], "seed": 7}),
    "random_normal": lambda: ([counter()], {"shape": [4, 3], "seed": 7}),
    "random_permutation": lambda: ([counter()], {"shape": [9], "seed": 7}),
    "dropout": lambda: ([floats(3, 4), counter()], {"p": 0.25, "seed": 7}),
    "sample_indices": lambda: ([counter()], {"rows": 10, "batch": 4}),
    "gather_rows": lambda: ([floats(5, 2), labels(4, 0, 0)], {}),
    "scatter_add": lambda: ([floats(3, 2), labels(4, 0, 0)], {"rows": 5}),
    "gather_normalize": lambda: ([floats(5, 3, 2), labels(4, 0), channels(), channels(1)], {}),
    "random_shift": lambda: ([floats(*X), counter(), channels()], {"reach": [1, 2], "flip": 0.5}),
    "random_affine": lambda: ([floats(*X), counter(), channels()], {"rotate": 10.0, "translate": [0.1, 0.0]}),
    "random_color": lambda: ([floats(*X, low=0), counter(), channels(), channels(1)], {"contrast": 0.5}),
    "random_erase": lambda: ([floats(*X), counter(), channels()], {"size": [2, 2]}),
    "mix_rows": lambda: ([floats(4, 3), scalar(0.3), rows(3)], {}),
    "random_shift_labels": lambda: ([_label_map(), counter(), rows(255)], {"reach": [1, 2], "flip": 0.5}),
    "random_affine_labels": lambda: ([_label_map(), counter(), rows(255)], {"rotate": 10.0}),
    "random_zoom": lambda: ([floats(*X), counter()], {"high": 2.0}),
    "random_zoom_labels": lambda: ([_label_map(), counter()], {"high": 2.0}),
    "advance": lambda: ([counter()], {"increment": 2}),
    "table_load": lambda: ([floats(5), counter()], {}),
    "table_store": lambda: ([floats(5), counter(), scalar(0.5)], {}),
    "confusion_accumulate": lambda: (
        [floats(3, 4), labels(0, 3, 1), rows(3), np.zeros((4, 4), np.int64)],
        {},
    ),
    "metrics_accumulate": lambda: (
        [floats(3), rows(3), np.zeros(4, np.float64), floats(3, 4), labels(0, 3, 1)],
        {},
    ),
}
