"""ONNX's own tests of single nodes, as networks of one input: which operators gpunn computes.

python3 tests/python/onnx_node_table.py            prints the sums, the wrong answers and the reasons of refusals
python3 tests/python/onnx_node_table.py --write    writes docs/onnx-node-tests.md, which test_onnx_backend.py compares
"""

from __future__ import annotations

import argparse
import re
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

import gpunn
import onnx_compare
from onnx_compare import Array

PAGE = Path(__file__).parents[2] / "docs" / "onnx-node-tests.md"

INTRO = """\
# ONNX's tests of single nodes

This page lists which operators of ONNX gpunn computes, by the tests that come with the package onnx
{version}. Read it to see whether gpunn [imports](onnx-import.md) a network from elsewhere.

A test is counted if it has a float32 input, which becomes the samples. All its other inputs are
constants. *Right* means that every output is within the test's own tolerance. *Refused* means that
the import ends with an error, and the table shows the most frequent one. Tests of an operator's
definition by other operators count for the operator.

`python3 tests/python/onnx_node_table.py --write` writes this page again, and
`tests/python/test_onnx_backend.py` compares it.
"""


class Result(NamedTuple):
    case: str
    operator: str
    verdict: str  # right, wrong or refused
    reason: str


class NotANetworkError(Exception):
    """The reason why a case has no form as a file with one input of samples."""


def cases() -> list[Any]:
    """The cases with a float32 input. Making some of them overflows, as they mean to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [case for case in found if case.model is not None and _samples(case.model) is not None]


def _samples(model: onnx.ModelProto) -> int | None:
    """The first float32 input."""
    for number, value in enumerate(model.graph.input):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            return number
    return None


def operators(chosen: Iterable[Any]) -> dict[str, str]:
    """The operator of each case. A case of a definition has that of the case whose definition it is."""
    named = {case.name: case.model.graph.node[-1].op_type for case in chosen}
    return {name: named.get(re.sub(r"_expanded.*$", "", name), operator) for name, operator in named.items()}


def array(value: Any) -> Array:
    """A case's input or output. Types that numpy lacks come as ONNX's tensors."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    raise NotANetworkError("an input or output is a sequence or an optional value")


def network(model: onnx.ModelProto, inputs: Iterable[Any], output: int) -> tuple[onnx.ModelProto, Array]:
    """The model with one output, whose only input is the samples, and their values."""
    chosen = _samples(model)
    one = onnx.ModelProto()
    one.CopyFrom(model)
    values = list(inputs)
    kept = model.graph.output[output]
    del one.graph.input[:], one.graph.output[:]
    one.graph.output.append(kept)
    for number, (value, given) in enumerate(zip(model.graph.input, values, strict=False)):
        if number == chosen:
            one.graph.input.append(value)
        elif isinstance(given, onnx.TensorProto):
            one.graph.initializer.append(given)
            one.graph.initializer[-1].name = value.name
        else:
            one.graph.initializer.append(numpy_helper.from_array(array(given), value.name))
    assert chosen is not None
    return one, array(values[chosen])


def verdict(case: Any, folder: Path) -> tuple[str, str]:
    """Right, wrong or refused, and why. One output that is wrong makes the case wrong."""
    refusal = ""
    for inputs, outputs in case.data_sets:
        for number, expected in enumerate(outputs):
            try:
                model, x = network(case.model, inputs, number)
                right = array(expected)
                if right.dtype.kind not in "biufV":  # V has ml_dtypes' small floats
                    raise NotANetworkError("an output is not made of real numbers")
                file = folder / "case.onnx"
                file.write_bytes(model.SerializeToString())
                found = onnx_compare.run(file, x)
            except (gpunn.Error, NotANetworkError) as error:
                refusal = onnx_compare.reason(error)
                continue
            except Exception as error:
                return "wrong", f"{type(error).__name__}: {error}"
            wrong = onnx_compare.difference(found, right, case.rtol, case.atol)
            if wrong:
                return "wrong", wrong
    return ("refused", refusal) if refusal else ("right", "")


def results(keep: Callable[[str], bool] = lambda operator: True) -> list[Result]:
    """The results of all cases of the operators that are kept."""
    chosen = cases()
    named = operators(chosen)
    with tempfile.TemporaryDirectory() as folder:
        return [
            Result(case.name, named[case.name], *verdict(case, Path(folder)))
            for case in chosen
            if keep(named[case.name])
        ]


def rows(found: Iterable[Result]) -> dict[str, str]:
    """The line of the table for each operator."""
    grouped: dict[str, list[Result]] = defaultdict(list)
    for result in found:
        grouped[result.operator].append(result)
    lines = {}
    for operator, group in sorted(grouped.items()):
        count = Counter(result.verdict for result in group)
        reasons = Counter(result.reason for result in group if result.verdict == "refused")
        # Of two equally frequent reasons the first by name, whatever the order of the cases.
        why = min(reasons, key=lambda text: (-reasons[text], text), default="")
        cell = f"`{why.replace('|', '/').replace('`', chr(39))}`" if why else ""
        lines[operator] = f"| {operator} | {count['right']} | {count['wrong']} | {count['refused']} | {cell} |"
    return lines


def page(found: list[Result]) -> str:
    count = Counter(result.verdict for result in found)
    lines = [
        f"Of {len(found)} tests {count['right']} are right, {count['wrong']} wrong and {count['refused']} refused."
    ]
    lines += ["", "| operator | right | wrong | refused | most frequent reason |", "| --- | --- | --- | --- | --- |"]
    lines += rows(found).values()
    wrong = sorted(result.case for result in found if result.verdict == "wrong")
    if wrong:
        lines += ["", "## Wrong answers", "", *(f"- `{case}`" for case in wrong)]
    return INTRO.format(version=onnx.__version__) + "\n" + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    found = results()
    if options.write:
        PAGE.write_text(page(found))
    for result in found:
        if result.verdict == "wrong":
            print(f"wrong: {result.case}: {result.reason}")
    for why, count in Counter(result.reason for result in found if result.verdict == "refused").most_common():
        print(count, why)
    print(", ".join(f"{count} {word}" for word, count in Counter(result.verdict for result in found).most_common()))


if __name__ == "__main__":
    main()
