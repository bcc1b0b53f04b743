#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpunn::execution {

// Bytes of device memory, the end excluded.
struct MemoryRange {
  uintptr_t begin = 0, end = 0;
  bool overlaps(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

// The memory that an op reads and writes. Its workspace counts as written.
struct MemoryAccess {
  std::vector<MemoryRange> reads, writes;
  enum class Where {
    any,
    first,          // on stream 0
    between_ranks,  // on a stream of its own behind the others, so that it runs beside them
  };
  Where where = Where::any;
};

// The stream on which an op runs, and the ops on other streams that it waits for. Ops on the same stream run in order.
struct StreamStep {
  std::size_t stream = 0;
  std::vector<std::size_t> after;  // earlier ops, on other streams
};

// Spreads ops over at most `streams` streams, 0 to streams - 1; ops between ranks are on stream number `streams`. The
// ops are given in an order in which they can run. Two ops keep this order if one writes memory that the other reads or
// writes.
std::vector<StreamStep> plan_streams(std::span<const MemoryAccess> ops, std::size_t streams);

}  // namespace gpunn::execution
