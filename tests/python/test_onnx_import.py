"""torchvision's networks, as both of PyTorch's exporters write them, give gpunn what they give PyTorch.

Needs torch, torchvision, onnx and onnxscript. The weights are random.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn

pytest.importorskip("onnx", reason="needs the package onnx")
pytest.importorskip("onnxscript", reason="needs the package onnxscript")
torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
torchvision: Any = pytest.importorskip("torchvision", reason="needs torchvision")

# With the rows and columns of its images: small ones where the network takes them.
NETWORKS = {
    "alexnet": 64,
    "vgg16_bn": 224,
    "resnet18": 64,
    "resnet50": 64,
    "squeezenet1_1": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "shufflenet_v2_x1_0": 64,
    "googlenet": 64,
    "densenet121": 64,
    "efficientnet_b0": 64,
    "vision_transformer": 64,
    "swin_transformer": 64,
}
LEGACY_SIZES = {"alexnet": 224}  # the legacy exporter has adaptive pooling of whole windows alone
ROWS = 2


def network(name: str) -> Any:
    """With statistics that show in the outputs."""
    torch.manual_seed(20261125)
    more = {"init_weights": True, "aux_logits": False, "transform_input": True} if name == "googlenet" else {}
    if name == "vision_transformer":
        model = torchvision.models.VisionTransformer(64, 16, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64)
        torch.nn.init.normal_(model.heads.head.weight)
    elif name == "swin_transformer":
        model = torchvision.models.SwinTransformer([4, 4], 16, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4])
    else:
        model = getattr(torchvision.models, name)(weights=None, **more)
    model.eval()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.1)
    return model


def export(model: Any, x: Any, file: Path, exporter: str) -> None:
    names: dict[str, Any] = {"input_names": ["x"], "output_names": ["y"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "legacy":
            axes = {"x": {0: "rows"}, "y": {0: "rows"}}
            torch.onnx.export(model, (x,), str(file), dynamo=False, dynamic_axes=axes, **names)
        else:
            shapes = ({0: torch.export.Dim("rows")},)
            torch.onnx.export(
                model, (x,), str(file), dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False, **names
            )


@pytest.mark.parametrize("exporter", ["legacy", "dynamo"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_torchvision_gives_what_pytorch_gives(name: str, exporter: str, tmp_path: Path) -> None:
    model, size = network(name), NETWORKS[name]
    if exporter == "legacy":
        size = LEGACY_SIZES.get(name, size)
    x = torch.randn(ROWS, 3, size, size)
    with torch.no_grad():
        expected = model(x).numpy()
    export(model, x, tmp_path / "network.onnx", exporter)
    found = gpunn.load(tmp_path / "network.onnx", backend="cpu", max_batch=ROWS).run(x.numpy())
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


# Rows and columns of the images, and of what is given. Windows of equal sizes, and of others along one axis or both.
POOLINGS = [((1, 1), (6, 6)), ((5, 7), (2, 3)), ((5, 5), (6, 6)), ((5, 7), (3, 3)), ((4, 6), (2, 6))]


@pytest.mark.parametrize(("image", "size"), POOLINGS)
def test_an_adaptive_pooling_of_any_size_gives_what_pytorch_gives(
    image: tuple[int, int], size: tuple[int, int], tmp_path: Path
) -> None:
    model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(size), torch.nn.Flatten()).eval()
    x = torch.randn(ROWS, 3, *image)
    export(model, x, tmp_path / "network.onnx", "dynamo")
    found = gpunn.load(tmp_path / "network.onnx", backend="cpu", max_batch=ROWS).run(x.numpy())
    np.testing.assert_allclose(found, model(x).numpy(), rtol=1e-5, atol=1e-6)


class Encoder(torch.nn.Module):  # type: ignore[misc]
    """States of two layers in both directions, their last ones, and a decoder that starts from the last."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        layer = getattr(torch.nn, kind)
        self.encoder = layer(5, 4, 2, batch_first=True, bidirectional=True)
        self.decoder = layer(8, 4)
        self.kind = kind

    def forward(self, x: Any) -> Any:
        states, last = self.encoder(x)
        first = tuple(one[-1:] for one in last) if self.kind == "LSTM" else last[-1:]
        decoded, _ = self.decoder(states.transpose(0, 1), first)
        hidden = last[0] if self.kind == "LSTM" else last
        return torch.cat([decoded.mean(0), states[:, -1], hidden.transpose(0, 1).flatten(1)], 1)


SEQUENCES_AND_VOLUMES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "LSTM": (lambda: Encoder("LSTM"), (7, 5)),
    "GRU": (lambda: Encoder("GRU"), (7, 5)),
    "RNN": (lambda: Encoder("RNN"), (7, 5)),
    "lines": (
        lambda: torch.nn.Sequential(
            torch.nn.Conv1d(3, 8, 5, padding=2),
            torch.nn.BatchNorm1d(8),
            torch.nn.MaxPool1d(3, 2, 1),
            torch.nn.Conv1d(8, 8, 3, padding=2, dilation=2, groups=8),
            torch.nn.AvgPool1d(3, 2, 1, ceil_mode=True),
            torch.nn.ConvTranspose1d(8, 4, 4, 2, 1),
            torch.nn.AdaptiveAvgPool1d(11),
        ),
        (3, 40),
    ),
    "volumes": (lambda: torchvision.models.video.r3d_18(weights=None), (3, 3, 16, 16)),
}


@pytest.mark.parametrize("exporter", ["legacy", "dynamo"])
@pytest.mark.parametrize("name", SEQUENCES_AND_VOLUMES)
def test_sequences_lines_and_volumes_give_what_pytorch_gives(name: str, exporter: str, tmp_path: Path) -> None:
    torch.manual_seed(20261129)
    build, shape = SEQUENCES_AND_VOLUMES[name]
    model, x = build().eval(), torch.randn(ROWS, *shape)
    with torch.no_grad():
        expected = model(x).numpy()
    export(model, x, tmp_path / "network.onnx", exporter)
    found = gpunn.load(tmp_path / "network.onnx", backend="cpu", max_batch=ROWS).run(x.numpy())
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()
