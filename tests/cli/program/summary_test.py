"""`summary` and `plan` before anything is there, and weights to and from PyTorch."""

import json
import re
import subprocess
import sys
from pathlib import Path

from base import LIMIT, SOURCE, ProgramTest

# torch.load and safetensors.torch.save_file as far as the line of conversion needs them.
TORCH = """
class Tensor:
    def clone(self): return self
    def contiguous(self): return self
def is_tensor(value): return isinstance(value, Tensor)
def load(path, map_location, weights_only):
    assert map_location == "cpu" and weights_only is True
    return {"epoch": 3, "state_dict": {"fc.weight": Tensor(), "version": 1}}
"""
SAVE = """
import json
def save_file(tensors, path): open(path, "w").write(json.dumps([path, list(tensors)]))
"""


class Bare(ProgramTest):
    def bare(self, *arguments, code=0):
        nowhere = self.folder / "nowhere"
        return self.gpunn(*arguments, code=code, GPUNN_DATA_DIR=str(nowhere), XDG_CACHE_HOME=str(nowhere),
                          GPUNN_OFFLINE="1")

    def test_plan_and_summary_need_no_data(self):
        lenet = SOURCE / "experiments" / "lenet_mnist.yaml"
        known = "mnist: 60000 samples to train on, 10000 to evaluate on, each u8[1, 28, 28], 10 classes; sizes from " \
                "the registry"
        self.assertIn(known, self.bare("plan", lenet, "--backend", "cpu").stdout)
        self.assertIn(known, self.bare("summary", lenet).stdout)
        self.assertIn(known, self.bare("plan", lenet, "--schedule").stderr)
        self.assertIn("[128, 64, 32, 32]", self.bare("summary", SOURCE / "experiments" / "resnet18_cifar10.yaml",
                                                     "--batch-size", "128").stdout)

    def test_the_table_and_its_json(self):
        model = SOURCE / "models" / "lenet5.yaml"
        shown = self.bare("summary", model, "--input", "1,28,28", "--batch-size", "4").stdout
        self.assertRegex(shown, r"(?m)^LAYER +TYPE +OUTPUT +PARAMETERS +TRAINABLE +MFLOP FORWARD +MFLOP A STEP$")
        self.assertRegex(shown, r"(?m)^conv1 +conv2d +\[4, 6, 28, 28\] +156 +156 ")
        self.assertRegex(shown, r"(?m)^parameters +61 706$")
        self.assertRegex(shown, r"(?m)^total +[0-9 ]+ bytes")
        report = json.loads(self.bare("summary", model, "--input", "1x28x28", "--batch-size", "4", "--json").stdout)
        self.assertEqual(report["layers"][0]["output"], [4, 6, 28, 28])
        self.assertEqual(report["parameters"], sum(layer["parameters"] for layer in report["layers"]))
        self.assertIn("expected the shape of a sample",
                      self.bare("summary", model, "--input", "1,,28", code=2).stderr)

    def test_a_changed_type_is_told_and_trains(self):
        done = self.gpunn(*self.digits("--set", "optimizer=adam", "--steps", "2", "--runs", "changed"))
        self.assertIn("note: --set optimizer.type=adam (was sgd) drops momentum", done.stderr)
        (log,) = self.folder.glob("changed/*/*/log.txt")
        self.assertIn("drops momentum", log.read_text())


class PyTorch(ProgramTest):
    def test_the_line_of_conversion_is_one(self):
        weights = self.folder / "it's net.pth"
        weights.write_bytes(b"PK\x03\x04")
        done = self.gpunn(*self.digits("--set", f'init_from.file="{weights}"'), code=2)
        (line,) = [line for line in done.stderr.splitlines() if "python3 -c" in line]
        packages = self.folder / "packages"
        (packages / "safetensors").mkdir(parents=True)
        (packages / "torch.py").write_text(TORCH)
        (packages / "safetensors" / "__init__.py").write_text("")
        (packages / "safetensors" / "torch.py").write_text(SAVE)
        line = line.strip().replace("python3", sys.executable, 1)
        subprocess.run(line, shell=True, check=True, timeout=LIMIT, env={**self.environment, "PYTHONPATH": str(packages)})
        converted = self.folder / "it's net.safetensors"
        self.assertEqual(json.loads(converted.read_text()), [str(converted), ["fc.weight"]])
        self.assertIn("it'\\''s net.safetensors", done.stderr)

    def test_an_export_with_names_is_a_state_dict(self):
        (self.folder / "names.yaml").write_text("0.*: conv1.*\n3.*: conv2.*\n7.*: fc1.*\n9.*: fc2.*\n11.*: output.*\n")
        done = self.gpunn(*self.digits("--steps", "2", "--runs", "exported"))
        run = re.search(r"(?m)^run +(.+)$", done.stdout).group(1)
        weights = Path(self.folder, "lenet.safetensors")
        self.gpunn("export", run, "--to", weights, "--names", "names.yaml")
        content = weights.read_bytes()
        header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
        self.assertEqual(header["7.weight"]["shape"], [120, 400])
        try:
            import torch
            from safetensors.torch import load_file
        except ImportError:
            self.skipTest("no torch")
        nn = torch.nn
        model = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                              nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
                              nn.ReLU(), nn.Linear(84, 10))
        model.load_state_dict(load_file(weights), strict=True)

