"""ONNX's own tests of single nodes, as networks: which operators gpunn computes.

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
from gpunn.onnx import choices_of_inputs, reduced
from onnx_compare import Array

# Of numbers that gpunn computes as float32.
TWO_STEPS = {"float16": 2**-9, "bfloat16": 2**-6}

PAGE = Path(__file__).parents[2] / "docs" / "onnx-node-tests.md"

INTRO = """\
# ONNX's tests of single nodes

This page lists which operators of ONNX gpunn computes, by the tests that come with the package onnx
{version}. Read it to see whether gpunn [imports](onnx-import.md) a network from elsewhere.

A test is counted if it has an input of numbers or truth values, and inputs and outputs are
tensors of such. All inputs are inputs of the network. If that is refused, those of integers and
truth values are constants, as shapes and axes have to be, and in the end all but one. *Right*
means that every output is within the test's own tolerance. Outputs of float16 and bfloat16, which
gpunn computes as float32, may differ by two steps of their type. *Refused* means that the import
ends with an error, and the table shows the most frequent one. Tests of an operator's definition
by other operators count for the operator.

`python3 tests/python/onnx_node_table.py --write` writes this page again, and
`tests/python/test_onnx_backend.py` compares it.
"""


class Result(NamedTuple):
    case: str
    operator: str
    verdict: str  # right, wrong or refused
    reason: str


class NotANetworkError(Exception):
    """The reason why a case has no form as a file of tensors of numbers."""


def cases() -> list[Any]:
    """The cases whose inputs and outputs are tensors of numbers or truth values. Making some of them overflows, as they
    mean to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [case for case in found if case.model is not None and case.model.graph.input and _has_numbers(case)]


def _has_numbers(case: Any) -> bool:
    try:
        for inputs, outputs in case.data_sets:
            kinds = {array(value).dtype.kind for value in [*inputs, *outputs]}
            if not kinds <= set("biufV"):  # V has ml_dtypes' small floats
                return False
    except NotANetworkError:
        return False
    return True


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


def verdict(case: Any, folder: Path) -> tuple[str, str]:
    """Right, wrong or refused, and why. One output that is wrong makes the case wrong."""
    refusal = ""
    for inputs, outputs in case.data_sets:
        names = [value.name for value in case.model.graph.output][: len(outputs)]
        given = {value.name: array(one) for value, one in zip(case.model.graph.input, inputs, strict=False)}
        expected = dict(zip(names, map(array, outputs), strict=True))
        found, why = _verdict_on(case, folder, names, given, expected)
        if found == "refused" and len(names) > 1:  # each output by itself
            parts = [_verdict_on(case, folder, [name], given, expected) for name in names]
            found, why = max(parts, key=lambda part: ["right", "refused", "wrong"].index(part[0]))
        if found == "wrong":
            return found, why
        refusal = refusal or why
    return ("refused", refusal) if refusal else ("right", "")


def _verdict_on(
    case: Any, folder: Path, names: list[str], given: dict[str, Array], expected: dict[str, Array]
) -> tuple[str, str]:
    """By the first choice of inputs that is not refused. The reason of a refusal is that of the last one."""
    why = "the graph has no input"
    for chosen in choices_of_inputs(given):
        try:
            file = folder / "case.onnx"
            file.write_bytes(reduced(case.model, names, chosen, given).SerializeToString())
            found = onnx_compare.run_named(file, {name: given[name] for name in chosen})
        except gpunn.Error as error:
            why = onnx_compare.reason(error)
            continue
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {error}"
        for name, right in expected.items():
            if name not in names:
                continue
            rtol = max(case.rtol, TWO_STEPS.get(right.dtype.name, 0))
            wrong = onnx_compare.difference(found[name], right, rtol, case.atol)
            if wrong:
                return "wrong", wrong
        return "right", ""
    return "refused", why


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
