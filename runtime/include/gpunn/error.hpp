#pragma once

#include <gpunn/export.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gpunn {

// Process exit codes, and the class of every error.
enum class ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,     // the command line, an experiment or a model is wrong
  missing = 3,   // data, a plugin or a device is not there
  diverged = 4,  // NaN or Inf in training
  interrupted = 130,
};

// An error for the user: what() says what was expected, what was found, where, and what to do.
class GPUNN_API Error : public std::runtime_error {
 public:
  // What the message quotes of files may hold anything: but for line breaks, it is escaped where it is not plain text.
  explicit Error(const std::string& message, ExitCode code = ExitCode::failed);
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

// A device that failed in the middle of its work. Whatever was asked of it since the last wait may be what it failed
// at, and nothing more can be done on it in this process.
class GPUNN_API DeviceLostError final : public Error {
 public:
  using Error::Error;
};

// A place in a file that a user wrote; line and column count from 1, 0 is unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

// A mistake in a file of the user, with its place.
struct GPUNN_API Diagnostic {
  SourceLocation where;
  std::string message;
  std::string text() const;  // "file.yaml:12:5: message"
};

// Everything that is wrong with a file, at once.
class GPUNN_API ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<Diagnostic> diagnostics);
  const std::vector<Diagnostic>& diagnostics() const noexcept { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace gpunn
