#pragma once

#include <gpunn/error.hpp>

#include <string>

namespace gpunn::cli {

// A descriptor to which rank 0 writes its run folder, as a line.
inline constexpr const char* kRunDescriptor = "GPUNN_RUN_DESCRIPTOR";

struct RanksToStart {
  int count = 1;
  int restarts = 0;        // at most so often after a fault
  std::string rendezvous;  // empty: a free port of this machine
};

// Starts this program so many times with its own command line but for --devices and --restarts, and waits for their
// end. Rank 0 has the terminal, the others write errors alone. A signal goes on to rank 0, which stops all. When a rank
// ends by a fault, the others are given a while, and then ended.
ExitCode start_ranks(const RanksToStart& wanted);

}  // namespace gpunn::cli
