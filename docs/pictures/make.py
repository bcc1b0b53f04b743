#!/usr/bin/env python3
"""Makes the pictures of the README from real runs: docs/pictures/make.py [--only run,report,race] [options].

  run.svg       the terminal at the end of `gpunn run`
  report-*.png  the beginning of `gpunn report`, light and dark; and mistakes-*.png, its worst mistakes. Needs Chromium
  race.svg      the terminal at the end of `gpunn race`, and the curves that it draws

made.json says of each picture by which command, on which machine and when it was made. Without --backend the race is
between all backends that work here; where that is the CPU alone, the plugin of examples/openblas_matmul is built and
raced against it.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import terminal

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests"))
from browser import Browser, find_browser  # noqa: E402

PICTURES = ("run", "report", "race")
COLUMNS = 118  # of the terminal; a picture is as wide as its longest line
REPORT_WIDTH = 960  # pixels
MISTAKES = 10
RACE_EPOCHS = 3
LARGEST = 150_000  # bytes of a picture in the repository


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def gpu():
    """The name of the first NVIDIA GPU, or nothing."""
    if not shutil.which("nvidia-smi"):
        return ""
    listed = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    return listed.stdout.splitlines()[0].strip() if listed.returncode == 0 and listed.stdout.strip() else ""


def counted(number, word):
    return f"{number} {word}{'' if str(number) == '1' else 's'}"


def machine():
    """GPU, processor and cores in words, and whatever else slows the times down that a picture shows."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    words = [one for one in (gpu(), processor()) if one] + [counted(cores, "core")]
    if "OMP_NUM_THREADS" in os.environ:
        words.append(counted(os.environ["OMP_NUM_THREADS"], "thread"))
    if load > cores / 2:
        words.append(f"busy: load {load:.0f}")
    return ", ".join(words)


def today():
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


class Stage:
    """A folder in which gpunn is run, with the project's experiments and models in it."""

    def __init__(self, folder, options):
        self.folder, self.options, self.plugins = Path(folder), options, list(options.plugin)
        for name in ("experiments", "models"):
            (self.folder / name).symlink_to(SOURCE / name)

    def caption(self):
        return f"{self.options.machine} · {self.options.date}"

    def environment(self):
        return {"GPUNN_PLUGIN_PATH": ":".join(map(str, self.plugins))} if self.plugins else {}

    def gpunn(self, *arguments):
        """What gpunn prints as JSON."""
        done = subprocess.run([self.options.gpunn, *map(str, arguments), "--json"], cwd=self.folder,
                              env={**os.environ, **self.environment()}, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"gpunn {' '.join(map(str, arguments))} failed:\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def show(self, *arguments):
        """Runs gpunn in a terminal; its screen, and the command as a user would write it."""
        command = " ".join(["gpunn", *arguments])
        print(f"$ {command}", flush=True)
        screen, status = terminal.run([self.options.gpunn, *arguments], COLUMNS, cwd=self.folder,
                                      environment=self.environment())
        if status != 0:
            sys.exit(f"{command} ended with {status}:\n{screen.text()}")
        return screen, command

    def training(self, epochs=None):
        """The experiment and its settings, for the verbs that train. `epochs`: where none are asked for."""
        arguments = [str(self.options.experiment)]
        epochs = self.options.epochs or epochs
        if epochs:
            arguments += ["--epochs", str(epochs)]
        for setting in self.options.set:
            arguments += ["--set", setting]
        return arguments


def write(options, name, content, command):
    if len(content) > LARGEST:
        sys.exit(f"{name} has {len(content)} bytes; at most {LARGEST} are wanted")
    (options.output / name).write_bytes(content)
    record = options.output / "made.json"
    made = json.loads(record.read_text()) if record.exists() else {}
    made[name] = {"command": command, "machine": options.machine, "date": options.date}
    record.write_text(json.dumps(made, indent=2, sort_keys=True) + "\n")
    print(f"  {options.output / name}, {len(content)} bytes", flush=True)


def make_run(stage):
    screen, command = stage.show("run", *stage.training())
    write(stage.options, "run.svg", terminal.svg(screen, command, stage.caption()).encode(), command)


def trained(stage):
    """The folder of a run: the one that was shown, or a new one."""
    pattern = "runs/*/[0-9]*"  # those of a race are called race_...
    if not any(stage.folder.glob(pattern)):
        stage.show("run", *stage.training())
    return max(stage.folder.glob(pattern))


# Left, top, width and height of the parts of a report that are shown: down to the first two charts, and the mistakes.
PARTS = """(() => {
  const bottom = document.querySelectorAll('.charts svg')[1].getBoundingClientRect().bottom;
  const mistakes = document.querySelector('#mistakes').closest('section').getBoundingClientRect();
  return {report: [0, 0, innerWidth, bottom + 16], mistakes: [0, mistakes.top, innerWidth, mistakes.height]};
})()"""


def make_report(stage):
    program = find_browser()
    if not program:
        sys.exit("a picture of the report needs Chromium: Debian's package is chromium-headless-shell; or name a "
                 "browser in GPUNN_BROWSER")
    run = trained(stage)
    _, command = stage.show("report", str(run.relative_to(stage.folder)), "--mistakes", str(MISTAKES))
    browser = Browser(program, stage.folder / "profile")
    try:
        browser.ask("Emulation.setScrollbarsHidden", hidden=True)
        for colours in ("light", "dark"):
            parts, _ = browser.open((run / "report.html").as_uri(), REPORT_WIDTH, 900, colours, PARTS)
            for part, place in parts.items():
                shot = stage.folder / "shot.png"
                browser.screenshot(shot, place)
                write(stage.options, f"{part}-{colours}.png", shot.read_bytes(), command)
    finally:
        browser.close()


def build_example(stage):
    """examples/openblas_matmul, built against an install of this build. Returns the folder of the plugin."""
    print("· building examples/openblas_matmul", flush=True)
    build, prefix, example = stage.options.gpunn.parents[1], stage.folder / "prefix", stage.folder / "example"
    for command in (["cmake", "--install", build, "--prefix", prefix],
                    ["cmake", "-S", SOURCE / "examples" / "openblas_matmul", "-B", example,
                     f"-DCMAKE_PREFIX_PATH={prefix}"],
                    ["cmake", "--build", example]):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"a race needs two backends, and the second could not be built:\n{done.stdout}{done.stderr}")
    return example


def racers(stage):
    """Names of backends, at least two of them, the slowest known first."""
    if stage.options.backend:
        return stage.options.backend
    works = [one for one in stage.gpunn("plugins") if one["status"] == "OK"]
    if len(works) < 2:
        stage.plugins.append(build_example(stage))
        return [one["name"] for one in works] + ["openblas"]
    return [one["name"] for one in sorted(works, key=lambda one: one["priority"])]


def make_race(stage):
    backends = [part for name in racers(stage) for part in ("--backend", name)]
    screen, command = stage.show("race", *stage.training(RACE_EPOCHS), *backends, "--chart", "race.svg")
    chart = (stage.folder / "race.svg").read_text()
    write(stage.options, "race.svg", terminal.svg(screen, command, stage.caption(), chart).encode(), command)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PICTURES), help="which pictures, separated by commas")
    parser.add_argument("--gpunn", type=Path, default=SOURCE / "build/release/bin/gpunn", help="the program")
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent, help="folder of the pictures")
    parser.add_argument("--experiment", type=Path, default=Path("experiments/lenet_mnist.yaml"),
                        help="relative to the project")
    parser.add_argument("--epochs", type=int, help="instead of what the experiment says")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the experiment")
    parser.add_argument("--backend", action="append", default=[], help="a backend of the race; may be repeated")
    parser.add_argument("--plugin", action="append", default=[], type=Path, help="a plugin file, or a folder of them")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - set(PICTURES)
    if unknown:
        parser.error(f"no picture is called {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}")
    if not options.gpunn.exists():
        parser.error(f"no {options.gpunn}: build it (./bootstrap build), or name another with --gpunn")
    options.gpunn, options.output = options.gpunn.resolve(), options.output.resolve()
    options.plugin = [one.resolve() for one in options.plugin]
    options.output.mkdir(parents=True, exist_ok=True)
    options.machine, options.date = machine(), today()  # before anything here loads the machine
    print(f"· on {options.machine}", flush=True)
    return options


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="gpunn-pictures-", ignore_cleanup_errors=True) as folder:
        stage = Stage(folder, options)
        for name in options.only.split(","):
            {"run": make_run, "report": make_report, "race": make_race}[name](stage)


if __name__ == "__main__":
    main()
