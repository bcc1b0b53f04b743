"""Trainings by several processes on this machine: the same curve, the same bits, resumed on another number."""

import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

GPUNN, SOURCE = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
LIMIT = 100  # seconds that no command here comes near


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="gpunn-ranks-"))
        cls.environment = {**os.environ, "GPUNN_RENDEZVOUS_SECONDS": "20"}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def command(self, *arguments, code=0, by=(), **environment):
        done = subprocess.run([*by, GPUNN, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT, env={**self.environment, **environment}, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"gpunn {arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def experiment(self, name="lenet_digits", *settings, train=500, epochs=2):
        """500 samples: the last of four batches has 116, which three ranks can't share out evenly."""
        given = ["data.synthetic_train=%d" % train, "data.synthetic_test=130", "data.eval_batch_size=32",
                 "training.log_every_steps=1", *settings]
        return ["run", SOURCE / "experiments" / f"{name}.yaml", "--backend", "cpu", "--quiet", "--epochs", epochs,
                *[word for setting in given for word in ("--set", setting)]]

    def model(self, name, *layers):
        """The setting that has a network of these layers trained."""
        file = self.folder / f"{name}.yaml"
        file.write_text(f"name: {name}\ninput: [1, 28, 28]\nlayers:\n" + "".join(f"  - {one}\n" for one in layers))
        return f"model={file}"

    def train(self, runs, ranks, *settings, epochs=2):
        self.command(*self.experiment("lenet_digits", *settings, epochs=epochs), "--runs", runs, "--devices", ranks)
        return self.run_in(runs)

    def begin(self, runs, ranks, *settings, restarts=0, epochs=12, **environment):
        """A training whose first steps are done."""
        arguments = [*self.experiment("lenet_digits", *settings, epochs=epochs), "--runs", runs, "--devices", ranks,
                     "--restarts", restarts]
        begun = subprocess.Popen([GPUNN, *map(str, arguments)], cwd=self.folder,
                                 env={**self.environment, **environment}, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.await_steps(runs)
        time.sleep(0.1)
        return begun

    def await_steps(self, runs):
        deadline = time.monotonic() + LIMIT
        while not list(Path(self.folder).glob(f"{runs}/lenet_digits/2*/metrics.jsonl")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def ranks_of(self, parent):
        """The processes that a `gpunn run --devices` started, by rank."""
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        ranks = {}
        for child in children:
            variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            ranks[int(next(v for v in variables if v.startswith(b"GPUNN_RANK=")).split(b"=")[1])] = int(child)
        return ranks

    def assert_gone(self, processes):
        for process in processes:
            self.assertFalse(Path(f"/proc/{process}").exists(), f"process {process} is left behind")

    def run_in(self, runs):
        (run,) = Path(self.folder, runs).glob("*/2*")
        return run

    def records(self, run):
        return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]

    def losses(self, run):
        return [record.get("loss", record.get("test_loss")) for record in self.records(run)]

    def weights(self, run):
        target = self.folder / (run.parent.parent.name + ".safetensors")
        self.command("export", run / "last.h5", "--to", target)
        content = target.read_bytes()
        return content[8 + int.from_bytes(content[:8], "little"):]

    def assert_close(self, one, other, tolerance):
        self.assertEqual(len(one), len(other))
        for a, b in zip(one, other):
            self.assertAlmostEqual(a, b, delta=tolerance)

    def test_any_number_of_ranks_gives_the_curve_of_one(self):
        alone = self.train("n1", 1)
        for ranks in (2, 3, 4):
            run = self.train(f"n{ranks}", ranks)
            self.assert_close(self.losses(run), self.losses(alone), 2e-5)
            last, expected = self.records(run)[-1], self.records(alone)[-1]
            self.assertEqual(last["test_accuracy"], expected["test_accuracy"])

    def test_masks_and_shifts_are_those_of_one_rank(self):
        settings = ["data.batch_size=120", "data.drop_last=true", "augmentation.crop=[2, 2]",
                    "augmentation.flip=0.5",
                    self.model("dropout", "flatten:", "linear: {units: 64}", "relu:", "dropout: {p: 0.4}",
                               "linear: {units: 10}")]
        alone = self.train("drop1", 1, *settings)
        for ranks in (2, 3):
            self.assert_close(self.losses(self.train(f"drop{ranks}", ranks, *settings)), self.losses(alone), 2e-5)

    def test_bits_do_not_depend_on_the_number_of_ranks(self):
        settings = ["training.deterministic=true", "training.micro_batches=12", "optimizer.clip_norm=1",
                    "training.ema=0.9"]
        alone = self.weights(self.train("b1", 1, *settings))
        for ranks in (2, 3, 4, 5):
            self.assertEqual(self.weights(self.train(f"b{ranks}", ranks, *settings)), alone, f"{ranks} ranks")
        streamed = self.weights(self.train("bs", 3, *settings, "data.residency=stream"))
        self.assertEqual(streamed, alone)

    def test_a_run_goes_on_with_another_number_of_ranks(self):
        settings = ["training.deterministic=true", "training.micro_batches=12"]
        straight = self.train("straight", 1, *settings, epochs=12)
        begun = self.begin("part", 2, *settings)
        begun.send_signal(signal.SIGINT)
        self.assertIn("stopping after this step", begun.communicate(timeout=LIMIT)[1])
        self.assertEqual(begun.returncode, 130)
        part = self.run_in("part")
        self.assertLess(len(self.records(part)), len(self.records(straight)))
        self.command("resume", part, "--quiet", "--devices", "3")
        self.assertEqual(self.weights(part), self.weights(straight))
        self.assertEqual(len(self.records(part)), len(self.records(straight)))

    def test_a_killed_rank_ends_the_others_with_its_name(self):
        settings = ["training.deterministic=true", "training.micro_batches=12", "checkpoint.every_steps=3"]
        straight = self.weights(self.train("unkilled", 1, *settings, epochs=12))
        for victim in (0, 1, 2):
            begun = self.begin(f"killed{victim}", 3, *settings)
            ranks = self.ranks_of(begun.pid)
            os.kill(ranks[victim], signal.SIGKILL)
            at = time.monotonic()
            error = begun.communicate(timeout=LIMIT)[1]
            self.assertLess(time.monotonic() - at, 20)
            self.assertEqual(begun.returncode, 1)
            self.assertRegex(error, rf"rank {victim} of 3 \(.*, process {ranks[victim]}\) ended: it ended without")
            self.assert_gone(ranks.values())
            run = self.run_in(f"killed{victim}")
            self.command("resume", run, "--quiet", "--devices", 2)
            self.assertEqual(self.weights(run), straight)

    def test_kills_at_random_moments(self):
        """Of any rank, while the ranks meet too. GPUNN_KILLS: how many."""
        settings = ["training.deterministic=true", "training.micro_batches=12", "checkpoint.every_steps=2"]
        straight = self.weights(self.train("calm", 1, *settings, epochs=12))
        for number in range(int(os.environ.get("GPUNN_KILLS", "3"))):
            random.seed(number)
            runs, world = f"random{number}", random.choice((2, 3))
            arguments = [*self.experiment("lenet_digits", *settings, epochs=12), "--runs", runs, "--devices", world]
            begun = subprocess.Popen([GPUNN, *map(str, arguments)], cwd=self.folder, env=self.environment,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(random.uniform(0.05, 0.9))
            ranks = self.ranks_of(begun.pid) if begun.poll() is None else {}
            if ranks:
                os.kill(random.choice(sorted(ranks.values())), signal.SIGKILL)
            at = time.monotonic()
            error = begun.communicate(timeout=LIMIT)[1]
            self.assertLess(time.monotonic() - at, 25, error)
            self.assert_gone(ranks.values())
            if list(Path(self.folder, runs).glob("*/2*")):
                self.command("resume", self.run_in(runs), "--quiet", "--devices", random.choice((1, 2, 3)))
                self.assertEqual(self.weights(self.run_in(runs)), straight, f"kill {number}: {error}")

    def test_a_host_that_is_cut_off_the_network(self):
        """Two network namespaces with names of their own are two hosts."""
        if os.geteuid() != 0 or not shutil.which("ip") or self.system("ip netns add gpunn-a", "ip netns add gpunn-b"):
            self.skipTest("no network namespaces")
        self.addCleanup(self.system, "ip netns del gpunn-a", "ip netns del gpunn-b")
        self.assertEqual(self.system(
            "ip link add gpunn-va netns gpunn-a type veth peer name gpunn-vb netns gpunn-b",
            "ip -n gpunn-a addr add 10.197.0.1/24 dev gpunn-va", "ip -n gpunn-b addr add 10.197.0.2/24 dev gpunn-vb",
            "ip -n gpunn-a link set gpunn-va up", "ip -n gpunn-b link set gpunn-vb up"), 0)
        arguments = [*self.experiment(epochs=2000), "--runs", "hosts", "--world", "2", "--rendezvous",
                     "10.197.0.1:29400"]
        hosts = []
        for rank, name in enumerate("ab"):
            command = ["ip", "netns", "exec", f"gpunn-{name}", "unshare", "-u", "sh", "-c",
                       f'hostname host-{name}; exec "$@"', "sh", GPUNN, *map(str, arguments), "--rank", str(rank)]
            hosts.append(subprocess.Popen(command, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE,
                                          stdout=subprocess.DEVNULL, text=True))
        self.await_steps("hosts")
        time.sleep(0.3)
        self.assertIsNone(hosts[0].poll())
        self.system("ip -n gpunn-a link set gpunn-va down")
        at = time.monotonic()
        errors = [host.communicate(timeout=LIMIT)[1] for host in hosts]
        self.assertLess(time.monotonic() - at, 25)
        self.assertRegex(errors[0], r"rank 1 of 2 \(host-b, .* nothing was heard of it for 8 s")
        self.assertRegex(errors[1], r"rank 0 of 2 \(host-a, .* nothing was heard of it for 8 s")

    def system(self, *commands):
        """The first exit code that is not 0."""
        for command in commands:
            code = subprocess.run(command.split(), capture_output=True).returncode
            if code:
                return code
        return 0

    def test_a_stopped_rank_ends_the_others(self):
        begun = self.begin("stopped", 2, "checkpoint.every_steps=3")
        ranks = self.ranks_of(begun.pid)
        os.kill(ranks[1], signal.SIGSTOP)
        at = time.monotonic()
        error = begun.communicate(timeout=LIMIT)[1]
        self.assertLess(time.monotonic() - at, 40)
        self.assertRegex(error, r"rank 1 of 2 .* nothing was heard of it for 8 s")
        self.assert_gone(ranks.values())

    def test_a_rank_whose_training_hangs_ends_the_others(self):
        """Its main thread stops alone, as ptrace does it, while its other threads say that it lives."""
        long_epochs, long_evaluations = (60000, 130), (500, 60000)  # samples to train and to evaluate on
        for victim, (train, test) in ((0, long_epochs), (1, long_evaluations)):
            begun = self.begin(f"hung{victim}", 2, f"data.synthetic_train={train}", f"data.synthetic_test={test}",
                               "training.log_every_steps=50", epochs=4000, GPUNN_STALL_SECONDS="3")
            time.sleep(1)
            ranks = self.ranks_of(begun.pid)
            if victim == 0:
                self.await_first_steps_of_an_epoch("hung0", train // 128)
            else:
                self.await_first_evaluation("hung1")  # no rank is judged before it ends
            libc = ctypes.CDLL(None, use_errno=True)
            seize, interrupt = 0x4206, 0x4207
            nothing = ctypes.c_void_p(0)
            if libc.ptrace(seize, ranks[victim], nothing, nothing) != 0:
                begun.kill()
                begun.communicate(timeout=LIMIT)
                self.skipTest(f"ptrace: {os.strerror(ctypes.get_errno())}")
            libc.ptrace(interrupt, ranks[victim], nothing, nothing)
            at = time.monotonic()
            while begun.poll() is None and time.monotonic() - at < LIMIT:
                with contextlib.suppress(ChildProcessError):  # it is buried, and the others have not ended yet
                    os.waitpid(ranks[victim], os.WNOHANG)  # whom this process traces, it has to bury
                time.sleep(0.1)
            begun.kill()
            error = begun.communicate(timeout=LIMIT)[1]
            self.assertLess(time.monotonic() - at, 60)
            behind = rf"rank {victim} of 2 .* its training hangs: it lives, and other ranks have been waiting for it"
            within_a_meeting = r"its training or that of another rank hangs: for \d+ s all have been at one meeting"
            self.assertRegex(error, f"{behind}|{within_a_meeting}")

    def await_first_evaluation(self, runs):
        (metrics,) = self.folder.glob(f"{runs}/lenet_digits/2*/metrics.jsonl")
        deadline = time.monotonic() + LIMIT
        while "test_loss" not in metrics.read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        time.sleep(0.2)

    def await_first_steps_of_an_epoch(self, runs, steps_per_epoch):
        (metrics,) = self.folder.glob(f"{runs}/lenet_digits/2*/metrics.jsonl")
        with metrics.open() as lines:
            lines.seek(0, os.SEEK_END)
            deadline = time.monotonic() + LIMIT
            while time.monotonic() < deadline:
                line = lines.readline()
                step = json.loads(line)["global_step"] % steps_per_epoch if line.endswith("\n") else 0
                if 0 < step < steps_per_epoch // 2:
                    return
                time.sleep(0.01)
        self.fail("no step was recorded")

    def test_restarts_go_on_to_the_straight_weights(self):
        settings = ["training.deterministic=true", "training.micro_batches=12", "checkpoint.every_steps=3"]
        begun = self.begin("restarted", 3, *settings, restarts=2)
        os.kill(self.ranks_of(begun.pid)[1], signal.SIGKILL)
        error = begun.communicate(timeout=LIMIT)[1]
        self.assertEqual(begun.returncode, 0, error)
        self.assertIn("restart 1 of 2", error)
        self.assertEqual(self.weights(self.run_in("restarted")),
                         self.weights(self.train("unstarted", 1, *settings, epochs=12)))

    def test_a_signal_to_any_rank_stops_all(self):
        begun = self.begin("asked", 3)
        os.kill(self.ranks_of(begun.pid)[2], signal.SIGTERM)
        begun.communicate(timeout=LIMIT)
        self.assertEqual(begun.returncode, 130)
        self.command("resume", self.run_in("asked"), "--quiet", "--devices", 2)

    def test_batch_norm_and_accumulation(self):
        settings = ["training.deterministic=true", "training.micro_batches=4", "training.accumulate=2",
                    "data.drop_last=true", "data.batch_size=100",
                    self.model("norm", "conv2d: {filters: 4, kernel: 5, stride: 2}", "batch_norm:", "relu:", "flatten:",
                               "linear: {units: 10}")]
        alone = self.train("norm1", 1, *settings)
        for ranks in (2, 3):
            run = self.train(f"norm{ranks}", ranks, *settings)
            self.assertEqual(self.weights(run), self.weights(alone))

    def test_a_single_last_row_and_averaged_statistics(self):
        """401 rows: the fourth batch has 101. A run that stops inside an epoch goes on with another number of ranks."""
        settings = ["training.deterministic=true", "training.micro_batches=4", "training.ema=0.9",
                    "schedule=constant", "data.drop_last=false", "data.batch_size=100", "data.train_limit=401",
                    self.model("averaged", "conv2d: {filters: 4, kernel: 5, stride: 2}", "batch_norm:", "relu:",
                               "flatten:", "linear: {units: 10}")]
        alone = self.train("single1", 1, *settings)
        self.assertEqual(self.records(alone)[-1]["global_step"], 8)
        for ranks in (2, 3):
            run = self.train(f"single{ranks}", ranks, *settings)
            self.assertEqual(self.weights(run), self.weights(alone))
            self.assertEqual(self.losses(run), self.losses(alone))
        part = self.train("single_part", 2, *settings, "training.max_steps=6")
        self.command("resume", part, "--quiet", "--devices", 3, "--set", "training.max_steps=0")
        self.assertEqual(self.weights(part), self.weights(alone))
        self.assertEqual(len(self.records(part)), len(self.records(alone)))

    def test_a_global_batch_norm_gives_the_curve_of_one_rank(self):
        """The last batch has 116 rows, which three ranks can't share out evenly; 20 steps."""
        settings = ["training.global_batch_norm=true", "data.drop_last=false",
                    self.model("global_norm", "conv2d: {filters: 4, kernel: 5, stride: 2}", "batch_norm:", "relu:",
                               "flatten:", "linear: {units: 16}", "batch_norm:", "relu:", "linear: {units: 10}")]
        alone = self.train("global1", 1, *settings, epochs=5)
        self.assertGreaterEqual(len(self.losses(alone)), 20)
        for ranks in (2, 3, 4):
            self.assert_close(self.losses(self.train(f"global{ranks}", ranks, *settings, epochs=5)),
                              self.losses(alone), 1e-4)
        own = self.train("own2", 2, *settings, "training.global_batch_norm=false", epochs=5)
        self.assertGreater(max(abs(a - b) for a, b in zip(self.losses(own), self.losses(alone))), 1e-3)
        low = self.train("global_low1", 1, *settings, "training.precision=bf16", epochs=2)
        self.assert_close(self.losses(self.train("global_low2", 2, *settings, "training.precision=bf16", epochs=2)),
                          self.losses(low), 0.03)

    def test_half_of_the_bytes_on_the_wire(self):
        alone = self.train("wire1", 1)
        run = self.train("wire2", 2, "training.wire=bf16", "training.bucket_kib=32")
        self.assert_close(self.losses(run), self.losses(alone), 2e-3)
        self.assertNotEqual(self.losses(run), self.losses(self.train("wide_wire2", 2)))

    def test_optimizer_states_in_shards(self):
        """The weights have the bits of an unsharded run; a checkpoint fits any number of ranks."""
        settings = ["training.bucket_kib=24", "training.ema=0.9"]
        for ranks in (2, 3):
            whole = self.train(f"whole{ranks}", ranks, *settings)
            parts = self.train(f"shard{ranks}", ranks, *settings, "training.shard=optimizer")
            self.assertEqual(self.weights(parts), self.weights(whole))
        settings = ["training.shard=optimizer", "training.bucket_kib=24", "optimizer.clip_norm=1"]
        alone = self.train("clipped1", 1, *settings, epochs=12)
        begun = self.begin("clipped3", 3, *settings)
        begun.send_signal(signal.SIGINT)
        begun.communicate(timeout=LIMIT)
        self.assertEqual(begun.returncode, 130)
        run = self.run_in("clipped3")
        self.command("resume", run, "--quiet", "--devices", 2)
        self.assert_close(self.losses(run), self.losses(alone), 1e-3)

    def test_detection_shares_its_loss_over_the_points_of_all_ranks(self):
        settings = [word for one in ("data.synthetic_train=48", "data.synthetic_test=8", "data.image_size=64",
                                     "training.log_every_steps=1", "training.global_batch_norm=true",
                                     "optimizer.type=sgd", "optimizer.learning_rate=0.01", "schedule.warmup_epochs=0")
                    for word in ("--set", one)]
        for ranks in (1, 2):
            self.command("run", SOURCE / "experiments/fcos_digits.yaml", "--backend", "cpu", "--quiet", "--steps", 3,
                         *settings, "--runs", f"boxes{ranks}", "--devices", ranks)
        self.assert_close(self.losses(self.run_in("boxes2")), self.losses(self.run_in("boxes1")), 2e-4)

    def test_a_plan_shows_what_passes_between_devices(self):
        arguments = ["plan", SOURCE / "experiments" / "lenet_digits.yaml", "--backend", "cpu", "--devices", 2, "--set",
                     "training.bucket_kib=100", "--set", "training.shard=optimizer", "--step-time", "1",
                     "--estimate-for", "2,1024", "--json"]
        plan = json.loads(self.command(*arguments).stdout)
        self.assertEqual(plan["ranks"]["rows"], 64)
        parts = [one for one in plan["ranks"]["collectives"] if one["op"] == "REDUCE_SCATTER"]
        gathered = [one for one in plan["ranks"]["collectives"] if one["op"] == "ALL_GATHER"]
        self.assertGreater(len(parts), 1)
        self.assertEqual([one["bytes"] for one in parts], [one["bytes"] for one in gathered])
        self.assertLess(parts[0]["starts_after"], parts[-1]["starts_after"])
        self.assertEqual([one["devices"] for one in plan["estimates"]], [2, 1024])
        self.assertLess(plan["estimates"][0]["seconds"], plan["estimates"][1]["seconds"])
        for mistake in (["--devices", "1"], ["--link", "fast"], ["--estimate-for", "2,x"]):
            self.command(*arguments, *mistake, code=2)

    def test_gradients_of_several_buckets(self):
        """More than 8 MiB; four ranks have one or two of five parts, and all of them add up alike."""
        settings = [self.model("wide", "flatten:", "linear: {units: 2800}", "relu:", "linear: {units: 2400}", "relu:",
                               "linear: {units: 10}"), "training.max_steps=3"]
        alone = self.train("wide1", 1, *settings)
        self.assert_close(self.losses(self.train("wide2", 2, *settings)), self.losses(alone), 2e-5)
        settings += ["training.deterministic=true", "training.micro_batches=5"]
        self.assertEqual(self.weights(self.train("parts4", 4, *settings)),
                         self.weights(self.train("parts1", 1, *settings)))

    def test_only_the_first_rank_speaks(self):
        done = self.command(*self.experiment()[:4], *self.experiment()[5:], "--runs", "speech", "--devices", "3")
        self.assertEqual(done.stdout.count("accuracy "), 1)
        self.assertEqual(done.stderr.count("epoch 1/2  train loss"), 1)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_mpirun_starts_ranks(self):
        alone = self.train("mpi1", 1)
        self.command(*self.experiment(), "--runs", "mpi2",
                     by=["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"])
        self.assert_close(self.losses(self.run_in("mpi2")), self.losses(alone), 2e-5)

    def test_mistakes(self):
        few = self.command(*self.experiment("lenet_digits", "data.batch_size=2"), "--runs", "e", "--devices", "3",
                           code=2)
        self.assertIn("less than the 3 ranks", few.stderr)
        self.command(*self.experiment(), "--rank", "0", "--world", "2", code=2)
        self.command(*self.experiment(), "--restarts", "1", code=2)
        self.command(*self.experiment(), "--devices", "0", code=2)
        other = subprocess.Popen([GPUNN, *map(str, self.experiment("lenet_digits", "optimizer.learning_rate=0.01")),
                                  "--rank", "1", "--world", "2", "--rendezvous", "127.0.0.1:19777"],
                                 cwd=self.folder, env=self.environment, stderr=subprocess.PIPE)
        first = self.command(*self.experiment(), "--rank", "0", "--world", "2", "--rendezvous", "127.0.0.1:19777",
                             code=2)
        self.assertRegex(first.stderr, r"the experiment: [0-9a-f]{16} on rank 0, [0-9a-f]{16} on rank 1 of 2")
        self.assertEqual(other.communicate()[1], b"")
        self.assertEqual(other.returncode, 2)


if __name__ == "__main__":
    # A shell without job control has what it starts in the background ignore Ctrl-C, and so would the ranks.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
