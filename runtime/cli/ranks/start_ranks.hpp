#pragma once

#include <gpunn/error.hpp>

#include <string>

namespace gpunn::cli {

// A descriptor to which rank 0 writes its run folder, as a line.
inline constexpr const char* kRunDescriptor = "GPUNN_RUN_DESCRIPTOR";

struct RanksToStart {
  int count = 1;
  int restarts = 0;        // most restarts after a fault
  std::string rendezvous;  // empty: a free port of this machine
};

// Starts this program this many times, with its command line except --devices and --restarts, and waits until all have
// ended. Rank 0 has the terminal; the others write only errors. Signals go to rank 0, which stops all. When a rank
// fails, the others get some time to end, and are then killed.
ExitCode start_ranks(const RanksToStart& wanted);

}  // namespace gpunn::cli
