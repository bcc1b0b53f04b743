#pragma once

#include <string>

namespace gpunn::training {

// While it lives, a signal that ends the process is told of first, on standard error: "gpunn: crashed in " and the
// text. One at a time.
class CrashNote {
 public:
  explicit CrashNote(const std::string& where);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;
};

}  // namespace gpunn::training
