"""TensorBoard's own reader on a run's event files: `tensorboard_test.py GPUNN SOURCE_FOLDER`.

Exit code 77, skipped, where neither this Python nor $GPUNN_TENSORBOARD_PYTHON has TensorBoard.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def records(run):
    """What metrics.jsonl has, by tag and step."""
    expected = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        names = {"loss/train": "loss", "accuracy/train": "accuracy"}
        if record["kind"] == "epoch":
            names = {"loss/train": "train_loss", "accuracy/train": "train_accuracy", "loss/test": "test_loss",
                     "accuracy/test": "test_accuracy", "top5_accuracy/test": "test_top5_accuracy"}
        for tag, name in {**names, "learning_rate": "learning_rate",
                          "samples_per_second": "samples_per_second"}.items():
            if record[name] is not None:  # as top-5 accuracy of two classes
                expected.setdefault(tag, {})[record["global_step"]] = record[name]
    return expected


def read(run):
    from tensorboard.backend.event_processing import event_accumulator

    accumulator = event_accumulator.EventAccumulator(str(run), size_guidance={event_accumulator.SCALARS: 0})
    accumulator.Reload()
    found = {}
    for tag in accumulator.Tags()["scalars"]:
        found[tag] = {}
        for event in accumulator.Scalars(tag):
            check(event.step not in found[tag], f"{tag} at step {event.step} is there twice")
            check(event.wall_time > 1.6e9, f"{tag} at step {event.step} has the time {event.wall_time}")
            found[tag][event.step] = event.value
    return found


def compare(run, what):
    expected, found = records(run), read(run)
    check(set(found) == set(expected), f"{what}: the tags are {sorted(found)}, expected {sorted(expected)}")
    for tag, values in expected.items():
        check(set(found[tag]) == set(values), f"{what}: {tag} has steps {sorted(found[tag])}, expected {sorted(values)}")
        for step, value in values.items():
            check(abs(found[tag][step] - value) <= 1e-6 * abs(value),
                  f"{what}: {tag} at step {step} is {found[tag][step]}, expected {value}")
    return expected


def main(gpunn, source):
    with tempfile.TemporaryDirectory(prefix="gpunn-tensorboard-") as folder:
        def run_gpunn(*arguments):
            done = subprocess.run([gpunn, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=300)
            check(done.returncode == 0, f"gpunn {arguments}: {done.stdout}{done.stderr}")
            return done.stdout

        out = run_gpunn("run", source / "experiments" / "perceptron_points.yaml", "--backend", "cpu", "--epochs", "2",
                        "--runs", "runs")
        run = Path(folder, re.search(r"(?m)^run +(.+)$", out).group(1))
        first = compare(run, "a run")
        check(len(first["loss/test"]) == 2, "two epochs are two points")

        # Records of steps that a resumed run does again: as if it had been killed behind its last checkpoint.
        events = sorted(run.glob("events.out.tfevents.*"))
        check(len(events) == 1, f"one event file, found {events}")
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
        with open(events[0], "ab") as file:
            ahead = Event(wall_time=2e9, step=max(first["loss/train"]) + 1,
                          summary=Summary(value=[Summary.Value(tag="loss/train", simple_value=99)]))
            RecordWriter(file).write(ahead.SerializeToString())
        check(99 in read(run)["loss/train"].values(), "TensorBoard sees the record that was added")
        run_gpunn("resume", run, "--epochs", "4")
        resumed = compare(run, "a resumed run")
        check(len(resumed["loss/test"]) == 4, "four epochs are four points")
        check(len(list(run.glob("events.out.tfevents.*"))) == 2, "a resumed run has an event file of its own")


if __name__ == "__main__":
    if importlib.util.find_spec("tensorboard") is None:
        python = os.environ.pop("GPUNN_TENSORBOARD_PYTHON", "")
        if python:
            os.execv(python, [python, "-B", *sys.argv])
        print("skipped: no Python with TensorBoard; `pip install tensorboard`, or name one in GPUNN_TENSORBOARD_PYTHON")
        sys.exit(SKIPPED)
    main(os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve())
