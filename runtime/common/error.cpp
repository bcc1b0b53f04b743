#include <gpunn/error.hpp>

#include "common/escape.hpp"

namespace gpunn {

Error::Error(const std::string& message, ExitCode code) : std::runtime_error(escaped(message, "\n\t")), code_(code) {}

std::string Diagnostic::text() const {
  std::string result = where.file;
  if (where.line > 0) {
    result += ':';
    result += std::to_string(where.line);
    result += ':';
    result += std::to_string(where.column);
  }
  return result.empty() ? message : result + ": " + message;
}

namespace {

std::string all_texts(const std::vector<Diagnostic>& diagnostics) {
  std::string result;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!result.empty()) result += "\n";
    result += diagnostic.text();
  }
  return result;
}

}  // namespace

ConfigError::ConfigError(std::vector<Diagnostic> diagnostics)
    : Error(all_texts(diagnostics), ExitCode::usage), diagnostics_(std::move(diagnostics)) {}

}  // namespace gpunn
