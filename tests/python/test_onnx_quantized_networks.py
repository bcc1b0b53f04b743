"""Networks that ONNX Runtime quantised give gpunn what they give ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quantized_graphs import Array, Graph, check, expected

pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")

from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

TYPES = {"u8": QuantType.QUInt8, "s8": QuantType.QInt8}


class Samples(CalibrationDataReader):  # type: ignore[misc]
    """What a network is calibrated with."""

    def __init__(self, row: tuple[int, ...]) -> None:
        random = np.random.default_rng(1)
        self.batches = iter([{"x": random.normal(0, 1, (4, *row)).astype(np.float32)} for _ in range(4)])

    def get_next(self) -> dict[str, Array] | None:
        return next(self.batches, None)


def image_network(file: Path) -> tuple[int, ...]:
    """Convolutions, one of them depthwise in a residual block, pooling and dense layers; gives the shape of a row."""
    g = Graph(1, (3, 16, 16))

    def weight(*shape: int) -> str:
        return g.floats(g.random.normal(0, 1.5 / np.sqrt(np.prod(shape[1:])), shape))

    def biased(filters: int, *shape: int) -> list[str]:
        return [weight(filters, *shape), g.floats(g.random.normal(0, 0.3, filters))]

    pads: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    stem = g.add("Relu", [g.add("Conv", ["x", *biased(8, 3, 3, 3)], **pads)])
    stem = g.add("MaxPool", [stem], kernel_shape=[2, 2], strides=[2, 2])
    y = g.add("Relu", [g.add("Conv", [stem, *biased(8, 8, 3, 3)], **pads)])
    y = g.add("Add", [g.add("Conv", [y, *biased(8, 1, 3, 3)], group=8, **pads), stem])
    y = g.add("Clip", [g.add("Conv", [y, *biased(16, 8, 1, 1)], strides=[2, 2]), g.floats(0), g.floats(6)])
    y = g.add("Flatten", [g.add("GlobalAveragePool", [y])])
    y = g.add("Relu", [g.add("Gemm", [y, *biased(10, 16)], transB=1)])
    g.save(file, g.add("MatMul", [y, weight(10, 10)]))
    return g.row


def token_network(file: Path) -> tuple[int, ...]:
    """Dense layers of tokens; gives the shape of a row."""
    g = Graph(2, (7, 48))
    y = g.add("MatMul", ["x", g.floats(g.random.normal(0, 0.2, (48, 64)))])
    y = g.add("Sigmoid", [g.add("Add", [y, g.floats(g.random.normal(0, 0.3, 64))])])
    g.save(file, g.add("MatMul", [y, g.floats(g.random.normal(0, 0.2, (64, 5)))]))
    return g.row


def check_network(file: Path, row: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).normal(0, 1, (3, *row)).astype(np.float32)
    # A tie further up may be a step in many answers.
    steps = 0.02 * float(np.abs(expected(file, x)).max())
    for without in ([], ["eight_bits"]):
        check(file, x, steps, without, 0.25)


@pytest.mark.parametrize("network", [image_network, token_network])
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("types", ["u8 u8", "u8 s8", "s8 s8"])  # of activations and weights
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_a_network_that_onnx_runtime_quantised(
    network: Callable[[Path], tuple[int, ...]], by_channel: bool, types: str, form: str, tmp_path: Path
) -> None:
    plain, file = tmp_path / "plain.onnx", tmp_path / "quantised.onnx"
    row = network(plain)
    activations, weights = (TYPES[one] for one in types.split())
    # Other operators would be of ONNX Runtime's own.
    ops = ["Conv", "MatMul", "MaxPool"] if form == "QOperator" else None
    quantize_static(
        plain,
        file,
        Samples(row),
        quant_format=QuantFormat[form],
        op_types_to_quantize=ops,
        per_channel=by_channel,
        activation_type=activations,
        weight_type=weights,
    )
    check_network(file, row)


@pytest.mark.parametrize("network", [image_network, token_network])
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("weights", ["u8", "s8"])
def test_a_network_that_onnx_runtime_quantises_as_it_runs(
    network: Callable[[Path], tuple[int, ...]], by_channel: bool, weights: str, tmp_path: Path
) -> None:
    plain, file = tmp_path / "plain.onnx", tmp_path / "quantised.onnx"
    row = network(plain)
    quantize_dynamic(plain, file, op_types_to_quantize=["MatMul"], per_channel=by_channel, weight_type=TYPES[weights])
    check_network(file, row)
