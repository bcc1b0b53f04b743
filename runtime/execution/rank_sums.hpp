#pragma once

#include <gpunn/abi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/team.hpp"
#include "execution/backend_impl.hpp"
#include "execution/communicator.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// ALL_REDUCE of one shape: by the plugin where it serves a sum of one part a rank, else through the memory of the host.
class RankSums {
 public:
  RankSums(std::shared_ptr<distributed::Team> team, std::shared_ptr<RankCommunicator> communicator,
           const graph::OpSignature& signature, bool deterministic);

  uint32_t flags() const { return flags_; }  // GPUNN_OP_...
  // Through the host it waits for what is on the stream, unless the plugin's memory is the host's, and for all ranks.
  void run(const Level& level, gpunn_stream* stream, const gpunn_op_args& args);

 private:
  std::shared_ptr<distributed::Team> team_;
  std::shared_ptr<RankCommunicator> communicator_;  // nullptr: through the host
  int64_t parts_;
  uint32_t flags_ = GPUNN_OP_DETERMINISTIC;
  std::vector<std::byte> x_, y_;  // of a device with memory of its own
};

}  // namespace gpunn::execution
