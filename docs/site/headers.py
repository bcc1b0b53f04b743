"""Public C and C++ headers: their declarations, each with the comment that documents it.

It reads what clang-format leaves, not C++ at large: a declaration begins at the start of a line. A symbol is what
stands at namespace level: a type, function, constant or macro. Members belong to their type's declaration.
"""

import re
from dataclasses import dataclass, field


@dataclass
class Symbol:
    name: str
    comment: str
    declaration: str  # without a function's body
    line: int


@dataclass
class Header:
    path: str
    comment: str = ""
    symbols: list[Symbol] = field(default_factory=list)


SCOPE = re.compile(r'^(inline )?namespace [\w:]+ \{|^namespace \{|^extern "C" \{|^\}  // namespace|^\}$')
KEYWORDS = {
    "if",
    "for",
    "while",
    "switch",
    "return",
    "defined",
    "sizeof",
    "alignas",
    "decltype",
    "noexcept",
    "requires",
}


def without_comments(line: str) -> str:
    return re.sub(r"/\*.*?\*/|//.*$", "", re.sub(r'"(?:\\.|[^"\\])*"', '""', line))


def comment_text(lines: list[str]) -> str:
    """What a comment says, without its marks; a paragraph keeps its lines."""
    text = "\n".join(re.sub(r"^\s*(?://+|/\*+|\*(?!/))? ?", "", re.sub(r"\s*\*/\s*$", "", line)) for line in lines)
    return text.strip("\n")


def name_of(declaration: str) -> str:
    """What a declaration declares; several names of one line are joined by commas. Empty where there is none."""
    text = " ".join(without_comments(line) for line in declaration.splitlines()).strip()
    text = re.sub(r"\s+", " ", text)
    macro = re.match(r"#\s*define (\w+)", text)
    if macro:
        return macro.group(1)
    text = re.sub(r"^template <(?:[^<>]|<[^<>]*>)*> ?", "", text)
    text = re.sub(
        r"\bGPUNN_(API|EXPORT|RANDOM_FN)\b|\[\[\w+\]\]|\balignas\([^)]*\)|__attribute__\(\(.*?\)\)", "", text
    ).strip()
    text = re.sub(r"\s+", " ", text)
    for pattern in (
        r"typedef (?:struct|enum|union) (\w+) ?\{",
        r"typedef .*\(\*(\w+)\)\(.*;$",
        r"typedef .*\b(\w+) ?;$",
        r"using (\w+) =",
        r"(?:class|struct|union|enum class|enum) (\w+(?:<[^{;]*>)?)[^(;]*[{;]",
    ):
        found = re.match(pattern, text)
        if found:
            return found.group(1)
    if re.match(r"enum \{", text):
        return ", ".join(re.findall(r"\b([A-Z]\w+)(?= ?[=,}]| ?$)", text[text.index("{") :]))
    operator = re.search(r"\boperator ?([^\s(\w]+|\w+)\(", text)
    if operator:
        return "operator" + operator.group(1)
    for found in re.finditer(r"([A-Za-z_]\w*(?:::~?\w+)*) ?\(", text):
        if found.group(1) not in KEYWORDS:
            return found.group(1)
    constant = re.match(r"[\w:<>, *&]*?[\s*&](\w+)(?:\[\w*\])? ?(?:=|\{|;)", text)
    return constant.group(1) if constant else ""


def without_body(declaration: str) -> str:
    """A function's declaration without its body, a type's with its public members."""
    text = declaration.rstrip()
    plain = "\n".join(without_comments(line) for line in text.splitlines())
    first = plain.split("{")[0]
    if "{" in plain and re.search(r"\)[^()]*$", first) and "=" not in first.split("(")[0]:
        brace = text.index("{", text.index(")")) if ")" in text else text.index("{")
        depth = 0
        for at, letter in enumerate(text):  # the brace behind the parameters
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "{" and depth == 0:
                brace = at
                break
        text = re.sub(r"\s*(?:(?<!:):(?!:).*)?$", "", text[:brace], flags=re.DOTALL) + ";"
    return re.sub(r"\n private:.*?(?=\n\};|\n public:)", "", text, flags=re.DOTALL)


def parse(path: str, text: str) -> Header:
    header = Header(path)
    text = re.sub(
        r"^namespace detail \{$.*?^\}  // namespace detail$",
        lambda cut: "\n" * cut.group().count("\n"),
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    lines = text.splitlines()
    comment: list[str] = []
    grouped, at, before_code = "", 0, True

    while at < len(lines):
        line = lines[at]
        stripped = line.strip()
        if stripped.startswith("//") or stripped.startswith("/*"):
            begin = at
            if stripped.startswith("/*"):
                while "*/" not in lines[at]:
                    at += 1
            block = lines[begin : at + 1]
            comment = comment + block if stripped.startswith("//") and comment else block
            grouped = ""
            at += 1
            following = lines[at].strip() if at < len(lines) else ""
            if (
                before_code
                and not header.comment
                and not following.startswith("//")
                and (following == "" or following.startswith("#"))
            ):
                header.comment, comment = comment_text(comment), []
            continue
        if not stripped:
            comment, grouped = [], ""
            at += 1
            continue
        if SCOPE.match(line) or (line.startswith("#") and not re.match(r"#\s*define \w+", line)):
            before_code = before_code and line.startswith("#")
            comment, grouped = ([], "") if not line.startswith("#") else (comment, grouped)
            at += 1
            continue
        begin, braces, parens = at, 0, 0
        macro = line.startswith("#")
        while True:
            plain = without_comments(lines[at])
            braces += plain.count("{") - plain.count("}")
            parens += plain.count("(") - plain.count(")")
            done = (
                (not lines[at].endswith("\\"))
                if macro
                else (braces <= 0 and parens <= 0 and re.search(r"[;}]\s*$|^\w[\w:]*\(.*\)\s*$", plain) is not None)
            )
            at += 1
            if done or at >= len(lines):
                break
        declaration = "\n".join(lines[begin:at])
        guard = macro and re.match(r"#\s*define \w+$", declaration)
        name = "" if guard else name_of(declaration)
        if name:
            before_code = False
            trailing = re.search(r"(?://|/\*) ?(.*?)(?: \*/)?$", lines[at - 1] if at - begin > 1 else line)
            said = comment_text(comment) or grouped or (trailing.group(1) if trailing and at - begin == 1 else "")
            header.symbols.append(Symbol(name, said, without_body(declaration), begin + 1))
            grouped = said
        comment = []
    return header


def undocumented(header: Header) -> list[Symbol]:
    """Symbols that no comment documents, neither of their own nor of the group without blank lines that they are in."""
    known = {symbol.name for symbol in header.symbols if symbol.comment}
    if header.comment and len({symbol.name for symbol in header.symbols}) == 1:
        return []  # the header's comment is the symbol's
    return [
        symbol
        for symbol in header.symbols
        if not symbol.comment
        and symbol.name not in known
        and "::" not in symbol.name  # a member, which its class declares
        and not re.match(r"(?:class|struct) \w+;", symbol.declaration)
    ]
