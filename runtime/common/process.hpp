#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gpunn {

// The output of another program, and how it ended.
struct ProcessResult {
  std::string output;  // its stdout, at most the first MiB
  int exit_code = -1;  // -1: it did not end by itself, or was not started
  std::string ending;  // "exit code 3", "signal 11", or why it was not started
};

// Runs a program to its end, with this process's environment and no input; its stderr is not shown. Safe if this
// process has threads or a lost device, since nothing of it is copied.
ProcessResult run_process(const std::filesystem::path& program, const std::vector<std::string>& arguments);

}  // namespace gpunn
