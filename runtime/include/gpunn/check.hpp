#pragma once

#include <gpunn/export.h>
#include <gpunn/precision.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The verdict of a check on a case.
enum class Verdict { passed, failed, unsupported, no_device };
// "passed", "failed", "unsupported" or "no device".
GPUNN_API std::string_view name_of(Verdict verdict);

// One case of a check, and its outcome.
struct CheckCase {
  std::string backend;
  std::string suite;    // "ops", "grad", ...
  std::string op;       // "CONV2D", or another subject of the suite
  std::string name;     // shapes and attributes
  std::string kernel;   // its name; empty: the plugin's own choice
  std::string plugin;   // the plugin of the chain that served the op; empty: none, or the case has no op
  std::string refusal;  // why the plugins above it refused: "mine: the rows are too long"; empty: none is above
  std::string dtype;    // "bf16" or "f16" if a tensor of the op has it; else of the first input or output: "f32"
  Verdict verdict = Verdict::passed;
  bool extra = false;                             // about optional tensors; reported only if the plugin supports them
  bool optional = false;                          // unsupported is no failure, even if everything is required
  std::string detail;                             // where, expected, found, tolerance; empty: no failure
  double error = 0;                               // largest error in units of the tolerance
  double seconds = 0, gflops = 0, gigabytes = 0;  // suite "perf": of one run, and per second
};

// Which backend is checked, with which cases, and how strictly.
struct CheckOptions {
  std::string backend;  // a name, or the path of a plugin file
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> suites;  // empty: all except "perf"
  std::vector<std::string> ops;     // empty: all
  // Selects cases by text: the op and the name of a case, "CONV2D f32[5, 1, 28, 28] ...", must contain one of `cases`
  // (empty: all cases do) and none of `without`.
  std::vector<std::string> cases, without;
  // Run only cases that have a kernel of one of these names. Empty: run each case with the backend's own choice and
  // again with each named kernel.
  std::vector<std::string> kernels;
  // Of the large cases of an op (more than 20,000 elements), run the first of each kernel, dtype and layout only. They
  // take most of the time, above all under a sanitizer.
  bool quick = false;
  std::string profile;  // a profile that must run: unsupported and no device are failures; empty: nothing must
  Precision precision = Precision::fp32;
  std::string reference = "cpu";  // the backend that the suite "train" compares with
  uint64_t seed = 1;
  int threads = 0;
  bool strict = false;      // check the plugin alone: skip what its base runs, or fail where the profile requires it
  int limit_seconds = 120;  // a case that takes longer counts as hung
  // Run everything in this process, so that a debugger or sanitizer sees it. A crash then ends the check. By default
  // the backend is opened in child processes only, which are forked before this process touches a driver.
  bool in_process = false;
  std::function<void(const CheckCase&)> on_case;
};

// All cases of a check of one backend.
struct CheckReport {
  std::string backend;
  std::string device;  // its name
  std::vector<CheckCase> cases;
  int passed = 0, failed = 0, skipped = 0;
  bool ok() const { return failed == 0; }
};

// Runs the conformance suites. Throws Error(usage) for an unknown suite, op or profile.
GPUNN_API CheckReport check(const CheckOptions& options);

// The same for several backends; `options.backend` is ignored.
GPUNN_API std::vector<CheckReport> check(const CheckOptions& options, const std::vector<std::string>& backends);

// The names that CheckOptions takes.
GPUNN_API std::vector<std::string> check_suites();
GPUNN_API std::vector<std::string> check_ops();

// A set of ops that a backend can be required to run, as "train-cnn".
struct CheckProfile {
  std::string name;
  std::string description;
};
// All profiles that CheckOptions::profile may name.
GPUNN_API std::vector<CheckProfile> check_profiles();

}  // namespace gpunn
