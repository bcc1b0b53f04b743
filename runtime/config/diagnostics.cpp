#include "config/diagnostics.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace gpunn::config {

void fail_at(const SourceLocation& where, std::string message) {
  std::vector<Diagnostic> diagnostics;
  diagnostics.push_back({where, std::move(message)});
  throw ConfigError(std::move(diagnostics));
}

void Diagnostics::add(const SourceLocation& where, std::string message) {
  // The place of a --set names its key, and most messages begin with it.
  if (const std::string place = "--set "; where.file.starts_with(place)) {
    const std::string key = where.file.substr(place.size()) + ": ";
    if (message.starts_with(key)) message.erase(0, key.size());
  }
  Diagnostic diagnostic{where, std::move(message)};
  if (found_.size() >= kMost || !texts_.insert(diagnostic.text()).second) return;
  found_.push_back(std::move(diagnostic));
}

void Diagnostics::add(const ConfigError& error) {
  for (const Diagnostic& diagnostic : error.diagnostics()) add(diagnostic.where, diagnostic.message);
}

void Diagnostics::throw_if_any() const {
  if (found_.empty()) return;
  std::map<std::string, std::size_t> files;  // in the order in which they first came up
  for (const Diagnostic& diagnostic : found_) files.emplace(diagnostic.where.file, files.size());
  const auto key = [&](const Diagnostic& diagnostic) {
    return std::tuple(files.at(diagnostic.where.file), diagnostic.where.line, diagnostic.where.column);
  };
  std::vector<Diagnostic> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  throw ConfigError(std::move(sorted));
}

}  // namespace gpunn::config
