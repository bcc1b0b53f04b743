"""Several ranks, of which one is killed at a random moment: `rank_kills.py GPUNN KILLS [--backend NAME] [--seed N]`.

Each time all ranks have to be gone within 20 s, and the rest to have said which one was lost. A resume on a random
number of ranks has to reach the weights of a training that nothing stopped, bit by bit: sums have a fixed order. With
`--ranks N` all trainings have N ranks and no micro batches, so that a fused step makes their sums.
"""

import argparse
import json
import os
import random
import re
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
model: {layers: [flatten, linear: {units: 64}, relu, %s linear: {units: 10}]}
data: {dataset: digits, synthetic_train: 240, synthetic_test: 60, batch_size: 24, drop_last: true}
optimizer: {type: adam}
training: {epochs: %d, deterministic: true%s}
checkpoint: {every_steps: 2}
backend: %s
"""
LOST = re.compile(r"rank \d+ of \d+ \(.*\) ended|rank \d+ \(process \d+\) was ended by signal 9")


class RankKills:
    def __init__(self, given: argparse.Namespace) -> None:
        self.gpunn, self.random = str(Path(given.gpunn).resolve()), random.Random(given.seed)
        self.root = Path(tempfile.mkdtemp(prefix="gpunn-rank-kills-"))
        self.worlds, self.resumed = [given.ranks], [given.ranks]
        if given.ranks == 0:
            self.worlds = [world for world in (2, 3) if world <= self.devices(given.backend)]
            self.resumed = [1, *self.worlds]
        if not self.worlds:
            raise Failure("fewer than two devices")
        parts = ", micro_batches: 12" if given.ranks == 0 else ""
        dropout = "dropout: {p: 0.2}," if given.ranks == 0 else ""
        (self.root / "e.yaml").write_text(EXPERIMENT % (dropout, given.epochs, parts, given.backend))
        self.must(["run", "e.yaml", "--runs", "straight", "--quiet", "--devices", str(self.resumed[0])])
        start = time.monotonic()
        self.must(["run", "e.yaml", "--runs", "timed", "--quiet", "--devices", str(self.worlds[0])])
        self.seconds = time.monotonic() - start
        self.weights = self.exported(next(self.root.glob("straight/*/2*")))

    def must(self, arguments: list[str]) -> str:
        done = subprocess.run([self.gpunn, *arguments], cwd=self.root, capture_output=True, text=True, timeout=LIMIT,
                              check=False)
        if done.returncode != 0:
            raise Failure(f"{arguments}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def devices(self, backend: str) -> int:
        """How many ranks may train at once: on cpu they share the processors."""
        plugins = json.loads(self.must(["plugins", "--json"]))
        found = [int(plugin["devices"]) for plugin in plugins if plugin.get("name") == backend]
        return max(found) if found and backend != "cpu" else sys.maxsize

    def exported(self, run: Path) -> bytes:
        self.must(["export", str(run / "last.h5"), "--to", "w.safetensors"])
        content = (self.root / "w.safetensors").read_bytes()
        return content[8 + int.from_bytes(content[:8], "little"):]

    def ranks_of(self, parent: int) -> list[int]:
        children = Path(f"/proc/{parent}/task/{parent}/children")
        return [int(child) for child in children.read_text().split()] if children.exists() else []

    def trial(self, number: int) -> str:
        """What was done to it; empty: it had ended before the kill."""
        world = self.random.choice(self.worlds)
        runs = f"killed{number}"
        begun = subprocess.Popen([self.gpunn, "run", "e.yaml", "--runs", runs, "--quiet", "--devices", str(world)],
                                 cwd=self.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(self.random.uniform(0.02, self.seconds))
        ranks = self.ranks_of(begun.pid) if begun.poll() is None else []
        victim = self.random.randrange(len(ranks)) if ranks else -1
        if ranks:
            try:
                os.kill(ranks[victim], signal.SIGKILL)
            except ProcessLookupError:
                ranks = []
        at = time.monotonic()
        error = begun.communicate(timeout=LIMIT)[1]
        seconds = time.monotonic() - at
        if seconds > GONE_WITHIN:
            raise Failure(f"kill {number}: the ranks took {seconds:.1f} s to end\n{error}")
        left = [rank for rank in ranks if Path(f"/proc/{rank}").exists()]
        if left:
            raise Failure(f"kill {number}: processes {left} are left behind")
        if ranks and begun.returncode != 0 and not LOST.search(error):
            raise Failure(f"kill {number}: no rank says which one was lost\n{error}")
        found = list((self.root / runs).glob("*/2*"))
        again = self.random.choice(self.resumed)
        if found:
            self.must(["resume", str(found[0]), "--quiet", "--devices", str(again)])
            if self.exported(found[0]) != self.weights:
                raise Failure(f"kill {number}: other weights after a resume on {again}\n{error}")
        shutil.rmtree(self.root / runs, ignore_errors=True)
        if not ranks or begun.returncode == 0:
            self.seconds *= 0.9
            return ""
        return f"rank {victim} of {world}, gone in {seconds:.2f} s, resumed on {again}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpunn")
    parser.add_argument("kills", type=int)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--ranks", type=int, default=0, help="of all trainings; 0: 2 or 3, and another number resumes")
    given = parser.parse_args()
    root = None
    try:
        trials = RankKills(given)
        root = trials.root
        done = attempts = 0
        while done < given.kills:
            attempts += 1
            if attempts > 3 * given.kills + 10:
                raise Failure("most trainings ended before they could be killed: try more --epochs")
            told = trials.trial(attempts)
            done += bool(told)
            print(f"{done}/{given.kills}: {told or 'it was done'}", flush=True)
    except Failure as failure:
        print(failure, file=sys.stderr)
        print(f"the files are in {root}", file=sys.stderr)
        return 1
    shutil.rmtree(root, ignore_errors=True)
    print(f"{given.kills} kills: all ranks were gone in {GONE_WITHIN:.0f} s, and every resume reached the same weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
