"""On a GPU: streams, CUDA graphs, memory, and a model's step. Skipped without PyTorch, a GPU and a CUDA backend."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import gpunn  # noqa: E402
import gpunn.torch  # noqa: E402
from gpunn import ops  # noqa: E402
from gpunn.ops._call import info_of  # noqa: E402
from op_samples import SAMPLES  # noqa: E402

if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)
try:
    ops.Backend("auto").engine()
except gpunn.Error as error:
    pytest.skip(f"no CUDA backend: {error}", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("default")
F = torch.nn.functional


@pytest.fixture(autouse=True)
def without_tf32() -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def test_convolutions_round_as_pytorch_allows() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(8, 64, 32, 32, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda")
    exact = F.conv2d(x.double(), w.double(), padding=1)

    def error(backend: gpunn.torch.Backend | str = "") -> float:
        module = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False).cuda()
        module.weight.data.copy_(w)
        gpunn.torch.replace(module, backend)
        return float((module(x).double() - exact).norm() / exact.norm())

    assert error() < 2e-6
    torch.backends.cudnn.allow_tf32 = True
    assert 5e-5 < error() < 1e-3
    assert error(gpunn.torch.Backend("auto", precision="fp32")) < 2e-6


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_op_gives_what_the_cpu_gives(name: str) -> None:
    inputs, attributes = SAMPLES[name]()
    here = [torch.from_numpy(one) for one in inputs]
    there = [one.cuda() for one in here]
    expected, found = getattr(ops, name)(*here, **attributes), getattr(ops, name)(*there, **attributes)
    for a, b in zip(
        found if isinstance(found, tuple) else (found,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    ):
        assert a.is_cuda
        torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_opcheck(name: str) -> None:
    inputs, attributes = SAMPLES[name]()
    tensors = [torch.from_numpy(one).cuda() for one in inputs]
    arguments = (tensors,) if info_of(name).repeated else tuple(tensors)
    torch.library.opcheck(getattr(torch.ops.gpunn, name).default, arguments, attributes)


def test_zero_copies() -> None:
    x, out = torch.randn(1000, device="cuda"), torch.empty(1000, device="cuda")
    assert ops.relu(x, out=out).data_ptr() == out.data_ptr()
    assert torch.equal(out, x.relu())


def test_work_is_on_the_current_stream() -> None:
    x = torch.ones(1 << 22, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        x.mul_(2)
        y = ops.scale(x, factor=3.0)
    side.synchronize()
    assert float(y.min()) == float(y.max()) == 6


def test_a_step_in_a_graph() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 10),
    ).cuda()
    gpunn.torch.replace(model)
    x, target = torch.randn(8, 3, 32, 32, device="cuda"), torch.randint(0, 10, (8,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        before = [step().item() for _ in range(3)]
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    after = []
    for _ in range(20):
        graph.replay()
        after.append(captured.item())
    assert after[-1] < after[0] < before[0]


def test_an_unprepared_call_in_a_capture_is_refused() -> None:
    x = torch.randn(37, 41, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(gpunn.UsageError, match="run the same call once before"), torch.cuda.graph(graph):
        torch.ops.gpunn.silu(x)


def test_ten_thousand_calls_leak_nothing() -> None:
    x, w = torch.randn(8, 8, device="cuda"), torch.randn(8, 8, device="cuda")
    ops.matmul(x, w)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(10_000):
        ops.matmul(x, w)
    torch.cuda.synchronize()
    gc.collect()
    assert free - torch.cuda.mem_get_info()[0] < 1 << 20


def test_arrays_of_two_devices_are_refused() -> None:
    x = torch.randn(4, device="cuda")
    with pytest.raises(gpunn.UsageError, match="on one device"):
        ops.add(x, x.cpu())
    with pytest.raises(gpunn.UsageError, match="move the arrays, or name another backend"):
        ops.relu(x, backend="cpu")
