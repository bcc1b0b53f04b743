// The connections over which ranks exchange messages while they train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "distributed/watch.hpp"

namespace gpunn::distributed {

struct Outgoing {
  int to = 0;
  std::span<const std::byte> bytes;
};

struct Incoming {
  int from = 0;
  std::span<std::byte> bytes;
};

// A connection between each two ranks. All ranks make the same calls in the same order.
class Links {
 public:
  Links(int own, std::vector<RankInfo> ranks, std::vector<Socket> sockets, Watch& watch);

  // Sends and receives all of it at once, at most one message to and from each rank, and waits for the end. Throws
  // Error with the name of the rank that was lost, or that is elsewhere in its program.
  void transfer(std::span<const Outgoing> out, std::span<const Incoming> in);
  void throw_if_lost() const;
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  [[noreturn]] void lost(int rank) const;
  [[noreturn]] void throw_loss(const Loss& loss) const;

  const int own_;
  const std::vector<RankInfo> ranks_;
  const std::vector<Socket> sockets_;
  Watch& watch_;
  uint64_t transfers_ = 0;
  uint64_t bytes_sent_ = 0;
};

}  // namespace gpunn::distributed
