// Fused subgraphs: which ops the host offers, which it refuses, and how a step program runs with them.
#include "execution/steps/subgraph.hpp"

#include "catch.hpp"
#include "execution/allocation_count.hpp"
#include "execution/fixture.hpp"
#include "execution/measurement/profiler.hpp"
#include "execution/steps/compiler.hpp"

using namespace fixture;
using gpunn::execution::compile;
using gpunn::execution::CompiledProgram;
using gpunn::execution::Executable;
using gpunn::execution::plan_op_by_op;
using gpunn::execution::Subgraph;
using gpunn::execution::Variables;
using samples::error_of;

namespace {

constexpr int64_t kFusedSize = 6;

// y += relu(x * 0.5 + bias), where bias is the second half of a flat vector and y keeps its content.
Graph fusible_program() {
  Graph graph;
  const ValueId x = graph.add_value("x", floats({kFusedSize}), Storage::data);
  const ValueId y = graph.add_value("y", floats({kFusedSize}), Storage::state);
  const ValueId flat = graph.add_value("flat", floats({2 * kFusedSize}), Storage::parameters);
  const ValueId bias =
      graph.add_view("bias", flat, floats({kFusedSize}), kFusedSize * static_cast<int64_t>(sizeof(float)));
  const ValueId scaled = graph.add1(GPUNN_OP_SCALE, "half", Attributes::of(gpunn_scale_attrs{0, 0.5F}), {x});
  const ValueId sum = graph.add1(GPUNN_OP_ADD, "shift", {}, {scaled, bias});
  const ValueId active = graph.add1(GPUNN_OP_RELU, "active", {}, {sum});
  graph.add_into(GPUNN_OP_ADD, "accumulate", {}, {active, y}, {y});
  return graph;
}

ValueId made_by(const Graph& graph, std::size_t node) { return graph.nodes()[node].outputs[0]; }

struct BoundSubgraphs {
  Backend& backend;
  CompiledProgram compiled;
  Variables variables{backend};
  gpunn::execution::Buffer arena;
  Executable executable;

  explicit BoundSubgraphs(Backend& on)
      : backend(on),
        compiled(compile(fusible_program(), on)),
        arena(on.allocate(compiled.plan.arena_bytes)),
        executable(on, variables, compiled.graph, compiled.plan, arena.data(), compiled.subgraphs.taken) {
    variables.write("x", bytes_of({2, -2, 4, -4, 6, 100}));
    variables.write("flat", bytes_of({9, 9, 9, 9, 9, 9, 1, 0, -1, 3, 0, -50}));
  }
  void check_after(int runs) {
    backend.synchronize();
    const auto n = static_cast<float>(runs);
    CHECK(floats_of(variables.read("y")) == std::vector<float>{2 * n, 0, 1 * n, 1 * n, 3 * n, 0});
  }
};

std::vector<std::size_t> counts(const CompiledProgram& program) {
  std::vector<std::size_t> result;
  for (const Subgraph& subgraph : program.subgraphs.taken) result.push_back(subgraph.nodes.count);
  return result;
}

}  // namespace

TEST_CASE("a fused subgraph is one step, captured as such, and has no memory within", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  Backend backend(registry(), "capturing");
  CHECK(backend.fusing_plugins() == std::vector<std::string>{"capturing"});
  {
    BoundSubgraphs bound(backend);
    REQUIRE(counts(bound.compiled) == std::vector<std::size_t>{4});
    CHECK(bound.compiled.subgraphs.taken[0].name == "ops in a row");
    CHECK(bound.compiled.subgraphs.taken[0].workspace_bytes == 4 * kFusedSize * sizeof(float));
    for (std::size_t node = 0; node < 3; ++node) {
      CHECK(bound.executable.address(made_by(bound.compiled.graph, node)) == nullptr);
    }
    CHECK(bound.executable.address(made_by(bound.compiled.graph, 3)) != nullptr);
    // The workspace alone.
    CHECK(bound.compiled.plan.arena_bytes == 128);
    for (int run = 1; run <= 4; ++run) {
      bound.executable.run();
      bound.check_after(run);
    }
    CHECK(bound.executable.captured());
    CHECK(control->subgraph_enqueues == 2);  // once run, once captured
    CHECK(control->launches == 3);
    bound.executable.run(200);
    bound.check_after(204);
    const int32_t launches = control->launches;
    bound.executable.run(46);  // 32, 8, 4, 2
    bound.check_after(250);
    CHECK(control->launches == launches + 4);
    CHECK(control->open_subgraphs == 1);
    int marks = 0;
    bound.executable.run_marked([&](std::size_t) { ++marks; });
    CHECK(marks == 1);
    CHECK_THAT(error_of([&] { bound.executable.run_observed([](const gpunn::graph::Node&) {}); }),
               Contains("can't be run op by op"));
    CHECK_THAT(error_of([&] { bound.executable.run_node(0); }), Contains("can't be run op by op"));
  }
  CHECK(control->open_subgraphs == 0);
}

TEST_CASE("a fused step allocates nothing", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 3;
  Backend backend(registry(), "capturing");
  BoundSubgraphs bound(backend);
  bound.executable.run();
  bound.executable.run();
  const int64_t before = allocation_count();
  for (int i = 0; i < 50; ++i) bound.executable.run();
  CHECK(allocation_count() == before);
  bound.check_after(52);
}

TEST_CASE("a value between two subgraphs has memory", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 2;
  Backend backend(registry(), "capturing");
  BoundSubgraphs bound(backend);
  CHECK(counts(bound.compiled) == std::vector<std::size_t>{2, 2});
  CHECK(bound.executable.address(made_by(bound.compiled.graph, 0)) == nullptr);
  CHECK(bound.executable.address(made_by(bound.compiled.graph, 1)) != nullptr);
  CHECK(bound.executable.address(made_by(bound.compiled.graph, 2)) == nullptr);
  for (int run = 1; run <= 3; ++run) {
    bound.executable.run();
    bound.check_after(run);
  }
}

TEST_CASE("the same step program runs op by op under another plan", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  Backend backend(registry(), "capturing");
  BoundSubgraphs bound(backend);
  bound.executable.run();
  const auto plan = plan_op_by_op(bound.compiled, backend);
  const auto arena = backend.allocate(plan.arena_bytes);
  Executable op_by_op(backend, bound.variables, bound.compiled.graph, plan, arena.data());
  int seen = 0;
  op_by_op.run_observed([&](const gpunn::graph::Node&) { ++seen; });
  CHECK(seen == 4);
  bound.check_after(2);
}

TEST_CASE("a profile measures the ops one by one, and then the steps as they are run", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 3;
  Backend backend(registry(), "capturing");
  gpunn::execution::Profiler profiler({.file = {}, .steps = 4, .warmup = 2});
  profiler.attach(backend);
  BoundSubgraphs bound(backend);
  const auto plan = plan_op_by_op(bound.compiled, backend);
  const auto arena = backend.allocate(plan.arena_bytes);
  Executable op_by_op(backend, bound.variables, bound.compiled.graph, plan, arena.data());
  constexpr int kSteps = 2 + 4 + 20;
  for (int i = 0; i < kSteps; ++i) profiler.step(bound.executable, op_by_op, bound.compiled);
  CHECK(profiler.finished());
  profiler.detach();
  bound.check_after(kSteps);
  const gpunn::ProfileReport report = profiler.report();
  CHECK(report.steps == 4);
  CHECK(report.ops.size() == 4);
  CHECK(report.captured);
  CHECK(report.subgraphs ==
        std::vector<std::string>{"capturing: ops in a row, 3 ops from SCALE 'half' to RELU 'active'",
                                 "capturing: ops in a row, ADD 'accumulate'"});
}

TEST_CASE("subgraphs can be switched off, and a plugin need not fuse any", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  Backend off(registry(), "capturing", {.subgraphs = false});
  CHECK(compile(fusible_program(), off).subgraphs.taken.empty());
  CHECK(control->subgraph_queries == 0);

  control->subgraphs = 0;
  Backend backend(registry(), "capturing");
  const CompiledProgram none = compile(fusible_program(), backend);
  CHECK(none.subgraphs.taken.empty());
  CHECK(none.subgraphs.reasons.size() == 4);
  CHECK(none.subgraphs.reasons.front() == "capturing, at SCALE 'half': it was told to fuse nothing");

  Backend without(registry(), "small_base");
  CHECK(without.fusing_plugins().empty());
  CHECK(compile(fusible_program(), without).subgraphs.taken.empty());
}

TEST_CASE("with deterministic: true a subgraph must be deterministic", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  control->subgraph_flags = GPUNN_OP_CAPTURABLE;
  Backend strict(registry(), "capturing", {.deterministic = true});
  const CompiledProgram refused = compile(fusible_program(), strict);
  CHECK(refused.subgraphs.taken.empty());
  CHECK_THAT(refused.subgraphs.reasons.at(0), Contains("not deterministic"));
  Backend free(registry(), "capturing");
  CHECK(counts(compile(fusible_program(), free)) == std::vector<std::size_t>{4});
}

TEST_CASE("a subgraph that can't be captured keeps the program eager, and is named", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  control->subgraph_flags = GPUNN_OP_DETERMINISTIC;
  Backend backend(registry(), "capturing");
  BoundSubgraphs bound(backend);
  for (int i = 0; i < 3; ++i) bound.executable.run();
  bound.check_after(3);
  CHECK_FALSE(bound.executable.captured());
  CHECK(bound.executable.eager_reason() ==
        "4 ops from SCALE 'half' to ADD 'accumulate' can't be captured by 'capturing'");
}

TEST_CASE("a base fuses no subgraph across an op that an overlay runs", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  Backend backend(registry(), "relu_on_capturing");
  const CompiledProgram compiled = compile(fusible_program(), backend);
  CHECK(counts(compiled) == std::vector<std::size_t>{2, 1});
  CHECK(compiled.subgraphs.taken[0].level == 1);
  CHECK(compiled.subgraphs.taken[1].nodes.first == 3);
}

namespace {

// fusible_program() with two ops in its midst: one has nothing to do with it, the other reads what it makes on its way.
Graph interrupted_program() {
  Graph graph = fusible_program();
  const ValueId x = 0;
  const ValueId scaled = graph.nodes()[0].outputs[0];
  const ValueId apart = graph.add_value("apart", floats({kFusedSize}), Storage::state);
  const ValueId seen = graph.add_value("seen", floats({kFusedSize}), Storage::state);
  graph.add_into(GPUNN_OP_SCALE, "apart", Attributes::of(gpunn_scale_attrs{0, 3.0F}), {x}, {apart});
  graph.add_into(GPUNN_OP_SCALE, "seen", Attributes::of(gpunn_scale_attrs{0, 2.0F}), {scaled}, {seen});
  std::rotate(graph.nodes().begin() + 1, graph.nodes().begin() + 4, graph.nodes().end());
  return graph;
}

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> result;
  for (const auto& node : graph.nodes()) result.push_back(node.name);
  return result;
}

}  // namespace

TEST_CASE("ops that are left out go before a subgraph or behind it", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  CHECK(names(interrupted_program()) ==
        std::vector<std::string>{"half", "apart", "seen", "shift", "active", "accumulate"});
  control->subgraphs = 100;
  control->leaves_out[0] = 1;
  control->leaves_out[1] = 2;
  Backend backend(registry(), "capturing");
  CompiledProgram compiled = compile(interrupted_program(), backend);
  // The one in front is asked about by itself.
  CHECK(counts(compiled) == std::vector<std::size_t>{1, 4, 1});
  CHECK(names(compiled.graph) == std::vector<std::string>{"apart", "half", "shift", "active", "accumulate", "seen"});
  Variables variables(backend);
  const auto arena = backend.allocate(compiled.plan.arena_bytes);
  Executable executable(backend, variables, compiled.graph, compiled.plan, arena.data(), compiled.subgraphs.taken);
  variables.write("x", bytes_of({2, -2, 4, -4, 6, 100}));
  variables.write("flat", bytes_of({9, 9, 9, 9, 9, 9, 1, 0, -1, 3, 0, -50}));
  executable.run();
  backend.synchronize();
  CHECK(floats_of(variables.read("y")) == std::vector<float>{2, 0, 1, 1, 3, 0});
  CHECK(floats_of(variables.read("apart")) == std::vector<float>{6, -6, 12, -12, 18, 300});
  CHECK(floats_of(variables.read("seen")) == std::vector<float>{2, -2, 4, -4, 6, 100});
}

TEST_CASE("a subgraph is refused where what it leaves out must run within it", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  control->leaves_out[0] = 2;
  Backend backend(registry(), "capturing");
  const CompiledProgram compiled = compile(fusible_program(), backend);
  CHECK(compiled.subgraphs.reasons.front() ==
        "capturing, at SCALE 'half': RELU 'active' has to run between what it fuses");
  CHECK(compiled.subgraphs.taken.front().nodes.first > 0);
}

TEST_CASE("a plugin's nonsense is refused with the plugin's name", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 2;
  Backend backend(registry(), "capturing");
  const auto compiled = [&] { return error_of([&] { compile(fusible_program(), backend); }); };
  control->fuses_beyond = 5;
  CHECK(compiled() == "plugin 'capturing': query of a subgraph at SCALE 'half' fuses 7 ops where 4 were offered");
  control->fuses_beyond = 0;
  control->subgraph_workspace = uint64_t{1} << 50;
  CHECK_THAT(compiled(), Contains("asks for a workspace of") && Contains("which makes no sense"));
  control->subgraph_workspace = 0;
  samples::set(control->fail_in, "subgraph_query");
  CHECK_THAT(compiled(), Contains("plugin 'capturing': query of a subgraph at SCALE 'half' failed"));

  const auto bound = [&] { return error_of([&] { BoundSubgraphs bind(backend); }); };
  samples::set(control->fail_in, "subgraph_create");
  CHECK_THAT(bound(), Contains("create of 2 ops from SCALE 'half' to ADD 'shift' failed"));
  samples::set(control->fail_in, "");
  samples::set(control->null_in, "subgraph_create");
  CHECK_THAT(bound(), Contains("create of 2 ops from SCALE 'half' to ADD 'shift' said OK but gave no subgraph"));
  samples::set(control->null_in, "");
  BoundSubgraphs running(backend);
  samples::set(control->fail_in, "subgraph_enqueue");
  CHECK_THAT(error_of([&] { running.executable.run(); }), Contains("enqueue of 2 ops from SCALE 'half'"));
  samples::set(control->fail_in, "");
  samples::set(control->null_in, "subgraph_enqueue");
  CHECK_THAT(error_of([] { Backend incomplete(registry(), "capturing"); }),
             Contains("extension gpunn.subgraph.v1 is not complete"));
}

TEST_CASE("subgraphs and memory plan must belong to the same step program", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  Backend backend(registry(), "capturing");
  const CompiledProgram with = compile(fusible_program(), backend);
  Variables variables(backend);
  const auto plain = plan_op_by_op(with, backend);
  const auto arena = backend.allocate(1024);
  const auto bind = [&](const gpunn::compiler::MemoryPlan& plan, const std::vector<Subgraph>& subgraphs) {
    return error_of([&] { Executable(backend, variables, with.graph, plan, arena.data(), subgraphs); });
  };
  CHECK(bind(with.plan, with.subgraphs.taken) == "(no error)");
  CHECK_THAT(bind(plain, with.subgraphs.taken), Contains("no workspace of 96 bytes for 4 ops from"));
  CHECK_THAT(bind(with.plan, {}), Contains("has no place in the memory plan"));
  Subgraph late = with.subgraphs.taken[0];
  late.nodes.first = 9;
  CHECK_THAT(bind(plain, {late}), Contains("the subgraphs belong to another graph"));
}

TEST_CASE("a subgraph includes a sum over ranks if its plugin has joined them", "[execution][subgraphs]") {
  const auto control = controlled("capturing");
  control->subgraphs = 100;
  const auto counts_with_ranks = [&](int world) {
    Graph graph;
    const ValueId x = graph.add_value("x", floats({1, kFusedSize}), Storage::data);
    const ValueId y = graph.add_value("y", floats({kFusedSize}), Storage::state);
    const ValueId scaled = graph.add1(GPUNN_OP_SCALE, "half", Attributes::of(gpunn_scale_attrs{0, 0.5F}), {x});
    const ValueId sum =
        graph.add1(GPUNN_OP_ALL_REDUCE, "sum", Attributes::of(gpunn_all_reduce_attrs{0, world}), {scaled});
    graph.add_into(GPUNN_OP_ADD, "accumulate", {}, {sum, y}, {y});
    Backend backend(registry(), "capturing");
    backend.plan_ranks(world);
    const CompiledProgram compiled = compile(std::move(graph), backend);
    CHECK(control->ranks == (control->joins_ranks && control->fail_in[0] == 0 ? world : 1));
    if (control->ranks == 1) CHECK_THAT(compiled.subgraphs.reasons.at(0), Contains("it has not joined"));
    return counts(compiled);
  };
  const std::vector<std::size_t> behind_the_sum = {1};
  CHECK(counts_with_ranks(2) == behind_the_sum);
  control->joins_ranks = true;
  CHECK(counts_with_ranks(2) == std::vector<std::size_t>{3});
  CHECK(control->ranks == 1);  // it has left them
  samples::set(control->fail_in, "join_ranks");
  CHECK(counts_with_ranks(2) == behind_the_sum);
}
