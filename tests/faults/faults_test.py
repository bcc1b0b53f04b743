"""Every operation on a file fails once: `faults_test.py GPUNN FAULTS_LIBRARY [EVERY]`.

Each verb runs with its first operation failing, then its second, and so on until none is left to fail: with EIO, ENOSPC
and ENOLCK, once and from there on; with EINTR and short counts, which no caller may notice. EVERY = 7 takes one
operation in seven. What must hold: no crash, no internal error; an exit code that a script understands; a message that
names a file and the system's reason; and no lost data, so that a resumed run ends in the weights of a straight one.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LIMIT = 60
# A kind, whether it lasts, and whether the program has to succeed.
FAULTS = [("EIO", False, False), ("EIO", True, False), ("ENOSPC", False, False), ("ENOSPC", True, False),
          ("ENOLCK", True, True), ("EINTR", False, True), ("short", False, True), ("short", True, True)]
WORDS = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}

EXPERIMENT = """\
model: {{layers: [flatten, linear: {{units: 3}}, relu, linear: {{units: 2}}]}}
data: {{dataset: csv, path: {folder}/rows.csv, test_fraction: 0.25, batch_size: 8}}
training: {{epochs: 3}}
checkpoint: {{every_steps: 3}}
backend: cpu
"""


class Failure(Exception):
    pass


class Campaign:
    def __init__(self, gpunn, library, every):
        self.gpunn, self.library, self.every = gpunn, library, every
        self.root = Path(tempfile.mkdtemp(prefix="gpunn-faults-"))
        self.faults = self.failures = 0
        self.base = self.root / "base"
        self.base.mkdir()
        rows = "".join(f"{i % 7},{i % 5},{i % 3},{'ab'[i % 2]}\n" for i in range(64))
        (self.base / "rows.csv").write_text("x,y,z,label\n" + rows)
        (self.base / "e.yaml").write_text(EXPERIMENT.format(folder="."))
        self.must(self.base, ["run", "e.yaml", "--runs", "short", "--epochs", "1", "--quiet"])
        self.must(self.base, ["run", "e.yaml", "--runs", "straight", "--quiet"])
        self.short = next(self.base.glob("short/*/*")).relative_to(self.base)
        self.straight = next(self.base.glob("straight/*/*")).relative_to(self.base)
        self.weights = self.exported(self.base, self.straight / "last.h5")

    def call(self, folder, arguments, **environment):
        return subprocess.run([self.gpunn, *map(str, arguments)], cwd=folder, capture_output=True, text=True,
                              timeout=LIMIT, stdin=subprocess.DEVNULL,
                              env={**os.environ, "LC_ALL": "C.UTF-8", **environment})

    def must(self, folder, arguments):
        done = self.call(folder, arguments)
        if done.returncode != 0:
            raise Failure(f"{arguments} without a fault: exit code {done.returncode}\n{done.stderr}")
        return done

    def exported(self, folder, checkpoint):
        self.must(folder, ["export", checkpoint, "--to", "weights.safetensors"])
        bytes_ = (folder / "weights.safetensors").read_bytes()
        return bytes_[8 + int.from_bytes(bytes_[:8], "little"):]

    def verbs(self):
        """Arguments, and a function that looks at what is left behind."""
        run = self.short
        return {
            "run": (["run", "e.yaml", "--runs", "new"], self.look_at_new),
            "resume": (["resume", run, "--epochs", "3"], self.look_at_resumed),
            "eval": (["eval", self.straight], self.nothing_lost),
            "predict": (["predict", self.straight, "rows.csv"], self.nothing_lost),
            "export": (["export", self.straight, "--to", "out.safetensors"], self.nothing_lost),
            "report": (["report", self.straight], self.nothing_lost),
            "plan": (["plan", "e.yaml", "--schedule", "curve.svg"], self.nothing_lost),
            "inspect": (["data", "inspect", "e.yaml"], self.nothing_lost),
            "get": (["data", "get", "mnist"], self.nothing_lost),
        }

    # A run folder that can be seen can be resumed.
    def look_at_new(self, folder):
        for run in folder.glob("new/*/*"):
            if not run.name.startswith("."):
                self.resumes_to_the_same(folder, run)

    def look_at_resumed(self, folder):
        self.resumes_to_the_same(folder, folder / self.short)

    def resumes_to_the_same(self, folder, run):
        self.must(folder, ["resume", run, "--epochs", "3"])
        if self.exported(folder, run / "last.h5") != self.weights:
            raise Failure("the resumed run has other weights than the straight one")
        left = [path.name for path in run.iterdir() if ".tmp-" in path.name and "last.h5" in path.name]
        if left:
            raise Failure(f"temporary files are left: {left}")

    def nothing_lost(self, folder):
        if self.exported(folder, self.straight / "last.h5") != self.weights:
            raise Failure("the checkpoint has changed")

    # One verb with one fault. False: there was no such operation left to fail.
    def trial(self, verb, kind, lasting, succeeds, number):
        folder = self.root / f"{verb}-{kind}-{int(lasting)}-{number}"
        shutil.copytree(self.base, folder)
        log = folder.with_suffix(".log")
        arguments, look = self.verbs()[verb]
        environment = {"LD_PRELOAD": self.library, "GPUNN_FAULTS_UNDER": str(folder), "GPUNN_FAULTS_AT": str(number),
                       "GPUNN_FAULTS_KIND": kind, "GPUNN_FAULTS_LASTING": str(int(lasting)),
                       "GPUNN_FAULTS_LOG": str(log), "XDG_CACHE_HOME": str(folder / "cache"),
                       "http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}
        try:
            done = self.call(folder, arguments, **environment)
            if not log.exists() or log.stat().st_size == 0:
                return False
            self.judge(verb, kind, succeeds, done)
            look(folder)
            return True
        except (Failure, subprocess.TimeoutExpired) as failure:
            what = log.read_text().splitlines()[:3] if log.exists() else []
            raise Failure(f"{verb}, {kind}{' lasting' if lasting else ''}, operation {number} {what}: {failure}") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            log.unlink(missing_ok=True)

    def judge(self, verb, kind, succeeds, done):
        told = f"exit code {done.returncode}\n{done.stdout[-300:]}\n{done.stderr[-2000:]}"
        if done.returncode not in (0, 1, 2, 3):
            raise Failure(told)
        if "internal error" in done.stderr or "terminate called" in done.stderr:
            raise Failure(told)
        if done.returncode == 0 or verb == "get":  # which finds no network in any case
            return
        if succeeds:
            raise Failure("a fault that no caller may notice: " + told)
        if WORDS[kind] not in done.stderr or not re.search(r"[\w./-]+\.(h5|yaml|csv|json\w*|svg|html|safetensors|lock|txt)|/",
                                                           done.stderr):
            raise Failure("no file or no reason in the message: " + told)

    def run(self):
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for verb in self.verbs():
                for kind, lasting, succeeds in FAULTS:
                    self.sweep(pool, verb, kind, lasting, succeeds)
        shutil.rmtree(self.root, ignore_errors=True)
        print(f"{self.faults} faults, {self.failures} failures")
        return 1 if self.failures else 0

    def sweep(self, pool, verb, kind, lasting, succeeds):
        number, hit = 1, True
        start, before = time.monotonic(), self.faults
        while hit:
            numbers = [number + i * self.every for i in range(16)]
            trials = [pool.submit(self.trial, verb, kind, lasting, succeeds, one) for one in numbers]
            for trial in trials:
                try:
                    hit = trial.result()
                    self.faults += hit
                except Failure as failure:
                    self.faults += 1
                    self.failures += 1
                    print(failure, flush=True)
            number = numbers[-1] + self.every
        print(f"{verb}, {kind}{' lasting' if lasting else ''}: {self.faults - before} faults in "
              f"{time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(Campaign(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]),
                      int(sys.argv[3]) if len(sys.argv) > 3 else 1).run())
