"""Draws the pictures of docs/ladder from text: writes docs/pictures/ladder/*.svg, or with --check compares them.

docs/pictures/ladder.txt has a picture a block. Its lines, in pixels from the top left corner:

    picture NAME WIDTHxHEIGHT what it shows, for readers who can't see it
    grid X,Y ROWSxCOLUMNS[xCELL] TITLE [| COLOUR r0-r1,c0-c1 ...]     a matrix, with some of its cells coloured
    box X,Y WIDTHxHEIGHT COLOUR TEXT     lines of the text are parted by " / "; it stands at the top behind a "^"
    arrow X,Y X,Y [TEXT]
    text X,Y TEXT        bold X,Y TEXT

Colours are names of COLOURS. Lines that begin with # are comments.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
COLOURS = {
    "memory": "#dbe7ef",
    "shared": "#cfe8d5",
    "register": "#fde2b8",
    "a": "#4f8fc0",
    "b": "#e08b3e",
    "c": "#5aa469",
    "wait": "#e6e6e6",
    "plain": "#ffffff",
}
INK, GREY = "#1d2b33", "#8a979f"


class Picture:
    def __init__(self, name: str, width: int, height: int, about: str) -> None:
        self.name, self.width, self.height, self.about = name, width, height, about
        self.parts: list[str] = []

    def text(self, x: float, y: float, text: str, weight: str = "normal", anchor: str = "start") -> None:
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def grid(self, x: int, y: int, rows: int, columns: int, cell: int, title: str, marks: list[str]) -> None:
        self.text(x, y - 7, title, "bold")
        for mark in marks:
            colour, r0, r1, c0, c1 = re.fullmatch(r"(\w+) (\d+)-(\d+),(\d+)-(\d+)", mark.strip()).groups()  # type: ignore[union-attr]
            left, top = x + int(c0) * cell, y + int(r0) * cell
            size = f'width="{(int(c1) - int(c0) + 1) * cell}" height="{(int(r1) - int(r0) + 1) * cell}"'
            self.parts.append(f'<rect x="{left}" y="{top}" {size} fill="{COLOURS[colour]}"/>')
        lines = [f"M{x} {y + i * cell}h{columns * cell}" for i in range(rows + 1)]
        lines += [f"M{x + i * cell} {y}v{rows * cell}" for i in range(columns + 1)]
        self.parts.append(f'<path d="{"".join(lines)}" stroke="{GREY}" stroke-width="0.7" fill="none"/>')

    def box(self, x: int, y: int, width: int, height: int, colour: str, text: str) -> None:
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{COLOURS[colour]}" stroke="{GREY}"/>'
        )
        lines = [line for line in text.removeprefix("^").split(" / ") if line]
        first = y + 18 if text.startswith("^") else y + height / 2 + 4.5 - 8 * (len(lines) - 1)
        for i, line in enumerate(lines):
            self.text(x + width / 2, first + 16 * i, line, anchor="middle")

    def arrow(self, x0: int, y0: int, x1: int, y1: int, text: str) -> None:
        self.parts.append(f'<path d="M{x0} {y0}L{x1} {y1}" stroke="{INK}" stroke-width="1.6" marker-end="url(#tip)"/>')
        if text:
            self.text((x0 + x1) / 2, (y0 + y1) / 2 - 6, text, anchor="middle")

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
            f' role="img" font-family="DejaVu Sans, Segoe UI, Arial, sans-serif" font-size="13" fill="{INK}">\n'
            f"<title>{escape(self.about)}</title>\n"
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>\n'
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="#ffffff" stroke="{GREY}"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


def pictures(text: str) -> list[Picture]:
    result: list[Picture] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        kind, _, rest = line.strip().partition(" ")
        try:
            draw(result, kind, rest)
        except (ValueError, AttributeError, IndexError, KeyError) as error:
            raise SystemExit(f"ladder.txt:{number}: can't draw '{line}': {error}") from error
    return result


def draw(result: list[Picture], kind: str, rest: str) -> None:
    numbers = [int(one) for one in re.findall(r"\d+", rest)]
    if kind == "picture":
        name, size, about = rest.split(" ", 2)
        width, height = (int(one) for one in size.split("x"))
        result.append(Picture(name, width, height, about))
    elif kind == "grid":
        place, size, title = rest.split(" ", 2)
        title, *marks = title.split("|")
        x, y = (int(one) for one in place.split(","))
        rows, columns, *cell = (int(one) for one in size.split("x"))
        result[-1].grid(
            x, y, rows, columns, cell[0] if cell else 12, title.strip(), " ".join(marks).split("; ") if marks else []
        )
    elif kind == "box":
        place, size, colour, *text = rest.split(" ", 3)
        x, y = (int(one) for one in place.split(","))
        width, height = (int(one) for one in size.split("x"))
        result[-1].box(x, y, width, height, colour, text[0] if text else "")
    elif kind == "arrow":
        _, _, *text = rest.split(" ", 2)
        result[-1].arrow(numbers[0], numbers[1], numbers[2], numbers[3], text[0] if text else "")
    elif kind in ("text", "bold"):
        place, text_here = rest.split(" ", 1)
        x, y = (int(one) for one in place.split(","))
        result[-1].text(x, y, text_here, "bold" if kind == "bold" else "normal")
    else:
        raise ValueError(f"no such line as '{kind}'")


def main() -> int:
    folder = DOCS / "pictures" / "ladder"
    drawn = {f"{one.name}.svg": one.svg() for one in pictures((DOCS / "pictures" / "ladder.txt").read_text())}
    if "--check" not in sys.argv:
        folder.mkdir(exist_ok=True)
        for name, svg in drawn.items():
            (folder / name).write_text(svg)
        return 0
    there = {one.name: one.read_text() for one in folder.iterdir()}
    wrong = sorted(name for name in drawn.keys() | there.keys() if drawn.get(name) != there.get(name))
    used = "".join(one.read_text() for one in (DOCS / "ladder").glob("*.md"))
    wrong += [f"{name} is on no page" for name in drawn if f"pictures/ladder/{name}" not in used]
    if wrong or len(drawn) < 10:
        print(f"{', '.join(wrong)}: run python3 docs/site/diagrams.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
