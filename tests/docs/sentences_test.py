"""Sentences that are read once: `sentences_test.py SOURCE_FOLDER` finds those that are too long.

README, the first hour, the tutorials and the course have at most 30 words in a sentence, the other pages 40, without
their tables. A piece of code counts as one word. A table's cell, an item of a list and a heading end a sentence.
"""

import json
import re
import sys
from pathlib import Path

MOST, MOST_ELSEWHERE = 30, 40
ABBREVIATIONS = r"(?:e\.g|i\.e|etc|et al|vs|cf|resp|approx|No|Fig|Mr|Dr|St)\."


def blocks(page):
    """The pieces of prose of a page in Markdown: paragraphs, items of lists, cells of tables, headings."""
    page = re.sub(r"^ *(```|~~~).*?^ *\1$", "\n", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"<!--.*?-->", "\n", page, flags=re.DOTALL)
    page = re.sub(r'<img[^>]*?alt="([^"]*)"[^>]*>', r"\n\n\1\n\n", page)
    page = re.sub(r"</?[a-z][^>]*>", " ", page)
    block, listed = [], False
    for line in [*page.splitlines(), ""]:
        item = re.match(r" *(?:[-*+]|\d+\.) +(.*)", line)
        special = re.match(r"#+ +(.*)|\|(.*)\|$|(?:=|-){3,}$", line)
        code = line.startswith("    ") and not listed
        if (not line.strip() or item or special or code) and block:
            yield " ".join(block)
            block = []
        if item:
            block, listed = [item.group(1)], True
        elif special:
            listed = False
            yield from (cell for cell in (special.group(1) or special.group(2) or "").split(" | ") if cell)
        elif line.strip() and not code:
            listed = listed and line.startswith("  ")
            block.append(line.strip())


def sentences(block):
    """A block cut into sentences, as lists of words."""
    text = re.sub(r"(`+)(?:(?!\1).)+\1", "CODE", block)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<https?://[^>]*>|https?://\S+", "LINK", text)
    text = re.sub(ABBREVIATIONS, lambda found: found.group().replace(".", ""), text)
    text = re.sub(r"\.\.\.", "", text)
    text = re.sub(r"[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}", "", text)
    for sentence in re.split(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9a-z])", text):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if words:
            yield words


def too_long(page, most=MOST):
    return [words for block in blocks(page) for words in sentences(block) if len(words) > most]


def pages(source):
    """Each page with its text and the most words of its sentences."""
    docs = source / "docs"
    first = [source / "README.md", docs / "first-hour.md", *sorted((docs / "ladder").iterdir())]
    for file in [*first, *sorted((docs / "tutorials").iterdir())]:
        text = file.read_text()
        if file.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        yield file, text, MOST
    for file in sorted([*docs.glob("*.md"), source / "CONTRIBUTING.md", source / "SECURITY.md"]):
        if file not in first and file.name != "measurements-history.md":
            yield file, re.sub(r"^\|.*$", "", file.read_text(), flags=re.MULTILINE), MOST_ELSEWHERE


def check_itself():
    long = "one " * 16
    for page, found in [
        (f"{long}{long}.", 1),
        (f"{long}.\n{long}.", 0),
        (f"{long}\n{long}.", 1),
        (f"{long}\n\n{long}.", 0),
        (f"- {long}\n- {long}", 0),
        (f"- {long}\n  {long}", 1),
        (f"| {long} | {long} |", 0),
        (f"{long} e.g. {long}.", 1),
        (f"{long} version 1.2 {long}.", 1),
        (f"{long} `a. b` {long}.", 1),
        (f"{long}? {long}.", 0),
        (f"`{long}{long}`", 0),
        (f"```\n{long}{long}\n```", 0),
        (f"a\n\n    {long}{long}\n", 0),
        (f"[{long}](x.md) {long}.", 1),
        (f"# {long}\n{long}.", 0),
    ]:
        assert len(too_long(page)) == found, page


def main(source):
    check_itself()
    wrong, looked_at = 0, 0
    for file, text, most in pages(source):
        looked_at += sum(1 for block in blocks(text) for _ in sentences(block))
        for words in too_long(text, most):
            wrong += 1
            print(f"{file.relative_to(source)}: {len(words)} words of at most {most}: {' '.join(words)}")
    print(f"{wrong} of {looked_at} sentences are too long")
    return 1 if wrong or looked_at < 1500 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
