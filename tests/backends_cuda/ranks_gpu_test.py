"""Small networks on two GPUs, whose fused step adds up its gradients itself: `ranks_gpu_test.py GPUNN SOURCE_FOLDER`."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

GPUNN, SOURCE = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
LIMIT = 100  # seconds
GRACE = 20  # seconds in which the ranks end that a lost one leaves behind

DATA = ["data.batch_size=128", "data.drop_last=true", "data.synthetic_train=3200", "data.synthetic_test=512",
        "data.eval_batch_size=32", "training.log_every_steps=1", "training.alternatives=false"]
MLP = "model={layers: [flatten, {linear: {units: 64}}, relu, {linear: {units: 10}}]}"
CASES = {
    "sgd": ["optimizer.learning_rate=0.01"],
    "adam": ["optimizer={type: adam, learning_rate: 0.0003}"],
    "bounds": ["optimizer={type: sgd, learning_rate: 0.01, momentum: 0.9, clip_norm: 1}", "training.ema=0.9"],
    "mlp": [MLP, "optimizer.learning_rate=0.01"],
    "rmsprop": [MLP, "optimizer={type: rmsprop, learning_rate: 0.0003}"],
    "rounds": ["data.batch_size=1600"],
}


def gpus():
    """Those that CUDA sees: CUDA_VISIBLE_DEVICES may hide some."""
    done = subprocess.run([GPUNN, "plugins", "--json"], capture_output=True, text=True, timeout=LIMIT, check=True)
    found = (plugin for plugin in json.loads(done.stdout) if plugin.get("name") == "cuda_tiled")
    return max((plugin.get("devices", 0) for plugin in found), default=0)


class RanksOnGpus(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gpunn-ranks-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def arguments(self, verb, settings):
        given = [word for one in [*DATA, *settings] for word in ("--set", one)]
        return [GPUNN, verb, str(SOURCE / "experiments" / "lenet_digits.yaml"), "--backend", "cuda_tiled", *given]

    def command(self, arguments, code=0):
        done = subprocess.run([str(word) for word in arguments], cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def train(self, runs, devices, settings):
        self.command([*self.arguments("run", settings), "--quiet", "--epochs", 4, "--runs", runs, "--devices", devices])
        (run,) = self.folder.glob(f"{runs}/*/2*")
        return run, [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]

    def test_the_curve_of_one_gpu(self):
        """The second rank's parameters are the first one's: it evaluates half of the test data."""
        for name, settings in CASES.items():
            with self.subTest(name):
                plan = self.command([*self.arguments("plan", settings), "--devices", 2])
                self.assertRegex(plan, r"fused training step +0-")
                self.assertNotIn("ALL_REDUCE between", plan)
                alone = self.train(f"{name}1", 1, settings)[1]
                run, records = self.train(f"{name}2", 2, settings)
                self.assertEqual(len(records), len(alone))
                for one, other in zip(alone, records):
                    loss = "loss" if "loss" in one else "test_loss"
                    self.assertAlmostEqual(one[loss], other[loss], delta=2e-5)
                report = json.loads(self.command([GPUNN, "eval", run / "last.h5", "--json"]))
                self.assertAlmostEqual(report["loss"], records[-1]["test_loss"], delta=1e-6)

    def test_the_same_bits_each_time(self):
        """Two sums of floats in one order."""
        weights = []
        for again in range(2):
            run, _ = self.train(f"bits{again}", 2, [])
            target = self.folder / f"{again}.safetensors"
            self.command([GPUNN, "export", run / "last.h5", "--to", target])
            weights.append(target.read_bytes())
        self.assertEqual(weights[0], weights[1])

    def test_a_killed_rank_ends_the_other(self):
        arguments = [*self.arguments("run", []), "--quiet", "--epochs", 2000, "--runs", "kill", "--devices", 2]
        begun = subprocess.Popen([str(word) for word in arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(begun.kill)
        deadline = time.monotonic() + LIMIT
        while not list(self.folder.glob("kill/*/2*/metrics.jsonl")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        time.sleep(0.5)
        children = Path(f"/proc/{begun.pid}/task/{begun.pid}/children").read_text().split()
        self.assertEqual(len(children), 2)
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(children[1]), signal.SIGKILL)
        since = time.monotonic()
        text = begun.communicate(timeout=LIMIT)[1]
        self.assertLess(time.monotonic() - since, GRACE)
        self.assertRegex(text, r"rank \d of 2 .*ended")
        for child in children:
            self.assertFalse(Path(f"/proc/{child}").exists(), f"process {child} is left behind")


if __name__ == "__main__":
    if gpus() < 2:
        print("skipped: needs two GPUs")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
