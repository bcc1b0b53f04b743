#!/usr/bin/env python3
"""Folders of runtime/ use only what runtime/CMakeLists.txt lets them use, and nothing uses itself by a detour. A folder
with one header for others keeps the rest of them to itself.

usage: rooms_test.py SOURCE_FOLDER
"""

from __future__ import annotations

import ast
import re
import sys
import unittest
from collections import defaultdict
from pathlib import Path

SOURCE = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2])
RUNTIME = SOURCE / "runtime"
PYTHON = SOURCE / "python" / "gpunn"
STEP = SOURCE / "backends" / "cuda_tiled" / "subgraphs" / "step"

Uses = dict[str, dict[str, str]]  # by user and what it uses: the place where it does


def reachable(uses: Uses, start: str) -> set[str]:
    found: set[str] = set()
    open_ends = [start]
    while open_ends:
        for name in uses.get(open_ends.pop(), {}):
            if name not in found:
                found.add(name)
                open_ends.append(name)
    return found


def circles(uses: Uses) -> list[str]:
    """The places of all uses that lead back to their user."""
    return [
        f"{place}: {user} uses {used}, which uses {user}"
        for user, of_user in sorted(uses.items())
        for used, place in sorted(of_user.items())
        if user in reachable(uses, used)
    ]


def linked_rooms(text: str) -> Uses:
    """What CMake's list lets each room use itself."""
    rooms: Uses = {}
    for room in re.finditer(r"^ *gpunn_room(?:_of)?\(\s*(\w+)([^)]*)\)", text, re.MULTILINE):
        rooms[room[1]] = {name: "CMakeLists.txt" for name in re.findall(r"\bgpunn_(\w+)", room[2])}
    return rooms


def included_rooms(runtime: Path) -> Uses:
    rooms: Uses = defaultdict(dict)
    for file in sorted([*runtime.rglob("*.cpp"), *runtime.rglob("*.hpp")]):
        user = file.relative_to(runtime).parts[0]
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            include = re.match(r'#include "(\w+)/', line)
            if include and include[1] != user and (runtime / include[1]).is_dir():
                rooms[user].setdefault(include[1], f"{file.relative_to(runtime.parent)}:{number}")
    return rooms


def imported_modules(package: Path) -> Uses:
    """Imports within functions and those for type checkers are imports, too."""
    names = {file.stem for file in package.glob("*.py")} - {"__init__"}
    modules: Uses = defaultdict(dict)
    for name in sorted(names):
        file = package / f"{name}.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            found: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module == "gpunn":
                found = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpunn."):
                found = [str(node.module).split(".")[1]]
            elif isinstance(node, ast.Import):
                found = [one.name.split(".")[1] for one in node.names if one.name.startswith("gpunn.")]
            for used in found:
                if used in names and used != name:
                    modules[name].setdefault(used, f"{file.name}:{getattr(node, 'lineno', 0)}")
    return modules


class RoomsTest(unittest.TestCase):
    def test_folders_use_what_the_list_of_libraries_allows(self) -> None:
        linked = linked_rooms((RUNTIME / "CMakeLists.txt").read_text(encoding="utf-8"))
        included = included_rooms(RUNTIME)
        self.assertGreater(len(included), 20)
        wrong = []
        for user, of_user in included.items():
            if user == "cli":  # a program, which is linked with libgpunn
                continue
            allowed = reachable(linked, user)
            wrong += [f"{place}: {user} may not use {used}" for used, place in of_user.items() if used not in allowed]
        self.assertEqual(wrong, [])

    def test_no_folder_uses_itself_by_a_detour(self) -> None:
        self.assertEqual(circles(included_rooms(RUNTIME)), [])
        self.assertEqual(circles(linked_rooms((RUNTIME / "CMakeLists.txt").read_text(encoding="utf-8"))), [])

    def test_the_fused_step_has_one_header_for_others(self) -> None:
        users = set()
        for folder in ("backends", "tests"):
            for file in (SOURCE / folder).rglob("*.[ch]*"):
                if file.suffix in (".cpp", ".hpp", ".cu", ".cuh") and STEP not in file.parents:
                    for name in re.findall(r'#include "subgraphs/step/([^"]+)"', file.read_text(encoding="utf-8")):
                        users.add((name, str(file.relative_to(SOURCE))))
        self.assertIn(("step.hpp", "backends/cuda_tiled/device.cpp"), users)
        self.assertEqual({name for name, _ in users}, {"step.hpp"}, users)

    def test_no_module_of_python_uses_itself_by_a_detour(self) -> None:
        modules = imported_modules(PYTHON)
        self.assertGreater(len(modules), 15)
        self.assertEqual(circles(modules), [])

    def test_a_circle_is_found(self) -> None:
        uses: Uses = {"a": {"b": "a.py:1"}, "b": {"c": "b.py:2"}, "c": {"a": "c.py:3", "d": "c.py:4"}}
        self.assertEqual(len(circles(uses)), 3)
        self.assertIn("c.py:3: c uses a, which uses c", circles(uses))
        self.assertEqual(circles({"a": {"b": "a.py:1"}, "b": {}}), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
