#include "collective.hpp"

#include <gpunn/ordered_sum.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpunn::cpu {

namespace {

using plugin::Failure;

constexpr std::size_t kSlotBytes = std::size_t{1} << 20;  // what a rank gives at a time
constexpr int kSpins = 2000;
constexpr long kLookEvery = 50'000'000;  // ns between two looks at whether another rank was lost

// At the beginning of the shared memory; a slot for each rank and one for results follow.
struct alignas(64) Meeting {
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> round;
};

std::string reason(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

class SharedMemory {
 public:
  // Made by rank 0, in memory that has no name and is gone with the last of the ranks.
  explicit SharedMemory(const plugin::CommunicatorOptions& options)
      : bytes_(sizeof(Meeting) + static_cast<std::size_t>(options.world() + 1) * kSlotBytes) {
    struct Place {
      int32_t process, descriptor;
    };
    Place place{.process = static_cast<int32_t>(::getpid()), .descriptor = -1};
    if (options.rank() == 0) {
      place.descriptor = ::memfd_create("gpunn ranks", MFD_CLOEXEC);
      if (place.descriptor >= 0 && ::ftruncate(place.descriptor, static_cast<off_t>(bytes_)) != 0) {
        ::close(place.descriptor);
        place.descriptor = -1;
      }
    }
    const Place first = options.exchange(place).front();
    const std::string path = "/proc/" + std::to_string(first.process) + "/fd/" + std::to_string(first.descriptor);
    const int own = options.rank() == 0 ? place.descriptor : ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* at = MAP_FAILED;
    if (own >= 0) at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    const std::string why = at == MAP_FAILED ? reason("the ranks can't share memory") : std::string();
    // All of them have it, or none; only then rank 0 may close it.
    bool all = true;
    for (const int32_t there : options.exchange(static_cast<int32_t>(why.empty()))) all = all && there != 0;
    if (own >= 0) ::close(own);
    if (at != MAP_FAILED) memory_ = static_cast<std::byte*>(at);
    if (!all) {
      release();
      throw Failure(GPUNN_UNSUPPORTED, why.empty() ? "another rank can't share memory" : why);
    }
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { release(); }

  Meeting& meeting() const { return *reinterpret_cast<Meeting*>(memory_); }
  std::byte* slot(int rank) const { return memory_ + sizeof(Meeting) + static_cast<std::size_t>(rank) * kSlotBytes; }

 private:
  void release() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
    memory_ = nullptr;
  }

  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

class SharedMemoryCommunicator final : public plugin::Communicator {
 public:
  explicit SharedMemoryCommunicator(const plugin::CommunicatorOptions& options)
      : rank_(options.rank()), world_(options.world()), memory_(options) {}

  plugin::CollectiveSupport query(const gpunn_collective_desc& desc) override {
    if (summed_bytes(desc.dtype) == 0) return plugin::CollectiveSupport::no("of floating-point numbers only");
    if (desc.kind < GPUNN_ALL_REDUCE || desc.kind > GPUNN_REDUCE_SCATTER) {
      return plugin::CollectiveSupport::no("not one of the four collectives");
    }
    if (desc.kind == GPUNN_BROADCAST && (desc.root < 0 || desc.root >= world_)) {
      return plugin::CollectiveSupport::no("there is no rank " + std::to_string(desc.root));
    }
    return plugin::CollectiveSupport::yes(GPUNN_OP_DETERMINISTIC);
  }

  void enqueue(plugin::Stream&, const gpunn_collective_desc& desc, const void* in, void* out) override {
    const auto* const from = static_cast<const std::byte*>(in);
    auto* const to = static_cast<std::byte*>(out);
    const std::size_t width = summed_bytes(desc.dtype), bytes = desc.count * width;
    // A piece of every rank has to fit into one slot.
    const std::size_t share = kSlotBytes / static_cast<std::size_t>(world_) / 64 * 64;
    const std::size_t most = desc.kind == GPUNN_REDUCE_SCATTER ? share : kSlotBytes;
    for (std::size_t first = 0; first < bytes; first += most) {
      const std::size_t size = std::min(most, bytes - first);
      switch (desc.kind) {
        case GPUNN_ALL_REDUCE:
          all_reduce(desc.dtype, width, from + first, to + first, size);
          break;
        case GPUNN_BROADCAST:
          if (rank_ == desc.root) std::memcpy(result(), from + first, size);
          meet();
          if (rank_ != desc.root || from != to) std::memcpy(to + first, result(), size);
          meet();
          break;
        case GPUNN_ALL_GATHER:
          std::memcpy(memory_.slot(rank_), from + first, size);
          meet();
          for (int r = 0; r < world_; ++r) {
            std::memcpy(to + static_cast<std::size_t>(r) * bytes + first, memory_.slot(r), size);
          }
          meet();
          break;
        default:
          reduce_scatter(desc.dtype, width, from + first, bytes, to + first, size);
      }
    }
  }

  void abort() noexcept override { aborted_ = true; }

 private:
  std::byte* result() const { return memory_.slot(world_); }

  // Each rank adds up a range of the elements.
  void all_reduce(int32_t dtype, std::size_t width, const std::byte* from, std::byte* to, std::size_t size) {
    std::memcpy(memory_.slot(rank_), from, size);
    meet();
    const auto begin = [&](int rank) {
      return size / width * static_cast<std::size_t>(rank) / static_cast<std::size_t>(world_) * width;
    };
    add_up(dtype, width, begin(rank_), begin(rank_ + 1) - begin(rank_), result() + begin(rank_));
    meet();
    std::memcpy(to, result(), size);
  }

  // `stride` bytes lie between the pieces of two ranks.
  void reduce_scatter(int32_t dtype, std::size_t width, const std::byte* from, std::size_t stride, std::byte* to,
                      std::size_t size) {
    for (int r = 0; r < world_; ++r) {
      const auto piece = static_cast<std::size_t>(r);
      std::memcpy(memory_.slot(rank_) + piece * size, from + piece * stride, size);
    }
    meet();
    add_up(dtype, width, static_cast<std::size_t>(rank_) * size, size, to);
    meet();
  }

  // The bytes [begin, begin + size) of all slots.
  void add_up(int32_t dtype, std::size_t width, std::size_t begin, std::size_t size, std::byte* to) {
    parts_.clear();
    for (int r = 0; r < world_; ++r) parts_.push_back(memory_.slot(r) + begin);
    sum_in_order(dtype, parts_, size / width, to);
  }

  void throw_if_aborted() const {
    if (aborted_) throw Failure(GPUNN_INTERNAL, "another rank is lost");
  }

  // Waits for all ranks.
  void meet() {
    throw_if_aborted();  // an arrival would stand for that of a rank that is lost
    Meeting& meeting = memory_.meeting();
    const uint32_t round = meeting.round.load(std::memory_order_acquire);
    if (meeting.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(world_)) {
      meeting.arrived.store(0, std::memory_order_relaxed);
      meeting.round.fetch_add(1, std::memory_order_release);
      ::syscall(SYS_futex, &meeting.round, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
      return;
    }
    for (int spins = 0; meeting.round.load(std::memory_order_acquire) == round; ++spins) {
      throw_if_aborted();
      if (spins < kSpins) continue;
      const timespec look{.tv_sec = 0, .tv_nsec = kLookEvery};
      ::syscall(SYS_futex, &meeting.round, FUTEX_WAIT, round, &look, nullptr, 0);
    }
  }

  const int rank_, world_;
  const SharedMemory memory_;
  std::vector<const std::byte*> parts_;
  std::atomic<bool> aborted_{false};
};

}  // namespace

std::unique_ptr<plugin::Communicator> create_communicator(const plugin::CommunicatorOptions& options) {
  if (!options.on_one_machine()) {
    throw Failure(GPUNN_UNSUPPORTED, "the ranks are on several machines, and share no memory");
  }
  return std::make_unique<SharedMemoryCommunicator>(options);
}

}  // namespace gpunn::cpu
