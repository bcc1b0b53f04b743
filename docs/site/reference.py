"""The reference pages of the site: from the program's help, the op catalogue, the public headers, the Python package.

    python3 docs/site/reference.py GPUNN       what is not documented; the exit code is 1 if anything is

The pages are made when the site is built, so that they are always those of the sources. GPUNN is the program. The
Python package next to it in the build tree has the types of gpunn._core; without it the page of Python lacks these.
"""

import ast
import copy
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "tools"))
import generate_ops  # noqa: E402

import headers  # noqa: E402

Definition = ast.FunctionDef | ast.ClassDef
ROOT = Path(__file__).resolve().parents[2]
# What the other headers are made of. Their authors include the others.
PARTS = ("op_ranges.hpp", "op_shapes.hpp", "op_signature.hpp", "plugin_table.hpp")


class Reference:
    """Pages by their address in the site, and what is missing in them."""

    def __init__(self, root: Path, program: str) -> None:
        self.root, self.program = root, program
        self.types = Path(program).resolve().parents[1] / "python" / "gpunn" / "_core.pyi"
        self.missing: list[str] = []
        self.pages = {
            "reference/verbs.md": self.verbs(),
            "reference/ops.md": self.ops(),
            "reference/c.md": self.c_api(),
            "reference/cpp.md": self.cpp_api(),
            "reference/plugin.md": self.plugin_api(),
            "reference/python.md": self.python_api(),
        }
        self.metrics()

    # --- Verbs ---

    def help(self, *words: str) -> str:
        done = subprocess.run([self.program, "help", *words], capture_output=True, text=True, timeout=60, check=False)
        return done.stdout if done.returncode == 0 else ""

    def verbs(self) -> str:
        text = (
            "# Verbs and their options\n\n`gpunn VERB --help` prints the same. [The program](../cli.md) says more of"
            " each verb.\n\n"
        )
        group = ""
        for line in self.help().split("\nOptions:")[0].splitlines():
            if re.match(r"[A-Z].*:$", line):
                group = line[:-1]
            found = re.match(r"  ([a-z]+)[ ,]", line)
            if not found or not group:
                continue
            if group:
                text += f"## {group}\n\n" if f"## {group}\n" not in text else ""
            text += self.verb(found.group(1), 3)
        return text

    def verb(self, words: str, level: int) -> str:
        said = self.help(*words.split())
        if not re.match(r"[A-Z].*\w", said):
            self.missing.append(f"verb {words}: no help")
        for option in re.findall(r"^  (-[^ ].*?)$", said, re.MULTILINE):
            if not re.search(r"  +\S|^-.{22,}$", option):
                self.missing.append(f"verb {words}: option {option} says nothing")
        page = f"{'#' * level} `gpunn {words}`\n\n```text\n{said}```\n\n"
        inner = said.split("\nOptions:")[0]
        if re.search(r"^Usage: .* VERB|SUBCOMMAND", inner, re.MULTILINE):
            for one in re.findall(r"^  ([a-z]+) ", inner, re.MULTILINE):
                page += self.verb(f"{words} {one}", level + 1)
        return page

    # --- Ops ---

    def ops(self) -> str:
        catalogue = (self.root / "api/include/gpunn/op_list.inc").read_text()
        rules = headers.comment_text(catalogue[: catalogue.index("*/") + 2].splitlines())
        described = generate_ops.catalogue(self.program)
        summaries = {one["name"].upper(): one["summary"] for one in described}
        formulas = {one["name"].upper(): one["formula"] for one in described}
        made = ast.parse(generate_ops.text(described))
        functions = {one.name: one for one in made.body if isinstance(one, ast.FunctionDef)}
        text = (
            "# Ops\n\nThe ops that backends run. A backend has a kernel for each op, or leaves it to its base; [Writing"
            f" a backend](../writing-a-backend.md) says how.\n\n{prose(rules)}\n\n"
        )
        comment = ""
        pattern = r'(/\*(?:(?!\*/).)*\*/)|GPUNN_OP\((\w+), (\d+), (\w+),\s*((?:"[^"]*"[\s,]*)+)\)'
        for said, name, number, attributes, _ in re.findall(pattern, catalogue[catalogue.index("*/") + 2 :], re.DOTALL):
            if said.startswith("/* ---"):
                title = re.sub(r"\s*-+\s*$", "", headers.comment_text(said.splitlines()).strip(" -"))
                head, _, rest = (
                    re.sub(r"\s+", " ", title).partition(": ") if ". " not in title else title.partition(". ")
                )
                text += f"## {re.sub(chr(10), ' ', head)}\n\n" + (f"{rest}\n\n" if rest else "")
                comment = ""
            elif said:
                comment = headers.comment_text(said.splitlines())
            else:
                summary, function = summaries.get(name, ""), functions.get(name.lower())
                if not summary or not function:
                    self.missing.append(f"op {name}: no summary in api/include/gpunn/op_list.inc")
                    continue
                _, shown, *parts = self.docstring(ast.get_docstring(function) or "").split("\n\n")
                about = [comment] if comment and comment.rstrip(".") not in summary else []
                if formulas[name]:
                    about.append(f"Formula: `{formulas[name]}`")
                identity = f"Id {number}{'' if attributes == 'gpunn_no_attrs' else f', attributes `{attributes}`'}."
                parts = ["\n".join(f"- {line}" for line in re.split(r"\n(?=`)", one)) for one in parts]
                text += f"### {name}\n\n" + "\n\n".join([summary + ".", *about, shown, *parts, identity]) + "\n\n"
                comment = ""
        return text

    def metrics(self) -> None:
        """docs/metrics.md is written by hand: it has each metric of a task, and each that a key may watch."""
        page = (self.root / "docs/metrics.md").read_text()
        rows = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE))))
        sources = "".join(one.read_text() for one in sorted((self.root / "runtime/tasks").rglob("*.cpp")))
        known = set(re.findall(r'\{"(\w+)", "[^"]+", (?:true|false)', sources))
        watched = re.search(r"\(([\w,\s]+); default", self.help("keys", "early_stopping.monitor"))
        known |= set(re.findall(r"\w+", watched.group(1))) if watched else {"the values of early_stopping.monitor"}
        self.missing += [f"metric {one}: docs/metrics.md lacks it" for one in sorted(known - rows)]
        self.missing += [f"metric {one}: docs/metrics.md has it, and no task" for one in sorted(rows - known)]

    # --- C and C++ ---

    def header(self, folder: str, name: str, level: int = 2) -> str:
        """The section of a header: its comment and its symbols."""
        path = f"{folder}/{name}"
        header = headers.parse(path, (self.root / path).read_text())
        lacking = [] if name == "op_attrs.h" else headers.undocumented(header)  # op_attrs.inc says what they are
        self.missing += [f"{path}:{one.line}: {one.name} has no comment" for one in lacking]
        language = "c" if name.endswith(".h") else "cpp"
        text = f"{'#' * level} `<gpunn/{name}>`\n\n" + (f"{prose(header.comment)}\n\n" if header.comment else "")
        said = None
        for symbol in header.symbols:
            if "::" in symbol.name or re.match(
                r"(?:class|struct) \w+;|template <[^;]*>\s*struct \w+;", symbol.declaration
            ):
                continue
            if symbol.comment != said or not said:
                text += f"{'#' * (level + 1)} `{symbol.name}`\n\n" + (
                    f"{prose(symbol.comment)}\n\n" if symbol.comment else ""
                )
            elif text.endswith("```\n\n"):  # one of a group that has one comment
                text = text[: -len("```\n\n")] + symbol.declaration + "\n```\n\n"
                continue
            text += f"```{language}\n{symbol.declaration}\n```\n\n"
            said = symbol.comment
        return text

    def c_api(self) -> str:
        return (
            "# C API\n\nA trained model in a C program. [Embedding](../embedding.md) has an example.\n\n"
            + self.header("runtime/include/gpunn", "gpunn.h")
        )

    def cpp_api(self) -> str:
        folder = "runtime/include/gpunn"
        names = sorted(one.name for one in (self.root / folder).iterdir() if one.suffix == ".hpp")
        return (
            "# C++ API\n\nThe library `libgpunn`: everything that the program does. [Embedding](../embedding.md) shows"
            " how a program uses it.\n\n" + "".join(self.header(folder, name) for name in names)
        )

    def plugin_api(self) -> str:
        folder = "api/include/gpunn"
        names = [
            one.name
            for one in sorted((self.root / folder).iterdir())
            if one.suffix in (".h", ".hpp") and one.name not in PARTS
        ]
        names.sort(key=lambda name: (name.endswith(".hpp"), name != "abi.h", name != "plugin.hpp"))
        return (
            "# Plugin API\n\nThe contract between gpunn and a backend, in C, and its C++ form for authors of backends."
            " [Writing a backend](../writing-a-backend.md) explains it.\n\n"
            + "".join(self.header(folder, name) for name in names)
            + self.attributes()
        )

    def attributes(self) -> str:
        """The attribute structs, as op_attrs.h makes them."""
        rows = (self.root / "api/include/gpunn/op_attrs.inc").read_text()
        text = "## `<gpunn/op_attrs.inc>`\n\n"
        pattern = r"(/\*(?:(?!\*/).)*\*/\n)?GPUNN_ATTRS\((\w+)\)\n(.*?)GPUNN_ATTRS_END"
        for said, name, members in re.findall(pattern, rows, re.DOTALL):
            text += f"### `{name}`\n\n"
            if said:
                text += prose(headers.comment_text(said.splitlines())) + "\n\n"
            text += f"```c\ntypedef struct {name} {{\n  uint32_t struct_size;\n"
            named = r'ATTR\((\w+), (\w+), (\S*), \w+, "([^"]*)",.*?"([^"]*)"[^"]*?\)'
            member = rf"GPUNN_(?:{named}|UNNAMED\((\w+), (\w+)\))\n"
            for kind, one, extent, limits, about, plain, hidden in re.findall(member, members, re.DOTALL):
                comment = about + (f"; in {limits}" if limits else "")
                text += f"  {kind or plain} {one or hidden}{extent};" + (f" /* {comment} */" if comment else "") + "\n"
            text += f"}} {name};\n```\n\n"
        return text

    # --- Python ---

    def module(self, name: str) -> ast.Module:
        file = self.types if name == self.types.name else self.root / "python/gpunn" / name
        return ast.parse(file.read_text())

    def exported(self) -> dict[str, tuple[str, ...]]:
        """The names of the package by the module that has them."""
        for node in self.module("__init__.py").body:
            if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "_LAZY" and node.value:
                return {
                    "errors": (
                        "ConfigError",
                        "DeviceLostError",
                        "Diagnostic",
                        "DivergedError",
                        "Error",
                        "MissingError",
                        "UsageError",
                    )
                } | {key: value for key, value in ast.literal_eval(node.value).items() if key != "errors"}
        return {}

    def python_api(self) -> str:
        titles = {
            "_core": "What trainings report",
            "_run": "Training and runs",
            "_model": "Trained models",
            "_evaluation": "Evaluation",
            "_experiment": "Experiments",
            "_history": "Histories",
            "_weights": "Weights",
            "_tools": "Tools",
            "layers": "Layers",
            "network": "Networks",
            "losses": "Losses",
            "callbacks": "Callbacks",
            "errors": "Errors",
        }
        text = (
            "# Python API\n\nThe package `gpunn`. [gpunn in Python](../python.md) and [Networks in Python"
            " code](../networks.md) explain it; [the ops](ops.md) are functions of `gpunn.ops`.\n\n"
        )
        exported = self.exported()
        for module in sorted(exported, key=lambda one: list(titles).index(one) if one in titles else 99):
            names = [name for name in exported[module] if name != module]
            if names and (module != "_core" or self.types.is_file()):
                text += f"## {titles.get(module, module)}\n\n" + self.definitions(module, names, "gpunn")
        for module, title in (
            ("sklearn", "gpunn.sklearn"),
            ("plots", "gpunn.plots"),
            ("onnx", "gpunn.onnx"),
            ("torch/__init__", "gpunn.torch"),
        ):
            tree = self.module(f"{module}.py")
            names = [one.name for one in tree.body if isinstance(one, Definition) and not one.name.startswith("_")]
            text += f"## {title}\n\n{self.docstring(ast.get_docstring(tree) or '')}\n\n" + self.definitions(
                module, names, title
            )
        return text

    def definitions(self, module: str, names: Iterable[str], package: str) -> str:
        file = f"{module}.pyi" if module == "_core" else f"{module}.py"
        found = {one.name: one for one in self.module(file).body if isinstance(one, Definition)}
        others = {
            one.targets[0].id: one.value.id
            for one in self.module(file).body
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Name)
        }
        text = ""
        for name in names:
            if name in others and others[name] in found:
                text += f"### `{package}.{name}`\n\nAnother name of `{package}.{others[name]}`.\n\n"
            elif name not in found:
                self.missing.append(f"{package}.{name} is not defined in python/gpunn/{file}")
            else:
                text += f"### `{package}.{name}`\n\n" + self.definition(found[name], f"{package}.{name}")
        return text

    def definition(self, node: Definition, name: str) -> str:
        said = ast.get_docstring(node) or ""
        if not said:
            self.missing.append(f"{name} has no docstring")
        if isinstance(node, ast.FunctionDef):
            return f"```python\n{signature(node)}\n```\n\n{self.docstring(said)}\n\n"
        init = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
        text = f"```python\n{signature(init[0], node.name)}\n```\n\n" if init else ""
        text += f"{self.docstring(said)}\n\n"
        for one in node.body:
            if (
                isinstance(one, ast.AnnAssign)
                and isinstance(one.target, ast.Name)
                and not one.target.id.startswith("_")
            ):
                text += f"- `{one.target.id}: {ast.unparse(one.annotation)}`\n"
            if not isinstance(one, ast.FunctionDef) or one.name.startswith("_"):
                continue
            marks = [ast.unparse(mark) for mark in one.decorator_list]
            if any(mark.endswith(".setter") for mark in marks):
                continue
            shown = f"{one.name}: {ast.unparse(one.returns)}" if "property" in marks and one.returns else signature(one)
            about = self.docstring(ast.get_docstring(one) or "").replace("\n", "\n    ")
            text += f"- `{shown}`" + (f"<br>{about}\n" if about else "\n")
        return text + "\n"

    @staticmethod
    def docstring(text: str) -> str:
        """Docstrings have the marks of reStructuredText."""
        text = re.sub(r":(?:class|func|meth|mod|attr|exc):`~?([^`]*)`", r"`\1`", text.replace("``", "`"))
        return re.sub(r"::$", ":", text, flags=re.MULTILINE)


def signature(node: ast.FunctionDef, name: str | None = None) -> str:
    arguments = copy.deepcopy(node.args)
    arguments.args = [one for one in arguments.args if one.arg not in ("self", "cls")]
    arguments.posonlyargs = [one for one in arguments.posonlyargs if one.arg not in ("self", "cls")]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and not name else ""
    return f"{name or node.name}({ast.unparse(arguments)}){returns}"


def prose(comment: str) -> str:
    """A comment as Markdown: what is indented in it is code; marks of Markdown in it are its own letters."""
    lines: list[str] = []
    for line in comment.splitlines():
        code = re.match(r"  +\S", line) is not None
        if code and lines and lines[-1] and not lines[-1].startswith("    "):
            lines.append("")
        if not code and lines and lines[-1].startswith("    ") and line:
            lines.append("")
        lines.append("  " + line if code else re.sub(r"(?<!`)([<>*_\[\]])(?![^`]*`)", r"\\\1", line))
    return "\n".join(lines)


def check_itself() -> None:
    """What has no comment is found, and nothing else."""
    header = headers.parse("a.hpp", SAMPLE)
    assert [one.name for one in header.symbols] == ["Size", "area", "width", "height", "Sheet", "scale"], header.symbols
    assert [one.name for one in headers.undocumented(header)] == ["width", "scale"], header.symbols
    assert header.symbols[-1].declaration == "inline int scale(Size s, int by = 2);", header.symbols[-1]


SAMPLE = """#pragma once
#include <vector>

namespace gpunn {

// In pixels.
struct Size {
  int rows = 0, columns = 0;
};

int area(Size size);  // rows times columns

int width(const Size& size);

// Of a sheet; 0 where there is none.
int height(const Size& size);
class GPUNN_API Sheet {
 public:
  bool ok() const;  // whether it is there
};

inline int scale(Size s, int by = 2) {
  return s.rows * by;
}

}  // namespace gpunn
"""


def main(program: str) -> int:
    check_itself()
    reference = Reference(ROOT, program)
    counts = {uri: len(re.findall(r"^### |^## `", text, re.MULTILINE)) for uri, text in reference.pages.items()}
    for one in reference.missing:
        print(one)
    print(", ".join(f"{uri}: {count}" for uri, count in counts.items()))
    least = {
        "reference/verbs.md": 18,
        "reference/ops.md": 120,
        "reference/c.md": 15,
        "reference/cpp.md": 200,
        "reference/plugin.md": 80,
        "reference/python.md": 100,
    }
    few = [uri for uri, count in least.items() if counts[uri] < count]
    if few:
        print(f"too little was found for {', '.join(few)}")
    return 1 if reference.missing or few else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
