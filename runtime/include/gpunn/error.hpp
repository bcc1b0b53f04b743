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
  // The message may quote files with any content: it is escaped where it is not plain text, except for line breaks.
  explicit Error(const std::string& message, ExitCode code = ExitCode::failed);
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

// A device failed. Any work since the last wait may be the cause. The device cannot be used again in this process.
class GPUNN_API DeviceLostError final : public Error {
 public:
  using Error::Error;
};

// A place in a user's file. Line and column count from 1; 0 is unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

// A mistake in a user's file, with its place.
struct GPUNN_API Diagnostic {
  SourceLocation where;
  std::string message;
  std::string text() const;  // "file.yaml:12:5: message"
};

// All mistakes of a file together.
class GPUNN_API ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<Diagnostic> diagnostics);
  const std::vector<Diagnostic>& diagnostics() const noexcept { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace gpunn
