#include "compiler/memory_plan.hpp"

#include <gpunn/ops.h>

#include "catch.hpp"
#include "ops/op.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

const TensorType kVector{DType::f32, {1000}};

ValueId relu(Graph& g, ValueId x) { return g.add1(GPUNN_OP_RELU, "relu", {}, {x}); }

// Blocks that are alive together and overlap in bytes.
int overlaps(const MemoryPlan& plan) {
  int count = 0;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const ArenaBlock &a = plan.blocks[i], &b = plan.blocks[j];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool same_bytes = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      if (together && same_bytes) ++count;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("a chain of ops that may alias lives in one block") {
  Graph g;
  ValueId x = g.add_value("x", kVector, Storage::state);
  for (int i = 0; i < 5; ++i) x = relu(g, x);
  const MemoryPlan plan = plan_memory(g, {}, 64);
  CHECK(plan.blocks.size() == 1);
  CHECK(plan.arena_bytes == 4032);  // 4000 on a 64-byte boundary
}

TEST_CASE("a value that is read later is not taken over") {
  Graph g;
  const ValueId x = g.add_value("x", kVector, Storage::state);
  const ValueId a = relu(g, x);
  const ValueId b = relu(g, a);
  g.add1(GPUNN_OP_ADD, "sum", {}, {b, a});
  const MemoryPlan plan = plan_memory(g, {}, 64);
  CHECK(plan.value_offset[static_cast<std::size_t>(a)] != plan.value_offset[static_cast<std::size_t>(b)]);
  CHECK(overlaps(plan) == 0);
}

TEST_CASE("an input that an op reads twice is not overwritten") {
  Graph g;
  const ValueId x = g.add_value("x", kVector, Storage::state);
  const ValueId a = relu(g, x);
  const ValueId doubled = g.add1(GPUNN_OP_ADD, "double", {}, {a, a});
  const MemoryPlan plan = plan_memory(g, {}, 64);
  CHECK(plan.value_offset[static_cast<std::size_t>(a)] != plan.value_offset[static_cast<std::size_t>(doubled)]);
}

TEST_CASE("memory outside the arena is never planned, nor taken over") {
  Graph g;
  const ValueId x = g.add_value("x", kVector, Storage::state);
  const ValueId y = relu(g, x);
  const MemoryPlan plan = plan_memory(g, {}, 64);
  CHECK(plan.value_offset[static_cast<std::size_t>(x)] == -1);
  CHECK(plan.value_offset[static_cast<std::size_t>(y)] == 0);
}

TEST_CASE("a view keeps its root alive and lies inside it") {
  Graph g;
  const ValueId x = g.add_value("x", kVector, Storage::state);
  const ValueId a = relu(g, x);
  const ValueId tail = g.add_view("tail", a, {DType::f32, {500}}, 2000);
  const ValueId other = relu(g, x);
  const ValueId y = relu(g, tail);
  const MemoryPlan plan = plan_memory(g, {}, 64);
  const auto offset = [&](ValueId id) { return plan.value_offset[static_cast<std::size_t>(id)]; };
  CHECK(offset(tail) == offset(a) + 2000);
  CHECK(offset(other) != offset(a));
  CHECK(offset(y) >= 0);
  CHECK(overlaps(plan) == 0);
}

TEST_CASE("workspaces live for their node alone") {
  Graph g;
  const ValueId x = g.add_value("x", kVector, Storage::state);
  relu(g, relu(g, x));
  const std::vector<uint64_t> workspaces{100000, 100000};
  const MemoryPlan plan = plan_memory(g, workspaces, 64);
  CHECK(plan.workspace_offset[0] == plan.workspace_offset[1]);
  CHECK(plan.arena_bytes < 110000);
  CHECK(overlaps(plan) == 0);
}

TEST_CASE("random programs never overlap and stay below the sum of their blocks") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    unsigned state = seed;
    const auto random = [&](std::size_t n) { return (state = state * 1664525U + 1013904223U) / 65536U % n; };
    Graph g;
    std::vector<ValueId> values{g.add_value("x", kVector, Storage::state)};
    std::vector<uint64_t> workspaces;
    for (int i = 0; i < 40; ++i) {
      const ValueId a = values[random(values.size())];
      const ValueId b = values[random(values.size())];
      values.push_back(random(2) == 0 ? relu(g, a) : g.add1(GPUNN_OP_ADD, "add", {}, {a, b}));
      workspaces.push_back(random(3) == 0 ? random(5000) : 0);
    }
    const MemoryPlan plan = plan_memory(g, workspaces, 64);
    uint64_t sum = 0;
    for (const ArenaBlock& block : plan.blocks) {
      CHECK(block.offset % 64 == 0);
      CHECK(block.offset + block.bytes <= plan.arena_bytes);
      sum += (block.bytes + 63) / 64 * 64;
    }
    CHECK(overlaps(plan) == 0);
    CHECK(plan.arena_bytes <= sum);
  }
}

TEST_CASE("reading a value that no op has written is an error") {
  Graph g;
  const ValueId x = g.add_value("x", kVector, Storage::arena);
  relu(g, x);
  CHECK_THROWS_WITH(plan_memory(g, {}, 64), Contains("'relu' reads 'x' before any op writes it"));
}
