"""gpunn.torch.replace on modules and models, with gpunn's own backend and with a plugin of a third party."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import gpunn  # noqa: E402
import gpunn.torch  # noqa: E402

nn = torch.nn
pytestmark = pytest.mark.filterwarnings("default")

CASES = [
    (lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False), (2, 3, 9, 9)),
    (lambda: nn.Conv2d(4, 4, (3, 1), padding="valid", dilation=2, groups=2), (2, 4, 9, 9)),
    (lambda: nn.Linear(5, 7), (2, 3, 5)),
    (lambda: nn.Linear(5, 7, bias=False), (4, 5)),
    (lambda: nn.BatchNorm2d(3, momentum=0.3), (4, 3, 5, 5)),
    (lambda: nn.BatchNorm1d(6), (8, 6)),
    (lambda: nn.LayerNorm(6), (2, 3, 6)),
    (nn.ReLU, (3, 4)),
    (lambda: nn.LeakyReLU(0.3), (3, 4)),
    (nn.Sigmoid, (3, 4)),
    (nn.Tanh, (3, 4)),
    (lambda: nn.GELU(approximate="tanh"), (3, 4)),
    (nn.SiLU, (3, 4)),
    (lambda: nn.MaxPool2d(3, 2, 1), (2, 3, 8, 8)),
    (lambda: nn.AvgPool2d(2, padding=1), (2, 3, 8, 8)),
    (lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 5, 7)),
]


def run(module: Any, x: Any) -> list[Any]:
    x = x.clone().requires_grad_()
    y = module(x)
    y.backward(torch.linspace(-1, 1, y.numel()).reshape(y.shape))
    return [y.detach(), x.grad, *(p.grad for p in module.parameters()), *(b.clone() for b in module.buffers())]


@pytest.mark.parametrize(("make", "shape"), CASES, ids=[str(make()) for make, _ in CASES])
@pytest.mark.parametrize("training", [True, False])
def test_a_module_computes_what_it_did(make: Any, shape: tuple[int, ...], training: bool) -> None:
    torch.manual_seed(0)
    original = make().train(training)
    module = copy.deepcopy(original)
    report = gpunn.torch.replace(module)
    assert report.replaced == {"": type(original).__name__}
    assert isinstance(module, type(original))
    assert module.training == training
    x = torch.randn(shape)
    for found, expected in zip(run(module, x), run(original, x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), "padding_mode 'reflect'"),
        (nn.Conv2d(3, 4, 3, padding="same"), "padding 'same'"),
        (nn.Conv2d(3, 4, 3).double(), "weights of torch.float64"),
        (nn.BatchNorm2d(3, affine=False), "affine=False"),
        (nn.BatchNorm2d(3, track_running_stats=False), "track_running_stats=False"),
        (nn.BatchNorm2d(3, momentum=None), "momentum=None"),
        (nn.MaxPool2d(2, ceil_mode=True), "ceil_mode=True"),
        (nn.MaxPool2d(2, return_indices=True), "return_indices=True"),
        (nn.MaxPool2d(2, dilation=2), "dilation"),
        (nn.AvgPool2d(2, divisor_override=3), "divisor_override"),
        (nn.AdaptiveAvgPool2d(2), "output_size 2"),
        (nn.LayerNorm(4, bias=False), "no weight or no bias"),
    ],
)
def test_what_gpunn_lacks_is_left_and_told(module: Any, reason: str) -> None:
    kind = type(module)
    report = gpunn.torch.replace(module)
    assert type(module) is kind
    assert reason in report.left[""]
    assert reason in str(report)


def small_net() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


def losses(model: Any, steps: int = 5, channels_last: bool = False) -> list[float]:
    torch.manual_seed(2)
    x, target = torch.randn(8, 3, 12, 12), torch.randint(0, 4, (8,))
    if channels_last:
        x, model = x.to(memory_format=torch.channels_last), model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_model_trains_as_it_did(channels_last: bool) -> None:
    model = small_net()
    parameters, state = list(model.parameters()), list(model.state_dict())
    report = gpunn.torch.replace(model, "cpu")
    assert len(report.replaced) == 8
    assert not report.left
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert list(model.state_dict()) == state
    assert losses(model, channels_last=channels_last) == pytest.approx(losses(small_net()), rel=1e-3)
    gpunn.torch.restore(model)
    assert type(model[0]) is nn.Conv2d
    assert "_gpunn_backend" not in model[0].__dict__


class _Residual(nn.Module):  # type: ignore[misc,name-defined]
    """Without what rounding can turn over: ReLU, maxima, and a bias before a norm, whose gradient is 0 for Adam."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.SiLU())
        self.branch = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Sequential(nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        return self.head(x + self.branch(x))


def _trained(model: Any) -> Any:
    """Losses of ten steps with Adam, the last batch smaller, then buffers, parameters and logits in evaluation."""
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(78, 3, 8, 8, generator=generator).to(model.head[-1].weight)
    targets = torch.randint(0, 4, (78,), generator=generator).to(x.device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    found = []
    for some in torch.arange(78).split(8):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[some]), targets[some])
        loss.backward()
        optimizer.step()
        found.append(loss.detach().reshape(1))
    model.eval()
    with torch.no_grad():
        found += [one.flatten() for one in (*model.buffers(), *model.parameters(), model(x))]
    return torch.cat([one.double() for one in found])


@pytest.mark.parametrize("device", ["cpu", *["cuda"] * torch.cuda.is_available()])
def test_a_training_is_as_near_to_float64_as_pytorchs(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    exact = _trained(_Residual().double().to(device))
    model = _Residual().to(device)
    gpunn.torch.replace(model)
    ours, theirs = ((_trained(one) - exact).detach().abs().max().item() for one in (model, _Residual().to(device)))
    assert ours < 1e-5
    assert theirs < 1e-5


def test_a_compiled_model_trains_as_it_did() -> None:
    model = small_net()
    gpunn.torch.replace(model)
    assert losses(torch.compile(model, backend="aot_eager")) == pytest.approx(losses(small_net()), rel=1e-3)


def test_a_traced_model_calls_its_modules() -> None:
    model = small_net().eval()
    x = torch.randn(2, 3, 12, 12)
    expected = model(x)
    gpunn.torch.replace(model)
    traced = torch.fx.symbolic_trace(model)
    called = [node.target for node in traced.graph.nodes if node.op == "call_module"]
    assert called == [name for name, module in model.named_modules() if name and not list(module.children())]
    torch.testing.assert_close(traced(x), expected, rtol=1e-4, atol=1e-5)


def test_only_some_classes() -> None:
    model = small_net()
    report = gpunn.torch.replace(model, only=[nn.Conv2d])
    assert set(report.replaced.values()) == {"Conv2d"}
    assert type(model[1]) is nn.BatchNorm2d


def test_a_plugin_by_its_file() -> None:
    """A kernel of a third party, as examples/openblas_matmul, trains the model."""
    plugin = os.environ.get("GPUNN_TEST_PLUGIN", "")
    if not Path(plugin).is_file():
        pytest.skip("GPUNN_TEST_PLUGIN names no plugin file with a kernel for MATMUL")
    x = torch.randn(4, 4)
    kernels = gpunn.ops.explain(gpunn.ops.matmul, x, x, backend=plugin)
    assert not kernels[0].startswith("cpu:")
    model = small_net()
    gpunn.torch.replace(model, plugin)
    assert losses(model) == pytest.approx(losses(small_net()), rel=1e-3)


def test_a_setting_that_changes_holds_from_the_next_call_on() -> None:
    original = nn.BatchNorm2d(3)
    module = copy.deepcopy(original)
    gpunn.torch.replace(module)
    x = torch.randn(4, 3, 5, 5)
    for one in (original, module):
        one(x)
        one.momentum, one.eps = 0.5, 0.1
    torch.testing.assert_close(module(x), original(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(module.running_var, original.running_var)
    for one in (original, module):
        one.weight.data = torch.tensor([[2.0, 0, 0], [3.0, 0, 0], [4.0, 0, 0]])[:, 0]  # with gaps
    torch.testing.assert_close(module(x), original(x), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        assert not module(x).requires_grad
    module.requires_grad_(False)
    assert not module(x).requires_grad
    assert module.requires_grad_()(x).requires_grad
    with torch.autocast("cpu", torch.bfloat16):
        linear = nn.Linear(5, 5)
        gpunn.torch.replace(linear)
        assert linear(x).dtype == torch.bfloat16
    assert linear(x).dtype == torch.float32


def test_copies_of_a_module_that_has_run(tmp_path: Path) -> None:
    model = small_net()
    gpunn.torch.replace(model)
    x = torch.randn(2, 3, 12, 12)
    model.eval()
    y = model(x)
    torch.save(model, tmp_path / "model.pt")
    for other in (copy.deepcopy(model), torch.load(tmp_path / "model.pt", weights_only=False)):
        assert torch.equal(other(x), y)
    torch.testing.assert_close(model.double()(x.double()).float(), y, rtol=1e-4, atol=1e-5)


def test_a_tensor_with_a_negative_bit_has_the_numbers_that_it_shows() -> None:
    x = torch.randn(4, 8)
    layer = nn.Linear(8, 3)
    gpunn.torch.replace(layer)
    assert torch.allclose(layer(torch._neg_view(x)), layer(-x), atol=1e-6)
    inputs = [x.clone().requires_grad_(), x.clone().requires_grad_()]
    layer(inputs[0]).backward(torch._neg_view(torch.ones(4, 3)))
    layer(inputs[1]).backward(-torch.ones(4, 3))
    assert torch.allclose(inputs[0].grad, inputs[1].grad, atol=1e-6)


def test_an_activation_in_place() -> None:
    """As PyTorch's: the output is the input, and what another gradient saved of it may not change."""
    relu = nn.ReLU(inplace=True)
    gpunn.torch.replace(relu)
    w = torch.randn(6, requires_grad=True)
    x = w * 2
    y = relu(x)
    assert y is x
    y.backward(torch.ones(6))
    assert torch.equal(w.grad, 2.0 * (w > 0))
    with torch.no_grad():
        z = torch.randn(3)
        assert relu(z) is z
        assert z.min() >= 0
    with pytest.raises(RuntimeError, match="leaf"):
        relu(torch.randn(3, requires_grad=True))
    a = w * 1
    b = a * a
    relu(a)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.sum().backward()
    model = nn.Sequential(nn.Conv2d(2, 3, 3), relu, nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.ReLU(inplace=True))
    expected = copy.deepcopy(model)
    gpunn.torch.restore(expected)
    gpunn.torch.replace(model)
    x = torch.randn(2, 2, 5, 5)
    for one, other in zip(run(model, x), run(expected, x), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_wrong_backend_is_told_at_the_first_call() -> None:
    model = small_net()
    gpunn.torch.replace(model, "nowhere")
    with pytest.raises(gpunn.MissingError, match="'nowhere' was not found"):
        model(torch.randn(1, 3, 12, 12))
