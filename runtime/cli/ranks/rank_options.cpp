#include "cli/ranks/rank_options.hpp"

#include <cstdlib>

#include "cli/ranks/start_ranks.hpp"
#include "common/system_call.hpp"

namespace gpunn::cli {

void add_rank_options(Verb verb, RankOptions& options) {
  verb.add_option("--devices", options.devices,
                  "Number of processes on this machine; each has a device and a part of every batch; default: 1, or "
                  "the number that mpirun, srun or torchrun started")
      .type_name("N");
  verb.add_option(
          "--restarts", options.restarts,
          "With --devices: how often to restart from the last checkpoint after a process has failed; default: 0")
      .type_name("N");
  verb.add_option("--rank", options.rank, "Number of this process among --world, from 0").type_name("N");
  verb.add_option("--world", options.world, "Number of processes that train together").type_name("N");
  verb.add_option("--rendezvous", options.rendezvous,
                  "Address where rank 0 listens for the others: its machine and a free port")
      .type_name("HOST:PORT");
}

bool RankOptions::starts_others() const {
  if (!devices) {
    if (restarts) throw Error("--restarts goes with --devices, which starts the processes", ExitCode::usage);
    return false;
  }
  if (rank || world) throw Error("--devices starts all ranks itself; leave --rank and --world out", ExitCode::usage);
  if (*devices < 1) {
    throw Error("--devices " + std::to_string(*devices) + ": expected 1 or more", ExitCode::usage);
  }
  if (restarts && *restarts < 0) {
    throw Error("--restarts " + std::to_string(*restarts) + ": expected 0 or more", ExitCode::usage);
  }
  return *devices > 1 || restarts;
}

ExitCode RankOptions::start() const {
  return start_ranks({.count = static_cast<int>(*devices),
                      .restarts = static_cast<int>(restarts.value_or(0)),
                      .rendezvous = rendezvous});
}

std::optional<RankPlace> RankOptions::place() const {
  if (rank || world) return rank_from_options(rank, world, rendezvous);
  // The launcher may not know the address of rank 0.
  if (!rendezvous.empty()) ::setenv("GPUNN_RENDEZVOUS", rendezvous.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  std::optional<RankPlace> found = find_rank();
  if (!found && !rendezvous.empty()) {
    throw Error("--rendezvous " + rendezvous +
                    " is for several processes: give --rank and --world too, or start "
                    "them by mpirun, srun or torchrun",
                ExitCode::usage);
  }
  return found;
}

bool is_silent_rank() {
  try {
    const std::optional<RankPlace> place = find_rank();
    return place && place->rank > 0;
  } catch (const Error&) {  // shown where it matters
    return false;
  }
}

void RunTeller::on_start(const RunStart& start) {
  const char* const descriptor = std::getenv(kRunDescriptor);  // NOLINT(concurrency-mt-unsafe)
  if (descriptor != nullptr) write_all(std::atoi(descriptor), start.run.string() + "\n");  // NOLINT(cert-err34-c)
  next_.on_start(start);
}

}  // namespace gpunn::cli
