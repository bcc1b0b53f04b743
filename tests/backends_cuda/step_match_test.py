"""Which ops of a training step are fused into one kernel: `step_match_test.py GPUNN SOURCE_FOLDER PLUGIN`. Needs no GPU."""

import re
import subprocess
import sys

LIMIT = 120  # seconds

POOL = "max_pool: {window: 2}"
NO_POOLING = r"(?s)\A(?!.*fused pooling)"
NO_DENSE = r"(?s)\A(?!.*fused dense)"


def layers(*behind):
    """Another model: these layers, then a dense one."""
    return ["model={layers: [" + ", ".join(f"{{{layer}}}" if ":" in layer else layer for layer in behind)
            + ", flatten, {linear: {units: 10}}]}"]


# Experiment, changes to it, and what `gpunn plan` prints: a fused subgraph, or why there is none.
CASES = [
    ("lenet_mnist", [], r"fused training step +0-35 "),
    ("mlp_mnist", [], r"fused training step +0-19 "),
    ("mlp_mnist", ["model.parameters.depth=3", "data.batch_size=37"], r"fused training step +0-\d+ "),
    ("lenet_digits", [], r"fused training step +0-\d+ "),
    ("mlp_mnist", ["optimizer={type: adam, learning_rate: 0.001}"], r"fused training step +0-19 "),
    ("mlp_mnist", ["model.parameters.width=2048"], r"not fused: .*too large for shared memory"),
    ("mlp_mnist", ["optimizer={type: rmsprop, learning_rate: 0.001}"], r"not fused: .*another optimizer"),
    ("lenet_mnist_shifts", [], r"not fused: "),
    ("lenet_mnist_shifts", [], r"(?s)fused pooling backward.*fused pooling backward"),
    ("lenet_mnist_shifts", layers("conv2d: {filters: 8, kernel: 3}", "batch_norm", "relu", POOL),
     r"fused pooling backward"),
    ("lenet_mnist_shifts", layers("conv2d: {filters: 8, kernel: 3}", "relu", "avg_pool: {window: 3, stride: 2}"),
     r"fused pooling backward"),
    # Without a ReLU; with another activation; with a ReLU's output that something else reads too.
    ("lenet_mnist_shifts", layers("conv2d: {filters: 8, kernel: 3}", POOL), NO_POOLING),
    ("lenet_mnist_shifts", layers("conv2d: {filters: 8, kernel: 3}", "tanh", POOL), NO_POOLING),
    ("lenet_mnist_shifts",
     layers("conv2d: {filters: 8, kernel: 3}", "relu: {name: a}", "max_pool: {window: 3, stride: 1, padding: 1}",
            "add: {from: [a, max_pool1]}"), NO_POOLING),
    ("lenet_mnist_shifts", layers("conv2d: {filters: 8, kernel: 3}", "relu", "global_avg_pool"), NO_POOLING),
    # Larger than shared memory holds.
    ("lenet_mnist_shifts",
     layers("upsample: {factor: 8}", "conv2d: {filters: 1, kernel: 3}", "relu", "max_pool: {window: 3, stride: 1}"),
     r"not fused: .*shared memory does not hold"),
    # Behind each dense layer whose input a ReLU made; of another activation, or with something between, none.
    ("mlp_mnist", ["model.parameters.width=2048", "model.parameters.depth=3"],
     r"(?s)fused dense gradient.*fused dense gradient"),
    ("lenet_mnist_shifts", layers("flatten", "linear: {units: 40}", "tanh"), NO_DENSE),
    ("lenet_mnist_shifts", layers("flatten", "linear: {units: 40}", "relu", "dropout: {p: 0.2}"), NO_DENSE),
    ("lenet_mnist_shifts", layers("flatten", "linear: {units: 40}", "relu"), r"fused dense gradient"),
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
            told = [line for line in done.stdout.splitlines() if "fused" in line]
            print(experiment, changes, "lacks", repr(wanted), told, done.stderr)
    print(f"{len(CASES) - failures} of {len(CASES)} steps as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
