#include "compiler/widen_near_use.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "compiler/memory_plan.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

// A value in half precision, its f32 copy with two readers, `between` other ops, and a third reader.
struct LateReader {
  Graph g;
  ValueId half, wide;

  LateReader(int64_t size, int between) {
    const TensorType full{DType::f32, {size}};
    const ValueId x = g.add_value("x", {DType::bf16, {size}}, Storage::data);
    half = g.add1(GPUNN_OP_RELU, "half", {}, {x});
    wide = g.add_value("wide", full, Storage::arena);
    g.add_into(GPUNN_OP_COPY, "wide", {}, {half}, {wide});
    ValueId sum = g.add1(GPUNN_OP_ADD, "first", {}, {wide, wide});
    sum = g.add1(GPUNN_OP_ADD, "second", {}, {sum, wide});
    for (int i = 0; i < between; ++i) sum = g.add1(GPUNN_OP_RELU, "between", {}, {sum});
    g.add1(GPUNN_OP_ADD, "late", {}, {sum, wide});
  }

  uint64_t arena() const {
    std::vector<uint64_t> workspaces(g.nodes().size(), 0);
    workspaces[20] = uint64_t{1} << 24;
    return plan_memory(g, workspaces, 64).arena_bytes;
  }
  int copies() const {
    return static_cast<int>(
        std::ranges::count_if(g.nodes(), [](const Node& node) { return node.op == GPUNN_OP_COPY; }));
  }
};

}  // namespace

TEST_CASE("a reader far behind has the value converted again, right in front of it") {
  LateReader graph(1 << 20, 40);
  widen_near_use(graph.g);
  REQUIRE(graph.copies() == 2);
  const std::vector<Node>& nodes = graph.g.nodes();
  const Node &copy = nodes[nodes.size() - 2], &late = nodes.back();
  CHECK(copy.inputs[0] == graph.half);
  CHECK(late.inputs[1] == copy.outputs[0]);
  CHECK(late.inputs[1] != graph.wide);
  // Memory is short between the readers, where an op has a large workspace.
  const LateReader before(1 << 20, 40);
  CHECK(graph.arena() < before.arena());
}

TEST_CASE("near readers and small values share a conversion") {
  const auto [size, between] = GENERATE(std::pair<int64_t, int>{1 << 20, 2}, std::pair<int64_t, int>{1 << 10, 40});
  LateReader graph(size, between);
  widen_near_use(graph.g);
  CHECK(graph.copies() == 1);
}
