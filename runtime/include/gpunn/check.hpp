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
  std::string op;       // "CONV2D", or what else is looked at
  std::string name;     // shapes and attributes
  std::string kernel;   // the named one that ran; empty: the plugin's own choice
  std::string plugin;   // of the chain, the one that served the op; empty: none did, or the case is about no op
  std::string refusal;  // why those above that plugin did not serve it: "mine: the rows are too long"; empty: none is
  std::string dtype;    // "bf16" or "f16" where a tensor of the op is; else of its first input or output: "f32"
  Verdict verdict = Verdict::passed;
  bool extra = false;                             // of tensors that a plugin need not take: told only where it does
  bool optional = false;                          // to lack it is no failure, even where all is required
  std::string detail;                             // of a failure: where, expected, found, tolerance
  double error = 0;                               // the largest, in units of the tolerance
  double seconds = 0, gflops = 0, gigabytes = 0;  // of the suite "perf": of one run, and per second
};

// Which backend is checked, with which cases, and how strictly.
struct CheckOptions {
  std::string backend;  // a name, or the path of a plugin file
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> suites;  // empty: all but "perf"
  std::vector<std::string> ops;     // empty: all
  // A case runs if its op and name, "CONV2D f32[5, 1, 28, 28] ...", contain a text of `cases` (empty: all cases do) and
  // no text of `without`.
  std::vector<std::string> cases, without;
  // Only the cases that run with a kernel of one of these names. Empty: all, and again with each kernel to which the
  // backend gives a name.
  std::vector<std::string> kernels;
  std::string profile;  // what it names must run: unsupported and no device are failures; empty: nothing must
  Precision precision = Precision::fp32;
  std::string reference = "cpu";  // the backend that the suite "train" compares with
  uint64_t seed = 1;
  int threads = 0;
  bool strict = false;      // the plugin by itself: what its base runs is skipped, or fails where it is required
  int limit_seconds = 120;  // a case that takes longer counts as hung
  // Run everything in this process, where a debugger or a sanitizer sees it and a crash is the end. Otherwise the
  // backend is opened in child processes alone, which are forked before this one has had to do with a driver.
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

// Runs the conformance suites. Throws Error(usage) for a suite, op or profile that there is not.
GPUNN_API CheckReport check(const CheckOptions& options);

// The same for several backends, in place of options.backend.
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
