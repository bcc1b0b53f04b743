"""Help, and completion in shells."""

import shutil
import subprocess
import unittest
from pathlib import Path

from base import GPUNN, LIMIT, ProgramTest

VERBS = ["run", "resume", "eval", "predict", "report", "export", "diagnose", "plugins", "plan", "summary", "check", "bench",
         "race", "data", "completion", "data list", "data get", "data inspect"]


class Help(ProgramTest):
    def test_every_verb_has_help_with_an_example(self):
        for verb in VERBS:
            with self.subTest(verb=verb):
                done = self.gpunn(*verb.split(), "--help")
                self.assertRegex(done.stdout, r"Examples?:\n  (source <\()?gpunn " + verb)
                self.assertEqual(done.stderr, "")

    def test_help_and_version_go_to_stdout(self):
        listed = self.gpunn("--help").stdout
        for verb in VERBS:
            self.assertIn(verb.split()[0], listed)
        self.assertRegex(self.gpunn("--version").stdout, r"^\d+\.\d+\.\d+\n$")

    def test_completion_is_accepted_by_its_shell(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.gpunn("completion", shell).stdout
            self.assertIn("plugins --names", script)
            self.assertIn("resume", script)
            if shutil.which(shell):
                checked = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, timeout=LIMIT)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""), shell)

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_completes_verbs_options_and_backends(self):
        def complete(*words):
            listed = " ".join(f"'{word}'" for word in words)
            script = (f"PATH={Path(GPUNN).parent}:$PATH; source <(gpunn completion bash)\n"
                      f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _gpunn\n"
                      'printf "%s\\n" "${COMPREPLY[@]}"')
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=LIMIT,
                                  env=self.environment).stdout.split()
        self.assertEqual(complete("gpunn", "res"), ["resume"])
        self.assertEqual(complete("gpunn", "data", "in"), ["inspect"])
        self.assertIn("--backend", complete("gpunn", "run", "x.yaml", "--b"))
        self.assertEqual(complete("gpunn", "run", "x.yaml", "--backend", "cp"), ["cpu"])
