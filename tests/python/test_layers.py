"""The layer classes are those of the YAML, with its keys and defaults; code and YAML are one model."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import gpunn as gnn
from gpunn.layers import CLASS_OF, table

# A layer of each type with as few arguments as it takes, and one with others than the defaults.
EXAMPLES: list[tuple[gnn.Layer, dict[str, object]]] = [
    (gnn.Conv2d(3, 8, 5), {"filters": 8, "kernel": 5}),
    (
        gnn.Conv2d(3, 8, (3, 5), (1, 2), "same", 2, 1, False),
        {
            "filters": 8,
            "kernel": [3, 5],
            "stride": [1, 2],
            "padding": "same",
            "dilation": 2,
            "bias": False,
        },
    ),
    (gnn.ConvTranspose2d(3, 8, 2, 2, output_padding=1), {"filters": 8, "kernel": 2, "stride": 2, "output_padding": 1}),
    (gnn.Conv1d(3, 8, 5), {"filters": 8, "kernel": 5}),
    (gnn.Conv3d(3, 8, (1, 2, 3), padding=(0, 1, 1)), {"filters": 8, "kernel": [1, 2, 3], "padding": [0, 1, 1]}),
    (gnn.ConvTranspose3d(3, 8, 2, 2), {"filters": 8, "kernel": 2, "stride": 2}),
    (gnn.LSTM(5, 7), {"units": 7}),
    (
        gnn.LSTM(5, 7, False, True, output="last"),
        {"units": 7, "bias": False, "direction": "bidirectional", "output": "last"},
    ),
    (gnn.GRU(5, 7, linear_before_reset=False), {"units": 7, "linear_before_reset": False}),
    (gnn.RNN(5, 7, direction="reverse", activation="relu"), {"units": 7, "direction": "reverse", "activation": "relu"}),
    (gnn.MaxPool3d(3, 2, 1, 2), {"window": 3, "stride": 2, "padding": 1, "dilation": 2}),
    (gnn.Linear(5, 7), {"units": 7}),
    (
        gnn.Linear(5, 7, False, activation="relu", init="kaiming_normal"),
        {
            "units": 7,
            "bias": False,
            "activation": "relu",
            "init": "kaiming_normal",
        },
    ),
    (gnn.Linear(5, 7, int8_weight=True), {"units": 7, "int8_weight": True}),
    (gnn.QuantizeLinear(-8, 7, (3, 1)), {"low": -8, "high": 7, "shape": [3, 1]}),
    (gnn.DequantizeLinear(), {}),
    (gnn.DynamicQuantize("scale"), {"gives": "scale"}),
    (gnn.LeakyReLU(), {}),
    (gnn.LeakyReLU(0.2), {"slope": 0.2}),
    (gnn.GELU("tanh"), {"approximate": "tanh"}),
    (gnn.Softmax(over="last"), {"over": "last"}),
    (gnn.MaxPool2d(3, 2, 1, ceil_mode=True), {"window": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    (gnn.AvgPool2d(2), {"window": 2}),
    (gnn.AvgPool2d(2, count_include_pad=False), {"window": 2, "count_padding": False}),
    (gnn.AvgPool2d(3, 2, ceil_mode=True), {"window": 3, "stride": 2, "ceil_mode": True}),
    (gnn.ELU(0.5), {"alpha": 0.5}),
    (gnn.CELU(2), {"alpha": 2}),
    (gnn.Hardsigmoid(), {}),
    (gnn.Hardsigmoid(0.2, 0.4), {"slope": 0.2, "offset": 0.4}),
    (gnn.PReLU(True), {"channels": True}),
    (gnn.Clamp(-1, 2), {"low": -1, "high": 2}),
    (gnn.Power(-1), {"exponent": -1}),
    (gnn.Affine(), {}),
    (gnn.Affine((3, 1), bias=False, trained=False), {"shape": [3, 1], "bias": False, "trained": False}),
    (gnn.Reduce("max", (1, 2), True), {"function": "max", "dimensions": [1, 2], "keep": True}),
    (gnn.Resize2d(3, 5), {"rows": 3, "columns": 5}),
    (gnn.Upsample(2, "bilinear"), {"factor": 2, "mode": "bilinear"}),
    (gnn.Upsample(mode="bilinear"), {"mode": "bilinear"}),
    (gnn.BatchNorm2d(4), {}),
    (gnn.BatchNorm2d(4, 1e-3, 0.2), {"epsilon": 1e-3, "momentum": 0.2}),
    (gnn.LayerNorm(), {}),
    (gnn.LayerNorm(64), {"dimensions": 1}),
    (gnn.GroupNorm(4, 8), {"groups": 4}),
    (gnn.ConditionalInstanceNorm2d(8, 3, style=1), {"styles": 3, "style": 1}),
    (gnn.ZeroPad2d((1, 2, 3, 4)), {"padding": [3, 4, 1, 2]}),
    (gnn.ZeroPad2d(1, mode="reflect"), {"padding": 1, "mode": "reflect"}),
    (gnn.Slice(2, 3, 1), {"start": 2, "size": 3, "dimension": 1}),
    (gnn.Dropout(), {}),
    (gnn.Dropout(0.1), {"p": 0.1}),
    (gnn.MultiheadAttention(64, 8), {"heads": 8}),
    (gnn.Embedding(20, 8), {"count": 20, "width": 8}),
    (
        gnn.NonMaximumSuppression(0.4, 0.1, 50),
        {"overlap": 0.4, "least_score": 0.1, "most": 50},
    ),
    (
        gnn.SSDHead(20, [8, 16], [10, 20, 40], [2, 3]),
        {"classes": 20, "strides": [8, 16], "sizes": [10, 20, 40], "ratios": [2, 3]},
    ),
    (gnn.FCOSHead(20, [8, 16]), {"classes": 20, "strides": [8, 16]}),
]


def test_every_layer_of_the_yaml_has_a_class_that_reaches_every_key() -> None:
    assert set(CLASS_OF) == set(table())
    for kind, one in CLASS_OF.items():
        assert getattr(gnn, one.__name__) is one
        source = inspect.getsource(one.__init__)
        for key in table()[kind]["keys"]:
            assert f"{key['path']}=" in source or f'"{key["path"]}"' in source, (kind, key["path"])


@pytest.mark.parametrize(("layer", "keys"), EXAMPLES, ids=lambda one: str(one)[:40])
def test_arguments_have_pytorchs_order_and_defaults_are_left_out(layer: gnn.Layer, keys: dict[str, object]) -> None:
    assert layer.keys == keys


def test_defaults_of_the_classes_are_those_of_the_table() -> None:
    """A class whose default differed from the YAML's would write its key."""
    for one in (
        gnn.Conv2d(1, 2, 3),
        gnn.ConvTranspose2d(1, 2, 3),
        gnn.Linear(1, 2),
        gnn.MaxPool2d(2),
        gnn.AvgPool2d(2),
    ):
        required = {key["path"] for key in table()[one.type]["keys"] if key["default"] == "required"}
        assert set(one.keys) == required


def test_sizes_may_be_numbers_of_numpy_and_no_fractions() -> None:
    plain = gnn.Sequential([gnn.Conv2d(1, 2, 3), gnn.MaxPool2d((2, 1))], input_shape=(1, 6, 6))
    layers = [gnn.Conv2d(1, np.int64(2), np.int64(3)), gnn.MaxPool2d(np.array([2, 1]))]  # type: ignore[arg-type]
    assert gnn.Sequential(layers, input_shape=(1, 6, 6)).to_yaml() == plain.to_yaml()
    for size in (2.5, (2.5, 2)):
        with pytest.raises(gnn.ConfigError, match=r"expected an integer.*found.*2\.5"):
            gnn.Sequential([gnn.Conv2d(1, 2, size)], input_shape=(1, 6, 6))  # type: ignore[arg-type]


def test_what_is_no_node_is_told() -> None:
    x = gnn.Input((3, 4, 4))
    for other in (1, None, np.zeros((2, 3))):
        with pytest.raises(gnn.UsageError, match=r"found (int|NoneType|ndarray); arrays go into a network"):
            gnn.Add()(x, other)  # type: ignore[arg-type]


def test_a_chain_in_code_is_the_chain_in_yaml() -> None:
    network = gnn.Sequential(
        [gnn.Conv2d(1, 6, 5, padding=2), gnn.ReLU(), gnn.MaxPool2d(2), gnn.Flatten(), gnn.Linear(1176, 10)],
        input_shape=(1, 28, 28),
    )
    again = gnn.from_yaml(network.to_yaml())
    assert isinstance(again, gnn.Sequential)
    assert again.to_yaml() == network.to_yaml()
    assert list(network.state_dict()) == ["conv2d1.weight", "conv2d1.bias", "linear1.weight", "linear1.bias"]
    for name, values in network.state_dict().items():
        assert np.array_equal(values, again.state_dict()[name])


def test_branches_in_code_are_branches_in_yaml(tmp_path: Path) -> None:
    x = gnn.Input((3, 8, 8))
    y = gnn.Conv2d(3, 4, 3, padding=1, name="stem")(x)
    z = gnn.Conv2d(4, 4, 3, padding=1)(gnn.ReLU()(y))
    both = gnn.Concat()([y + z, y * z])
    network = gnn.Network(x, gnn.Linear(8, 5)(gnn.GlobalAvgPool2d()(both)))
    text = network.to_yaml(tmp_path / "model.yaml")
    assert "- add: {name: add1, from: [stem, conv2d2]}" in text
    again = gnn.from_yaml(tmp_path / "model.yaml")
    assert len(gnn.from_yaml("layers: [flatten, {linear: {units: 3}}]").layers) == 2
    assert type(again) is gnn.Network
    samples = np.random.default_rng(0).normal(size=(3, 3, 8, 8)).astype(np.float32)
    assert np.array_equal(network(samples), again(samples))
    assert network(samples).shape == (3, 5)


def test_a_shipped_model_with_blocks_and_parameters(source: Path) -> None:
    network = gnn.from_yaml(source / "models" / "resnet18.yaml", classes=10, stem="cifar")
    assert network.forward(np.zeros((1, 3, 32, 32), np.float32)).shape == (1, 10)
    assert sum(values.size for values in network.parameters().values()) == 11_173_962
    assert "11,173,962 parameters" in network.summary()
    again = gnn.from_yaml(network.to_yaml())
    assert again.to_yaml() == network.to_yaml()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gnn.Sequential([]), "at least one layer"),
        (lambda: gnn.Sequential([gnn.ReLU(name="a"), gnn.ReLU(name="a")]), "same name"),
        (lambda: gnn.Sequential([gnn.Linear(4, 3)] * 2), "two places"),
        (lambda: gnn.Sequential([gnn.Linear(5, 3)], input_shape=(4,)), "in_features is 5, and its input has 4"),
        (lambda: gnn.Sequential([gnn.Conv2d(1, 4, 3)], input_shape=(3, 8, 8)), "in_channels is 1, and its input has 3"),
        (lambda: gnn.Sequential([gnn.BatchNorm2d(7)], input_shape=(3, 8, 8)), "num_features is 7"),
        (
            lambda: gnn.Sequential([gnn.Conv3d(1, 4, 3)], input_shape=(2, 5, 5, 5)),
            "in_channels is 1, and its input has 2",
        ),
        (lambda: gnn.Sequential([gnn.GRU(5, 4)], input_shape=(6, 3)), "input_size is 5, and its input has 3"),
        (lambda: gnn.Sequential([gnn.Conv2d(1, 4, 9)], input_shape=(1, 5, 5)), "conv2d"),
        (lambda: gnn.Sequential([gnn.Linear(4, -1)], input_shape=(4,)), "at least 1"),
        (lambda: gnn.Sequential([gnn.ReLU()]).parameters(), "input_shape"),
        (
            lambda: gnn.ReLU()(np.zeros((2, 3))),  # type: ignore[arg-type]
            "arrays go into a network",
        ),
        (lambda: gnn.Add()(gnn.Input((3,))), "called with 2"),
        (lambda: gnn.Softmax(dim=0), "dim"),
        (lambda: gnn.Network(gnn.Input((3,)), gnn.ReLU()(gnn.Input((3,)))), "not the network's input"),
    ],
)
def test_what_is_no_network_is_told(build: object, message: str) -> None:
    with pytest.raises(gnn.UsageError, match=message):
        build()  # type: ignore[operator]


def test_a_resize_by_whole_factors_is_an_upsampling() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    resized = gnn.Sequential(gnn.Resize2d(8, 15)).forward(x)
    upsampled = gnn.Sequential(gnn.Upsample((2, 3), "bilinear")).forward(x)
    np.testing.assert_allclose(resized, upsampled, rtol=1e-5, atol=1e-6)
    assert gnn.Sequential(gnn.Resize2d(columns=2)).forward(x).shape == (2, 3, 4, 2)


def test_a_layer_without_keys_refuses_one() -> None:
    with pytest.raises(TypeError, match="slope"):
        CLASS_OF["sin"](slope=2)
