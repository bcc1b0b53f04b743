// Memory of several GPUs of one machine that each of them reads and writes directly, each GPU with a rank of its own.
#pragma once

#include <gpunn/collective.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda_common/device.hpp"

namespace gpunn::cuda {

// Ranks whose GPUs reach each other's memory.
class PeerGroup {
 public:
  // Throws Failure(GPUNN_UNSUPPORTED) on every rank if one of them has no way to another's memory. If options can't
  // exchange, no memory is shared: the group is for planning alone.
  PeerGroup(const CudaDevice& device, const plugin::CommunicatorOptions& options);
  PeerGroup(const PeerGroup&) = delete;
  PeerGroup& operator=(const PeerGroup&) = delete;
  ~PeerGroup();

  int rank() const { return options_.rank(); }
  int world() const { return options_.world(); }
  const plugin::CommunicatorOptions& options() const { return options_; }

  // A word of the host that kernels read: not 0 once another rank is lost.
  const uint32_t* stop() const { return stop_; }
  void abort() noexcept;  // from any thread
  bool is_lost() const noexcept { return aborted_; }
  void throw_if_lost() const;  // Failure(GPUNN_INTERNAL)

 private:
  plugin::CommunicatorOptions options_;
  std::atomic<bool> aborted_{false};
  uint32_t* stop_ = nullptr;  // pinned; host and GPU have one address
};

// Memory of this rank that the others write to, and theirs. All ranks create and size it alike.
//
// Kernels of this rank write to the memory of the others, also after another rank has left: they find out when they
// wait for it. So ranks of one process own each other's memory together. A rank of another process owns its memory
// alone. It leaves in order behind its last sum, before which the others have written all that they write to it.
class PeerArena {
 public:
  // Holds zeros. Throws Failure on every rank if one of them fails.
  PeerArena(const PeerGroup& group, std::size_t bytes);

  // The memory of a rank, as this GPU reaches it.
  void* of(int rank) const { return memory_[static_cast<std::size_t>(rank)].get(); }

 private:
  std::vector<std::shared_ptr<void>> memory_;  // by rank; nullptr: not reached
};

}  // namespace gpunn::cuda
