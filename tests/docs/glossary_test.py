"""The glossary's words in sources and pages: `glossary_test.py SOURCE_FOLDER`.

A thing has one name. These words are other names for it, or don't say who does something. Identifiers count word by
word: `LaneStep` and `lane_plan` hold a lane, `plane` does not.
"""

import os
import re
import sys

# Pattern over words in lower case, what to say, and where the word has another meaning.
WORDS = [
    # A file claims to hold more than it does; Kubernetes has volume claims.
    (r"claim(s|ed|ing|ant)?", "fused subgraph",
     ["docs/checkpoint-format.md", "examples/cluster", "runtime/data", "runtime/storage", "tests/data", "tests/storage"]),
    # Lanes of a vector register and of a warp.
    (r"lanes?", "stream",
     ["backends", "docs/backends.md", "docs/kernels.md", "docs/measurements-history.md", "tests/backends_cpu",
      "tests/backends_cuda_tiled"]),
    (r"rungs?", "kernel variant, or step of the ladder", []),
    (r"filter gradients?", "weight gradient", []),
    (r"inv dev", "rstd", []),
    (r"nobody|somebody|as ever", "a subject, or another sentence", []),
]

FOLDERS = [".github", "api", "backends", "bench", "cmake", "docs", "examples", "experiments", "models", "python", "runtime", "tests"]
ENDINGS = (".c", ".cmake", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc", ".md", ".py", ".sh", ".txt", ".yaml", ".yml")


def words(text):
    """Lower case, each identifier cut into its words. Line breaks stay."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).replace("_", " ").lower()


def inside(file, places):
    return any(file == place or file.startswith(place + "/") for place in places)


def findings(file, text):
    """Pairs of a line's number and what is wrong there."""
    result = []
    text = words(text)
    for pattern, say, allowed in WORDS:
        if inside(file, allowed):
            continue
        pattern = pattern.replace(" ", r"(?:\s|//|#|\*)+")  # the next word may stand in the next line of a comment
        for found in re.finditer(rf"\b(?:{pattern})\b", text):
            result.append((text.count("\n", 0, found.start()) + 1, f"'{found.group()}': say {say}"))
    return sorted(result)


def files(source):
    for name in sorted(os.listdir(source)):
        if name.endswith(ENDINGS) and os.path.isfile(os.path.join(source, name)):
            yield name
    for folder in FOLDERS:
        for at, folders, names in os.walk(os.path.join(source, folder)):
            folders[:] = sorted(each for each in folders if each != "__pycache__")
            for name in sorted(names):
                if name.endswith(ENDINGS):
                    yield os.path.relpath(os.path.join(at, name), source).replace(os.sep, "/")


def check_itself():
    """The words are found where they stand, and nowhere else."""
    for text in ("struct LaneStep {", "plan_lanes(ops)", "a rung", "Nobody waits", "goes on as ever", "the filter gradient",
                 "// a filter\n  // gradient", "float inv_dev", "claimed runs"):
        assert findings("runtime/execution/steps/step.hpp", text), text
    for text in ("image planes", "wrung", "a stream", "CONV2D_BACKWARD_FILTER", "exclaim"):
        assert not findings("runtime/execution/steps/step.hpp", text), text
    assert not findings("runtime/storage/load.cpp", "the header claims 3 bytes")


def main():
    source = sys.argv[1]
    check_itself()
    own = "tests/docs/" + os.path.basename(__file__)
    looked_at = wrong = 0
    for file in files(source):
        if file == own:
            continue
        with open(os.path.join(source, file), encoding="utf-8") as stream:
            text = stream.read()
        looked_at += 1
        for number, what in findings(file, text):
            wrong += 1
            print(f"{file}:{number}: {what}")
    print(f"{wrong} words of {looked_at} files are not the glossary's")
    return 1 if wrong or looked_at < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
