"""Writes ``gpunn/ops/_functions.py``: a function for each op that ``gpunn help ops --json`` lists. The build calls it.

usage: generate_ops.py GPUNN FILE
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HEAD = '''"""A function for each op. Made by the build."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from gpunn.ops._backend import Backend
from gpunn.ops._call import call

Array = TypeVar("Array")
'''

TYPES = {
    "flag": "bool",
    "integer": "int",
    "number": "float",
    "pair": "int | Sequence[int]",
    "numbers": "float | Sequence[float]",
    "list": "Sequence[int]",
    "axes": "int | Sequence[int] | None",
    "axis": "int",
    "elements": "int",
    "dtype": "str",
}
WIDTH = 120


def literal(value: Any) -> str:
    if value in ("inf", "-inf"):
        return f"{value[:-3]}math.inf"
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value)


def attribute_parameter(attribute: dict[str, Any]) -> str:
    kind = attribute["kind"]
    type_name = TYPES.get(kind, "")
    if kind == "choice":
        type_name = "Literal[" + ", ".join(f'"{one}"' for one in attribute["choices"]) + "]"
    text = f"{attribute['name']}: {type_name}"
    if attribute["same_as"]:
        return f"{text} | None = None"
    if kind == "axes":
        return f"{text} = None"
    if attribute["required"]:
        return text
    return f"{text} = {literal(attribute['default'])}"


def tensor_text(tensor: dict[str, Any]) -> str:
    shape = {"?": "any shape", "": "a scalar"}.get(tensor["shape"], f"[{tensor['shape']}]")
    dtypes = "f32, bf16 or f16" if tensor["floating"] else " or ".join(tensor["dtypes"]) or "any dtype"
    return f"{shape} of {dtypes}"


def documentation(op: dict[str, Any]) -> list[str]:
    def sentence(text: str) -> str:
        return text[0].upper() + text[1:] + "."

    lines = [f'    """{sentence(op["summary"])}', "", f"    ``{op['signature']}``", ""]
    if len(lines[2]) > WIDTH:
        left, right = lines[2].split(" -> ")
        lines[2:3] = [left, f"    -> {right}"]
    repeated = bool(op["inputs"]) and op["inputs"][-1]["repeated"]
    if repeated:
        lines.append(f"    ``tensors``: {tensor_text(op['inputs'][0])}.")
    for one in op["inputs"]:
        if repeated:
            break
        note = "; may be left out" if one["optional"] else ""
        changed = any(o["name"] == one["name"] and o["in_place"] >= 0 for o in op["outputs"])
        lines.append(f"    ``{one['name']}``: {tensor_text(one)}{note}{'; changes in place' if changed else ''}.")
    for one in op["attributes"]:
        lines.append(f"    ``{one['name']}``: {one['help']}.")
    fresh = [o for o in op["outputs"] if o["in_place"] < 0]
    results = ", ".join(f"``{o['name']}``: {tensor_text(o)}" for o in fresh)
    returned = f"    Returns {results}." if fresh else "    Returns what changed in place."
    if len(returned) > WIDTH:
        cut = returned.rindex(", ``", 0, WIDTH)
        returned = returned[: cut + 1] + "\n    " + returned[cut + 2 :]
    lines += ["", returned]
    lines.append('    """')
    return lines


def function(op: dict[str, Any]) -> str:
    name = op["name"]
    repeated = bool(op["inputs"]) and op["inputs"][-1]["repeated"]
    fixed = [] if repeated else op["inputs"]
    parameters = []
    for one in fixed:
        type_name = "Array" if one is fixed[0] else "Array | float"
        parameters.append(f"{one['name']}: {type_name}" + (" | None = None" if one["optional"] else ""))
    if repeated:
        parameters.append("*tensors: Array")
    else:
        parameters.append("*")
    required = [a for a in op["attributes"] if a["required"] and a["kind"] != "axes"]
    others = [a for a in op["attributes"] if a not in required]
    parameters += [attribute_parameter(a) for a in required + others]
    fresh = [o for o in op["outputs"] if o["in_place"] < 0]
    results = fresh or op["outputs"]
    result = "Any" if not op["inputs"] else "Array"
    out = "Any"
    if len(results) != 1:
        result = f"tuple[{', '.join([result] * len(results))}]" if not any(o["optional"] for o in results) else "Any"
    if fresh:
        parameters.append(f"out: {out} = None")
    parameters.append("backend: str | Backend | None = None")
    head = f"def {name}(" + ", ".join(parameters) + f") -> {result}:"
    if len(head) > WIDTH:
        head = f"def {name}(\n" + "".join(f"    {one},\n" for one in parameters) + f") -> {result}:"
    names = ", ".join(o["name"] for o in fixed) + ("," if len(fixed) == 1 else "")
    inputs = "tensors" if repeated else f"({names})"
    attributes = ", ".join(f'"{a["name"]}": {a["name"]}' for a in op["attributes"])
    body = f'    return call("{name}", {inputs}, {{{attributes}}}, {"out" if fresh else "None"}, backend)'
    if len(body) > WIDTH:
        rows = "".join(f'        "{a["name"]}": {a["name"]},\n' for a in op["attributes"])
        body = (
            f"    attributes = {{\n{rows}    }}\n"
            f'    return call("{name}", {inputs}, attributes, {"out" if fresh else "None"}, backend)'
        )
    return "\n".join([head, *documentation(op), body])


def catalogue(program: str) -> list[dict[str, Any]]:
    done = subprocess.run([program, "help", "ops", "--json"], check=True, capture_output=True, text=True)
    ops: list[dict[str, Any]] = json.loads(done.stdout)
    return ops


def text(ops: list[dict[str, Any]]) -> str:
    names = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(op["name"] for op in ops)) + "]\n"
    return HEAD + "\n" + names + "\n\n" + "\n\n\n".join(function(op) for op in ops) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(text(catalogue(sys.argv[1])), encoding="utf-8")
