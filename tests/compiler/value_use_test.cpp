#include "compiler/value_use.hpp"

#include <gpunn/ops.h>

#include "catch.hpp"
#include "compiler/memory_plan.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

TensorType floats(int64_t count) { return {DType::f32, {count}}; }
constexpr int64_t kFloat = sizeof(float);

// A chain x -> a -> b -> c -> d, and d into y.
struct Chain {
  Graph g;
  ValueId x, y, a, b, c, d;
  Chain() {
    x = g.add_value("x", floats(64), Storage::data);
    y = g.add_value("y", floats(64), Storage::state);
    a = g.add1(GPUNN_OP_RELU, "a", {}, {x});
    b = g.add1(GPUNN_OP_RELU, "b", {}, {a});
    c = g.add1(GPUNN_OP_RELU, "c", {}, {b});
    d = g.add1(GPUNN_OP_RELU, "d", {}, {c});
    g.add_into(GPUNN_OP_ADD, "e", {}, {d, a}, {y});
  }
};

std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

void check(const ValueUse& use, int32_t first_write, int32_t last_read) {
  CHECK(use.first_write == first_write);
  CHECK(use.last_read == last_read);
}

}  // namespace

TEST_CASE("what lives outside the arena is there before and needed after", "[graph]") {
  Chain chain;
  const auto uses = value_uses(chain.g);
  check(uses[at(chain.x)], -1, 5);
  check(uses[at(chain.y)], -1, 5);
  check(uses[at(chain.a)], 0, 4);
  check(uses[at(chain.b)], 1, 2);
}

TEST_CASE("a view of the arena is judged by its bytes", "[graph]") {
  Graph g;
  const ValueId x = g.add_value("x", floats(8), Storage::data);
  const ValueId a = g.add1(GPUNN_OP_RELU, "a", {}, {x});
  const ValueId low = g.add_view("low", a, floats(4)), high = g.add_view("high", a, floats(4), 4 * kFloat);
  g.add1(GPUNN_OP_RELU, "b", {}, {low});
  g.add1(GPUNN_OP_RELU, "c", {}, {high});
  const auto uses = value_uses(g);
  check(uses[at(a)], 0, 2);
  check(uses[at(low)], 0, 1);
  check(uses[at(high)], 0, 2);
}

TEST_CASE("gradients that each run writes first are forgotten behind their last reader", "[graph]") {
  Graph g;
  const ValueId x = g.add_value("x", floats(4), Storage::data);
  const ValueId w = g.add_value("w", floats(10), Storage::parameters);
  const ValueId flat = g.add_value("gradients", floats(10), Storage::gradients);
  const ValueId first = g.add_view("first", flat, floats(4));
  const ValueId second = g.add_view("second", flat, floats(4), 6 * kFloat);  // two floats of padding before it
  g.add_into(GPUNN_OP_RELU, "1", {}, {x}, {first});
  g.add_into(GPUNN_OP_RELU, "2", {}, {x}, {second});
  g.add_into(GPUNN_OP_ADD, "update", {}, {w, flat}, {w});
  auto uses = value_uses(g);
  check(uses[at(first)], 0, 2);
  check(uses[at(second)], 1, 2);
  check(uses[at(flat)], 0, 2);
  check(uses[at(w)], -1, 3);

  // What is added to what was there before the program must stay; its neighbour need not.
  g.nodes()[0] = {GPUNN_OP_ADD, "1", {}, {x, first}, {first}};
  uses = value_uses(g);
  check(uses[at(first)], -1, 3);
  check(uses[at(second)], 1, 2);
  check(uses[at(flat)], -1, 3);
}

TEST_CASE("values that only the ops of a subgraph use are internal", "[graph]") {
  const Chain chain;
  const auto internal = internal_values(chain.g, {{1, 3}});
  CHECK_FALSE(internal[at(chain.x)]);
  CHECK_FALSE(internal[at(chain.y)]);
  CHECK_FALSE(internal[at(chain.a)]);
  CHECK(internal[at(chain.b)]);
  CHECK(internal[at(chain.c)]);
  CHECK_FALSE(internal[at(chain.d)]);
  // A value that passes from a subgraph to another is internal to neither.
  const auto two = internal_values(chain.g, {{0, 2}, {2, 3}});
  CHECK_FALSE(two[at(chain.b)]);
  CHECK(two[at(chain.c)]);
}

TEST_CASE("a subgraph is a single node of the memory plan", "[graph]") {
  const Chain chain;
  const std::vector<uint64_t> workspaces = {0, 1000, 0, 0, 512};
  const MemoryPlan plan = plan_memory(chain.g, workspaces, 64, {{1, 3}});
  CHECK(plan.value_offset[at(chain.b)] == -1);
  CHECK(plan.value_offset[at(chain.c)] == -1);
  REQUIRE(plan.value_offset[at(chain.a)] >= 0);
  REQUIRE(plan.value_offset[at(chain.d)] >= 0);
  // Its inputs, outputs and workspace live through all of it, and share nothing.
  std::vector<ArenaBlock> blocks = plan.blocks;
  REQUIRE(blocks.size() == 4);
  for (const ArenaBlock& block : blocks) {
    if (block.value == chain.a) CHECK((block.first == 0 && block.last == 4));
    if (block.value == chain.d) CHECK((block.first == 1 && block.last == 4));
    if (block.value == kNoValue && block.bytes == 1000) CHECK((block.first == 1 && block.last == 3));
    for (const ArenaBlock& other : blocks) {
      const bool together = block.first <= other.last && other.first <= block.last;
      const bool same = block.value == other.value && block.bytes == other.bytes;
      if (together && !same)
        CHECK((block.offset + block.bytes <= other.offset || other.offset + other.bytes <= block.offset));
    }
  }
}

TEST_CASE("within a subgraph no output takes over an input's memory", "[graph]") {
  Graph g;
  const ValueId x = g.add_value("x", floats(64), Storage::data);
  const ValueId a = g.add1(GPUNN_OP_RELU, "a", {}, {x});
  const ValueId b = g.add1(GPUNN_OP_RELU, "b", {}, {a});
  const ValueId c = g.add1(GPUNN_OP_RELU, "c", {}, {b});
  const MemoryPlan shared = plan_memory(g, {}, 64);
  CHECK(shared.value_offset[at(a)] == shared.value_offset[at(b)]);
  const MemoryPlan apart = plan_memory(g, {}, 64, {{1, 1}});
  CHECK(apart.value_offset[at(a)] != apart.value_offset[at(b)]);
  CHECK(apart.value_offset[at(b)] == apart.value_offset[at(c)]);  // behind it again
}

TEST_CASE("subgraphs that overlap, are empty or leave the program are an error", "[graph]") {
  const Chain chain;
  using Runs = std::vector<NodeRange>;
  for (const Runs& runs : {Runs{{0, 2}, {1, 2}}, Runs{{2, 0}}, Runs{{3, 3}}, Runs{{2, 1}, {0, 1}}}) {
    CHECK_THROWS_WITH(plan_memory(chain.g, {}, 64, runs), Contains("runs of nodes must not"));
  }
}
