"""A kernel that faults in the middle of a training, on a GPU: `fault_test.py GPUNN SOURCE_FOLDER PLUGIN`."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 300  # seconds


def main():
    program, source, plugin = sys.argv[1:]
    with tempfile.TemporaryDirectory() as runs:
        arguments = ["run", f"{source}/experiments/lenet_digits.yaml", "--backend", "cuda_test", "--plugin", plugin,
                     "--set", "data.synthetic_train=6400", "--set", "data.synthetic_test=256", "--set",
                     "data.batch_size=64", "--epochs", "2", "--runs", runs, "--quiet"]
        # Step 151 of 200: in the second epoch.
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, "GPUNN_TEST_LOSE": "150"})
        if "no GPU" in done.stderr or "no NVIDIA driver" in done.stderr or "NVIDIA driver is too old" in done.stderr:
            print("skipped:", done.stderr)
            return 77
        print(done.stderr)
        assert done.returncode == 1, done.returncode
        for wanted in (r"the device was lost in step \d+", r"DEVICE_LOST", r"cudaErrorIllegalAddress",
                       r"the device is lost in TABLE_LOAD 'learning_rate' of step 151, a kernel of 'cuda_test'",
                       r"last\.h5, stands"):
            assert re.search(wanted, done.stderr), wanted
        [run] = Path(runs).glob("*/*")
        # The fault gone, the run goes on from where it was.
        done = subprocess.run([program, "resume", str(run), "--quiet"], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
