#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace gpunn::execution {

struct PoolStatistics {
  int64_t requests = 0;
  int64_t hits = 0;         // served by a block that was there
  int64_t trims = 0;        // how often unused blocks were handed back
  uint64_t used_bytes = 0;  // by blocks in use, whole blocks
  uint64_t held_bytes = 0;  // used or kept for later
  uint64_t peak_bytes = 0;  // the most that was ever held
  double hit_rate() const { return requests > 0 ? static_cast<double>(hits) / static_cast<double>(requests) : 0; }
};

// Memory that is not planned beforehand. The pool keeps blocks that are given back and serves later requests of their
// size class with them. Contents are undefined.
//
// A block may be given back while enqueued work still uses it. The next user's work runs behind it if both are on the
// same stream. So a pool belongs to a single stream. A user that has used a block on another stream, or from the host,
// must wait for that before giving it back. The pool itself waits only before it hands blocks back to the source.
class MemoryPool {
 public:
  // The source of blocks.
  class Source {
   public:
    virtual ~Source() = default;
    virtual void* allocate(uint64_t bytes) = 0;  // nullptr: out of memory; throws on anything else
    virtual void release(void* data) noexcept = 0;
    virtual void wait() noexcept = 0;  // until nothing that was enqueued uses a block any more
  };

  explicit MemoryPool(Source& source);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();  // every block has been given back

  // At least this many bytes; nullptr if there is no memory even after a trim().
  void* take(uint64_t bytes);
  void give(void* data) noexcept;
  // Hands all unused blocks back to the source.
  void trim() noexcept;
  const PoolStatistics& statistics() const { return statistics_; }

  // The size of the block that serves a request: eight steps between two powers of two, so that at most an eighth is
  // wasted; whole 256 bytes at the small end, whole 2 MiB at the large one.
  static uint64_t block_bytes(uint64_t bytes);

 private:
  // Blocks of one size.
  struct Class {
    std::vector<void*> unused;  // its capacity is the number of all, so that giving back never allocates
    std::size_t blocks = 0;
  };
  void* fresh(uint64_t bytes, Class& of);

  Source& source_;
  std::map<uint64_t, Class> classes_;
  std::map<void*, uint64_t> bytes_of_;  // of every block
  PoolStatistics statistics_;
};

}  // namespace gpunn::execution
