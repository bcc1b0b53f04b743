#include "cuda_common/peer_memory.hpp"

#include <algorithm>
#include <string>

#include <cuda_runtime_api.h>
#include <unistd.h>

#include "cuda_common/check.hpp"

namespace gpunn::cuda {

namespace {

using plugin::Failure;

// CUDA shares whole blocks of this size between processes: no other allocation should lie in one.
constexpr std::size_t kSharedBlock = std::size_t{2} << 20;

// Two processes may have one number, in containers of their own, but not one number and all addresses.
struct ProcessName {
  int64_t number;
  const void* address;
  bool operator==(const ProcessName&) const = default;
};

ProcessName own_process() {
  static const char here = 0;
  return {.number = ::getpid(), .address = &here};
}

// What a rank tells the others of its memory.
struct Offer {
  cudaIpcMemHandle_t handle;
  int error;  // cudaSuccess: the handle is good
  ProcessName process;
  int device;
  const std::shared_ptr<void>* memory;  // of the rank's arena, which is being made until all ranks have opened it
};

// A failed call leaves an error behind, which the next check would report.
cudaError_t tried(cudaError_t error) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return error;
}

cudaError_t allocate(std::shared_ptr<void>& memory, std::size_t bytes, cudaIpcMemHandle_t& handle) {
  void* data = nullptr;
  cudaError_t error = tried(cudaMalloc(&data, bytes));
  if (error != cudaSuccess) return error;
  memory.reset(data, cudaFree);
  // The streams of a training don't wait for the one on which it is cleared.
  error = tried(cudaMemset(data, 0, bytes));
  if (error == cudaSuccess) error = tried(cudaStreamSynchronize(cudaStreamLegacy));
  if (error == cudaSuccess) error = tried(cudaIpcGetMemHandle(&handle, data));
  return error;
}

// A handle is for other processes. Ranks of one process, as a test has them, share addresses.
cudaError_t open(const Offer& offer, std::shared_ptr<void>& memory) {
  if (offer.process != own_process()) {
    void* data = nullptr;
    const cudaError_t error = tried(cudaIpcOpenMemHandle(&data, offer.handle, cudaIpcMemLazyEnablePeerAccess));
    if (error == cudaSuccess) memory.reset(data, cudaIpcCloseMemHandle);
    return error;
  }
  const cudaError_t error = tried(cudaDeviceEnablePeerAccess(offer.device, 0));
  if (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled) return error;
  memory = *offer.memory;
  return cudaSuccess;
}

// Throws on all ranks what one of them has met.
void require_all(const PeerGroup& group, cudaError_t mine, const char* what) {
  const std::vector<int> errors = group.options().exchange(static_cast<int>(mine));
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank] == cudaSuccess) continue;
    throw Failure(GPUNN_UNSUPPORTED, "rank " + std::to_string(rank) + " can't " + what + ": " +
                                         cudaGetErrorString(static_cast<cudaError_t>(errors[rank])));
  }
}

}  // namespace

PeerGroup::PeerGroup(const CudaDevice& device, const plugin::CommunicatorOptions& options) : options_(options) {
  if (!options_.on_one_machine()) throw Failure(GPUNN_UNSUPPORTED, "the ranks are on several machines");
  if (!options_.can_exchange()) return;
  check(cudaSetDevice(device.index()), "choosing the device");
  void* word = nullptr;
  const cudaError_t error = tried(cudaHostAlloc(&word, sizeof(uint32_t), cudaHostAllocPortable | cudaHostAllocMapped));
  stop_ = static_cast<uint32_t*>(word);
  if (stop_ != nullptr) *stop_ = 0;
  try {
    require_all(*this, error, "have a word that host and GPU share");
    const PeerArena trial(*this, sizeof(uint64_t));
  } catch (...) {
    if (stop_ != nullptr) cudaFreeHost(stop_);
    throw;
  }
}

PeerGroup::~PeerGroup() {
  if (stop_ != nullptr) cudaFreeHost(stop_);
}

void PeerGroup::abort() noexcept {
  aborted_ = true;
  if (stop_ != nullptr) std::atomic_ref<uint32_t>(*stop_).store(1);
}

void PeerGroup::throw_if_lost() const {
  if (aborted_) throw Failure(GPUNN_INTERNAL, "another rank is lost");
}

PeerArena::PeerArena(const PeerGroup& group, std::size_t bytes) : memory_(static_cast<std::size_t>(group.world())) {
  const std::size_t whole = (bytes + kSharedBlock - 1) / kSharedBlock * kSharedBlock;
  Offer mine{};
  std::shared_ptr<void>& own = memory_[static_cast<std::size_t>(group.rank())];
  mine.error = allocate(own, whole, mine.handle);
  mine.process = own_process();
  mine.memory = &own;
  if (mine.error == cudaSuccess) mine.error = tried(cudaGetDevice(&mine.device));
  const std::vector<Offer> offers = group.options().exchange(mine);
  cudaError_t error = static_cast<cudaError_t>(mine.error);
  for (std::size_t rank = 0; rank < offers.size() && error == cudaSuccess; ++rank) {
    if (static_cast<int>(rank) == group.rank() || offers[rank].error != cudaSuccess) continue;
    error = open(offers[rank], memory_[rank]);
  }
  require_all(group, error, "reach the memory of the other ranks' GPUs");
}

}  // namespace gpunn::cuda
