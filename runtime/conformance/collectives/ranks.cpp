#include "conformance/collectives/ranks.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>

namespace gpunn::conformance {

namespace {

constexpr std::chrono::minutes kPatience{1};

struct ExchangePlace {
  ThreadExchange* exchange;
  int rank;
};

gpunn_status exchange_bytes(void* context, const void* mine, uint64_t bytes, void* all) {
  const auto* const place = static_cast<const ExchangePlace*>(context);
  try {
    place->exchange->run(place->rank, mine, bytes, all);
    return GPUNN_OK;
  } catch (const std::exception&) {
    return GPUNN_INTERNAL;
  }
}

// Device memory, freed with the buffer.
class RankMemory {
 public:
  RankMemory(const RawDevice& device, std::size_t bytes) : device_(device) {
    device_.call("memory_alloc", [&](gpunn_error* error) {
      return device_.table().memory_alloc(device_.device(), GPUNN_MEMORY_DEVICE, std::max<std::size_t>(bytes, 1),
                                          &data_, error);
    });
  }
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;
  ~RankMemory() { device_.table().memory_free(device_.device(), GPUNN_MEMORY_DEVICE, data_); }

  std::byte* at(std::size_t offset = 0) const { return static_cast<std::byte*>(data_) + offset; }
  void copy(void* to, const void* from, std::size_t bytes, int32_t direction) const {
    if (bytes == 0) return;
    device_.call("copy", [&](gpunn_error* error) {
      return device_.table().copy(device_.stream(), to, from, bytes, direction, error);
    });
    device_.synchronize();
  }

 private:
  const RawDevice& device_;
  void* data_ = nullptr;
};

}  // namespace

const gpunn_collective_extension* collectives_of(const plugins::Plugin& plugin) {
  const void* found = nullptr;
  plugins::guarded_void([&] {
    if (plugin.table().extension != nullptr) found = plugin.table().extension(GPUNN_EXTENSION_COLLECTIVE);
  });
  const auto* const table = static_cast<const gpunn_collective_extension*>(found);
  if (table == nullptr) return nullptr;
  if (table->struct_size < sizeof(gpunn_collective_extension) || table->create == nullptr || table->query == nullptr ||
      table->enqueue == nullptr || table->abort == nullptr || table->destroy == nullptr) {
    throw Error("the table of the extension " GPUNN_EXTENSION_COLLECTIVE " is not complete");
  }
  return table;
}

void ThreadExchange::run(int rank, const void* mine, std::size_t bytes, void* all) {
  std::unique_lock lock(mutex_);
  const auto wait = [&](const auto& ready) {
    if (!changed_.wait_for(lock, kPatience, ready)) throw Error("not all ranks exchange data");
  };
  wait([&] { return left_ == 0; });  // every rank has read what was exchanged before
  gathered_.resize(bytes * static_cast<std::size_t>(world_));
  std::memcpy(gathered_.data() + bytes * static_cast<std::size_t>(rank), mine, bytes);
  if (++arrived_ == world_) {
    left_ = std::exchange(arrived_, 0);
    changed_.notify_all();
  }
  wait([&] { return left_ > 0; });
  std::memcpy(all, gathered_.data(), gathered_.size());
  if (--left_ == 0) changed_.notify_all();
}

CollectiveRank::CollectiveRank(const PluginPointer& plugin, const gpunn_collective_extension& table,
                               ThreadExchange& exchange, int rank, int world, int device)
    : table_(table), rank_(rank), device_(plugin, 1, nullptr, device) {
  ExchangePlace place{.exchange = &exchange, .rank = rank};
  const gpunn_communicator_options options{.struct_size = sizeof(options),
                                           .rank = rank,
                                           .world = world,
                                           .local_world = world,
                                           .exchange = exchange_bytes,
                                           .context = &place};
  device_.call("create of a communicator",
               [&](gpunn_error* error) { return table_.create(device_.device(), &options, &handle_, error); });
  if (handle_ == nullptr) throw Error("create of a communicator said OK but gave none");
}

CollectiveRank::~CollectiveRank() {
  plugins::guarded_void([&] {
    if (handle_ != nullptr) table_.destroy(handle_);
  });
}

gpunn_collective_support CollectiveRank::query(const gpunn_collective_desc& desc) const {
  gpunn_collective_support support{};
  support.struct_size = sizeof(support);
  device_.call("query", [&](gpunn_error* error) { return table_.query(handle_, &desc, &support, error); });
  return support;
}

std::vector<std::byte> CollectiveRank::run(const gpunn_collective_desc& desc, std::span<const std::byte> in,
                                           std::size_t out_bytes, bool in_place) const {
  const RankMemory own_in(device_, std::max(in.size(), out_bytes)), own_out(device_, out_bytes);
  // Of one buffer, the smaller one is the rank's place in the larger.
  const std::size_t place = std::min(in.size(), out_bytes) * static_cast<std::size_t>(rank_);
  std::byte* const from = own_in.at(in_place && desc.kind == GPUNN_ALL_GATHER ? place : 0);
  std::byte* const to = in_place ? own_in.at(desc.kind == GPUNN_REDUCE_SCATTER ? place : 0) : own_out.at();
  own_in.copy(from, in.data(), in.size(), GPUNN_HOST_TO_DEVICE);
  device_.call("enqueue of a collective",
               [&](gpunn_error* error) { return table_.enqueue(handle_, device_.stream(), &desc, from, to, error); });
  device_.synchronize();
  std::vector<std::byte> result(out_bytes);
  own_out.copy(result.data(), to, out_bytes, GPUNN_DEVICE_TO_HOST);
  return result;
}

void CollectiveRank::require_device() const {
  const std::vector<std::byte> given(64, std::byte{0x5A});
  std::vector<std::byte> found(given.size());
  const RawMemory memory(device_, GPUNN_MEMORY_DEVICE, given.size());
  memory.write(given);
  memory.read(found);
  if (found != given) throw Error("memory holds other bytes than were written to it");
}

bool on_ranks(const PluginPointer& plugin, const gpunn_collective_extension& table, int world,
              const std::function<void(CollectiveRank&)>& work) {
  int32_t devices = 0;
  const plugins::CallResult probed =
      plugins::guarded([&](gpunn_error* error) { return plugin->table().probe(&devices, error); });
  if (!probed.ok()) throw Error("probe: " + probed.message);
  const bool shared = std::string_view(RawDevice(plugin, 1, nullptr).info().memory_domain) == "host";
  if (!shared && devices < world) return false;
  ThreadExchange exchange(world);
  std::vector<std::string> errors(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        CollectiveRank own(plugin, table, exchange, rank, world, shared ? 0 : rank);
        work(own);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < world; ++rank) {
    const std::string& error = errors[static_cast<std::size_t>(rank)];
    if (!error.empty()) throw Error("rank " + std::to_string(rank) + " of " + std::to_string(world) + ": " + error);
  }
  return true;
}

}  // namespace gpunn::conformance
