"""Every way to run a convolution and a batch norm trains as the ops by themselves do: `ways_gpu_test.py GPUNN
SOURCE_FOLDER`. The tuning cache is written so that it names the way."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GPUNN, SOURCE = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
LIMIT = 100  # seconds
NO_GPU = 77

SETTINGS = ["data.dataset=digits", "data.batch_size=512", "data.synthetic_train=2048", "data.synthetic_test=512",
            "training.precision=bf16", "training.alternatives=false", "optimizer.learning_rate=0.02"]
# A line of the cache: the convolution, how many ops there are from it on, the way.
LINE = re.compile(r"^(conv2d(?:_backward_data)?_(?:statistics|norm) .*, \d ops)\t(.*)$", re.MULTILINE)
WAYS = ["apart", "conv:half_128x128", "conv:half_128x192", "conv:half_128x64", "conv:half_128x64_deep",
        "conv:half_192x128_pair", "conv:half_patch"]


def has_gpu():
    done = subprocess.run([GPUNN, "plugins", "--json"], capture_output=True, text=True, timeout=LIMIT, check=True)
    return any(plugin.get("name") == "cuda_tiled" and plugin.get("devices", 0) > 0 for plugin in json.loads(done.stdout))


class Ways(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="gpunn-ways-")
        self.addCleanup(self.folder.cleanup)
        self.cache = Path(self.folder.name) / "cache"

    def loss(self, **environment):
        """Of a short training."""
        given = [word for one in SETTINGS for word in ("--set", one)]
        runs = tempfile.mkdtemp(dir=self.folder.name)
        done = subprocess.run([GPUNN, "run", SOURCE / "experiments" / "resnet18_cifar10.yaml", "--backend",
                               "cuda_tiled", *given, "--quiet", "--epochs", "1", "--runs", runs],
                              capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL,
                              env={**os.environ, "GPUNN_CACHE_DIR": str(self.cache), **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (metrics,) = Path(runs).glob("*/2*/metrics.jsonl")
        return json.loads(metrics.read_text().splitlines()[-1])["train_loss"]

    def test_each_way(self):
        wanted = self.loss(GPUNN_CONVOLUTION_STATISTICS="0")
        self.loss()  # tunes
        (file,) = self.cache.glob("cuda_tiled*.tuning")
        tuned = file.read_text()
        self.assertGreater(len(LINE.findall(tuned)), 4, tuned)
        forced = set()
        for way in WAYS:
            with self.subTest(way):
                file.write_text(LINE.sub(rf"\1\t{way}", tuned))
                found = self.loss()
                # A kernel that does not serve a shape is not taken: the cache gets another.
                forced.update(name for _, name in LINE.findall(file.read_text()) if name == way)
                self.assertAlmostEqual(found, wanted, delta=0.01 * wanted)
        self.assertEqual(forced, set(WAYS))


if __name__ == "__main__":
    if not has_gpu():
        sys.exit(NO_GPU)
    unittest.main(argv=sys.argv[:1])
