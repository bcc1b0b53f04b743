#!/usr/bin/env python3
"""Plants faults in a backend, one at a time, and asks `gpunn check` to find each: `mutations.py GPUNN MUTANT PLUGIN ROOT`.

MUTANT is the plugin of this folder, PLUGIN the one that it wraps: that of `cpu`, or one of a CUDA backend without a base,
for which faults that look into tensors on the host are left out. ROOT is the project's folder. Prints a line for each
fault and how many each suite found. Ends with 1 where a fault was missed. --some takes a few, spread over all;
--only TEXT those whose name or op has the text; --table writes a table in Markdown.
"""

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# One op or more of each family of runtime/ops.
OPS = """
ADD SELECT EXPAND EXP RSQRT SCALE COPY CLAMP RELU RELU_BACKWARD GELU SIGMOID_BACKWARD MATMUL BATCH_MATMUL BIAS_ADD
BIAS_BACKWARD MATMUL_BIAS_ACTIVATION BIAS_ACTIVATION_BACKWARD CONV2D CONV2D_BACKWARD_DATA CONV2D_BACKWARD_FILTER MAX_POOL2D
MAX_POOL2D_BACKWARD AVG_POOL2D UPSAMPLE2D SOFTMAX LOG_SOFTMAX_BACKWARD BATCH_NORM BATCH_NORM_BACKWARD LAYER_NORM
LOCAL_RESPONSE_NORM NLL_LOSS MSE_LOSS BCE_LOGITS_LOSS HINGE_LOSS HUBER_LOSS_BACKWARD SOFTMAX_CROSS_ENTROPY
SOFTMAX_CROSS_ENTROPY_BACKWARD SOFT_CROSS_ENTROPY REDUCE MEAN_ROWS NORM PAD SLICE CONCAT TRANSPOSE SGD_UPDATE ADAM_UPDATE
RMSPROP_UPDATE ADAGRAD_UPDATE LION_UPDATE LARS_UPDATE LBFGS_UPDATE CLIP_NORM L1_GRADIENT DROPOUT GATHER_ROWS SCATTER_ADD
GATHER_NORMALIZE RANDOM_SHIFT RANDOM_COLOR MIX_ROWS TABLE_LOAD METRICS_ACCUMULATE
""".split()

# The ops that a fault is planted in; any else: some of OPS, in turn.
LABELLED = ["NLL_LOSS", "HINGE_LOSS", "SOFTMAX_CROSS_ENTROPY", "SOFTMAX_CROSS_ENTROPY_BACKWARD", "METRICS_ACCUMULATE",
            "CROSS_ENTROPY", "CROSS_ENTROPY_BACKWARD", "CONFUSION_ACCUMULATE"]
INDEXED = ["GATHER_ROWS", "GATHER_NORMALIZE", "SCATTER_ADD"]
PRODUCTS = ["MATMUL", "BATCH_MATMUL", "CONV2D", "CONV2D_BACKWARD_DATA", "CONV2D_BACKWARD_FILTER"]
RANKED = ["RELU", "ADD", "BIAS_ADD", "BATCH_NORM", "BIAS_ACTIVATION_BACKWARD", "MSE_LOSS", "SCALE", "GATHER_ROWS"]
SUMS = ["MATMUL", "MATMUL_BIAS_ACTIVATION", "BIAS_BACKWARD", "REDUCE", "NORM"]
LONG = ["RELU", "MATMUL", "SOFTMAX", "BIAS_ACTIVATION_BACKWARD", "SOFTMAX_CROSS_ENTROPY", "BATCH_NORM", "SGD_UPDATE", "REDUCE"]
SHARING = ["ADD", "MATMUL", "MSE_LOSS", "RELU_BACKWARD"]
ALIASED = ["ADD", "RELU", "RELU_BACKWARD", "BIAS_ADD", "BIAS_ACTIVATION_BACKWARD", "DROPOUT", "CLIP_NORM"]
SEVERAL_OUTPUTS = ["SOFTMAX_CROSS_ENTROPY", "BATCH_NORM", "LAYER_NORM", "BIAS_ACTIVATION_BACKWARD", "SOFT_CROSS_ENTROPY",
                   "ATTENTION"]
F32 = ["RELU", "ADD", "MATMUL", "SOFTMAX", "BIAS_ADD", "BIAS_ACTIVATION_BACKWARD", "SOFTMAX_CROSS_ENTROPY", "BATCH_NORM", "MAX_POOL2D",
       "CONV2D", "SGD_UPDATE", "LAYER_NORM", "ATTENTION"]
ANY_SIGN = ["ADD", "MATMUL", "BIAS_ADD", "CONV2D", "SGD_UPDATE", "LAYER_NORM", "BIAS_ACTIVATION_BACKWARD"]
LARGE = ["ADD", "MATMUL", "BIAS_ADD", "SCALE", "BIAS_ACTIVATION_BACKWARD", "MAX_POOL2D"]
ONCE: list[str] = [""]  # about the plugin, not about an op

PLACES = {
    "reads-minus-one-as-zero": LABELLED + INDEXED,
    "reads-the-most-negative-as-zero": LABELLED + INDEXED,
    "reads-the-largest-as-zero": LABELLED + INDEXED,
    "reads-an-index-without-its-sign": LABELLED + INDEXED,
    "rank-5": RANKED,
    "empty-sum": SUMS,
    "one-tensor-as-two-inputs": SHARING,
    "y-in-the-memory-of-an-input": ALIASED,
    "last-output-unwritten": SEVERAL_OUTPUTS,
    "writes-behind-the-last-output": SEVERAL_OUTPUTS,
    "dimension-above-1024": LONG,
    "dimension-above-2048": LONG,
    "dimension-above-65535": LONG,
    "crashes-on-long-dimensions": LONG,
    "hangs-on-long-dimensions": LONG[:3],
    "element-4096": ["RELU", "MATMUL", "CONV2D", "SOFTMAX", "ADAM_UPDATE"],
    "one-sign-wrong": ANY_SIGN,
    "negative-becomes-zero": ANY_SIGN,
    "above-a-hundred-is-clipped": LARGE,
    "large-numbers-become-infinite": LARGE,
    "large-numbers-are-clipped": LARGE,
    "small-numbers-become-zero": ["ADD", "MATMUL", "SCALE", "MAX_POOL2D", "RELU"],
    "zero-becomes-something": ["RELU", "ADD", "MATMUL", "MAX_POOL2D", "SCALE"],
    "nan-becomes-zero": F32,
    "infinity-becomes-the-largest-number": ["RELU", "ADD", "MATMUL", "MAX_POOL2D", "BIAS_ADD", "NORM"],
    "infinity-becomes-nan": ["RELU", "ADD", "MAX_POOL2D", "BIAS_ADD", "NORM"],
    "reads-nan-as-zero": F32,
    "reads-infinity-as-the-largest-number": ["RELU", "ADD", "MATMUL", "SOFTMAX", "BATCH_NORM"],
    "reads-small-numbers-as-zero": ["RELU", "ADD", "MATMUL", "BIAS_ADD", "SCALE"],
    "reads-bf16": F32,
    "rounded-to-bf16": F32,
    "half-precision-cut-off": ["ADD", "EXP", "GELU", "SIGMOID_BACKWARD", "COPY", "CLAMP"],
    "crashes-on-empty-tensors": ["RELU", "MATMUL", "SOFTMAX", "BATCH_NORM", "REDUCE"],
    "yes-to-an-op-that-there-is-not": ONCE,
    "a-second-device-that-does-not-open": ONCE,
    "says-no-to-everything": ["MATMUL"],
    "a-negative-index-opens": ONCE,
    "device-info-beyond-struct-size": ONCE,
    "memory-off-its-alignment": ONCE,
    "fill-a-byte-too-many": ONCE,
    "copy-a-byte-too-few": ONCE,
    "no-error-text-within-struct-size": ONCE,
}
# Those of kernel_faults.cpp, by how their names begin.
KERNELS = {"matmul": ["MATMUL"], "backward": ["BIAS_ACTIVATION_BACKWARD"], "entropy": ["SOFTMAX_CROSS_ENTROPY"]}

ON_A_DEVICE = ["waits-in-enqueue"]  # a host's streams run at once

IN_TURN = 3  # ops of OPS for a fault that may be in any

# Faults that change nothing that a training can notice: the name, the op, and why.
EQUIVALENT: dict[tuple[str, str], str] = {}


@dataclass
class Mutant:
    fault: str
    op: str
    suites: list[str] = field(default_factory=list)
    said: str = ""

    @property
    def found(self) -> bool:
        return bool(self.suites)


def faults_of(mutant: str, on_host: bool) -> list[str]:
    """The names of the plugin's faults; for a device without those that look into tensors on the host."""
    library = ctypes.CDLL(os.path.abspath(mutant))
    library.mutant_faults.restype = ctypes.c_char_p
    names = []
    for line in library.mutant_faults().decode().splitlines():
        where, name = line.split(" ", 1)
        if name != "none" and (on_host or where == "any") and not (on_host and name in ON_A_DEVICE):
            names.append(name)
    return names


def plan(faults: list[str]) -> list[Mutant]:
    mutants = []
    turn = 0
    for fault in faults:
        places = PLACES.get(fault) or KERNELS.get(fault.split("-")[0])
        if places is None:
            places = [OPS[(turn + i * (len(OPS) // IN_TURN)) % len(OPS)] for i in range(IN_TURN)]
            turn += 1
        mutants += [Mutant(fault, op) for op in places if (fault, op) not in EQUIVALENT]
    return mutants


def examine(mutant: Mutant, arguments: argparse.Namespace, ids: dict[str, str]) -> Mutant:
    command = [arguments.gpunn, "check", arguments.mutant, "--json", "--limit", "10", "--threads", "1"]
    command += ["--op", mutant.op] if mutant.op else ["--suite", "abi", "--suite", "stream"]
    environment = dict(
        os.environ,
        GPUNN_MUTANT_OF=arguments.plugin,
        GPUNN_MUTATION=mutant.fault,
        GPUNN_MUTANT_OP=ids.get(mutant.op, "0"),
    )
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    try:
        report = json.loads(run.stdout)
    except json.JSONDecodeError:
        # A program that gives up says so: found, if not by a suite.
        if run.returncode != 0:
            mutant.suites, mutant.said = ["open"], run.stderr.strip()[-300:]
        return mutant
    if report.get("error"):
        mutant.suites, mutant.said = ["open"], str(report["error"])[:300]
    for case in report.get("cases", []):
        if case["verdict"] == "failed":
            if case["suite"] not in mutant.suites:
                mutant.suites.append(case["suite"])
            mutant.said = mutant.said or f"{case['suite']} {case['op']} {case['name']}: {case['detail']}"
    return mutant


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpunn")
    parser.add_argument("mutant")
    parser.add_argument("plugin")
    parser.add_argument("root", type=Path)
    parser.add_argument("--some", action="store_true", help="every tenth")
    parser.add_argument("--only", default="", help="those whose 'FAULT OP' has this text")
    parser.add_argument("--table", type=Path, help="a Markdown file with a line for each fault")
    parser.add_argument("--verbose", action="store_true", help="what was said of each")
    arguments = parser.parse_args()

    rows = (arguments.root / "api/include/gpunn/op_list.inc").read_text()
    ids = dict(re.findall(r"GPUNN_OP\((\w+), (\d+),", rows))
    on_host = "_cpu." in Path(arguments.plugin).name
    mutants = plan(faults_of(arguments.mutant, on_host))
    sound = examine(Mutant("none", "MATMUL"), arguments, ids)
    if sound.found:
        print(f"without a fault, {sound.said}")
        return 1
    if arguments.some:
        mutants = mutants[::10]
    mutants = [mutant for mutant in mutants if arguments.only in f"{mutant.fault} {mutant.op}"]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for mutant in pool.map(lambda one: examine(one, arguments, ids), mutants):
            by = ", ".join(mutant.suites) if mutant.found else "MISSED"
            print(f"{mutant.fault:45} {mutant.op:32} {by}", flush=True)
            if arguments.verbose and mutant.said:
                print(f"    {mutant.said}")
    if arguments.table:
        lines = ["# Which suite finds which fault", "", "Written by `mutations.py ... --table`.", ""]
        lines += ["| fault | planted in | found by |", "| --- | --- | --- |"]
        for fault in dict.fromkeys(mutant.fault for mutant in mutants):
            of = [mutant for mutant in mutants if mutant.fault == fault]
            suites = dict.fromkeys(suite for mutant in of for suite in mutant.suites)
            lines.append(f"| {fault} | {', '.join(mutant.op or 'the plugin' for mutant in of)} | {', '.join(suites)} |")
        arguments.table.write_text("\n".join(lines) + "\n")
    found = sum(mutant.found for mutant in mutants)
    kinds = len({mutant.fault for mutant in mutants})
    print(f"{found} of {len(mutants)} found; {kinds} kinds of faults in {len({m.op for m in mutants if m.op})} ops")
    suites = dict.fromkeys(suite for mutant in mutants for suite in mutant.suites)
    for suite in suites:
        print(f"{suite}: {sum(suite in mutant.suites for mutant in mutants)}, alone {sum(mutant.suites == [suite] for mutant in mutants)}")
    return 0 if found == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
