"""The tutorials work: `tutorials_test.py GPUNN SOURCE_FOLDER [PAGE...]` runs the commands of docs/tutorials and docs/ladder.

Each page runs in a folder of its own that looks like a clone, with gpunn in PATH, installed in ~/gpunn too, and with
pictures that a reader would have. A block is run if it is one of ```sh, all blocks of a page in one shell. A line before
a block says more:

    <!-- save: FILE -->       the block is written to FILE
    <!-- output -->           each line stands in what the blocks before it printed, numbers aside
    <!-- not run: WHY -->     the block is not run
    <!-- needs: gpu -->       nor this one, unless the backend cuda_tiled works; `gpus 2`: on two devices

Blocks of ```python are run by tests/python/test_tutorials.py.
"""

import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

BLOCK = re.compile(r"(?:^<!-- ([a-z ]+)(?:: ([^\n]*?))? -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKS = {"save", "output", "not run", "needs", "file", None}


def png(path, rows, columns, colour_of):
    """Writes a picture; `colour_of` a row and a column is red, green and blue."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = b"".join(b"\0" + bytes(value for column in range(columns) for value in colour_of(row, column))
                      for row in range(rows))
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


def pictures(folder):
    """Photos of two classes, a digit, several digits, and a texture."""
    draw = random.Random(1)
    for kind in ("cat", "dog"):
        for number in range(40):
            at, size, shade = draw.randrange(12, 28), draw.randrange(6, 11), draw.randrange(90, 220)
            round_one = kind == "cat"
            png(folder / "photos" / kind / f"{number}.png", 40, 40, lambda r, c, s=shade, a=at, z=size, o=round_one:
                (s, s, 40) if ((r - a) ** 2 + (c - a) ** 2 < z * z if o else abs(r - a) < 3 or abs(c - a) < 3) else (20, 30, 60))
    png(folder / "another.png", 48, 64, lambda r, c: (r * 5, c * 4, 255 if (r - 24) ** 2 + (c - 30) ** 2 < 200 else 60))
    png(folder / "texture.png", 64, 64, lambda r, c: (200, 120, 40) if (r + 2 * c) % 12 < 6 else (30, 60, 160))
    png(folder / "digit.png", 28, 28, lambda r, c: (255,) * 3 if 12 <= c <= 15 and 5 <= r <= 22 else (0,) * 3)
    png(folder / "digits.png", 128, 128, lambda r, c: (255,) * 3 if c % 40 in (18, 19, 20) and 30 < r < 60 else (0,) * 3)


def clone(folder, source, gpunn):
    """A folder as a reader has it, with ~/gpunn in it."""
    for one in source.iterdir():
        if one.name not in ("build", "runs", ".git"):
            (folder / one.name).symlink_to(one)
    home = folder / "home" / "gpunn"
    for part in ("bin", "lib/gpunn", "include/gpunn"):
        (home / part).mkdir(parents=True)
    (home / "bin" / "gpunn").symlink_to(gpunn)
    for library in (gpunn.parents[1] / "lib").glob("libgpunn.so*"):
        (home / "lib" / library.name).symlink_to(library)
    for plugin in (gpunn.parents[1] / "lib").glob("libgpunn_backend_*.so"):
        (home / "lib" / "gpunn" / plugin.name).symlink_to(plugin)
    for headers in ("api", "runtime"):
        for header in (source / headers / "include" / "gpunn").iterdir():
            (home / "include" / "gpunn" / header.name).symlink_to(header)
    pictures(folder)


def gpus(gpunn):
    listed = subprocess.run([gpunn, "plugins"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.search(r"^cuda_tiled +OK +\S+ +\S+ +\S+ +\d+ +(\d+)", listed, re.MULTILINE)
    return int(found.group(1)) if found else 0


def plain(text):
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]+", "0", text)).strip()


def script_of(page, folder, devices):
    """The page's commands; its files are written. Also what their output has to have, and how many blocks there are."""
    script, wanted, blocks = ["set -eo pipefail"], [], 0
    for mark, value, language, body in BLOCK.findall(page.read_text()):
        mark = mark or None
        if mark not in MARKS:
            raise ValueError(f"{page.name}: unknown mark '{mark}'")
        if mark == "save":
            (folder / value).write_text(body)
        elif mark == "output":
            wanted += [line for line in body.splitlines() if line.strip() not in ("", "...")]
        elif mark == "needs" and language == "sh":
            least = {"gpu": 1, "gpus 2": 2}[value]
            script += [body] if devices >= least else []
        elif mark is None and language == "sh":
            script.append(body)
            blocks += 1
    return "\n".join(script), wanted, blocks


def run(page, source, gpunn, devices):
    """What is wrong with a page."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        clone(folder, source, gpunn)
        script, wanted, blocks = script_of(page, folder, devices)
        environment = {**os.environ, "HOME": str(folder / "home"), "PATH": f"{folder}/home/gpunn/bin:{os.environ['PATH']}"}
        environment.pop("GPUNN_PLUGIN_PATH", None)
        start = time.monotonic()
        with open(folder / "output.txt", "w+") as output:
            done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT, timeout=300, check=False)
            output.seek(0)
            text = output.read()
        print(f"{page.name}: {blocks} blocks, {time.monotonic() - start:.1f} s")
        said = plain(text)
        wrong = [f"{page.name}: no command prints: {line}" for line in wanted if plain(line) not in said]
        if done.returncode != 0:
            wrong.append(f"{page.name}: a command failed ({done.returncode}):\n" + "\n".join(text.splitlines()[-25:]))
        return wrong, blocks


def main(gpunn, source, names):
    pages = sorted((source / "docs" / "tutorials").glob("*.md"))
    devices = gpus(gpunn)
    if devices > 0:  # all commands of the course need one
        pages += sorted((source / "docs" / "ladder").glob("*.md"))
    wrong, blocks = [], 0
    for page in pages:
        if not names or page.stem in names:
            found, count = run(page, source, gpunn, devices)
            wrong += found
            blocks += count
    if not names and (len(pages) < 9 or blocks < 25):
        wrong.append(f"this test found {blocks} blocks in {len(pages)} pages only")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(Path(os.path.abspath(sys.argv[1])), Path(sys.argv[2]).resolve(), sys.argv[3:])
