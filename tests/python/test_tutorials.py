"""The notebooks and the Python of the pages in docs/tutorials run from top to bottom."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"(?:^<!-- ([a-z ]+)(?:: ([^\n]*?))? -->\n)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))
    if any(mark != "not run" for mark, _, _ in BLOCK.findall(page.read_text(encoding="utf-8")))
]
TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.ipynb"))


def code_of(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code") + "\n"


def test_there_are_tutorials() -> None:
    assert {file.stem for file in TUTORIALS} >= {"kernel_race", "lenet", "model_in_code", "photos"}


@pytest.mark.parametrize("notebook", TUTORIALS, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("ignore")
def test_tutorial_runs(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    for needed in ("ipykernel", "pandas", "matplotlib"):
        pytest.importorskip(needed)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(Path.cwd() / "ipython"))
    document = nbformat.read(notebook, as_version=4)
    kernel = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python"}
    specification = Path.cwd() / "jupyter" / "kernels" / "python3"
    specification.mkdir(parents=True)
    (specification / "kernel.json").write_text(json.dumps({**kernel, "display_name": "Python 3"}))
    monkeypatch.setenv("JUPYTER_PATH", str(Path.cwd() / "jupyter"))
    nbclient.NotebookClient(document, timeout=300, resources={"metadata": {"path": os.getcwd()}}).execute()
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert sum(bool(cell.outputs) for cell in cells) >= len(cells) // 2


@pytest.mark.parametrize("notebook", TUTORIALS, ids=lambda file: file.stem)
def test_tutorial_is_kept_without_outputs(notebook: Path) -> None:
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_types_of_the_tutorials(source: Path) -> None:
    pytest.importorskip("mypy")
    files = []
    for notebook in TUTORIALS:
        file = Path(f"tutorial_{notebook.stem}.py")
        file.write_text(code_of(notebook))
        files.append(str(file.resolve()))
    command = [sys.executable, "-m", "mypy", "--config-file", str(source / "pyproject.toml"), *files]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=source)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_pages() -> None:
    assert "python" in {page.stem for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda file: file.stem)
def test_python_of_a_page_runs(page: Path) -> None:
    """Block by block, in one process, as in a session of the reader. `tests/docs/tutorials_test.py` has the marks."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    code = [body for mark, _, body in found if mark == ""]
    if page.stem == "python":
        assert len(code) >= 3
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda file: file.stem)
def test_python_of_a_page_runs_with_pytorch(page: Path) -> None:
    pytest.importorskip("torch")
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    for body in [body for mark, value, body in found if (mark, value) == ("needs", "torch")]:
        done = subprocess.run([sys.executable, "-c", body], check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
