// The ranks of a plugin's collectives as threads of this process, each with its own device.
#pragma once

#include <gpunn/collective.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "conformance/abi/raw_device.hpp"

namespace gpunn::conformance {

// The table of the extension; nullptr: the plugin has none.
const gpunn_collective_extension* collectives_of(const plugins::Plugin& plugin);

// An all-gather between threads. Throws Error where some do not come within a minute.
class ThreadExchange {
 public:
  explicit ThreadExchange(int world) : world_(world) {}
  void run(int rank, const void* mine, std::size_t bytes, void* all);

 private:
  const int world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::byte> gathered_;
  int arrived_ = 0, left_ = 0;
};

// One rank, with its communicator.
class CollectiveRank {
 public:
  CollectiveRank(const PluginPointer& plugin, const gpunn_collective_extension& table, ThreadExchange& exchange,
                 int rank, int world, int device);
  CollectiveRank(const CollectiveRank&) = delete;
  CollectiveRank& operator=(const CollectiveRank&) = delete;
  ~CollectiveRank();

  int rank() const { return rank_; }
  gpunn_collective_support query(const gpunn_collective_desc& desc) const;
  // The result of the collective for `in` on the device: `out_bytes` of it, read back. With `in_place` both share one
  // buffer, at the places that collective.h allows.
  std::vector<std::byte> run(const gpunn_collective_desc& desc, std::span<const std::byte> in, std::size_t out_bytes,
                             bool in_place) const;
  void abort() const { table_.abort(handle_); }
  // Throws Error if memory of the device can't be allocated, written and read.
  void require_device() const;

 private:
  const gpunn_collective_extension& table_;
  const int rank_;
  RawDevice device_;
  gpunn_communicator* handle_ = nullptr;
};

// Runs `work` on each rank; throws Error with the first message that one of them threw. False: there are fewer devices.
bool on_ranks(const PluginPointer& plugin, const gpunn_collective_extension& table, int world,
              const std::function<void(CollectiveRank&)>& work);

}  // namespace gpunn::conformance
