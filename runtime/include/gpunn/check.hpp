#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

enum class Verdict { passed, failed, unsupported, no_device };
std::string_view name_of(Verdict verdict);

struct CheckCase {
  std::string suite;  // "ops", "grad"
  std::string op;     // "CONV2D"
  std::string name;   // shapes and attributes
  Verdict verdict = Verdict::passed;
  std::string detail;  // of a failure: where, expected, found, tolerance
  double error = 0;    // the largest, in units of the tolerance
};

struct CheckOptions {
  std::string backend;  // a name, or the path of a plugin file
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> suites;  // empty: all
  std::vector<std::string> ops;     // empty: all
  bool required = false;            // unsupported and no device are failures
  uint64_t seed = 1;
  int threads = 0;
  std::function<void(const CheckCase&)> on_case;
};

struct CheckReport {
  std::string backend;
  std::vector<CheckCase> cases;
  int passed = 0, failed = 0, skipped = 0;
  bool ok() const { return failed == 0; }
};

// Runs the conformance suites against the float64 oracle.
CheckReport check(const CheckOptions& options);

}  // namespace gpunn
