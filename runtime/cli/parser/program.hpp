#pragma once

#include <gpunn/error.hpp>

namespace gpunn::cli {

// Parses the command line and runs its verb. Errors are printed and become the exit code.
ExitCode run_program(int argc, char** argv);

}  // namespace gpunn::cli
