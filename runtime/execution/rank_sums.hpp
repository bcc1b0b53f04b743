#pragma once

#include <gpunn/abi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/team.hpp"
#include "execution/backend_impl.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// ALL_REDUCE of one shape, through the memory of the host.
class RankSums {
 public:
  RankSums(std::shared_ptr<distributed::Team> team, const graph::OpSignature& signature);

  // GPUNN_OP_...: what the host's way through this plugin's memory is.
  static uint32_t flags(const Level& level);
  // Waits for what is on the stream, unless the plugin's memory is the host's, and for the other ranks.
  void run(const Level& level, gpunn_stream* stream, const gpunn_op_args& args);

 private:
  std::shared_ptr<distributed::Team> team_;
  int64_t parts_;
  std::vector<std::byte> x_, y_;  // of a device with memory of its own
};

}  // namespace gpunn::execution
