#pragma once

#include <gpunn/error.hpp>
#include <gpunn/export.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// One of the processes that train together, each with its own device. Ranks count from 0.
struct RankPlace {
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1;  // the same among the processes of this machine
  std::string rendezvous;               // "HOST:PORT", where rank 0 listens
  std::string job;                      // equal on all ranks of one start, different for another start; empty: unknown
  std::string launcher;                 // who started the processes, for messages
};

// An error that all ranks have at the same time, such as the end of another rank. Only rank 0 reports it.
class GPUNN_API SharedError : public Error {
 public:
  using Error::Error;
};

// Reads the rank from the launcher's environment: Open MPI, MPICH, Slurm, torchrun, or `gpunn run --devices`. Empty if
// this process is alone. Throws Error(usage) if only a part of the variables is set.
GPUNN_API std::optional<RankPlace> find_rank();

// The rank that `--rank`, `--world` and `--rendezvous` describe. Throws Error(usage) if one is missing or out of range.
GPUNN_API RankPlace rank_from_options(std::optional<int64_t> rank, std::optional<int64_t> world,
                                      const std::string& rendezvous);

}  // namespace gpunn
