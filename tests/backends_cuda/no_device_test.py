"""CUDA backends where there is no GPU: `no_device_test.py GPUNN SOURCE_FOLDER OLD_DRIVER_FOLDER PLUGIN...`.

Where there is one, CUDA_VISIBLE_DEVICES hides it.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GPUNN = ""
SOURCE = Path()
OLD_DRIVER = Path()
PLUGINS = {}  # files by name
LIMIT = 120  # seconds

# Loads a plugin, asks it, and prints what of a driver or a thread there is then.
QUERY = """
import ctypes, os, sys
plugin = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)
def state():
    files = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")
             if os.path.islink(f"/proc/self/fd/{name}")]
    libraries = {line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line}
    return len(os.listdir("/proc/self/task")), [f for f in files if f.startswith("/dev/nvidia")], sorted(libraries)
query = plugin.gpunn_plugin_query_v1
query.argtypes, query.restype = [ctypes.c_uint16, ctypes.c_uint16], ctypes.c_void_p
for _ in range(2):
    assert query(1, 0), "no table"
print(state())
"""


def driver_is_there():
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


class NoDevice(unittest.TestCase):
    def gpunn(self, *arguments, code=0, **environment):
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment}
        done = subprocess.run([GPUNN, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT,
                              env=environment, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"gpunn {arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def report(self, name, **environment):
        reports = json.loads(self.gpunn("plugins", "--json", **environment).stdout)
        found = [report for report in reports if report["name"] == name]
        self.assertEqual(len(found), 1, reports)
        return found[0]

    def test_the_query_touches_no_driver_and_starts_no_thread(self):
        for plugin in PLUGINS.values():
            with self.subTest(plugin):
                done = subprocess.run([sys.executable, "-c", QUERY, plugin], capture_output=True, text=True,
                                      timeout=LIMIT)
                self.assertEqual((done.stdout.strip(), done.stderr), ("(1, [], [])", ""))

    def test_each_plugin_says_why_it_has_no_device(self):
        why = "CUDA_VISIBLE_DEVICES is ''" if driver_is_there() else "no NVIDIA driver is loaded"
        for name in PLUGINS:
            with self.subTest(name):
                report = self.report(name)
                self.assertEqual(report["status"], "NO_DEVICE")
                self.assertIn(why, report["detail"])
        self.assertIn("NO_DEVICE", self.gpunn("plugins").stdout)

    def test_a_training_that_names_it_ends_with_3_and_the_sentence(self):
        for name in PLUGINS:
            with self.subTest(name), tempfile.TemporaryDirectory() as runs:
                done = self.gpunn("run", SOURCE / "experiments" / "perceptron_points.yaml", "--backend", name, "--runs",
                                  runs, code=3)
                self.assertEqual(list(Path(runs).iterdir()), [])
                self.assertIn(self.report(name)["detail"], done.stderr)

    def test_a_driver_that_is_too_old_is_told_with_both_versions(self):
        for name in PLUGINS:
            with self.subTest(name):
                report = self.report(name, LD_LIBRARY_PATH=str(OLD_DRIVER))
                self.assertEqual(report["status"], "NO_DEVICE")
                self.assertRegex(report["detail"],
                                 r"too old: it supports CUDA 11\.4, this backend was built with CUDA 1\d\.\d")
                self.assertIn("update the driver", report["detail"])


if __name__ == "__main__":
    GPUNN, SOURCE, OLD_DRIVER = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    PLUGINS = {Path(plugin).stem.removeprefix("libgpunn_backend_"): plugin for plugin in sys.argv[4:]}
    unittest.main(argv=sys.argv[:1])
