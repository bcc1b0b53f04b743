"""ONNX's own backend tests. A case that gpunn can't compute is skipped with the reason.

Needs the package onnx. ``python3 tests/python/test_onnx_backend.py`` prints the table of docs/onnx-import.md.
"""

from __future__ import annotations

import unittest
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

onnx: Any = pytest.importorskip("onnx", reason="needs the package onnx")

from onnx.backend.test import BackendTest  # noqa: E402
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt  # noqa: E402

import gpunn.onnx  # noqa: E402
import onnx_node_table  # noqa: E402


class SkippingPrepared(gpunn.onnx.Prepared):
    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        try:
            return super().run(inputs, **kwargs)
        except BackendIsNotSupposedToImplementIt as reason:
            raise unittest.SkipTest(str(reason)) from reason


class SkippingBackend(gpunn.onnx.Backend):
    """Skips where ONNX's runner would count a case that was not computed as passed."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> SkippingPrepared:
        prepared = super().prepare(model, device)
        return SkippingPrepared(model, prepared.backend)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


def cases() -> dict[str, type[unittest.TestCase]]:
    """Classes of ONNX's cases by their kind. Making some of them overflows, as they mean to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner = BackendTest(SkippingBackend, __name__)
    # They take a length before it is rounded; the operator's text, PyTorch and ONNX Runtime take the length of the
    # result.
    runner.exclude("test_resize_downsample_scales_(linear|cubic)_align_corners_cpu")
    return {
        name.removeprefix("OnnxBackend").removesuffix("ModelTest"): kind for name, kind in runner.test_cases.items()
    }


CASES = cases()
TestNodes = CASES["Node"]
TestSimple = CASES["Simple"]
TestOperators = CASES["PyTorchOperator"]


def of_cpu(kind: str) -> tuple[int, dict[str, str]]:
    """How many of a kind passed, and why the others were skipped."""
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(CASES[kind])
    count = suite.countTestCases()  # the result's own count is without those that Python 3.12.1 skips
    result = suite.run(unittest.TestResult())
    skipped = {str(case).split()[0]: why for case, why in result.skipped if "support device" not in why}
    bad = [f"{case}: {text}" for case, text in [*result.failures, *result.errors]]
    assert not bad, "\n".join(bad)
    devices = 2  # each case is there for the CPU and for CUDA
    return count // devices - len(skipped), skipped


def test_networks_that_pytorch_converted_are_computed() -> None:
    passed, skipped = of_cpu("PyTorchConverted")
    assert passed >= 60, skipped


def test_networks_of_the_model_zoo_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNX_HOME", str(tmp_path))
    passed, skipped = of_cpu("Real")
    assert (passed, skipped) == (9, {})


def test_the_page_of_single_nodes_shows_what_is_computed() -> None:
    page = onnx_node_table.PAGE.read_text()
    if f"onnx\n{onnx.__version__}." not in page:
        pytest.skip(f"docs/onnx-node-tests.md is of another version of onnx than {onnx.__version__}")
    found = onnx_node_table.page(onnx_node_table.results())
    assert page.splitlines() == found.splitlines(), "run tests/python/onnx_node_table.py --write"


def print_table() -> None:
    """Counts by kind, and the reasons of those that are skipped."""
    reasons: Counter[str] = Counter()
    print("| kind | cases | computed | skipped |\n| --- | --- | --- | --- |")
    for kind in CASES:
        passed, skipped = of_cpu(kind)
        print(f"| {kind} | {passed + len(skipped)} | {passed} | {len(skipped)} |")
        reasons.update(why.splitlines()[-1].strip() for why in skipped.values())
    for why, count in reasons.most_common():
        print(count, why)


if __name__ == "__main__":
    print_table()
