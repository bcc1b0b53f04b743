#include "execution/memory_pool.hpp"

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "catch.hpp"

using gpunn::execution::MemoryPool;

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Host memory of a limited size.
class Memory final : public MemoryPool::Source {
 public:
  explicit Memory(uint64_t capacity) : capacity_(capacity) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  // What a test did not give back.
  ~Memory() override {
    for (const auto& block : blocks_) delete[] block.first;
  }
  void* allocate(uint64_t bytes) override {
    ++allocations;
    if (used + bytes > capacity_) return nullptr;
    auto& block = blocks_.emplace_back(new std::byte[bytes], bytes);
    used += bytes;
    return block.first;
  }
  void release(void* data) noexcept override {
    const auto found = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& b) { return b.first == data; });
    if (found == blocks_.end() || !waited) {
      broken = true;
      return;
    }
    used -= found->second;
    delete[] found->first;
    blocks_.erase(found);
  }
  void wait() noexcept override { waited = true; }

  uint64_t used = 0;
  int64_t allocations = 0;
  bool waited = false, broken = false;

 private:
  uint64_t capacity_;
  std::vector<std::pair<std::byte*, uint64_t>> blocks_;
};

}  // namespace

TEST_CASE("size classes waste at most an eighth", "[execution]") {
  CHECK(MemoryPool::block_bytes(0) == 256);
  CHECK(MemoryPool::block_bytes(1) == 256);
  CHECK(MemoryPool::block_bytes(257) == 512);
  CHECK(MemoryPool::block_bytes(4096) == 4096);
  CHECK(MemoryPool::block_bytes(4097) == 4608);
  CHECK(MemoryPool::block_bytes(5 * 1024) == 5 * 1024);
  CHECK(MemoryPool::block_bytes(16 * kMiB) == 16 * kMiB);
  CHECK(MemoryPool::block_bytes(16 * kMiB + 1) == 18 * kMiB);
  CHECK(MemoryPool::block_bytes(1000 * kMiB) == 1000 * kMiB);
  CHECK(MemoryPool::block_bytes(UINT64_MAX) == UINT64_MAX);

  std::mt19937_64 random(7);
  std::set<uint64_t> classes;
  uint64_t last = 0;
  std::vector<uint64_t> sizes;
  for (int i = 0; i < 20000; ++i) sizes.push_back(random() >> (20 + random() % 44));
  std::sort(sizes.begin(), sizes.end());
  for (const uint64_t size : sizes) {
    const uint64_t block = MemoryPool::block_bytes(size);
    REQUIRE(block >= size);
    REQUIRE(block >= last);
    REQUIRE(block % 256 == 0);
    if (size > 2048) REQUIRE(block - size <= size / 8);
    REQUIRE(MemoryPool::block_bytes(block) == block);
    if (size < 16 * kMiB) classes.insert(block);
    last = block;
  }
  CHECK(classes.size() <= 8 * 16);
}

TEST_CASE("what was given back is taken again, and counted", "[execution]") {
  Memory memory(100 * kMiB);
  {
    MemoryPool pool(memory);
    void* const a = pool.take(1000);
    void* const b = pool.take(1000);
    CHECK(a != b);
    CHECK(pool.statistics().hits == 0);
    CHECK(pool.statistics().used_bytes == 2048);
    pool.give(a);
    CHECK(pool.statistics().used_bytes == 1024);
    CHECK(pool.statistics().held_bytes == 2048);
    CHECK(pool.take(900) == a);
    CHECK(pool.take(3 * kMiB) != nullptr);
    const auto& statistics = pool.statistics();
    CHECK(statistics.requests == 4);
    CHECK(statistics.hits == 1);
    CHECK(statistics.hit_rate() == 0.25);
    CHECK(memory.allocations == 3);
    int stranger = 0;
    pool.give(&stranger);
    CHECK(statistics.used_bytes == 2048 + 3 * kMiB);
    CHECK_FALSE(memory.waited);
  }
}

TEST_CASE("where memory is out, unused blocks are handed back and it is tried once more", "[execution]") {
  Memory memory(10 * kMiB);
  MemoryPool pool(memory);
  void* const first = pool.take(6 * kMiB);
  CHECK(pool.take(6 * kMiB) == nullptr);
  CHECK(pool.statistics().trims == 0);
  pool.give(first);
  // Another class: the first block has to go.
  void* const second = pool.take(7 * kMiB);
  CHECK(second != nullptr);
  CHECK(memory.waited);
  CHECK(pool.statistics().trims == 1);
  CHECK(pool.statistics().held_bytes == 7 * kMiB);
  CHECK(pool.statistics().peak_bytes == 7 * kMiB);
  CHECK(pool.take(6 * kMiB) == nullptr);
  CHECK(pool.statistics().used_bytes == 7 * kMiB);
  pool.give(second);
  pool.trim();
  CHECK(memory.used == 0);
  CHECK(pool.statistics().held_bytes == 0);
  CHECK_FALSE(memory.broken);
}

TEST_CASE("blocks never overlap and keep their content, whatever the order", "[execution]") {
  Memory memory(64 * kMiB);
  struct Block {
    uint64_t bytes;
    std::byte mark;
  };
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::mt19937_64 random(seed);
    {
      MemoryPool pool(memory);
      std::map<std::byte*, Block> live;
      uint64_t taken = 0;
      for (int i = 0; i < 20000; ++i) {
        const bool take = live.empty() || random() % 100 < (live.size() < 60 ? 60U : 40U);
        if (random() % 997 == 0) pool.trim();
        if (take) {
          const uint64_t bytes = random() % (uint64_t{1} << (1 + random() % 20));
          auto* const data = static_cast<std::byte*>(pool.take(bytes));
          REQUIRE(data != nullptr);
          const auto after = live.lower_bound(data);
          REQUIRE((after == live.end() || after->first >= data + bytes));
          REQUIRE((after == live.begin() || std::prev(after)->first + std::prev(after)->second.bytes <= data));
          const auto mark = static_cast<std::byte>(random());
          std::memset(data, static_cast<int>(mark), bytes);
          live.emplace(data, Block{bytes, mark});
          taken += MemoryPool::block_bytes(bytes);
        } else {
          auto one = live.begin();
          std::advance(one, static_cast<std::ptrdiff_t>(random() % live.size()));
          const auto& [data, block] = *one;
          const auto same = [mark = block.mark](std::byte b) { return b == mark; };
          REQUIRE(std::all_of(data, data + block.bytes, same));
          taken -= MemoryPool::block_bytes(block.bytes);
          pool.give(data);
          live.erase(one);
        }
        REQUIRE(pool.statistics().used_bytes == taken);
        REQUIRE(pool.statistics().held_bytes == memory.used);
      }
      CHECK(pool.statistics().hit_rate() > 0.5);
      for (const auto& [data, block] : live) pool.give(data);
    }
    CHECK(memory.used == 0);
    CHECK_FALSE(memory.broken);
  }
}
