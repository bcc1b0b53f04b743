"""Runs a fuzz target for GPUNN_FUZZ_SECONDS (60): `run_fuzz.py TARGET SOURCE_FOLDER NAME`.

What it finds new goes into a folder beside the target, where the next run goes on from it.
"""

import os
import subprocess
import sys
from pathlib import Path

import make_corpus


def main():
    target, source, name = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3]
    grown = target.parent / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    make_corpus.write(name, source, grown)
    arguments = [target, grown]
    if (source / "corpus" / name).is_dir():
        arguments.append(source / "corpus" / name)
    dictionary = source / f"{name}.dict"
    arguments += [f"-dict={dictionary}"] if dictionary.exists() else []
    arguments += [f"-max_total_time={os.environ.get('GPUNN_FUZZ_SECONDS', '60')}", "-timeout=10", "-rss_limit_mb=2560",
                  "-max_len=65536", "-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={grown.parent}/{name}-",
                  *sys.argv[4:]]
    # The kernels that both sanitizers look at (backends/cpu/CMakeLists.txt).
    environment = {**os.environ, "GPUNN_CPU_ISA": "baseline", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                   "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=0"}
    return subprocess.run(list(map(str, arguments)), env=environment, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
