#include "session/check/surroundings.hpp"

#include <algorithm>
#include <cstdint>

namespace gpunn::training {

namespace {

constexpr std::ptrdiff_t kReach = 256;  // bytes to each side

struct Range {
  const std::byte* begin;
  const std::byte* end;
};

Range common(const Range& a, const Range& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

// What is left of a range without others.
std::vector<Range> without(const Range& range, const std::vector<Range>& others) {
  std::vector<Range> left{range};
  for (const Range& other : others) {
    std::vector<Range> next;
    for (const Range& piece : left) {
      for (const Range& part :
           {Range{piece.begin, std::min(piece.end, other.begin)}, Range{std::max(piece.begin, other.end), piece.end}}) {
        if (part.begin < part.end) next.push_back(part);
      }
    }
    left = std::move(next);
  }
  return left;
}

}  // namespace

Surroundings::Surroundings(execution::Backend& backend, const execution::CompiledProgram& program,
                           const execution::Executable& executable, const void* arena, std::size_t node)
    : backend_(backend) {
  const graph::Graph& graph = program.graph;
  const auto range_of = [&](graph::ValueId id) {
    const auto* begin = static_cast<const std::byte*>(executable.address(id));
    return Range{begin, begin + graph.value(id).type.bytes()};
  };
  std::vector<Range> own;
  for (const graph::ValueId output : graph.nodes()[node].outputs) own.push_back(range_of(output));
  const std::vector<Range> outputs = own;
  for (const compiler::ArenaBlock& block : program.plan.blocks) {
    if (block.value != graph::kNoValue || block.first != static_cast<int64_t>(node)) continue;
    const std::byte* begin = static_cast<const std::byte*>(arena) + block.offset;
    own.push_back({begin, begin + block.bytes});
  }
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    const auto id = static_cast<graph::ValueId>(i);
    if (graph.value(id).view_of != graph::kNoValue || executable.address(id) == nullptr) continue;
    for (const Range& output : outputs) {
      for (const Range& side : {Range{output.begin - kReach, output.begin}, Range{output.end, output.end + kReach}}) {
        const Range there = common(range_of(id), side);
        if (there.begin >= there.end) continue;
        for (const Range& piece : without(there, own)) {
          pieces_.push_back({piece.begin, std::vector<std::byte>(static_cast<std::size_t>(piece.end - piece.begin)),
                             graph.value(id).name});
          backend_.download(pieces_.back().content.data(), piece.begin, pieces_.back().content.size());
        }
      }
    }
  }
}

std::string Surroundings::damage() const {
  for (const Piece& piece : pieces_) {
    std::vector<std::byte> now(piece.content.size());
    backend_.download(now.data(), piece.address, now.size());
    const auto [at, before] = std::ranges::mismatch(now, piece.content);
    if (at != now.end()) return "the memory of '" + piece.value + "', which is no output of it";
  }
  return "";
}

}  // namespace gpunn::training
