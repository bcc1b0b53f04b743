#include <gpunn/error.hpp>
#include <gpunn/plugins.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "cli/parser/program.hpp"
#include "cli/status_line.hpp"

int main(int argc, char** argv) {
  gpunn::cli::require_stderr();
  // A plugin's OpenMP team waits between two kernels. By default it spins for milliseconds on cores that other
  // programs, or its own threads, need; this many spins cover the gaps of a step. libgomp reads it when a plugin brings
  // it in.
  setenv("GOMP_SPINCOUNT", "30000", 0);
  gpunn::ExitCode code = gpunn::ExitCode::failed;
  try {
    code = gpunn::cli::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpunn: internal error: %s\n", error.what());
  }
  gpunn::shutdown_plugins();
  // A full disk or a closed pipe behind stdout must not pass for success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "gpunn: can't write to the standard output\n");
    if (code == gpunn::ExitCode::done) code = gpunn::ExitCode::failed;
  }
  return static_cast<int>(code);
}
