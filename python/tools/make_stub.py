"""Writes gpunn/_core.pyi, the types of the module on PYTHONPATH. The build calls it.

usage: make_stub.py FILE

What stands in a .pyi file of this folder says more than nanobind knows, and takes the place of what it says.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import nanobind
from nanobind.stubgen import StubGen

import gpunn._core

HEAD = f"# Made by the build with nanobind {nanobind.__version__}.\n"
Definition = ast.ClassDef | ast.FunctionDef
OF_EVERY_OBJECT = {"__init__", "__eq__", "__hash__"}


def generated() -> str:
    generator = StubGen(gpunn._core)
    generator.put(gpunn._core)
    text: str = generator.get()
    # What mypy --strict asks for beyond nanobind's types.
    text = re.sub(r"\bos\.PathLike\b(?!\[)", "os.PathLike[str]", text)
    text = re.sub(r"\bNDArray\b(?=[,\]:)])", "NDArray[Any]", text)
    return text.replace("from typing import Annotated", "from typing import Annotated, Any")


def parts(text: str) -> tuple[dict[str, str], list[tuple[str | None, str]]]:
    """The definitions of a stub by name, and all of its top level in order."""
    lines = text.splitlines()
    order: list[tuple[str | None, str]] = []
    definitions: dict[str, str] = {}
    for node in ast.parse(text).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        source = "\n".join(lines[first - 1 : node.end_lineno])
        name = node.name if isinstance(node, Definition) else None
        order.append((name, source))
        if name is not None:
            definitions[name] = source
    return definitions, order


def members(source: str) -> set[str]:
    (definition,) = ast.parse(source).body
    if not isinstance(definition, ast.ClassDef):
        return set()
    return {one.name for one in definition.body if isinstance(one, ast.FunctionDef)}


def stub() -> str:
    better: dict[str, str] = {}
    imports: list[str] = []
    for file in sorted(Path(__file__).parent.glob("*.pyi")):
        definitions, order = parts(file.read_text(encoding="utf-8"))
        better |= definitions
        outside = [source for name, source in order if name is None and "gpunn._core" not in source]
        imports += [source for source in outside if source not in imports]
    names, order = parts(generated())
    for name, source in better.items():
        missing = members(names[name]) - members(source) - OF_EVERY_OBJECT if name in names else {"the whole of it"}
        if missing:
            raise SystemExit(f"{name} in a .pyi file of {Path(__file__).parent.name}: {', '.join(sorted(missing))}?")
    body = [better.get(name, source) if name else source for name, source in order]
    return HEAD + "\n\n".join([body[0], *imports, *body[1:]]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(stub(), encoding="utf-8")
