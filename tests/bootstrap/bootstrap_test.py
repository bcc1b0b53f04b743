"""./bootstrap: what it answers before it builds, what it asks CMake for, how it counts down.

usage: bootstrap_test.py SOURCE. CMake, ninja and nvidia-smi are stand-ins that write down their arguments, so nothing is
built.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
LIMIT = 60

CMAKE = r"""#!/bin/sh
case $1 in
  --version) echo "cmake version 3.25.1" ;;
  --build)
    echo "build $*" >>"$CALLS"
    for i in 1 2 3 4; do
      sleep "${PAUSE:-0}"
      echo "[$i/4] Building CXX object runtime/CMakeFiles/x.dir/Unity/unity_${i}_cxx.cxx.o"
    done
    mkdir -p "$2/bin"
    printf '#!/bin/sh\necho "gpunn $*"\n' >"$2/bin/gpunn"
    chmod +x "$2/bin/gpunn"
    ;;
  *) echo "configure $*" >>"$CALLS" ;;
esac
"""
NINJA = r"""#!/bin/sh
echo "inputs $*" >>"$CALLS"
for i in 1 2 3 4; do echo "runtime/CMakeFiles/x.dir/Unity/unity_${i}_cxx.cxx.o"; done
"""
NO_GPU = "#!/bin/sh\necho 'No devices were found'\nexit 6\n"
GPU = "#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-0)'\n"


class BootstrapTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gpunn-bootstrap-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.root = self.folder / "gpunn"
        self.root.mkdir()
        shutil.copy2(SOURCE / "bootstrap", self.root)
        shutil.copytree(SOURCE / "experiments", self.root / "experiments")
        (self.root / "backends").symlink_to(SOURCE / "backends")
        self.calls = self.folder / "calls"
        self.calls.touch()
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        self.tool("cmake", CMAKE)
        self.tool("ninja", NINJA)
        self.tool("nvcc", "#!/bin/sh\n")
        self.tool("nproc", "#!/bin/sh\necho 2\n")
        self.tool("nvidia-smi", NO_GPU)

    def tool(self, name: str, script: str) -> None:
        path = self.tools / name
        path.write_text(script)
        path.chmod(0o755)

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", "CALLS": str(self.calls), **more}

    def bootstrap(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.root / "bootstrap", "--no-install", *arguments],
            cwd=self.root, env=self.environment(), capture_output=True, text=True, timeout=LIMIT,
            stdin=subprocess.DEVNULL, check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def call(self, kind: str) -> str:
        return next(line for line in self.calls.read_text().splitlines() if line.startswith(kind))

    def refused(self, *arguments: str) -> str:
        """What is answered before a build tree is even there."""
        done = self.bootstrap("run", *arguments, code=3)
        self.assertEqual(self.calls.read_text(), "")
        self.assertFalse((self.root / "build").exists())
        return done.stderr

    def test_a_cuda_backend_without_a_gpu_is_answered_at_once(self) -> None:
        lenet = "experiments/lenet_mnist.yaml"
        for named in (["--backend", "cuda_tiled"], ["--backend=cuda_tiled"], ["--set", "backend=cuda_tiled"],
                      ["--backend", "check:cpu,cuda_tiled"]):
            message = self.refused(lenet, *named)
            self.assertIn("'cuda_tiled' needs an NVIDIA GPU", message)
            self.assertIn("--backend cpu", message)
        for backend in ("cuda_naive", "cudnn"):
            self.assertIn(f"'{backend}' needs an NVIDIA GPU", self.refused(lenet, "--backend", backend))

    def test_the_experiments_own_backend_counts_unless_another_is_named(self) -> None:
        for text in ("backend: cuda_tiled\n", "backend: 'cudnn'  # fast\n", 'backend: "check:cpu,cuda_naive"\n'):
            (self.root / "own.yaml").write_text("model: x.yaml\n" + text)
            self.assertIn("needs an NVIDIA GPU", self.refused("own.yaml"))
        self.bootstrap("run", "own.yaml", "--backend", "cpu")
        self.bootstrap("run", "--backend", "cpu", "own.yaml")

    def test_an_experiment_that_is_not_there(self) -> None:
        done = self.bootstrap("run", "experiments/lenet_mnits.yaml", code=1)
        self.assertIn("no experiment 'experiments/lenet_mnits.yaml'", done.stderr)
        self.assertIn("experiments/lenet_mnist.yaml", done.stderr)
        self.assertFalse((self.root / "build").exists())

    def test_a_run_on_the_cpu_builds_no_test_and_no_cuda(self) -> None:
        done = self.bootstrap("run", "experiments/lenet_mnist.yaml", "--backend", "cpu", "--set", "training.epochs=1")
        configure, build = self.call("configure"), self.call("build")
        self.assertIn("-DGPUNN_CUDA=OFF", configure)
        self.assertIn("-DGPUNN_BUILD_TESTS=OFF", configure)
        self.assertTrue(build.endswith("--target gpunn_cli gpunn_backend_cpu"), build)
        self.assertIn("gpunn run experiments/lenet_mnist.yaml --backend cpu --set training.epochs=1", done.stdout)

    def test_a_run_builds_the_backends_that_it_names(self) -> None:
        self.tool("nvidia-smi", GPU)
        self.bootstrap("run", "experiments/lenet_mnist.yaml", "--backend", "check:cuda_tiled,cpu")
        self.assertTrue(self.call("build").endswith("--target gpunn_cli gpunn_backend_cuda_tiled gpunn_backend_cpu"))
        self.assertNotIn("GPUNN_CUDA", self.call("configure"))

    def test_a_run_that_names_none_or_a_strangers_builds_all_backends(self) -> None:
        for named in ([], ["--backend", "auto"], ["--backend", "mine"], ["--backend", "check:mine,cpu"]):
            self.calls.write_text("")
            self.bootstrap("run", "experiments/lenet_mnist.yaml", *named)
            self.assertTrue(self.call("build").endswith("--target program"), named)

    def test_tests_and_cuda_are_built_when_asked_for(self) -> None:
        self.bootstrap("build")
        self.assertIn("-DGPUNN_BUILD_TESTS=ON", self.call("configure"))
        self.assertIn("-DGPUNN_CUDA=OFF", self.call("configure"))
        self.assertTrue(self.call("build").endswith("--target all"))
        self.calls.write_text("")
        self.bootstrap("--cuda", "build")
        self.assertNotIn("GPUNN_CUDA", self.call("configure"))

    def test_a_tree_with_tests_keeps_them(self) -> None:
        cache = self.root / "build" / "release" / "CMakeCache.txt"
        cache.parent.mkdir(parents=True)
        cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root}\n")
        self.bootstrap("gpunn", "plugins")
        self.assertNotIn("GPUNN_BUILD_TESTS", self.call("configure"))

    def test_the_build_says_how_long_it_takes_and_counts_down(self) -> None:
        master, terminal = pty.openpty()
        arguments = [self.root / "bootstrap", "--no-install", "gpunn", "plugins"]
        with subprocess.Popen(arguments, cwd=self.root, env=self.environment(PAUSE="1.5"), stdin=subprocess.DEVNULL,
                              stdout=terminal, stderr=terminal) as process:
            os.close(terminal)
            seen = b""
            while True:
                try:
                    part = os.read(master, 4096)
                except OSError:
                    break
                if not part:
                    break
                seen += part
            self.assertEqual(process.wait(LIMIT), 0)
        os.close(master)
        screen = seen.decode()
        self.assertRegex(screen, r"about \d+ s here, once")
        left = [int(seconds) for seconds in re.findall(r"of 4, (\d+) s left", screen)]
        self.assertGreater(len(left), 3, screen)
        self.assertLess(left[-1], left[0])
        self.assertIn("3 of 4", screen)


if __name__ == "__main__":
    unittest.main()
