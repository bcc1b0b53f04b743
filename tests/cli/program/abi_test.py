"""Plugins that were built for the first release of the contract, ABI 1.1, as today's program runs them."""

import lzma
import platform
import unittest

from base import SOURCE, ProgramTest

FROZEN = SOURCE / "tests" / "fixtures" / "abi_1"  # make.sh there says what they are


@unittest.skipUnless(platform.machine() == "x86_64", "the plugins that are kept are for x86-64")
class FirstRelease(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.whole = cls.folder / "libgpunn_backend_plain.so"
        cls.whole.write_bytes(lzma.decompress((FROZEN / f"{cls.whole.name}.xz").read_bytes()))
        cls.overlay = FROZEN / "libgpunn_backend_plain_c.so"

    def test_they_are_found(self):
        listed = self.gpunn("plugins", "--plugin", self.whole, "--plugin", self.overlay).stdout
        self.assertRegex(listed, r"(?m)^plain +OK +1\.0 +1\.1 +- ")
        self.assertRegex(listed, r"(?m)^plain_c +OK +1\.0\.0 +1\.1 +cpu ")

    def test_they_keep_the_contract(self):
        for plugin, op in ((self.whole, "CONV2D"), (self.overlay, "RELU")):
            done = self.gpunn("check", plugin, "--suite", "abi", "--suite", "ops", "--op", op)
            self.assertRegex(done.stdout, r"[1-9]\d* passed, 0 failed")

    def test_lenet_trains_on_the_whole_backend(self):
        """Each op of the training is compared with the one of the processor's own backend."""
        settings = ("data.synthetic_train=64", "data.synthetic_test=16", "data.batch_size=8")
        done = self.gpunn("run", SOURCE / "experiments" / "lenet_digits.yaml", "--plugin", self.whole, "--backend",
                          "check:cpu,plain", "--steps", "2", *(word for one in settings for word in ("--set", one)))
        self.assertIn("'plain' agreed with 'cpu' in every op of 2 steps", done.stderr)

    def test_a_kernel_of_the_overlay_runs_among_those_of_its_base(self):
        planned = self.gpunn("plan", SOURCE / "experiments" / "lenet_digits.yaml", "--backend", self.overlay)
        self.assertRegex(planned.stdout, r"RELU +\S+ +plain_c ")
