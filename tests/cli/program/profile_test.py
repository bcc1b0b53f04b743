"""`run --profile`."""

import json
import re
from pathlib import Path

from base import ProgramTest


class Profiles(ProgramTest):
    def spans(self, file):
        """The spans of each row, once it is known that viewers can show them."""
        trace = json.loads(Path(file).read_text())
        rows, spans, last = {}, {}, 0.0
        for event in trace["traceEvents"]:
            if event["ph"] == "M":
                if event["name"] == "thread_name":
                    rows[event["pid"], event["tid"]] = event["args"]["name"]
                continue
            self.assertEqual(event["ph"], "X")
            self.assertGreaterEqual(event["dur"], 0)
            self.assertGreaterEqual(event["ts"], last)
            last = event["ts"]
            spans.setdefault(rows[event["pid"], event["tid"]], []).append(event)
        for row in spans.values():
            open_ends = []
            for one in row:
                begin, end = round(one["ts"] * 1000), round((one["ts"] + one["dur"]) * 1000)
                while open_ends and open_ends[-1] <= begin + 1:
                    open_ends.pop()
                if open_ends:
                    self.assertLessEqual(end, open_ends[-1] + 1)
                open_ends.append(end)
        return trace, spans

    def test_a_run_writes_a_profile(self):
        small = ["--epochs", "4", "--set", "data.batch_size=32"]
        done = self.gpunn(*self.digits(*small, "--runs", "profiled", "--profile", "--profile-steps", "7"))
        run = Path(self.folder, re.search(r"(?m)^run +(.+)$", done.stdout).group(1))
        trace, spans = self.spans(run / "trace.json")
        ops = [one for one in spans["stream 0: compute"] if one["cat"] == "op"]
        plan = json.loads(self.gpunn("plan", *self.digits(*small)[1:], "--json").stdout)
        self.assertEqual(len(ops), 7 * len(plan["ops"]))
        for measured, planned in zip(ops, plan["ops"] * 7):
            self.assertEqual(measured["args"]["op"], planned["op"])
            self.assertEqual(measured["args"]["layer"], planned["name"])
            self.assertEqual(measured["args"]["plugin"], planned["backend"])
            self.assertEqual(measured["args"]["FLOPs"], planned["flops"])
        host = {one["name"] for one in spans["training"]}
        self.assertLessEqual({"data upload", "warm-up step", "enqueue step 4", "read back", "evaluation", "checkpoint"},
                             host)
        self.assertGreater(trace["otherData"]["ceiling GB/s"], 0)
        self.assertGreater(trace["otherData"]["ceiling GFLOP/s"], 0)
        # The table: the largest first.
        self.assertIn("7 steps op by op on cpu", done.stdout)
        shares = [float(share) for share in re.findall(r"(?m)^ *[\d.]+ [nmu]?s +([\d.]+) % +7 ", done.stdout)]
        self.assertEqual(len(shares), len(plan["ops"]))
        self.assertEqual(shares, sorted(shares, reverse=True))

    def test_the_profile_is_in_the_json_and_where_it_was_wanted(self):
        lines = self.gpunn(*self.points("--epochs", "3", "--json", "--profile", "here.json", "--quiet")).stdout
        profile = json.loads(lines.splitlines()[-1])["profile"]
        self.assertEqual(profile["file"], "here.json")
        self.assertEqual({one["count"] for one in profile["ops"]}, {profile["steps"]})
        self.assertAlmostEqual(sum(one["share"] for one in profile["ops"]), 1, places=6)
        self.spans(self.folder / "here.json")

    def test_a_profile_that_cannot_be_written_is_told_first(self):
        done = self.gpunn(*self.points("--profile", "nowhere/trace.json"), code=2)
        self.assertIn("can't write nowhere/trace.json: there is no folder nowhere", done.stderr)
        self.assertEqual(done.stdout, "")
        self.gpunn(*self.points("--profile", "."), code=2)
        self.assertIn("requires --profile", self.gpunn(*self.points("--profile-steps", "3"), code=2).stderr)
        self.assertIn("10000", self.gpunn(*self.points("--profile", "--profile-steps", "0"), code=2).stderr)
