#pragma once

#include <gpunn/error.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace gpunn::config {

// Throws a ConfigError of one.
[[noreturn]] void fail_at(const SourceLocation& where, std::string message);

// Collects the mistakes of a file, so that the user sees all at once. Repeated mistakes are reported once (a repeated
// block of layers has the same mistake in each round), and at most kMost in all.
class Diagnostics {
 public:
  static constexpr std::size_t kMost = 50;

  void add(const SourceLocation& where, std::string message);
  bool empty() const { return found_.empty(); }
  bool full() const { return found_.size() >= kMost; }
  std::size_t size() const { return found_.size(); }
  void add(const ConfigError& error);
  void throw_if_any() const;  // a ConfigError, in the order of the lines

 private:
  std::vector<Diagnostic> found_;
  std::set<std::string> texts_;
};

}  // namespace gpunn::config
