// Programs bound to a backend: their results, their capture, and that a step allocates nothing.
#include "catch.hpp"
#include "execution/allocation_count.hpp"
#include "execution/fixture.hpp"

using namespace fixture;
using gpunn::compiler::MemoryPlan;
using gpunn::execution::Executable;
using gpunn::execution::place_nodes;
using gpunn::execution::Variables;
using gpunn::graph::Node;
using samples::error_of;

namespace {

constexpr int64_t kSize = 6;

// y += relu(x * 0.5 + bias), where bias is the second half of a flat vector and y keeps its content.
struct Program {
  Graph graph;
  ValueId x, y, scaled, sum, active;

  Program() {
    x = graph.add_value("x", floats({kSize}), Storage::data);
    y = graph.add_value("y", floats({kSize}), Storage::state);
    const ValueId flat = graph.add_value("flat", floats({2 * kSize}), Storage::parameters);
    const ValueId bias = graph.add_view("bias", flat, floats({kSize}), kSize * static_cast<int64_t>(sizeof(float)));
    scaled = graph.add1(GPUNN_OP_SCALE, "half", Attributes::of(gpunn_scale_attrs{0, 0.5F}), {x});
    sum = graph.add1(GPUNN_OP_ADD, "shift", {}, {scaled, bias});
    active = graph.add1(GPUNN_OP_RELU, "active", {}, {sum});
    graph.add_into(GPUNN_OP_ADD, "accumulate", {}, {active, y}, {y});
  }
};

// A program with its memory, on a backend.
struct Bound {
  Backend& backend;
  Program program;
  Variables variables{backend};
  MemoryPlan plan;
  gpunn::execution::Buffer arena;
  Executable executable;

  explicit Bound(Backend& on)
      : backend(on),
        plan(make_plan(on, program.graph)),
        arena(on.allocate(plan.arena_bytes)),
        executable(on, variables, program.graph, plan, arena.data()) {
    variables.write("x", bytes_of({2, -2, 4, -4, 6, 100}));
    variables.write("flat", bytes_of({9, 9, 9, 9, 9, 9, 1, 0, -1, 3, 0, -50}));
  }

  static MemoryPlan make_plan(Backend& backend, const Graph& graph) {
    std::vector<uint64_t> workspaces;
    for (const auto& placement : place_nodes(backend, graph)) workspaces.push_back(placement.workspace_bytes);
    return gpunn::compiler::plan_memory(graph, workspaces, backend.info().alignment);
  }

  void check_after(int runs) {
    backend.synchronize();
    const auto n = static_cast<float>(runs);
    CHECK(floats_of(variables.read("y")) == std::vector<float>{2 * n, 0, 1 * n, 1 * n, 3 * n, 0});
  }
};

}  // namespace

TEST_CASE("a program computes, on views and variables", "[execution]") {
  const auto control = controlled("small_base");
  Backend backend(registry(), "small_base");
  Bound bound(backend);
  for (int i = 1; i <= 3; ++i) {
    bound.executable.run();
    bound.check_after(i);
  }
  CHECK(control->enqueues == 12);
  CHECK_FALSE(bound.executable.captured());
  CHECK(bound.executable.eager_reason() == "backend 'small_base' captures no graphs");
}

TEST_CASE("workspaces lie in the arena", "[execution]") {
  const auto control = controlled("small_base");
  control->workspace_bytes = 4000;
  Backend backend(registry(), "small_base");
  Bound bound(backend);
  CHECK(bound.plan.arena_bytes >= 4000);
  CHECK(backend.allocated_bytes() == bound.plan.arena_bytes + 4 * (6 + 6 + 12));
  bound.executable.run();
  bound.check_after(1);
}

TEST_CASE("an overlay runs its ops in the middle of a program", "[execution]") {
  const auto top = controlled("only_relu");
  const auto base = controlled("small_base");
  Backend backend(registry(), "only_relu");
  Bound bound(backend);
  bound.executable.run();
  bound.check_after(1);
  CHECK(top->enqueues == 1);
  CHECK(base->enqueues == 3);
}

TEST_CASE("an observed run stops behind each node", "[execution]") {
  Backend backend(registry(), "small_base");
  Bound bound(backend);
  std::vector<std::string> seen;
  std::vector<float> scaled(kSize);
  bound.executable.run_observed([&](const Node& node) {
    seen.push_back(node.name);
    if (node.name == "half") {
      backend.download(scaled.data(), bound.executable.address(bound.program.scaled), scaled.size() * sizeof(float));
    }
  });
  CHECK(seen == std::vector<std::string>{"half", "shift", "active", "accumulate"});
  CHECK(scaled == std::vector<float>{1, -1, 2, -2, 3, 50});
  bound.check_after(1);
  CHECK_THROWS_WITH(bound.executable.address(1000), Contains("no value 1000"));
}

TEST_CASE("the second run captures, later ones replay", "[execution]") {
  const auto control = controlled("capturing");
  Backend backend(registry(), "capturing");
  {
    Bound bound(backend);
    bound.executable.run();
    CHECK_FALSE(bound.executable.captured());
    CHECK(control->enqueues == 4);
    bound.check_after(1);
    for (int i = 2; i <= 5; ++i) {
      bound.executable.run();
      bound.check_after(i);
    }
    CHECK(bound.executable.captured());
    CHECK(bound.executable.eager_reason().empty());
    CHECK(control->enqueues == 4);
    CHECK(control->recorded == 4);
    CHECK(control->launches == 4);
    CHECK(control->open_graphs == 1);

    // Looking at it node by node is possible at any time, and changes nothing.
    bound.executable.run_observed([](const Node&) {});
    bound.executable.run();
    bound.check_after(7);
    CHECK(control->launches == 5);
  }
  CHECK(control->open_graphs == 0);
}

TEST_CASE("one kernel that can't be captured keeps the program eager, and is named", "[execution]") {
  const auto control = controlled("capturing");
  control->op_flags = GPUNN_OP_DETERMINISTIC;
  Backend backend(registry(), "capturing");
  Bound bound(backend);
  CHECK(bound.executable.eager_reason().empty());
  for (int i = 1; i <= 3; ++i) bound.executable.run();
  bound.check_after(3);
  CHECK_FALSE(bound.executable.captured());
  CHECK(bound.executable.eager_reason() == "RELU 'active' can't be captured by 'capturing'");
  CHECK(control->recorded == 0);
}

TEST_CASE("a capture that fails falls back, and the stream works on", "[execution]") {
  const std::string function = GENERATE(as<std::string>{}, "capture_begin", "op_enqueue", "capture_end");
  const auto control = controlled("capturing");
  Backend backend(registry(), "capturing");
  Bound bound(backend);
  bound.executable.run();
  samples::set(control->fail_in, function);
  for (int i = 2; i <= 4; ++i) {
    bound.executable.run();
    bound.check_after(i);
  }
  CHECK_FALSE(bound.executable.captured());
  CHECK_THAT(bound.executable.eager_reason(), Contains("capturing failed: plugin 'capturing': " + function));
  CHECK(control->enqueues == 16);
  CHECK(control->open_graphs == 0);
}

TEST_CASE("a launch that fails is an error", "[execution]") {
  const auto control = controlled("capturing");
  Backend backend(registry(), "capturing");
  Bound bound(backend);
  bound.executable.run();
  bound.executable.run();
  samples::set(control->fail_in, "graph_launch");
  CHECK_THAT(error_of([&] { bound.executable.run(); }), Contains("plugin 'capturing': graph_launch failed"));
}

TEST_CASE("a step allocates nothing", "[execution]") {
  const std::string name = GENERATE(as<std::string>{}, "small_base", "only_relu", "capturing");
  Backend backend(registry(), name);
  Bound bound(backend);
  bound.executable.run();
  bound.executable.run();
  const int64_t host_before = allocation_count();
  const int64_t device_before = backend.allocations();
  for (int i = 0; i < 100; ++i) bound.executable.run();
  const int64_t host_after = allocation_count();
  CHECK(host_after == host_before);
  CHECK(backend.allocations() == device_before);
  bound.check_after(102);
}

TEST_CASE("all ops that no plugin serves are reported together, with each plugin's reason", "[execution]") {
  Backend backend(registry(), "only_relu");
  Graph graph;
  const ValueId x = graph.add_value("x", floats({2, 3}), Storage::data);
  const ValueId y = graph.add1(GPUNN_OP_SOFTMAX, "first", {}, {x});
  graph.add1(GPUNN_OP_LOG_SOFTMAX, "second", {}, {y});
  gpunn::ExitCode code = gpunn::ExitCode::done;
  const std::string text = error_of([&] { place_nodes(backend, graph); }, &code);
  CHECK(code == gpunn::ExitCode::missing);
  CHECK_THAT(text, Contains("backend 'only_relu' does not serve"));
  CHECK_THAT(text, Contains("SOFTMAX 'first'") && Contains("LOG_SOFTMAX 'second'"));
  CHECK_THAT(text, Contains("only_relu: the sample has no such kernel; small_base: the sample has no such kernel"));
}

TEST_CASE("a failing node is named", "[execution]") {
  const auto control = controlled("small_base");
  Backend backend(registry(), "small_base");
  Bound bound(backend);
  samples::set(control->fail_in, "op_enqueue");
  CHECK_THAT(error_of([&] { bound.executable.run(); }), Contains("op_enqueue of SCALE 'half'"));
}

TEST_CASE("a plan or an arena that does not fit is an error", "[execution]") {
  Backend backend(registry(), "small_base");
  const Program program;
  Variables variables(backend);
  MemoryPlan plan = Bound::make_plan(backend, program.graph);
  const auto arena = backend.allocate(plan.arena_bytes);
  const auto bind = [&](const MemoryPlan& with, void* at) {
    return error_of([&] { Executable(backend, variables, program.graph, with, at); });
  };
  CHECK(bind(plan, arena.data()) == "(no error)");
  CHECK_THAT(bind(plan, static_cast<std::byte*>(arena.data()) + 4), Contains("not aligned to the 64 bytes"));
  CHECK_THAT(bind(plan, nullptr), Contains("not aligned"));
  CHECK_THAT(bind(MemoryPlan{}, arena.data()), Contains("belongs to another graph"));
  MemoryPlan short_plan = plan;
  short_plan.arena_bytes = 8;
  CHECK_THAT(bind(short_plan, arena.data()), Contains("beyond the end of the arena"));
  MemoryPlan lost = plan;
  lost.value_offset[static_cast<std::size_t>(program.sum)] = -1;
  CHECK_THAT(bind(lost, arena.data()), Contains("has no place in the memory plan"));
  const auto control = controlled("small_base");
  control->workspace_bytes = 64;
  CHECK_THAT(bind(plan, arena.data()), Contains("no workspace of 64 bytes for SCALE 'half'"));
}

TEST_CASE("a variable of another type is an error", "[execution]") {
  Backend backend(registry(), "small_base");
  const Program program;
  Variables variables(backend);
  variables.create("x", floats({kSize + 1}), Storage::data);
  const MemoryPlan plan = Bound::make_plan(backend, program.graph);
  const auto arena = backend.allocate(plan.arena_bytes);
  CHECK_THAT(error_of([&] { Executable(backend, variables, program.graph, plan, arena.data()); }),
             Contains("variable 'x' is f32[7]"));
}
