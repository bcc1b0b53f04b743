// What the tests of check() share.
#pragma once

#include <gpunn/check.hpp>

#include <map>
#include <set>
#include <string>

#include "catch.hpp"
#include "sanitized.hpp"

namespace gpunn::testing {

inline CheckOptions options_for(const std::string& backend) {
  CheckOptions options;
  options.backend = backend;
  options.plugins = {GPUNN_BINARY_DIR "/lib", GPUNN_SAMPLE_DIR};
  options.quick = kSanitized;
  return options;
}

// What failed, in words; empty: nothing.
inline std::string summary(const CheckReport& report) {
  std::string text;
  for (const CheckCase& result : report.cases) {
    if (result.verdict == Verdict::failed) {
      text += result.suite + " " + result.op + " " + result.name + ": " + result.detail + "\n";
    }
  }
  return text;
}

// The detail of the first failure of each op.
inline std::map<std::string, std::string> failures(const CheckReport& report, const std::string& suite) {
  std::map<std::string, std::string> result;
  for (const CheckCase& test : report.cases) {
    if (test.suite == suite && test.verdict == Verdict::failed) result.emplace(test.op, test.detail);
  }
  return result;
}

inline std::set<std::string> names(const std::map<std::string, std::string>& failed) {
  std::set<std::string> result;
  for (const auto& [op, detail] : failed) result.insert(op);
  return result;
}

}  // namespace gpunn::testing
