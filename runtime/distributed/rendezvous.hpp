// How the ranks of a training find one another: all of them connect to rank 0, which sends each the others' addresses.
#pragma once

#include <gpunn/ranks.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "distributed/socket.hpp"

namespace gpunn::distributed {

// A rank's description for messages: "rank 2 of 4 (node03, process 8112)".
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

// Throws Error(usage) if the port is in use, if another process has the same rank, or if versions, worlds or jobs
// differ; Error if a rank does not connect within `patience`.
Meeting meet(const RankPlace& place, std::chrono::seconds patience);

}  // namespace gpunn::distributed
