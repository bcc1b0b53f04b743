// Programs whose ops run at the same time, and several runs in one launch.
#include "catch.hpp"
#include "execution/fixture.hpp"

using namespace fixture;
using gpunn::execution::Executable;
using gpunn::execution::place_nodes;
using gpunn::execution::Variables;

namespace {

constexpr int64_t kLaneSize = 4;
constexpr int kBranches = 5;

// y = (y + sum over k of relu(scale_k(x))) * 0.5, where the branches share nothing but x and the arena.
Graph branches() {
  Graph graph;
  const ValueId x = graph.add_value("x", floats({kLaneSize}), Storage::data);
  const ValueId y = graph.add_value("y", floats({kLaneSize}), Storage::state);
  std::vector<ValueId> parts;
  for (int k = 0; k < kBranches; ++k) {
    const auto factor = static_cast<float>(k + 1);
    const ValueId scaled = graph.add1(GPUNN_OP_SCALE, "scale", Attributes::of(gpunn_scale_attrs{0, factor}), {x});
    parts.push_back(graph.add1(GPUNN_OP_RELU, "relu", {}, {scaled}));
  }
  ValueId sum = parts.front();
  for (std::size_t k = 1; k < parts.size(); ++k) sum = graph.add1(GPUNN_OP_ADD, "sum", {}, {sum, parts[k]});
  const ValueId added = graph.add1(GPUNN_OP_ADD, "add", {}, {sum, y});
  graph.add_into(GPUNN_OP_SCALE, "halve", Attributes::of(gpunn_scale_attrs{0, 0.5F}), {added}, {y});
  return graph;
}

struct BoundLanes {
  Backend& backend;
  Graph graph = branches();
  Variables variables{backend};
  gpunn::compiler::MemoryPlan plan;
  gpunn::execution::Buffer arena;
  Executable executable;

  explicit BoundLanes(Backend& on)
      : backend(on),
        plan(gpunn::compiler::plan_memory(graph, std::vector<uint64_t>(graph.nodes().size(), 0), on.info().alignment)),
        arena(on.allocate(plan.arena_bytes)),
        executable(on, variables, graph, plan, arena.data()) {
    variables.write("x", bytes_of({1, -1, 2, 0}));
  }

  // Powers of two and small integers: every rounding is exact for a while, and the order can't hide behind it.
  std::vector<float> expected(int runs) const {
    std::vector<float> y(kLaneSize, 0.0F);
    const float x[kLaneSize] = {1, -1, 2, 0};
    for (int run = 0; run < runs; ++run) {
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = 0.5F * (y[i] + (x[i] > 0 ? 15 * x[i] : 0));
    }
    return y;
  }
};

}  // namespace

TEST_CASE("ops on several streams compute what they do one after another", "[execution][lanes]") {
  const int streams = GENERATE(1, 2, 3, 4, 16);
  const auto control = controlled("forking");
  Backend backend(registry(), "forking", {.streams = streams});
  BoundLanes bound(backend);
  int runs = 0;
  for (const int more : {1, 1, 1, 5}) {
    bound.executable.run(more);
    runs += more;
    CHECK(floats_of(bound.variables.read("y")) == bound.expected(runs));
  }
  CHECK(bound.executable.captured());
  CHECK(bound.executable.eager_reason().empty());
  CHECK(control->streams > (streams == 1 ? 0 : 1));
  CHECK(control->streams <= streams);
}

TEST_CASE("several runs are one launch", "[execution][lanes]") {
  const char* const name = GENERATE("forking", "capturing");
  const auto control = controlled(name);
  Backend backend(registry(), name);
  BoundLanes bound(backend);
  bound.executable.run(2);  // one by hand, one captured
  const auto at_once = static_cast<int>(bound.executable.runs_per_launch());
  REQUIRE(at_once > 1);
  const int before = control->launches;
  bound.executable.run(3 * at_once + 2);
  CHECK(control->launches == before + 3 + 2);
  CHECK(floats_of(bound.variables.read("y")) == bound.expected(3 * at_once + 4));
  CHECK(control->open_graphs == 2);
}

TEST_CASE("a plugin that says nothing of streams has one", "[execution][lanes]") {
  Backend backend(registry(), "capturing", {.streams = 4});
  CHECK_FALSE(backend.concurrent(0));
  Backend other(registry(), "forking", {.streams = 4});
  CHECK(other.concurrent(0));
}
