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


def lenet(activation="relu", pool=POOL, norm=False, dropout=None):
    """LeNet-5's layers of other parts."""
    def finish(pooled):
        parts = ["batch_norm"] if norm else []
        parts += [activation] + ([pool] if pooled else [])
        return parts + ([f"dropout: {{p: {dropout}}}"] if dropout else [])
    behind = ["conv2d: {filters: 6, kernel: 5, padding: 2}"] + finish(True)
    behind += ["conv2d: {filters: 16, kernel: 5}"] + finish(True)
    return layers(*behind, "flatten", "linear: {units: 120}", *finish(False), "linear: {units: 84}", *finish(False))


def perceptron(activation="relu", norm=False, dropout=None):
    parts = ["flatten", "linear: {units: 128}"] + (["batch_norm"] if norm else []) + [activation]
    return layers(*parts, *([f"dropout: {{p: {dropout}}}"] if dropout else []))


STEP = r"fused training step +"
TREATED = ["loss={type: cross_entropy, label_smoothing: 0.1}", "training.ema=0.99",
           "optimizer={type: sgd, learning_rate: 0.05, momentum: 0.9, clip_norm: 1}"]

# An option, not a key.
RANKS = "--devices=2"

# What is no step: a grouped convolution.
WITHOUT = layers("conv2d: {filters: 8, kernel: 3}", "conv2d: {filters: 8, kernel: 3, groups: 2}")


def unfused(*behind):
    """These layers behind a convolution that no step knows."""
    return layers("conv2d: {filters: 8, kernel: 3}", "conv2d: {filters: 8, kernel: 3, groups: 2}", *behind)


# Experiment, changes to it, and what `gpunn plan` has to say: the ops that are one, or why none are.
CASES = [
    ("lenet_mnist", [], STEP + "0-35 "),
    ("mlp_mnist", [], STEP + "0-19 "),
    ("mlp_mnist", ["model.parameters.depth=3", "data.batch_size=37"], STEP + r"0-\d+ "),
    ("lenet_digits", [], STEP + r"0-\d+ "),
    ("mlp_mnist", ["optimizer={type: adam, learning_rate: 0.001}"], STEP + "0-19 "),
    ("mlp_mnist", ["model.parameters.width=2048"], r"not fused: .*too large for shared memory"),
    # All of it: what surrounds the layers, and other parts of them.
    ("lenet_mnist_shifts", [], STEP + "0-36 "),
    ("lenet_mnist_shifts", TREATED, STEP + "0-41 "),
    ("lenet_mnist", lenet("tanh", "avg_pool: {window: 2}"), STEP + "0-43 "),
    ("lenet_mnist", lenet(dropout=0.2), STEP + "0-43 "),
    ("lenet_mnist", lenet(norm=True), STEP + r"0-\d+ "),
    ("lenet_mnist", lenet("tanh", "avg_pool: {window: 2}", True, 0.1), STEP + r"0-\d+ "),
    ("lenet_mnist", lenet("gelu"), STEP + r"0-\d+ "),
    ("lenet_mnist", lenet("leaky_relu"), STEP + r"0-\d+ "),
    ("lenet_mnist", lenet("sigmoid"), STEP + r"0-\d+ "),
    ("mlp_mnist", perceptron(dropout=0.2) + ["optimizer={type: adamw, learning_rate: 0.001}"], STEP + "0-21 "),
    ("mlp_mnist", perceptron("silu", True), STEP + "0-23 "),
    ("mlp_mnist", ["optimizer={type: rmsprop, learning_rate: 0.001}"], STEP + "0-19 "),
    ("mlp_mnist", ["optimizer={type: adagrad, learning_rate: 0.01}"], STEP + "0-19 "),
    ("mlp_mnist", ["optimizer={type: lion, learning_rate: 0.001, l1: 1e-5, clip_value: 1}"], STEP + r"0-\d+ "),
    ("mlp_mnist", ["loss=mean_squared_error"], STEP + r"0-\d+ "),
    ("mlp_mnist", ["loss=huber"], STEP + r"0-\d+ "),
    ("mlp_mnist", ["loss=hinge"], STEP + r"0-\d+ "),
    ("mlp_mnist", ["loss=binary_cross_entropy"], STEP + r"0-\d+ "),
    # The core alone: ops that no step knows go before it or behind it.
    ("lenet_mnist", ["augmentation={rotate: 10}"], STEP + "4-36 "),
    ("lenet_mnist", ["augmentation={mixup: 0.2}"], STEP + r"7-39 "),
    ("lenet_mnist", ["augmentation={erase: 6, translate: 2}"], STEP + r"5-37 "),
    ("lenet_mnist", ["optimizer={type: lars, learning_rate: 0.01}"], STEP + "1-34 "),
    ("lenet_mnist", ["optimizer={type: muon, learning_rate: 0.01}"], STEP + r"\d+-\d+ "),
    # Several ranks: the sums of gradients and loss are within the step.
    ("lenet_mnist", [RANKS], "(?s)" + STEP + "0-43 .*ALL_REDUCE +gradients +241.2 KiB +fused step"),
    ("lenet_mnist", [RANKS, "training.ema=0.9", "optimizer.clip_norm=1"], STEP + "0-47 "),
    ("mlp_mnist", [RANKS, "training.bucket_kib=100", "optimizer={type: adam, learning_rate: 0.001}"], STEP + "0-28 "),
    ("mlp_mnist", [RANKS, "training.deterministic=true"], STEP + "0-27 "),
    ("lenet_mnist", [RANKS, "augmentation={rotate: 10}"], STEP + "6-44 "),
    # Rows that the ranks can't share out evenly: the batch is ready.
    ("lenet_mnist", [RANKS, "data.batch_size=129"], STEP + "5-43 "),
    # Sums that the step does not know, and its core alone: gradients as bf16, in shards, of statistics; too many bytes.
    ("lenet_mnist", [RANKS, "training.wire=bf16"], STEP + "1-35 "),
    ("lenet_mnist", [RANKS, "training.shard=optimizer"], STEP + "1-35 "),
    ("mlp_mnist", [RANKS, *perceptron(norm=True)], STEP + r"[1-9]\d*-\d+ "),
    ("mlp_mnist", [RANKS, "model.parameters.depth=4", "model.parameters.width=512"], STEP + "1-31 "),
    ("lenet_mnist", ["--devices=9", "data.batch_size=144"], STEP + "1-35 "),
    # No step at all, and why.
    ("lenet_mnist", [RANKS, "data.drop_last=false"], r"not fused: .*no constant"),
    ("lenet_mnist", WITHOUT, r"not fused: .*a convolution with strides, dilation or groups"),
    ("lenet_mnist", layers("conv2d: {filters: 8, kernel: 3}", "relu", "max_pool: {window: 3, stride: 2, padding: 1}"),
     r"not fused: .*padded pooling"),
    ("lenet_mnist", layers("conv2d: {filters: 8, kernel: 3}", "upsample: {factor: 2}"),
     r"not fused: .*UPSAMPLE2D"),
    # Smaller subgraphs of what is no step.
    ("lenet_mnist", unfused("relu", POOL), r"fused pooling backward"),
    ("lenet_mnist", unfused("batch_norm", "relu", POOL), r"fused pooling backward"),
    ("lenet_mnist", unfused("relu", "avg_pool: {window: 3, stride: 2}"), r"fused pooling backward"),
    # Without a ReLU; with another activation; with a ReLU's output that something else reads too.
    ("lenet_mnist", unfused(POOL), NO_POOLING),
    ("lenet_mnist", unfused("tanh", POOL), NO_POOLING),
    ("lenet_mnist",
     unfused("relu: {name: a}", "max_pool: {window: 3, stride: 1, padding: 1}", "add: {from: [a, max_pool1]}"),
     NO_POOLING),
    ("lenet_mnist", unfused("relu", "global_avg_pool"), NO_POOLING),
    # Larger than shared memory holds.
    ("lenet_mnist_shifts",
     layers("upsample: {factor: 8}", "conv2d: {filters: 1, kernel: 3}", "relu", "max_pool: {window: 3, stride: 1}"),
     r"not fused: .*shared memory does not hold"),
    # Behind each dense layer whose input a ReLU made; of another activation, or with something between, none.
    ("mlp_mnist", ["model.parameters.width=2048", "model.parameters.depth=3"],
     r"(?s)fused dense gradient.*fused dense gradient"),
    ("lenet_mnist", unfused("flatten", "linear: {units: 40}", "tanh"), NO_DENSE),
    ("lenet_mnist", unfused("flatten", "linear: {units: 40}", "relu", "dropout: {p: 0.2}"), NO_DENSE),
    ("lenet_mnist", unfused("flatten", "linear: {units: 40}", "relu"), r"fused dense gradient"),
    # Statistics in the convolution's epilogue, in half precision alone: with ReLU, alone, with a sum and ReLU.
    ("resnet18_cifar10", ["training.precision=bf16"],
     r"(?s)batch norm +6-8 .*batch norm +14-17 .*batch norm +32-33 .*batch norm +35-38 "),
    ("resnet18_cifar10", ["training.precision=fp32"], r"(?s)\A(?!.*convolution and batch norm)"),
    # A batch norm's gradient begins in the data gradient: without a sum and with one.
    ("resnet18_cifar10", ["training.precision=bf16"],
     r"(?s)data gradient and batch norm +116-118 .*data gradient and batch norm +121-124 "),
    ("resnet18_cifar10", ["training.precision=fp32"], r"(?s)\A(?!.*data gradient and batch norm)"),
]


def main():
    program, source, plugin = sys.argv[1:]
    failures = 0
    for experiment, changes, wanted in CASES:
        arguments = [program, "plan", f"{source}/experiments/{experiment}.yaml", "--backend", "step_match", "--plugin",
                     plugin]
        for change in changes:
            arguments += [change] if change.startswith("--") else ["--set", change]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode != 0 or not re.search(wanted, done.stdout):
            failures += 1
            told = [line for line in done.stdout.splitlines() if "fused" in line]
            print(experiment, changes, "lacks", repr(wanted), told, done.stderr)
    print(f"{len(CASES) - failures} of {len(CASES)} steps as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
