"""Trainings that are killed at random moments: `kills_test.py GPUNN KILLS [--backend NAME] [--seed N]`.

Each is resumed and killed again, up to some times, and then left to end: in the weights of a training that nothing
stopped, with no temporary file left.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from faults_test import Failure

LIMIT = 120
EXPERIMENT = """\
model: {layers: [flatten, linear: {units: 64}, relu, dropout: {p: 0.2}, linear: {units: 10}]}
data: {dataset: digits, synthetic_train: 256, synthetic_test: 64, batch_size: 32}
optimizer: {type: adam}
training: {epochs: 4}
checkpoint: {every_steps: 1}
"""


class Kills:
    def __init__(self, gpunn, backend, seed):
        self.gpunn, self.random = gpunn, random.Random(seed)
        self.root = Path(tempfile.mkdtemp(prefix="gpunn-kills-"))
        (self.root / "e.yaml").write_text(f"{EXPERIMENT}backend: {backend}\n")
        start = time.monotonic()
        self.must(["run", "e.yaml", "--runs", "straight", "--quiet"])
        self.seconds = time.monotonic() - start
        self.weights = self.exported(next(self.root.glob("straight/*/*")))

    def must(self, arguments):
        done = subprocess.run([self.gpunn, *map(str, arguments)], cwd=self.root, capture_output=True, text=True,
                              timeout=LIMIT)
        if done.returncode != 0:
            raise Failure(f"{arguments}: exit code {done.returncode}\n{done.stderr}")

    def exported(self, run):
        self.must(["export", run / "last.h5", "--to", "w.safetensors"])
        bytes_ = (self.root / "w.safetensors").read_bytes()
        return bytes_[8 + int.from_bytes(bytes_[:8], "little"):]

    # True where it was still running.
    def killed(self, arguments):
        process = subprocess.Popen([self.gpunn, *map(str, arguments)], cwd=self.root, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(self.random.uniform(0, 1.1 * self.seconds))
        process.kill()
        return process.wait(LIMIT) == -signal.SIGKILL

    def visible(self, runs):
        found = [run for run in runs.glob("*/*") if not run.name.startswith(".")]
        return found[0] if found else None

    # How often one training was killed.
    def trial(self, most):
        runs = self.root / "new"
        kills = 0
        while kills < most:
            run = self.visible(runs)
            if not self.killed(["resume", run] if run else ["run", "e.yaml", "--runs", "new"]):
                break
            kills += 1
        run = self.visible(runs)
        self.must(["resume", run] if run else ["run", "e.yaml", "--runs", "new"])
        run = self.visible(runs)
        if self.exported(run) != self.weights:
            raise Failure(f"other weights after {kills} kills, in {run}")
        left = [path.name for path in [*run.iterdir(), *run.parent.iterdir()]
                if ".tmp-" in path.name and "h5" in path.name]
        if left:
            raise Failure(f"temporary files are left: {left}")
        shutil.rmtree(runs)
        return max(kills, 1)

    def run(self, kills):
        done = 0
        while done < kills:
            done += self.trial(self.random.randint(1, 6))
        shutil.rmtree(self.root)
        print(f"{done} kills, and the same weights each time")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("gpunn", type=os.path.abspath)
    parser.add_argument("kills", type=int)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    arguments = parser.parse_args()
    Kills(arguments.gpunn, arguments.backend, arguments.seed).run(arguments.kills)
