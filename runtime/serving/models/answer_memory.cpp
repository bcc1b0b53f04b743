#include "serving/models/answer_memory.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace gpunn::serving {

namespace {

constexpr std::size_t kSmall = std::size_t{64} << 10;      // the allocator is as fast
constexpr std::size_t kMostKept = std::size_t{256} << 20;  // bytes of blocks that nothing uses
constexpr std::size_t kLoose = 4;                          // a block serves answers down to this part of its size

}  // namespace

struct AnswerMemory::Kept {
  std::mutex mutex;
  std::multimap<std::size_t, std::unique_ptr<char[]>> blocks;  // by size
  std::size_t bytes = 0;

  std::pair<std::size_t, std::unique_ptr<char[]>> find(std::size_t wanted) {
    const std::lock_guard lock(mutex);
    const auto found = blocks.lower_bound(wanted);
    if (found == blocks.end() || found->first / kLoose > wanted) return {0, nullptr};
    bytes -= found->first;
    auto node = blocks.extract(found);
    return {node.key(), std::move(node.mapped())};
  }

  void give(std::size_t size, std::unique_ptr<char[]> block) {
    const std::lock_guard lock(mutex);
    if (size > kMostKept - bytes) return;
    blocks.emplace(size, std::move(block));
    bytes += size;
  }
};

AnswerMemory::AnswerMemory() : kept_(std::make_shared<Kept>()) {}

std::shared_ptr<char[]> AnswerMemory::take(std::size_t bytes) {
  if (bytes <= kSmall) return std::make_shared_for_overwrite<char[]>(bytes);
  auto [size, block] = kept_->find(bytes);
  if (block == nullptr) {
    size = bytes;
    block = std::make_unique_for_overwrite<char[]>(bytes);
  }
  return {block.release(),
          [kept = kept_, size = size](char* data) { kept->give(size, std::unique_ptr<char[]>(data)); }};
}

}  // namespace gpunn::serving
