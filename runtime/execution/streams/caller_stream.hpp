#pragma once

#include <gpunn/abi.h>

#include <cstddef>
#include <vector>

#include "execution/backend.hpp"
#include "execution/memory_pool.hpp"

namespace gpunn::execution {

// A stream that the caller made, on which kernels of a backend run too: a cudaStream_t, or nullptr for the default
// stream and on the host. It has a pool of device memory, since a pool belongs to a single stream. Must not outlive the
// backend. Used by one thread at a time. Destroying it waits for the stream only if the pool holds memory.
class CallerStream final : private MemoryPool::Source {
 public:
  CallerStream(Backend& backend, void* native);
  ~CallerStream() override;
  CallerStream(const CallerStream&) = delete;
  CallerStream& operator=(const CallerStream&) = delete;

  void* native() const { return native_; }
  // The handle that the plugin of that level of the chain has for the stream.
  gpunn_stream* handle(std::size_t level) const { return handles_[level]; }
  MemoryPool& pool() { return pool_; }
  const PoolStatistics& pool_statistics() const { return pool_.statistics(); }

  // Copies within the device, on the stream.
  void copy(void* to, const void* from, uint64_t bytes) const;
  void synchronize();

  // Marks the end of the work on the stream so far.
  void mark();
  // Has later work on this stream wait for the last mark on `from`, a stream of the same backend. The host does not
  // wait, and `from` itself, which its owner may have destroyed, is not touched.
  void wait_for(const CallerStream& from);

 private:
  void* allocate(uint64_t bytes) override;
  void release(void* data) noexcept override;
  void wait() noexcept override;

  Backend& backend_;
  void* native_;
  std::vector<gpunn_stream*> handles_;  // by level
  gpunn_event* mark_ = nullptr;         // nullptr: there was none
  MemoryPool pool_{*this};
};

}  // namespace gpunn::execution
