#include <gpunn/error.hpp>
#include <gpunn/plugins.hpp>

#include <cstdlib>
#include <exception>
#include <string>

#include "cli/parser/program.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"
#include "common/system_call.hpp"

int main(int argc, char** argv) {
  gpunn::cli::prepare_standard_files();
  // The OpenMP team of a plugin waits between two kernels. By default it spins for milliseconds on cores that other
  // programs, or its own threads, need. This number of spins covers the gaps of a step. libgomp reads the variable when
  // a plugin loads it.
  setenv("GOMP_SPINCOUNT", "30000", 0);
  gpunn::ExitCode code = gpunn::ExitCode::failed;
  try {
    code = gpunn::cli::run_program(argc, argv);
  } catch (const std::exception& error) {
    gpunn::cli::write_to_stderr(std::string("gpunn: internal error: ") + error.what() + "\n");
  }
  gpunn::shutdown_plugins();
  gpunn::cli::flush_stdout();
  // A full disk or a closed pipe behind stdout must be an error.
  if (const int error = gpunn::cli::stdout_error(); error != 0) {
    gpunn::cli::write_to_stderr("gpunn: can't write to the standard output: " + gpunn::reason_of(error) + "\n");
    if (code == gpunn::ExitCode::done) code = gpunn::ExitCode::failed;
  }
  return static_cast<int>(code);
}
