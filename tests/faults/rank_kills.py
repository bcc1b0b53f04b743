"""Several ranks, of which one is killed at a random moment: `rank_kills.py GPUNN KILLS [--backend NAME] [--seed N]`.

Each time all ranks have to be gone within 20 s, and a resume on a random number of ranks has to reach the weights of a
training that nothing stopped: their bits on cpu, whose sums have a fixed order.
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
GONE_WITHIN = 20.0
EXPERIMENT = """\
model: {layers: [flatten, linear: {units: 64}, relu, dropout: {p: 0.2}, linear: {units: 10}]}
data: {dataset: digits, synthetic_train: 240, synthetic_test: 60, batch_size: 24}
optimizer: {type: adam}
training: {epochs: 40, deterministic: true, micro_batches: 12}
checkpoint: {every_steps: 2}
"""


class RankKills:
    def __init__(self, gpunn: str, backend: str, seed: int, worlds: list[int]) -> None:
        self.gpunn, self.random, self.worlds = gpunn, random.Random(seed), worlds
        self.root = Path(tempfile.mkdtemp(prefix="gpunn-rank-kills-"))
        (self.root / "e.yaml").write_text(f"{EXPERIMENT}backend: {backend}\n")
        self.must(["run", "e.yaml", "--runs", "straight", "--quiet"])
        start = time.monotonic()
        self.must(["run", "e.yaml", "--runs", "timed", "--quiet", "--devices", str(worlds[0])])
        self.seconds = time.monotonic() - start
        self.weights = self.exported(next(self.root.glob("straight/*/2*")))

    def must(self, arguments: list[str]) -> None:
        done = subprocess.run([self.gpunn, *arguments], cwd=self.root, capture_output=True, text=True, timeout=LIMIT,
                              check=False)
        if done.returncode != 0:
            raise Failure(f"{arguments}: exit code {done.returncode}\n{done.stderr}")

    def exported(self, run: Path) -> bytes:
        self.must(["export", str(run / "last.h5"), "--to", "w.safetensors"])
        content = (self.root / "w.safetensors").read_bytes()
        return content[8 + int.from_bytes(content[:8], "little"):]

    def ranks_of(self, parent: int) -> list[int]:
        children = Path(f"/proc/{parent}/task/{parent}/children")
        return [int(child) for child in children.read_text().split()] if children.exists() else []

    def trial(self, number: int) -> str:
        """What was done to it."""
        world = self.random.choice(self.worlds)
        runs = f"killed{number}"
        begun = subprocess.Popen([self.gpunn, "run", "e.yaml", "--runs", runs, "--quiet", "--devices", str(world)],
                                 cwd=self.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(self.random.uniform(0.02, self.seconds))
        ranks = self.ranks_of(begun.pid) if begun.poll() is None else []
        victim = self.random.randrange(len(ranks)) if ranks else -1
        if ranks:
            os.kill(ranks[victim], signal.SIGKILL)
        at = time.monotonic()
        error = begun.communicate(timeout=LIMIT)[1]
        seconds = time.monotonic() - at
        if seconds > GONE_WITHIN:
            raise Failure(f"kill {number}: the ranks took {seconds:.1f} s to end\n{error}")
        left = [rank for rank in ranks if Path(f"/proc/{rank}").exists()]
        if left:
            raise Failure(f"kill {number}: processes {left} are left behind")
        found = list((self.root / runs).glob("*/2*"))
        again = self.random.choice([1, *self.worlds])
        if found:
            self.must(["resume", str(found[0]), "--quiet", "--devices", str(again)])
            if self.exported(found[0]) != self.weights:
                raise Failure(f"kill {number}: other weights after a resume on {again}\n{error}")
        shutil.rmtree(self.root / runs, ignore_errors=True)
        if not ranks:
            return "none: it was done"
        return f"rank {victim} of {world}, gone in {seconds:.2f} s, resumed on {again}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpunn")
    parser.add_argument("kills", type=int)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", default="2,3", help="numbers of ranks to choose from")
    given = parser.parse_args()
    trials = RankKills(str(Path(given.gpunn).resolve()), given.backend, given.seed,
                       [int(world) for world in given.worlds.split(",")])
    try:
        for number in range(given.kills):
            print(f"{number + 1}/{given.kills}: {trials.trial(number)}", flush=True)
    except Failure as failure:
        print(failure, file=sys.stderr)
        print(f"the files are in {trials.root}", file=sys.stderr)
        return 1
    shutil.rmtree(trials.root, ignore_errors=True)
    print(f"{given.kills} kills: all ranks were gone in {GONE_WITHIN:.0f} s, and every resume reached the same weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
