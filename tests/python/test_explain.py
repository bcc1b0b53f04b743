"""Class activation maps: shapes and mistakes, and against PyTorch on networks of torchvision with the same weights.

The formulas are those of the PyPI package grad-cam: forward and backward hooks on the layer, numpy behind them. Where
the package is installed, it is asked itself.
"""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn

SIZE, ROWS = 64, 3


@pytest.fixture(scope="module")
def model(trained: gpunn.Run) -> gpunn.Model:
    return gpunn.load(trained, max_batch=4)


@pytest.fixture(scope="module")
def samples() -> Any:
    return gpunn.load_dataset("digits", synthetic_train=20, synthetic_test=10).x_test


def test_maps_of_any_number_of_images(model: gpunn.Model, samples: Any) -> None:
    maps = model.explain(samples)
    assert maps.shape == (10, 28, 28)
    assert maps.dtype == np.float32
    assert (maps.min(), maps.max()) == (0, pytest.approx(1, abs=1e-6))
    assert np.array_equal(model.explain(samples[7])[0], maps[7])
    best = model(samples).argmax(axis=1)
    for image, number, expected in zip(samples, best, maps, strict=True):
        assert np.array_equal(model.explain(image, int(number))[0], expected)
        assert np.array_equal(model.explain(image, class_=str(number))[0], expected)
    assert not np.array_equal(model.explain(samples, method="gradcam++"), maps)


def test_image_files(model: gpunn.Model, tmp_path: Path) -> None:
    pixels = (np.arange(28 * 28) * 7 % 256).astype(np.uint8)
    file = tmp_path / "a.pgm"
    file.write_bytes(b"P5 28 28 255\n" + pixels.tobytes())
    maps = model.explain([file, str(file)], class_=3)
    assert maps.shape == (2, 28, 28)
    assert np.array_equal(maps[0], maps[1])
    assert np.array_equal(model.explain(file, class_=3)[0], maps[0])


def test_mistakes(model: gpunn.Model, samples: Any) -> None:
    for more, text in (
        ({"class_": 10}, "no class 10"),
        ({"class_": "ten"}, "no class 'ten'"),
        ({"layer": "nothing"}, "no layer 'nothing'"),
        ({"method": "gradcam+"}, r"did you mean 'gradcam"),
    ):
        with pytest.raises(gpunn.UsageError, match=text):
            model.explain(samples[:1], **more)
    with pytest.raises(gpunn.UsageError, match="27"):
        model.explain(samples[:1, :, 1:])
    with pytest.raises(gpunn.MissingError):
        model.explain("nothing.png")


def scaled(maps: Any) -> Any:
    low = maps.min(axis=(1, 2), keepdims=True)
    return (maps - low) / (1e-7 + (maps - low).max(axis=(1, 2), keepdims=True))


def reference(network: Any, layer: Any, x: Any, classes: list[int], plus_plus: bool) -> npt.NDArray[np.float32]:
    """In float64, so that what is compared is not PyTorch's rounding."""
    import torch

    kept: dict[str, Any] = {}

    def keep(_module: Any, _inputs: Any, output: Any) -> None:
        kept["activations"] = output.detach().numpy().copy()
        output.register_hook(lambda gradient: kept.update(gradients=gradient.numpy().copy()))

    hook = layer.register_forward_hook(keep)
    logits = network.double()(torch.from_numpy(x).double())
    sum(logits[row, number] for row, number in enumerate(classes)).backward()
    hook.remove()
    network.float()
    a, g = kept["activations"], kept["gradients"]
    if plus_plus:
        alpha = g**2 / (2 * g**2 + a.sum(axis=(2, 3), keepdims=True) * g**3 + 1e-6)
        weights = (np.maximum(g, 0) * np.where(g != 0, alpha, 0)).sum(axis=(2, 3), keepdims=True)
    else:
        weights = g.mean(axis=(2, 3), keepdims=True)
    coarse = scaled(np.maximum((weights * a).sum(axis=1), 0))
    # OpenCV's bilinear resize and this one agree.
    fine = torch.nn.functional.interpolate(
        torch.from_numpy(coarse)[:, None], size=x.shape[2:], mode="bilinear", align_corners=False
    )
    result: npt.NDArray[np.float32] = scaled(fine[:, 0].numpy()).astype(np.float32)
    return result


def network_of(name: str) -> Any:
    """With statistics that show in the outputs."""
    torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
    torchvision: Any = pytest.importorskip("torchvision", reason="needs torchvision")
    torch.manual_seed(20261125)
    network = getattr(torchvision.models, name)(weights=None).eval()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.1)
    return network


def exported(network: Any, x: npt.NDArray[np.float32], folder: Path) -> gpunn.Model:
    """As the exporter of PyTorch writes the network."""
    torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
    pytest.importorskip("onnx", reason="needs the package onnx")
    file = folder / "network.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, (torch.from_numpy(x),), str(file), dynamo=False, dynamic_axes={"x": {0: "rows"}}, input_names=["x"]
        )
    return gpunn.load(file, backend="cpu", max_batch=ROWS)


def write_safetensors(tensors: dict[str, npt.NDArray[np.float32]], file: Path) -> None:
    head, data = {}, b""
    for name, values in tensors.items():
        part = values.tobytes()
        head[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(head).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.mark.parametrize("method", ["gradcam", "gradcam++"])
@pytest.mark.parametrize(
    ("name", "layer"), [("resnet18", "layer4.1"), ("mobilenet_v2", "features.18"), ("squeezenet1_1", "classifier.2")]
)
def test_maps_are_those_of_pytorch(name: str, layer: str, method: str, tmp_path: Path) -> None:
    """Of the default layer."""
    torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
    network = network_of(name)
    x = np.random.default_rng(5).normal(size=(ROWS, 3, SIZE, SIZE)).astype(np.float32)
    model = exported(network, x, tmp_path)
    best = [int(number) for number in network(torch.from_numpy(x)).argmax(dim=1)]
    for wanted, classes in ((None, best), (7, [7] * ROWS)):
        expected = reference(network, network.get_submodule(layer), x, classes, method == "gradcam++")
        assert expected.max() > 0.99
        found = model.explain(x, wanted, method=method)
        assert np.abs(found - expected).max() <= 1e-4


@pytest.mark.parametrize("method", ["gradcam", "gradcam++"])
@pytest.mark.parametrize(
    ("layer", "module"), [("stage4.1.conv2", "layer4.1.conv2"), ("stage3.0.bn2", "layer3.0.bn2"), ("conv1", "conv1")]
)
def test_layers_beside_batch_norms_are_those_of_pytorch(
    layer: str, module: str, method: str, source: Path, tmp_path: Path
) -> None:
    """Of resnet18.yaml with torchvision's weights: predictions fold these batch norms away."""
    pytest.importorskip("torch", reason="needs PyTorch")
    network = network_of("resnet18")
    write_safetensors(
        {name: tensor.numpy() for name, tensor in network.state_dict().items() if tensor.ndim > 0},
        tmp_path / "weights.safetensors",
    )
    ours = gpunn.from_yaml(source / "models" / "resnet18.yaml")
    x = np.random.default_rng(6).normal(size=(ROWS, 3, SIZE, SIZE)).astype(np.float32)
    ours.forward(x[:1])
    ours.load_weights(tmp_path / "weights.safetensors", names=source / "models" / "resnet.names.yaml")
    ours.save(tmp_path / "network.h5")
    model = gpunn.load(tmp_path / "network.h5", backend="cpu", max_batch=ROWS)
    shown = 0
    for number in (3, 4):
        expected = reference(network, network.get_submodule(module), x, [number] * ROWS, method == "gradcam++")
        shown += np.count_nonzero(expected.max(axis=(1, 2)) > 0.99)
        assert np.abs(model.explain(x, number, layer, method) - expected).max() <= 1e-4
    assert shown > 0  # else all maps are of zeros


@pytest.mark.parametrize("method", ["gradcam", "gradcam++"])
def test_maps_are_those_of_the_package(method: str, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
    package: Any = pytest.importorskip("pytorch_grad_cam", reason="needs the package grad-cam")
    network = network_of("resnet18")
    x = np.random.default_rng(8).normal(size=(ROWS, 3, SIZE, SIZE)).astype(np.float32)
    model = exported(network, x, tmp_path)
    kind = package.GradCAM if method == "gradcam" else package.GradCAMPlusPlus
    expected = kind(model=network, target_layers=[network.layer4[-1]])(input_tensor=torch.from_numpy(x), targets=None)
    assert expected.max() > 0.99
    assert np.abs(model.explain(x, method=method) - expected).max() <= 1e-4
