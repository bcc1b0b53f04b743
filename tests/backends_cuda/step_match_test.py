"""Which training steps are claimed as one: `step_match_test.py GPUNN SOURCE_FOLDER PLUGIN`. Needs no GPU."""

import re
import subprocess
import sys

LIMIT = 120  # seconds

# Experiment, changes to it, and what `gpunn plan` has to say: the ops that are one, or why none are.
CASES = [
    ("lenet_mnist", [], r"fused training step +0-35 "),
    ("mlp_mnist", [], r"fused training step +0-19 "),
    ("mlp_mnist", ["model.parameters.depth=3", "data.batch_size=37"], r"fused training step +0-\d+ "),
    ("lenet_digits", [], r"fused training step +0-\d+ "),
    ("mlp_mnist", ["optimizer={type: adam, learning_rate: 0.001}"], r"fused training step +0-19 "),
    ("mlp_mnist", ["model.parameters.width=2048"], r"not run as one: .*too large for shared memory"),
    ("mlp_mnist", ["optimizer={type: rmsprop, learning_rate: 0.001}"], r"not run as one: .*another optimizer"),
    ("lenet_mnist_shifts", [], r"not run as one: "),
]


def main():
    program, source, plugin = sys.argv[1:]
    failures = 0
    for experiment, changes, wanted in CASES:
        arguments = [program, "plan", f"{source}/experiments/{experiment}.yaml", "--backend", "step_match", "--plugin",
                     plugin]
        for change in changes:
            arguments += ["--set", change]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode != 0 or not re.search(wanted, done.stdout):
            failures += 1
            told = [line for line in done.stdout.splitlines() if "as one" in line or "fused" in line]
            print(experiment, changes, "lacks", repr(wanted), told, done.stderr)
    print(f"{len(CASES) - failures} of {len(CASES)} steps as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
