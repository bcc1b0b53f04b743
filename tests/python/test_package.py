from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpunn


def test_version_is_that_of_the_project(source: Path) -> None:
    found = re.search(r"project\(gpunn VERSION ([0-9.]+)", (source / "CMakeLists.txt").read_text())
    assert found is not None
    assert gpunn.__version__ == found[1]
    cuda = (source / "python" / "cuda" / "pyproject.toml").read_text()
    assert f'version = "{found[1]}"' in cuda
    assert f'"gpunn=={found[1]}"' in cuda


def test_every_name_can_be_had() -> None:
    for name in dir(gpunn):
        assert getattr(gpunn, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = gpunn.no_such_name


def test_import_brings_in_nothing_slow() -> None:
    script = "import sys, gpunn; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "gpunn._core" in loaded
    assert not {"pandas", "matplotlib", "sklearn", "torch", "tqdm", "IPython"} & set(loaded)


def test_program_is_in_the_package() -> None:
    command = [sys.executable, "-m", "gpunn._program", "--version"]
    assert gpunn.__version__ in subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_errors_survive_pickling() -> None:
    mistakes = [gpunn.Diagnostic("a.yaml", 3, 5, "no such key"), gpunn.Diagnostic("a.yaml", 0, 0, "no model")]
    error = pickle.loads(pickle.dumps(gpunn.ConfigError("two mistakes", mistakes)))
    assert isinstance(error, gpunn.ConfigError)
    assert str(error) == "two mistakes"
    assert error.diagnostics == mistakes
    assert (error.file, error.line, error.column) == ("a.yaml", 3, 5)
    assert [str(one) for one in mistakes] == ["a.yaml:3:5: no such key", "a.yaml: no model"]
