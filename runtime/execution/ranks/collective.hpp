#pragma once

#include <gpunn/abi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "distributed/team.hpp"
#include "execution/backend_impl.hpp"
#include "execution/ranks/communicator.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// Whether all ranks run it together: ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER.
bool is_collective(int32_t op);

// A collective op of one shape: run by the plugin if it serves one part for each rank, else through the host's memory.
class RankCollective {
 public:
  // Without a team it can be planned, and not run.
  RankCollective(std::shared_ptr<distributed::Team> team, std::shared_ptr<RankCommunicator> communicator,
                 const graph::OpSignature& signature, bool deterministic);

  uint32_t flags() const { return flags_; }  // GPUNN_OP_...
  // Through the host, it waits for the stream, unless the plugin's memory is the host's, and for all ranks.
  void run(const Level& level, gpunn_stream* stream, const gpunn_op_args& args);

 private:
  void run_on_host(std::span<const std::byte> x, std::span<std::byte> y);

  std::shared_ptr<distributed::Team> team_;
  std::shared_ptr<RankCommunicator> communicator_;  // nullptr: through the host
  int32_t op_;
  int64_t parts_;
  DType dtype_;
  gpunn_collective_desc desc_;
  uint32_t flags_ = GPUNN_OP_DETERMINISTIC;
  std::vector<std::byte> x_, y_;  // of a device with memory of its own
  std::vector<std::byte> sum_;    // of which a rank takes its share
};

}  // namespace gpunn::execution
