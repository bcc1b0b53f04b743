// How the ranks of a training find one another: all of them call at rank 0, which tells each where the others are.
#pragma once

#include <gpunn/ranks.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "distributed/socket.hpp"

namespace gpunn::distributed {

// Who a rank is, for messages: "rank 2 of 4 (node03, process 8112)".
struct RankInfo {
  std::string machine;
  int process = 0;
};
std::string rank_text(int rank, const std::vector<RankInfo>& ranks);

// Connections by rank; that to oneself is empty.
struct Meeting {
  std::vector<RankInfo> ranks;
  std::vector<Socket> data;     // to every other rank
  std::vector<Socket> watches;  // between rank 0 and every other
};

// Throws Error(usage) where the port is in use, where another process says that it is this rank, or where the versions,
// worlds or jobs differ, and Error where a rank does not come within `patience`.
Meeting meet(const RankPlace& place, std::chrono::seconds patience);

}  // namespace gpunn::distributed
