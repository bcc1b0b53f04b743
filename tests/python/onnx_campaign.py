"""Random graphs of ONNX through gpunn and ONNX Runtime: equal, equal but for rounding, refused or wrong.

An answer that is the one of ONNX's reference counts as "reference": ONNX Runtime computes some types in wider ones.

python3 tests/python/onnx_campaign.py --graphs 50000 --processes 2 --seed 7 --folder /tmp/wrong

Each process checks a share of the graphs. One that crashes is started again behind the graph that crashed it. Wrong
graphs are made smaller, printed, and written to the folder. ``--only NUMBER`` checks a single graph.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

import gpunn
import onnx_compare
import onnx_graphs
from onnx_compare import Array
from onnx_graphs import Graph, RefusedError
from onnx_shrink import save, shrink

RELATIVE, ABSOLUTE = 1e-5, 1e-6  # of the largest finite number of an answer, and besides
HALF = 100  # times the tolerance where data are float16
NOISES = 6
FILE = "random.onnx"

Run = Callable[[Path, dict[str, Array]], dict[str, Array]]


def verdict(graph: Graph, folder: Path, run: Run = onnx_compare.run_named) -> tuple[str, str]:
    """Equal, rounded, refused or wrong, and why. Raises RefusedError if ONNX Runtime does not take the graph.

    Rounded is an answer that differs by no more than rounding can explain. Where the number of rows is free, a batch of
    fewer rows is tried, too.
    """
    expected = onnx_graphs.answers(graph, graph.outputs)
    file = folder / FILE
    file.write_bytes(graph.model(dict(zip(graph.outputs, expected, strict=True))).SerializeToString())
    found, why = _judge(graph, file, expected, run)
    if found not in ("equal", "rounded", "reference") or not graph.free or len(graph.x) < 2:
        return found, why
    fewer = graph.fewer()
    try:
        expected = onnx_graphs.answers(fewer, graph.outputs)
    except RefusedError:  # its constants fit the other batch only
        return found, why
    also, why = _judge(fewer, file, expected, run)
    if also == "wrong" and why.startswith(onnx_compare.UnusableError.__name__):
        return found, ""  # a model may take as many rows as it has constants for
    return (also, f"with {len(fewer.x)} rows: {why}") if also == "wrong" else (found, "")


def _judge(graph: Graph, file: Path, expected: list[Array], run: Run) -> tuple[str, str]:
    try:
        found = run(file, graph.inputs)
    except gpunn.Error as error:
        return "refused", onnx_compare.reason(error)
    except Exception as error:  # any other is a mistake of gpunn
        return "wrong", f"{type(error).__name__}: {error}"
    verdicts = []
    for number, (name, right) in enumerate(zip(graph.outputs, expected, strict=True)):
        verdict, why = _judge_output(graph, file, number, found[name], right)
        if verdict == "wrong":
            return verdict, f"{name}: {why}" if len(expected) > 1 else why
        verdicts.append(verdict)
    return max(verdicts, key=["equal", "reference", "rounded"].index), ""


def _judge_output(graph: Graph, file: Path, number: int, found: Array, expected: Array) -> tuple[str, str]:
    wrong = onnx_compare.difference(found, expected, 0, _tolerance(expected) * (HALF if _has_half_data(graph) else 1))
    if not wrong:
        return "equal", ""
    if _is_reference(graph, file, number, found):
        return "reference", ""
    if found.shape != expected.shape or not _is_rounding(graph, number, found, expected):
        return "wrong", wrong
    return "rounded", ""


def _has_half_data(graph: Graph) -> bool:
    """Whether data become float16, which gpunn rounds where the file does, and computes in float32."""
    return any(node.op == "Cast" and node.attributes.get("to") in (10, 16) for node in graph.nodes)


def _is_reference(graph: Graph, file: Path, number: int, found: Array) -> bool:
    """Whether the answer is that of ONNX's reference, where ONNX Runtime computes in other types than the file says."""
    try:
        outputs: Any = ReferenceEvaluator(str(file)).run(None, graph.inputs)
        expected = outputs[number]
    except Exception:  # which the reference does not compute
        return False
    return not onnx_compare.difference(found, np.asarray(expected), 0, _tolerance(np.asarray(expected)))


def _tolerance(expected: Array) -> float:
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64)) if expected.dtype.kind == "f" else expected
    largest = float(np.abs(np.asarray(finite, np.float64)).max()) if finite.size else 0.0
    return RELATIVE * largest + ABSOLUTE


def _is_rounding(graph: Graph, number: int, found: Array, expected: Array) -> bool:
    """Whether ONNX Runtime's own answer changes as much, if the results within the graph change in the last places.

    That is so where the graph amplifies rounding: at the steps of a quantisation, a rounding or a comparison, near a
    pole, and where large numbers cancel each other.
    """
    rng = np.random.default_rng(0)
    slack = np.full(expected.shape, _tolerance(expected))
    settled = np.ones(expected.shape, bool)  # finite each time, or never
    right, left = expected.astype(np.float64), found.astype(np.float64)
    with np.errstate(all="ignore"):
        for _ in range(NOISES):
            try:
                other = onnx_graphs.noisy_answers(graph, rng)[number].astype(np.float64)
            except RefusedError:
                return False
            if other.shape != expected.shape:
                return False
            change = np.abs(other - right)
            settled &= np.isfinite(other) == np.isfinite(right)
            slack = np.maximum(slack, np.where(np.isfinite(change), 4 * change, 0))
        near_enough = (left == right) | (np.isnan(left) & np.isnan(right)) | (np.abs(left - right) <= slack)
    return bool((near_enough | ~settled).all())


@dataclass
class Summary:
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)  # of refusals
    wrong: list[str] = field(default_factory=list)  # the smallest graphs, as text

    def __str__(self) -> str:
        lines = [f"{count} {why}" for why, count in self.reasons.most_common()]
        return "\n".join(
            [*self.wrong, *lines, ", ".join(f"{count} {word}" for word, count in sorted(self.counts.items()))]
        )


def check(
    seed: int, number: int, folder: Path, smaller: bool, run: Run = onnx_compare.run_named, name: str = "running"
) -> tuple[str, str]:
    """The verdict on a graph of the generator. A wrong one is made smaller, and its text is the reason.

    name: of the subfolder for the file that is run, which is left there if the process crashes.
    """
    graph = onnx_graphs.draw(seed, number)
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    found, why = verdict(graph, place, run)
    if found == "wrong" and smaller:
        graph = shrink(graph, lambda one: _is_wrong(one, place, run))
        why = verdict(graph, place, run)[1]
    shutil.rmtree(place)
    if found != "wrong":
        return found, why
    text = f"seed {seed}, graph {number}: {why}\n  {graph}"
    save(graph, str(folder / f"{seed}-{number}.onnx"))
    (folder / f"{seed}-{number}.txt").write_text(text + "\n")
    return "wrong", text


def _is_wrong(graph: Graph, folder: Path, run: Run) -> bool:
    try:
        return bool(graph.nodes) and verdict(graph, folder, run)[0] == "wrong"
    except RefusedError:
        return False


def _worker(options: argparse.Namespace) -> None:
    """Prints the number of each graph before the verdict, so that a crash shows which graph it was."""
    shrunk = 0
    for number in range(options.shard, options.graphs, options.processes)[options.done :]:
        print(json.dumps(["begin", number, ""]), flush=True)
        found, why = check(options.seed, number, options.folder, shrunk < options.shrink, name=f"shard{options.shard}")
        shrunk += found == "wrong"
        print(json.dumps([found, number, why]), flush=True)


def sharded(graphs: int, seed: int, processes: int, shrink: int, folder: Path) -> Summary:
    """Runs the workers, each with a file for its lines."""
    command = [sys.executable, "-X", "faulthandler", __file__, "--worker", f"--graphs={graphs}", f"--seed={seed}"]
    command += [f"--processes={processes}", f"--shrink={shrink}", f"--folder={folder}"]
    summary = Summary()
    with tempfile.TemporaryDirectory() as scratch:
        logs = [Path(scratch) / str(shard) for shard in range(processes)]
        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(lambda shard: keep_running(command, shard, logs[shard], folder), range(processes)))
        for log in logs:
            for line in log.read_text().splitlines():
                found, number, why = json.loads(line)
                if found == "crash":
                    found, why = "wrong", f"seed {seed}, graph {number}: {why}\n  {onnx_graphs.draw(seed, number)}"
                if found == "begin":
                    continue
                summary.counts[found] += 1
                if found == "refused":
                    summary.reasons[why] += 1
                elif found == "wrong":
                    summary.wrong.append(why)
    return summary


def keep_running(command: list[str], shard: int, log: Path, folder: Path) -> None:
    """Runs a worker, again after each crash until it reaches the end. The file of a crash is kept."""
    log.touch()
    while True:
        done = len(log.read_text().splitlines()) // 2
        with log.open("a") as out:
            status = subprocess.run(
                [*command, f"--shard={shard}", f"--done={done}"], stdout=out, check=False
            ).returncode
        if not status:
            return
        lines = log.read_text().splitlines()
        if len(lines) % 2 == 0:
            raise RuntimeError(f"{' '.join(command)} ended with {status} between two graphs")
        number = json.loads(lines[-1])[1]
        running, kept = folder / f"shard{shard}" / FILE, folder / f"crash-{number}.onnx"
        if running.exists():
            running.rename(kept)
        with log.open("a") as out:
            out.write(json.dumps(["crash", number, f"the process ended with {status}, with {kept}"]) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--shrink", type=int, default=20, help="wrong graphs that each process makes smaller")
    parser.add_argument("--folder", type=Path, default=Path("onnx_wrong"), help="where wrong graphs are written")
    parser.add_argument("--only", type=int, help="the number of a single graph")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--shard", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--done", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _worker(options)
        return 0
    if options.only is not None:
        print(onnx_graphs.draw(options.seed, options.only))
        print(*check(options.seed, options.only, options.folder, True))
        return 0
    summary = sharded(options.graphs, options.seed, options.processes, options.shrink, options.folder)
    print(summary)
    return min(1, summary.counts["wrong"])


if __name__ == "__main__":
    sys.exit(main())
