"""The command ``gpunn`` of an installed package: it starts the program inside the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "bin" / "gpunn"
    os.execv(program, ["gpunn", *sys.argv[1:]])


if __name__ == "__main__":
    main()
