"""Help, and completion in shells."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

from base import GPUNN, LIMIT, ProgramTest, SOURCE

def documented_verbs():
    """The verbs in the table of docs/cli.md, "data list" and the like among them, but `train`, another name of `run`."""
    verbs = []
    for row in re.findall(r"(?m)^\| (`[^|]*) \|", (SOURCE / "docs" / "cli.md").read_text().split("\n## ")[0]):
        for first, second in re.findall(r"`([a-z]+) ?([a-z]*)", row):
            verbs += [first, f"{first} {second}"] if first == "data" else [first]
    return [verb for verb in dict.fromkeys(verbs) if verb != "train"]


VERBS = documented_verbs()


class Help(ProgramTest):
    def test_every_verb_has_help_with_an_example(self):
        for verb in VERBS:
            with self.subTest(verb=verb):
                done = self.gpunn(*verb.split(), "--help")
                self.assertRegex(done.stdout, r"Examples?:\n  (source <\()?gpunn " + verb)
                self.assertEqual(done.stderr, "")

    def test_help_and_version_go_to_stdout(self):
        listed = re.findall(r"(?m)^  ([a-z]+)", self.gpunn("--help").stdout.split("\nExample")[0])
        self.assertEqual(set(listed), {verb.split()[0] for verb in VERBS})
        self.assertRegex(self.gpunn("--version").stdout, r"^\d+\.\d+\.\d+\n$")

    def test_help_of_a_verb_is_its_help_option(self):
        self.assertEqual(self.gpunn("help").stdout, self.gpunn("--help").stdout)
        for verb in VERBS:
            with self.subTest(verb=verb):
                self.assertEqual(self.gpunn("help", *verb.split()).stdout, self.gpunn(*verb.split(), "--help").stdout)

    def test_no_help_names_what_has_help_under_the_words_before(self):
        def told(*words):
            return self.gpunn("help", *words, code=2).stderr

        self.assertIn("there is no op 'matmull'; did you mean 'MATMUL'?", told("ops", "matmull"))
        self.assertNotIn("did you mean 'relu'", told("keys", "relu"))
        self.assertIn("did you mean 'conv2d'", told("layers", "Conv2D"))
        self.assertIn("did you mean 'optimizer.learning_rate'", told("keys", "optimizer.learning_rat"))

    def test_ops_are_described(self):
        ops = {one["name"]: one for one in json.loads(self.gpunn("help", "ops", "--json").stdout)}
        self.assertGreater(len(ops), 140)
        self.assertTrue(all(one["summary"] and one["signature"] for one in ops.values()))
        clamp = {one["name"]: one for one in ops["clamp"]["attributes"]}
        self.assertEqual((clamp["high"]["kind"], clamp["high"]["default"]), ("number", "inf"))
        self.assertEqual(ops["max_pool2d"]["attributes"][1]["same_as"], "window")
        self.assertEqual(ops["silu"]["formula"], "return x * sigmoid(x);")
        self.assertIn("attrs.momentum * velocity", self.gpunn("help", "ops", "sgd_update").stdout.replace("\n", " "))
        shown = self.gpunn("help", "ops", "cumsum").stdout
        self.assertRegex(shown, r"CUMSUM +\w")
        self.assertRegex(shown, r"\n +exclusive +\w")
        self.assertIn("x:float[...] -> y:float[...]", shown)
        self.assertIn("CONV2D ", self.gpunn("help", "ops").stdout)
        self.assertIn("'gpunn help ops'", self.gpunn("help", "keys", "--json", code=2).stderr)

    def test_train_is_another_name_of_run(self):
        self.assertEqual(self.gpunn("train", "--help").stdout, self.gpunn("run", "--help").stdout)
        self.assertRegex(self.gpunn("--help").stdout, r"\n  run, train +Train an experiment")
        done = self.gpunn("train", *self.points("--epochs", "1", "--quiet")[1:])
        self.assertIn("accuracy", done.stdout)

    def test_without_a_verb_the_verbs_are_shown(self):
        done = self.gpunn(code=2)
        self.assertEqual(done.stdout, "")
        self.assertIn("\nTrain:\n  run, train", done.stderr)
        self.assertIn("\nBackends:\n", done.stderr)
        for verb in VERBS:
            self.assertRegex(done.stderr, r"(?m)^  " + verb.split()[0] + r"\b.* \w")
        self.assertRegex(self.gpunn("data", code=2).stderr, r"(?m)^  inspect +Read a data set")

    def test_help_reads_well(self):
        for verb in ["", *VERBS]:
            text = self.gpunn(*verb.split(), "--help").stdout
            with self.subTest(verb=verb):
                self.assertNotRegex(text, r"->|value in|:INT|:UINT|:FLOAT|TEXT:|\{| in \[|REQUIRED|BOOLEAN")
                self.assertLessEqual(max(map(len, text.split("Example")[0].splitlines())), 100)
        self.assertIn("--precision fp32|tf32|bf16 ", self.gpunn("check", "--help").stdout)
        self.assertIn("--format text|markdown", self.gpunn("race", "--help").stdout)
        self.assertIn("(default: text)", self.gpunn("race", "--help").stdout)

    def test_lists(self):
        keys = self.gpunn("help", "keys").stdout
        self.assertIn("optimizer.learning_rate", keys)
        self.assertIn("schedule.patience", keys)
        self.assertNotIn("optimizer.", self.gpunn("help", "keys", "data").stdout.replace("`", ""))
        self.assertIn("default: 0.01", self.gpunn("help", "keys", "optimizer.learning_rate").stdout)
        self.assertEqual(self.gpunn("help", "optimizer.learning_rate").stdout,
                         self.gpunn("help", "keys", "optimizer.learning_rate").stdout)
        self.assertIn("conv2d_transpose", self.gpunn("help", "layers").stdout)
        self.assertIn("required", self.gpunn("help", "layers", "conv2d").stdout)
        self.assertIn("MATMUL", self.gpunn("help", "ops").stdout)
        self.assertIn("did you mean 'optimizer.learning_rate'", self.gpunn("help", "lr", code=2).stderr)
        self.assertIn("did you mean 'train'", self.gpunn("help", "trian", code=2).stderr)
        self.assertIn("did you mean 'linear'", self.gpunn("help", "layers", "dense", code=2).stderr)

    def test_manual_has_a_page_for_every_verb(self):
        self.gpunn("manual", "man1")
        pages = {page.stem: page.read_text() for page in (self.folder / "man1").iterdir()}
        self.assertEqual(set(pages), {"gpunn", "gpunn-train", *("gpunn-" + verb.replace(" ", "-") for verb in VERBS)})
        self.assertEqual(pages["gpunn-train"], ".so man1/gpunn-run.1\n")
        for verb in VERBS:
            page = pages["gpunn-" + verb.replace(" ", "-")]
            options = re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", self.gpunn(*verb.split(), "--help").stdout)
            with self.subTest(verb=verb):
                self.assertEqual(re.findall(r"(?m)^\.B (?:-\w, )?(--[a-z-]+)", page.replace("\\-", "-")), options)
                self.assertRegex(page, r"\.SH EXAMPLES\n\.nf\n(source <\()?gpunn ")
                if shutil.which("man"):
                    checked = subprocess.run(["man", "--warnings", "-l", "-"], input=page, text=True,
                                             capture_output=True, timeout=LIMIT)
                    self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_completion_is_accepted_by_its_shell(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.gpunn("completion", shell).stdout
            self.assertIn("plugins --names", script)
            self.assertIn("resume", script)
            if shutil.which(shell):
                checked = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, timeout=LIMIT)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""), shell)

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_completes(self):
        def complete(*words):
            listed = " ".join(f"'{word}'" for word in words)
            script = (f"PATH={Path(GPUNN).parent}:$PATH; source <(gpunn completion bash)\n"
                      f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _gpunn\n"
                      'printf "%s\\n" "${COMPREPLY[@]}"')
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=LIMIT,
                                  cwd=SOURCE, env=self.environment).stdout.split()
        self.assertEqual(complete("gpunn", "res"), ["resume"])
        self.assertEqual(complete("gpunn", "data", "in"), ["inspect"])
        self.assertIn("--backend", complete("gpunn", "run", "x.yaml", "--b"))
        self.assertEqual(complete("gpunn", "run", "x.yaml", "--backend", "cp"), ["cpu"])
        self.assertEqual(complete("gpunn", "run", "experiments/lenet_d"), ["experiments/lenet_digits.yaml"])
        # As bash cuts them: at '=' and ':'. What it wants back is what comes behind.
        self.assertEqual(complete("gpunn", "run", "x.yaml", "--set", "optimizer.mom"), ["optimizer.momentum="])
        self.assertEqual(complete("gpunn", "run", "x.yaml", "--set", "optimizer.type", "=", "adag"), ["adagrad"])
        self.assertEqual(complete("gpunn", "run", "x.yaml", "--set", "data.shuffle", "="), ["true", "false"])
        self.assertEqual(complete("gpunn", "run", "x.yaml", "--set", "a", "=", "b", "--epo"), ["--epochs"])
        self.assertEqual(complete("gpunn", "check", "cpu", "--op", "TRANSP"), ["TRANSPOSE"])
        self.assertEqual(complete("gpunn", "check", "cpu", "--suite", "nod"), ["nodevice"])
        self.assertEqual(complete("gpunn", "data", "get", "fash"), ["fashion_mnist"])

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_replaces_what_it_should(self):
        """In an interactive bash, in which readline cuts the line and puts the words in."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(SOURCE)
            path = f"{Path(GPUNN).parent}:{os.environ['PATH']}"
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**self.environment, "PATH": path, "PS1": "> "})
        def shown_until(mark):
            text = ""
            while mark not in text:
                ready, _, _ = select.select([terminal], [], [], 20)
                self.assertTrue(ready, text)
                text += os.read(terminal, 4096).decode()
            return text
        try:
            os.write(terminal, b"bind 'set bell-style none'; source <(gpunn completion bash); echo re''ady\n")
            shown_until("ready")
            for typed, wanted in [("gpunn res\t", "gpunn resume "),
                                  ("gpunn run x.yaml --set optimizer.mom\t", "--set optimizer.momentum="),
                                  ("gpunn run x.yaml --set optimizer.type=adag\t", "--set optimizer.type=adagrad "),
                                  ("gpunn run experiments/lenet_d\t", "run experiments/lenet_digits.yaml ")]:
                with self.subTest(typed=typed):
                    os.write(terminal, typed.encode())
                    shown_until(wanted)
                    os.write(terminal, b"\x15")  # readline's kill-line: nothing is run
        finally:
            os.kill(pid, signal.SIGKILL)
            os.close(terminal)
            os.waitpid(pid, 0)

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_completes(self):
        def complete(line):
            script = f"fish_add_path -P {Path(GPUNN).parent}; gpunn completion fish | source; complete -C '{line}'"
            done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=LIMIT,
                                  env=self.environment)
            return [word.split("\t")[0] for word in done.stdout.splitlines()]
        self.assertEqual(complete("gpunn res"), ["resume"])
        self.assertEqual(complete("gpunn run x.yaml --set optimizer.type=adag"), ["optimizer.type=adagrad"])
        self.assertEqual(complete("gpunn check cpu --op TRANSP"), ["TRANSPOSE"])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_completes(self):
        def complete(*words):
            listed = " ".join(f"'{word}'" for word in words)
            # compadd works in completion widgets alone: here it prints what it is given.
            script = (f"path=({Path(GPUNN).parent} $path); compdef() {{ }}; source <(gpunn completion zsh)\n"
                      'compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- "$@" }\n'
                      f"words=({listed}); CURRENT={len(words)}; _gpunn")
            return subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=LIMIT,
                                  env=self.environment).stdout.split()
        self.assertEqual(complete("gpunn", "res"), ["resume"])
        self.assertEqual(complete("gpunn", "run", "x.yaml", "--set", "optimizer.type=adag"), ["optimizer.type=adagrad"])
        self.assertEqual(complete("gpunn", "check", "cpu", "--op", "TRANSP"), ["TRANSPOSE"])
