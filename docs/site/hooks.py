"""What the site has beside docs/*.md: the root's pages, the notebooks, and each source file that a page links to.

A page links to `../backends/cpu/x.cpp` as it does in the repository. Here the file becomes a page `source/...` of its
own, so that the site needs no host of the repository. A link to a file that isn't there is a warning, and the build is
strict.
"""

import json
import logging
import os
import posixpath
import re
import sys
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from reference import Reference

log = logging.getLogger("mkdocs.hooks.gpunn")

ROOT_PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
# Sources that a page of the reference shows better.
REFERENCE = {
    "api/include/gpunn": "reference/plugin.md",
    "api/include/gpunn/abi.h": "reference/plugin.md",
    "api/include/gpunn/op_list.inc": "reference/ops.md",
    "runtime/include/gpunn": "reference/cpp.md",
    "runtime/include/gpunn/gpunn.h": "reference/c.md",
}
LINK = re.compile(r'(\]\(|(?:src|srcset|href)=")([^)"\s#]+)(#[^)"\s]*)?([)"])')
FENCES = re.compile(r"^(?: *```.*?^ *```|(?: {4}|\t)[^\n]*)$", re.MULTILINE | re.DOTALL)
LANGUAGES = {
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".cu": "cuda",
    ".cuh": "cuda",
    ".h": "c",
    ".c": "c",
    ".inc": "c",
    ".py": "python",
    ".yaml": "yaml",
    ".sh": "sh",
    ".lua": "lua",
    ".json": "json",
    ".md": "markdown",
}


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` made to what is no code."""
    result: list[str] = []
    at = 0
    for code in FENCES.finditer(text):
        result += [change(text[at : code.start()]), code.group()]
        at = code.end()
    return "".join([*result, change(text[at:])])


def from_notebook(path: Path) -> str:
    """A notebook as Markdown."""
    cells = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        cells.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(cells) + "\n"


def source_page(root: Path, path: str) -> str:
    """A file or a folder of the project as Markdown."""
    head = f"---\nsearch: {{exclude: true}}\nhide: [toc]\n---\n\n# `{path}`\n\n"
    file = root / path
    if file.is_dir():
        return head + "".join(
            f"- [`{one.name}`]({one.name})\n" for one in sorted(file.iterdir()) if not one.name.startswith(("__", "."))
        )
    language = LANGUAGES.get(file.suffix, "cmake" if file.name == "CMakeLists.txt" else "text")
    text = file.read_text(errors="replace")
    fence = "`" * max([3, *(len(one) + 1 for one in re.findall("`+", text))])
    return f"{head}{fence}{language}\n{text}{fence}\n"


class Site:
    def __init__(self, files: Files, config: MkDocsConfig) -> None:
        self.files, self.config = files, config
        self.sources: set[str] = set()
        self.root = Path(config.config_file_path).parent

    def add(self, uri: str, content: str) -> None:
        self.files.append(File.generated(self.config, uri, content=content))

    def relinked(self, text: str, repository_path: str, uri: str) -> str:
        """The text of a page that is `repository_path` in the project and `uri` in the site."""
        folder, here = posixpath.dirname(repository_path), posixpath.dirname(uri)

        def target(match: re.Match[str]) -> str:
            before, link, anchor, after = match.groups(default="")
            if ":" in link:
                return match.group()
            path = posixpath.normpath(posixpath.join(folder, link))
            if not (self.root / path).exists():
                log.warning("%s links to %s, which is not there", repository_path, link)
                return match.group()
            return before + posixpath.relpath(self.uri_of(path), here or ".") + anchor + after

        return outside_code(text, lambda prose: LINK.sub(target, prose))

    def uri_of(self, path: str) -> str:
        """What a file of the project is called in the site; a page of its source is made where there is none."""
        pages = {file: uri for uri, file in ROOT_PAGES.items()} | REFERENCE
        if path in pages:
            return pages[path]
        if path.startswith("docs/"):
            inside = path[len("docs/") :]
            inside = inside.removesuffix(".ipynb") + ".md" if inside.endswith(".ipynb") else inside
            if self.files.get_file_from_path(inside) and not inside.endswith(".py"):
                return inside
        uri = f"source/{path}.md"
        if uri not in self.sources:
            self.sources.add(uri)
            page = source_page(self.root, path)
            self.add(uri, self.relinked(page, f"{path}/x", uri) if (self.root / path).is_dir() else page)
        return uri


def program(root: Path) -> str:
    """The program whose help the site shows: the newest that was built."""
    built = [one for one in root.glob("build/*/bin/gpunn") if os.access(one, os.X_OK)]
    if not built:
        raise PluginError(
            "the pages of verbs are made by the program: build it first, as with './bootstrap gpunn plugins'"
        )
    return str(max(built, key=lambda one: one.stat().st_mtime))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    site = Site(files, config)
    reference = Reference(site.root, program(site.root))
    for one in reference.missing:
        log.warning("not documented: %s", one)
    for uri, text in reference.pages.items():
        site.add(uri, text)
    pages = [one for one in files.documentation_pages() if one.src_uri not in reference.pages]
    for notebook in sorted((site.root / "docs").rglob("*.ipynb")):
        inside = notebook.relative_to(site.root / "docs").with_suffix(".md").as_posix()
        site.add(inside, from_notebook(notebook))
    for uri, path in ROOT_PAGES.items():
        site.add(uri, site.relinked((site.root / path).read_text(), path, uri))
    for file in pages:
        changed = site.relinked(file.content_string, f"docs/{file.src_uri}", file.src_uri)
        if changed != file.content_string:
            files.remove(file)
            site.add(file.src_uri, changed)
    return files
