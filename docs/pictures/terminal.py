"""A program in a pseudo-terminal, the screen that it leaves, and a drawing of that screen as SVG.

The terminal knows what gpunn writes: lines, carriage returns, erasing, cursor up and down, and SGR colours. Any other
sequence is an error, so that a picture is never silently wrong.
"""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from html import escape
from typing import NamedTuple

GROUND, BAR, EDGE, INK, QUIET = "#161b22", "#21262d", "#3d444d", "#e6edf3", "#9ba4ae"
COLOURS = {31: "#ff7b72", 32: "#56d364", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea"}
CELL_WIDTH, LINE_HEIGHT, FONT_SIZE, MARGIN, BAR_HEIGHT = 8.4, 19, 14, 16, 32
SEQUENCE = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|\x1b.?|[\s\S]")


class Style(NamedTuple):
    colour: int = 0  # an SGR number; 0 is the terminal's own
    bold: bool = False
    dim: bool = False


PLAIN = Style()


class Screen:
    """What a terminal of so many columns shows, with all lines that scrolled out of it."""

    def __init__(self, columns):
        self.columns = columns
        self.lines = [[]]  # each a list of (character, Style)
        self.row, self.column, self.style = 0, 0, PLAIN

    def feed(self, text):
        for match in SEQUENCE.finditer(text):
            one = match.group(0)
            if match.group(2):
                self.control(match.group(1), match.group(2), one)
            elif one == "\r":
                self.column = 0
            elif one == "\n":
                self.move(self.row + 1)
            elif one == "\b":
                self.column = max(0, self.column - 1)
            elif one == "\t":
                self.column = min(self.columns - 1, self.column // 8 * 8 + 8)
            elif one < " " or one == "\x7f" or one[0] == "\x1b":
                raise ValueError(f"terminal.py does not know {one!r}")
            else:
                self.put(one)

    def put(self, character):
        if self.column >= self.columns:
            self.column = 0
            self.move(self.row + 1)
        line = self.lines[self.row]
        line.extend([(" ", PLAIN)] * (self.column + 1 - len(line)))
        line[self.column] = (character, self.style)
        self.column += 1

    def move(self, row):
        self.row = max(0, row)
        while len(self.lines) <= self.row:
            self.lines.append([])

    def control(self, parameters, command, sequence):
        if parameters.startswith("?") and command in "hl":
            return  # the cursor is shown or hidden: a picture has none
        numbers = [int(one or 0) for one in parameters.split(";")]
        line = self.lines[self.row]
        if command == "m":
            for number in numbers:
                self.set_style(number, sequence)
        elif command == "K" and numbers[0] == 0:
            del line[self.column:]
        elif command == "K" and numbers[0] == 1:
            line[:self.column + 1] = [(" ", PLAIN)] * len(line[:self.column + 1])
        elif command == "K" and numbers[0] == 2:
            line.clear()
        elif command == "J" and numbers[0] == 0:
            del line[self.column:]
            del self.lines[self.row + 1:]
        elif command == "A":
            self.move(self.row - max(1, numbers[0]))
        elif command == "B":
            self.move(self.row + max(1, numbers[0]))
        elif command == "G":
            self.column = max(1, numbers[0]) - 1
        else:
            raise ValueError(f"terminal.py does not know {sequence!r}")

    def set_style(self, number, sequence):
        if number == 0:
            self.style = PLAIN
        elif number == 1:
            self.style = self.style._replace(bold=True)
        elif number == 2:
            self.style = self.style._replace(dim=True)
        elif number == 22:
            self.style = self.style._replace(bold=False, dim=False)
        elif number == 39:
            self.style = self.style._replace(colour=0)
        elif number in COLOURS:
            self.style = self.style._replace(colour=number)
        else:
            raise ValueError(f"terminal.py does not know {sequence!r}")

    def text(self):
        return "\n".join("".join(one for one, _ in line).rstrip() for line in self.lines).rstrip("\n")


def run(command, columns, rows=50, cwd=None, environment=None, limit=600):
    """Runs the command in a pseudo-terminal. Returns its screen and exit status; after `limit` seconds it is killed."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(environment or {})}
    variables.pop("NO_COLOR", None)
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=variables,
                               start_new_session=True)
    os.close(theirs)
    written, end = b"", time.monotonic() + limit
    try:
        while True:
            if not select.select([ours], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{' '.join(map(str, command))} took more than {limit} s")
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # Linux says EIO when the last writer is gone
                part = b""
            if not part:
                break
            written += part
    except TimeoutError:
        process.kill()
        raise
    finally:
        os.close(ours)
        status = process.wait()
    screen = Screen(columns)
    screen.feed(written.decode("utf-8"))
    return screen, status


def spans_of(line):
    """Neighbours of one style as (column, text, style); spaces at the ends of a run are left out."""
    start = 0
    while start < len(line):
        style, end = line[start][1], start
        while end < len(line) and line[end][1] == style:
            end += 1
        text = "".join(one for one, _ in line[start:end])
        if text.strip():
            yield start + len(text) - len(text.lstrip()), text.strip(), style
        start = end


def text_element(x, y, text, style):
    fill = COLOURS.get(style.colour, QUIET if style.dim else INK)
    # The length keeps columns in line whatever font the reader has.
    return (f'<text x="{x:.1f}" y="{y:.1f}" textLength="{len(text) * CELL_WIDTH:.1f}" fill="{fill}"'
            f'{" font-weight=" + chr(34) + "bold" + chr(34) if style.bold else ""}>{escape(text, quote=False)}</text>')


def svg(screen, command, caption, below=""):
    """The screen in a window, behind a prompt with the command. The caption stands in the window's bar. `below` is the
    text of another SVG file, drawn beneath the lines as wide as the window."""
    lines = [[(one, Style(dim=True)) for one in "$ "] + [(one, Style(bold=True)) for one in command]]
    lines += screen.lines
    while lines and not any(one.strip() for one, _ in lines[-1]):
        lines.pop()
    columns = max(len("".join(one for one, _ in line).rstrip()) for line in lines)
    width = 2 * MARGIN + columns * CELL_WIDTH
    height = BAR_HEIGHT + 2 * MARGIN + len(lines) * LINE_HEIGHT
    inner, inner_height = embedded(below, MARGIN, height, width - 2 * MARGIN) if below else ("", 0)
    height += inner_height + (MARGIN if below else 0)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
             f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="{FONT_SIZE}" '
             'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace">',
             f"<title>{escape(command)}</title>", "<style>text { white-space: pre }</style>",
             f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="10" fill="{GROUND}" '
             f'stroke="{EDGE}"/>',
             f'<path d="M1 {BAR_HEIGHT}V10.5A9.5 9.5 0 0 1 10.5 1H{width - 10.5:.1f}A9.5 9.5 0 0 1 {width - 1:.1f} 10.5'
             f'V{BAR_HEIGHT}Z" fill="{BAR}"/>']
    for place, colour in enumerate(("#f47067", "#daaa3f", "#57ab5a")):
        parts.append(f'<circle cx="{20 + 18 * place}" cy="{BAR_HEIGHT / 2}" r="5.5" fill="{colour}"/>')
    parts.append(f'<text x="{width - MARGIN:.1f}" y="{BAR_HEIGHT / 2 + 4:.1f}" text-anchor="end" font-size="12" '
                 f'font-family="Helvetica, Arial, sans-serif" fill="{QUIET}">{escape(caption, quote=False)}</text>')
    for row, line in enumerate(lines):
        y = BAR_HEIGHT + MARGIN + row * LINE_HEIGHT + FONT_SIZE
        parts += [text_element(MARGIN + column * CELL_WIDTH, y, text, style) for column, text, style in spans_of(line)]
    return "\n".join(parts + ([inner] if inner else []) + ["</svg>"]) + "\n"


def embedded(other, x, y, width):
    """Another SVG file as an element of that width at that place, and its height there."""
    box = re.search(r'<svg\b[^>]*\bviewBox="0 0 ([\d.]+) ([\d.]+)"', other)
    if not box:
        raise ValueError("an SVG without a viewBox from 0 0")
    height = width * float(box[2]) / float(box[1])
    head = f'<svg x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
    body = other[other.index("<svg"):]
    return re.sub(r'<svg\b(?: (?:width|height|x|y)="[^"]*"| xmlns="[^"]*")*', head, body, count=1).strip(), height
