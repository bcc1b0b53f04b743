"""What `gpunn plan --devices` estimates beside what is measured: `bench/scaling.py GPUNN EXPERIMENT --rows 128`.

For each number of devices: the rate of one device with so many rows, that of all of them, and how far the estimated
step is from the measured one. Ends with 1 where one is farther off than --within.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from typing import Any


def lines(command: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Scaling:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.settings = [word for one in given.set for word in ("--set", one)]

    def arguments(self, rows: int) -> list[str]:
        # Ranks use no alternatives, so one device is timed without them too.
        return [self.given.experiment, "--backend", self.given.backend, *self.settings, "--set",
                f"data.batch_size={rows}", "--set", "training.alternatives=false"]

    def step_seconds(self, devices: int) -> float:
        """By the fastest half of the epochs but the first, which captures the step."""
        rows = self.given.rows * devices
        with tempfile.TemporaryDirectory(prefix="gpunn-scaling-") as runs:
            events = lines([self.given.gpunn, "run", *self.arguments(rows), "--devices", str(devices), "--steps",
                            str(self.given.steps), "--quiet", "--json", "--runs", runs])
        rates = [float(event["samples_per_second"]) for event in events if event.get("event") == "epoch"]
        rates = sorted(rates[1:] or rates)
        return float(rows / statistics.median(rates[len(rates) // 2:]))

    def plan(self, devices: int, alone: float) -> dict[str, float]:
        command = [self.given.gpunn, "plan", *self.arguments(self.given.rows * devices), "--devices", str(devices),
                   "--step-time", str(1e3 * alone), "--json"]
        for option in ("link", "network"):
            if value := getattr(self.given, option):
                command += [f"--{option}", value]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        plan = json.loads(done.stdout)
        return {**plan["estimates"][0], "sent_bytes": plan["ranks"]["sent_bytes"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpunn")
    parser.add_argument("experiment")
    parser.add_argument("--backend", default="cuda_tiled")
    parser.add_argument("--rows", type=int, default=128, help="of a step, on each device")
    parser.add_argument("--devices", default="2", help="2,4,8")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--link", help="as of gpunn plan")
    parser.add_argument("--network", help="as of gpunn plan")
    parser.add_argument("--within", type=float, default=0.1, help="the largest share that an estimate may be off")
    given = parser.parse_args()
    scaling = Scaling(given)
    alone = scaling.step_seconds(1)
    print(f"1 device: {1e3 * alone:.4f} ms a step, {given.rows / alone:,.0f} samples/s")
    far = 0
    for devices in map(int, given.devices.split(",")):
        measured, plan = scaling.step_seconds(devices), scaling.plan(devices, alone)
        off = plan["seconds"] / measured - 1
        far += abs(off) > given.within
        print(f"{devices} devices: {1e3 * measured:.4f} ms a step, {given.rows * devices / measured:,.0f} samples/s, "
              f"efficiency {alone / measured:.3f}; estimated {1e3 * plan['seconds']:.4f} ms, {100 * off:+.1f} %; "
              f"{plan['sent_bytes'] / 1e6:.3f} MB sent by each")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
