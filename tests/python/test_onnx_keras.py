"""A network of Keras, as tf2onnx exports it, gives what it gives TensorFlow: its NHWC images are turned at import."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import gpunn

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_a_network_of_keras_answers_as_in_tensorflow() -> None:
    told = json.loads((FIXTURES / "keras.json").read_text())
    images = np.array(told["x"], np.float32).transpose(0, 3, 1, 2)
    model = gpunn.load(FIXTURES / "keras.onnx", backend="cpu")
    assert model.inputs[0].shape == (3, 9, 10)
    np.testing.assert_allclose(model.run(images), np.array(told["y"]), atol=1e-6)
