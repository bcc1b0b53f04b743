#pragma once

#include <gpunn/error.hpp>
#include <gpunn/export.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// One of the processes that train together, each with a device of its own. Ranks count from 0.
struct RankPlace {
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1;  // the same among the processes of this machine
  std::string rendezvous;               // "HOST:PORT", where rank 0 listens
  std::string job;       // is equal on all ranks of one start, and differs from that of another; empty: not known
  std::string launcher;  // who started the processes, for messages
};

// An error that all ranks meet alike, as the end of one of them is to the others: it is enough if rank 0 tells it.
class GPUNN_API SharedError : public Error {
 public:
  using Error::Error;
};

// The place that the launcher's environment describes: Open MPI, MPICH, Slurm, torchrun, or `gpunn run --devices`.
// Empty where this process is alone. Throws Error(usage) where the environment says only a part.
GPUNN_API std::optional<RankPlace> find_rank();

// Of `--rank`, `--world` and `--rendezvous`. Throws Error(usage) where one is missing or makes no sense.
GPUNN_API RankPlace rank_from_options(std::optional<int64_t> rank, std::optional<int64_t> world,
                                      const std::string& rendezvous);

}  // namespace gpunn
