"""Commands that pages show are commands that exist: `commands_test.py GPUNN SOURCE_FOLDER`.

Of each `gpunn VERB ...` in a block of code or in backticks the verb and its options are looked up in the program's help,
and experiments and models in the folders of the project.
"""

import os
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*\n|\n)+")
INLINE = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"(?:^|[ /`$(])(gpunn|\./bootstrap) +([a-z]+(?: [a-z]+)?)?([^\n|#&;>]*)")
OWN_FILE = re.compile(r"(?:experiments|models)/[a-z0-9_.]+\.yaml")


def code_of(page):
    """Lines of code of a page, continued lines joined."""
    shell = [one for one in FENCE.findall(page) if re.match(r" *```(sh|bash|console|text)?\n", one)]
    blocks = shell + INDENTED.findall(FENCE.sub("", page))
    spans = [one.replace("\n", " ") for one in INLINE.findall(INDENTED.sub("\n", FENCE.sub("", page)))]
    text = "\n".join(blocks + spans)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    # A command that the program refuses on the next line is shown for its answer.
    return [line for line, answer in zip(lines, lines[1:] + [""]) if not answer.strip().startswith("gpunn: ")]


class Program:
    def __init__(self, gpunn, bootstrap):
        self.gpunn, self.bootstrap = gpunn, bootstrap

    @lru_cache(maxsize=None)
    def help(self, *words):
        """The help of a verb, or of the program; empty where there is no such verb."""
        done = subprocess.run([self.gpunn, *words, "--help"], capture_output=True, text=True, timeout=60)
        return done.stdout if done.returncode == 0 else ""

    @lru_cache(maxsize=None)
    def bootstrap_help(self):
        return subprocess.run([self.bootstrap, "--help"], capture_output=True, text=True, timeout=60).stdout

    def mistakes(self, line):
        """What is wrong with the commands of this line."""
        if re.search(r"(?:^|[ /])gpunn [a-z][^|&;$(<]* gpunn(?: |$)", line):
            yield "two commands run together"
        for program, words, rest in COMMAND.findall(line):
            options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest))
            verb = words.split()[0] if words else ""
            if program == "./bootstrap":
                shown = self.bootstrap_help()
                if verb and not re.search(rf"^  {verb}\b", shown, re.MULTILINE):
                    yield f"./bootstrap has no command {verb}"
                if verb != "gpunn":
                    continue  # options are those of gpunn run or ctest
                inner = rest if len(words.split()) == 1 else words.split()[1] + rest
                yield from self.mistakes("gpunn " + inner.strip())
                continue
            if not verb:
                shown = self.help()
            else:
                shown = self.help(verb)
                if shown in ("", self.help()):  # asked for the help of a verb that it lacks, it gives its own
                    yield f"gpunn has no verb {verb}"
                    continue
                second = words.split()[1] if len(words.split()) > 1 else ""
                if second and re.search(rf"^  {second}\b", shown, re.MULTILINE):
                    shown += self.help(verb, second)
            for option in sorted(options):
                if not re.search(rf"(?<![\w-]){option}(?![\w-])", shown) and option not in ("--help", "--version"):
                    yield f"gpunn {words} has no option {option}"


def main(gpunn, source):
    pages = [*source.glob("*.md"), *(source / "docs").rglob("*.md"), *(source / ".github").glob("*.md")]
    program = Program(gpunn, source / "bootstrap")
    found, wrong = 0, []
    for page in sorted(pages):
        text = page.read_text()
        for line in code_of(text):
            found += len(COMMAND.findall(line))
            wrong += [f"{page.relative_to(source)}: {one}, in: {line.strip()}" for one in program.mistakes(line)]
            wrong += [f"{page.relative_to(source)}: there is no {one}, in: {line.strip()}"
                      for one in OWN_FILE.findall(line) if not (source / one).exists()]
    # The search itself finds what is wrong.
    for broken in ("gpunn trian experiments/lenet_mnist.yaml", "gpunn run x.yaml --bakend cpu",
                   "./bootstrap tets", "./bootstrap gpunn plugin", "gpunn data list --sheet x.png --no-such-thing",
                   "gpunn run x.yaml --quiet gpunn", "gpunn run x.yaml --quiet gpunn eval x"):
        if not list(program.mistakes(broken)):
            wrong.append(f"this test finds nothing wrong with: {broken}")
    if found < 80:
        wrong.append(f"this test finds {found} commands only")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{found} commands in {len(pages)} pages")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve())
