"""Random graphs of ONNX give gpunn what they give ONNX Runtime, or are refused.

GPUNN_ONNX_GRAPHS is the number of graphs, GPUNN_ONNX_SEED the seed, GPUNN_ONNX_PROCESSES the number of processes, and
GPUNN_ONNX_FOLDER the folder for the smallest forms of wrong graphs, GPUNN_ONNX_BACKEND the backend. The test prints
counts and reasons if one is set.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the package onnx")
pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")

import onnx
import onnxruntime

import onnx_campaign
import onnx_compare
import onnx_graphs
from onnx_compare import Array

GRAPHS = 300


def test_random_graphs_are_equal_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graphs = int(os.environ.get("GPUNN_ONNX_GRAPHS", GRAPHS))
    summary = onnx_campaign.sharded(
        graphs,
        int(os.environ.get("GPUNN_ONNX_SEED", "0")),
        int(os.environ.get("GPUNN_ONNX_PROCESSES", "1")),
        shrink=20,
        folder=Path(os.environ.get("GPUNN_ONNX_FOLDER", tmp_path)),
    )
    if "GPUNN_ONNX_GRAPHS" in os.environ:
        with capsys.disabled():
            print(f"\n{summary}")
    assert sum(summary.counts.values()) == graphs
    assert not summary.wrong, "\n".join(summary.wrong)
    assert summary.counts["equal"] >= graphs // 10, str(summary)


def test_the_generator_repeats_itself_and_draws_every_kind() -> None:
    graphs = [onnx_graphs.draw(1, number) for number in range(250)]
    assert str(graphs[7]) == str(onnx_graphs.draw(1, 7))
    assert {graph.x.ndim for graph in graphs} == set(range(7))
    assert {graph.opset for graph in graphs} == set(onnx_graphs.OPSETS)
    assert {graph.free for graph in graphs} == {False, True}
    operators = {node.op for graph in graphs for node in graph.nodes}
    assert len(operators) >= 100
    assert {"Conv", "Gather", "MatMul", "QuantizeLinear", "ReduceMean", "Reshape", "Resize", "Where"} <= operators
    inputs = [value for graph in graphs for value in graph.more.values()]
    assert {value.dtype.name for value in inputs} == {"float32", "int64", "int32", "bool", "uint8"}
    assert {len(graph.inputs) for graph in graphs} == {1, 2, 3}
    assert {len(graph.outputs) for graph in graphs} == {1, 2, 3}
    for graph in graphs:
        values = dict(zip(graph.outputs, onnx_graphs.answers(graph, graph.outputs), strict=True))
        onnx.checker.check_model(graph.model(values))


def _onnxruntime(model: onnx.ModelProto, inputs: dict[str, Array]) -> dict[str, Array]:
    """With its optimisations, which round in other places than the graph does."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in model.graph.output]
    return dict(zip(names, map(np.asarray, session.run(None, inputs)), strict=True))


def _runs_wrongly(file: Path, inputs: dict[str, Array]) -> dict[str, Array]:
    """ONNX Runtime with a planted fault: it takes Greater for Less."""
    model = onnx.load(file)
    for node in model.graph.node:
        node.op_type = {"Greater": "Less"}.get(node.op_type, node.op_type)
    return _onnxruntime(model, inputs)


def test_a_planted_fault_is_found_and_made_small(tmp_path: Path) -> None:
    found = {
        number: onnx_campaign.check(2, number, tmp_path, True, _runs_wrongly)
        for number in range(150)
        if any(node.op == "Greater" for node in onnx_graphs.draw(2, number).nodes)
    }
    wrong = {number for number, (verdict, _) in found.items() if verdict == "wrong"}
    assert len(wrong) >= 3, found
    assert {file.stem for file in tmp_path.glob("*.onnx")} == {f"2-{number}" for number in wrong}
    for number in wrong:
        model = onnx.load(tmp_path / f"2-{number}.onnx")
        assert [node.op_type for node in model.graph.node if node.op_type != "Constant"] == ["Greater"], number
        stored = np.load(tmp_path / f"2-{number}.npz")
        given = {value.name: stored[value.name] for value in model.graph.input}
        assert all(value.size == 1 for value in given.values())
        assert not np.array_equal(next(iter(_runs_wrongly(tmp_path / f"2-{number}.onnx", given).values())), stored["y"])


CRASHING = """
import os, signal, sys
done = int(sys.argv[-1].removeprefix("--done="))
for number in range(4)[done:]:
    print(f'["begin", {number}, ""]', flush=True)
    if number in (0, 2):
        os.kill(os.getpid(), signal.SIGKILL)
    print(f'["equal", {number}, ""]', flush=True)
"""


def test_a_worker_that_crashes_is_started_again_behind_the_graph(tmp_path: Path) -> None:
    (tmp_path / "shard5").mkdir()
    (tmp_path / "shard5" / onnx_campaign.FILE).write_text("the file of the crash")
    onnx_campaign.keep_running([sys.executable, "-c", CRASHING], 5, tmp_path / "log", tmp_path)
    verdicts = [json.loads(line)[:2] for line in (tmp_path / "log").read_text().splitlines()[1::2]]
    assert verdicts == [["crash", 0], ["equal", 1], ["crash", 2], ["equal", 3]]
    assert (tmp_path / "crash-0.onnx").read_text() == "the file of the crash"


@pytest.mark.parametrize(
    ("found", "expected", "equal"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-7], True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([np.nan, 1.0], [np.nan, 1.0], True),
        ([np.nan, 1.0], [0.0, 1.0], False),
        ([0.0, 1.0], [np.nan, 1.0], False),
        ([np.inf, -np.inf], [np.inf, -np.inf], True),
        ([np.inf, 1.0], [-np.inf, 1.0], False),
        ([3.4e38, 1.0], [np.inf, 1.0], False),
        ([np.inf, 1.0], [3.4e38, 1.0], False),
        ([[1.0, 2.0]], [1.0, 2.0], False),
        ([1.0, 0.0], [True, False], True),
    ],
)
def test_what_counts_as_a_difference(found: list[Any], expected: list[Any], equal: bool) -> None:
    for relative in (0.0, 1e-6):
        assert (onnx_compare.difference(np.array(found), np.array(expected), relative, 1e-6) == "") is equal


def test_a_right_runtime_has_no_wrong_graph(tmp_path: Path) -> None:
    def run(file: Path, inputs: dict[str, Array]) -> dict[str, Array]:
        return _onnxruntime(onnx.load(file), inputs)

    found = [onnx_campaign.check(3, number, tmp_path, False, run) for number in range(150)]
    assert [text for verdict, text in found if verdict == "wrong"] == []
