// Runs of ops that a plugin claims: what is offered, what is refused, and how a program runs with them.
#include "execution/claim.hpp"

#include "catch.hpp"
#include "execution/allocation_count.hpp"
#include "execution/compiler.hpp"
#include "execution/fixture.hpp"
#include "execution/profiler.hpp"

using namespace fixture;
using gpunn::execution::Claim;
using gpunn::execution::compile;
using gpunn::execution::CompiledProgram;
using gpunn::execution::Executable;
using gpunn::execution::plan_op_by_op;
using gpunn::execution::Variables;
using samples::error_of;

namespace {

constexpr int64_t kClaimedSize = 6;

// y += relu(x * 0.5 + bias), where bias is the second half of a flat vector and y keeps its content.
Graph claimable_program() {
  Graph graph;
  const ValueId x = graph.add_value("x", floats({kClaimedSize}), Storage::data);
  const ValueId y = graph.add_value("y", floats({kClaimedSize}), Storage::state);
  const ValueId flat = graph.add_value("flat", floats({2 * kClaimedSize}), Storage::parameters);
  const ValueId bias =
      graph.add_view("bias", flat, floats({kClaimedSize}), kClaimedSize * static_cast<int64_t>(sizeof(float)));
  const ValueId scaled = graph.add1(GPUNN_OP_SCALE, "half", Attributes::of(gpunn_scale_attrs{0, 0.5F}), {x});
  const ValueId sum = graph.add1(GPUNN_OP_ADD, "shift", {}, {scaled, bias});
  const ValueId active = graph.add1(GPUNN_OP_RELU, "active", {}, {sum});
  graph.add_into(GPUNN_OP_ADD, "accumulate", {}, {active, y}, {y});
  return graph;
}

ValueId made_by(const Graph& graph, std::size_t node) { return graph.nodes()[node].outputs[0]; }

struct BoundClaims {
  Backend& backend;
  CompiledProgram compiled;
  Variables variables{backend};
  gpunn::execution::Buffer arena;
  Executable executable;

  explicit BoundClaims(Backend& on)
      : backend(on),
        compiled(compile(claimable_program(), on)),
        arena(on.allocate(compiled.plan.arena_bytes)),
        executable(on, variables, compiled.graph, compiled.plan, arena.data(), compiled.claims.taken) {
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
  for (const Claim& claim : program.claims.taken) result.push_back(claim.nodes.count);
  return result;
}

}  // namespace

TEST_CASE("a claimed program is one step, captured as such, and has no memory within", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 100;
  Backend backend(registry(), "capturing");
  CHECK(backend.claimants() == std::vector<std::string>{"capturing"});
  {
    BoundClaims bound(backend);
    REQUIRE(counts(bound.compiled) == std::vector<std::size_t>{4});
    CHECK(bound.compiled.claims.taken[0].name == "ops in a row");
    CHECK(bound.compiled.claims.taken[0].workspace_bytes == 4 * kClaimedSize * sizeof(float));
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
    CHECK(control->claimed_enqueues == 2);  // by hand, and recorded
    CHECK(control->launches == 3);
    bound.executable.run(200);
    bound.check_after(204);
    CHECK(control->open_programs == 1);
    int marks = 0;
    bound.executable.run_marked([&](std::size_t) { ++marks; });
    CHECK(marks == 1);
    CHECK_THAT(error_of([&] { bound.executable.run_observed([](const gpunn::graph::Node&) {}); }),
               Contains("can't be run op by op"));
    CHECK_THAT(error_of([&] { bound.executable.run_node(0); }), Contains("can't be run op by op"));
  }
  CHECK(control->open_programs == 0);
}

TEST_CASE("a claimed step allocates nothing", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 3;
  Backend backend(registry(), "capturing");
  BoundClaims bound(backend);
  bound.executable.run();
  bound.executable.run();
  const int64_t before = allocation_count();
  for (int i = 0; i < 50; ++i) bound.executable.run();
  CHECK(allocation_count() == before);
  bound.check_after(52);
}

TEST_CASE("what lies between two claims has memory", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 2;
  Backend backend(registry(), "capturing");
  BoundClaims bound(backend);
  CHECK(counts(bound.compiled) == std::vector<std::size_t>{2, 2});
  CHECK(bound.executable.address(made_by(bound.compiled.graph, 0)) == nullptr);
  CHECK(bound.executable.address(made_by(bound.compiled.graph, 1)) != nullptr);
  CHECK(bound.executable.address(made_by(bound.compiled.graph, 2)) == nullptr);
  for (int run = 1; run <= 3; ++run) {
    bound.executable.run();
    bound.check_after(run);
  }
}

TEST_CASE("the same program runs op by op by another plan", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 100;
  Backend backend(registry(), "capturing");
  BoundClaims bound(backend);
  bound.executable.run();
  const auto plan = plan_op_by_op(bound.compiled, backend);
  const auto arena = backend.allocate(plan.arena_bytes);
  Executable op_by_op(backend, bound.variables, bound.compiled.graph, plan, arena.data());
  int seen = 0;
  op_by_op.run_observed([&](const gpunn::graph::Node&) { ++seen; });
  CHECK(seen == 4);
  bound.check_after(2);
}

TEST_CASE("a profile measures the ops one by one, and then the steps as they are run", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 3;
  Backend backend(registry(), "capturing");
  gpunn::execution::Profiler profiler({.file = {}, .steps = 4, .warmup = 2});
  profiler.attach(backend);
  BoundClaims bound(backend);
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
  CHECK(report.claims == std::vector<std::string>{"capturing: ops in a row, 3 ops from SCALE 'half' to RELU 'active'",
                                                  "capturing: ops in a row, ADD 'accumulate'"});
}

TEST_CASE("claims can be switched off, and a plugin need not claim", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 100;
  Backend off(registry(), "capturing", {.programs = false});
  CHECK(compile(claimable_program(), off).claims.taken.empty());
  CHECK(control->claim_queries == 0);

  control->claims = 0;
  Backend backend(registry(), "capturing");
  const CompiledProgram none = compile(claimable_program(), backend);
  CHECK(none.claims.taken.empty());
  CHECK(none.claims.reasons.size() == 4);
  CHECK(none.claims.reasons.front() == "capturing, at SCALE 'half': it was told to claim nothing");

  Backend without(registry(), "small_base");
  CHECK(without.claimants().empty());
  CHECK(compile(claimable_program(), without).claims.taken.empty());
}

TEST_CASE("where results must be deterministic a claim must be so", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 100;
  control->claim_flags = GPUNN_OP_CAPTURABLE;
  Backend strict(registry(), "capturing", {.deterministic = true});
  const CompiledProgram refused = compile(claimable_program(), strict);
  CHECK(refused.claims.taken.empty());
  CHECK_THAT(refused.claims.reasons.at(0), Contains("not deterministic"));
  Backend free(registry(), "capturing");
  CHECK(counts(compile(claimable_program(), free)) == std::vector<std::size_t>{4});
}

TEST_CASE("a claim that can't be captured keeps the program eager, and is named", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 100;
  control->claim_flags = GPUNN_OP_DETERMINISTIC;
  Backend backend(registry(), "capturing");
  BoundClaims bound(backend);
  for (int i = 0; i < 3; ++i) bound.executable.run();
  bound.check_after(3);
  CHECK_FALSE(bound.executable.captured());
  CHECK(bound.executable.eager_reason() ==
        "4 ops from SCALE 'half' to ADD 'accumulate' can't be captured by 'capturing'");
}

TEST_CASE("a base claims nothing across an op that an overlay runs", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 100;
  Backend backend(registry(), "relu_on_capturing");
  const CompiledProgram compiled = compile(claimable_program(), backend);
  CHECK(counts(compiled) == std::vector<std::size_t>{2, 1});
  CHECK(compiled.claims.taken[0].level == 1);
  CHECK(compiled.claims.taken[1].nodes.first == 3);
}

TEST_CASE("nonsense is refused, and by whom it came is said", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 2;
  Backend backend(registry(), "capturing");
  const auto compiled = [&] { return error_of([&] { compile(claimable_program(), backend); }); };
  control->claims_beyond = 5;
  CHECK(compiled() == "plugin 'capturing': query of a program at SCALE 'half' claims 7 ops where 4 were offered");
  control->claims_beyond = 0;
  control->claim_workspace = uint64_t{1} << 50;
  CHECK_THAT(compiled(), Contains("asks for a workspace of") && Contains("which makes no sense"));
  control->claim_workspace = 0;
  samples::set(control->fail_in, "program_query");
  CHECK_THAT(compiled(), Contains("plugin 'capturing': query of a program at SCALE 'half' failed"));

  const auto bound = [&] { return error_of([&] { BoundClaims bind(backend); }); };
  samples::set(control->fail_in, "program_create");
  CHECK_THAT(bound(), Contains("create of 2 ops from SCALE 'half' to ADD 'shift' failed"));
  samples::set(control->fail_in, "");
  samples::set(control->null_in, "program_create");
  CHECK_THAT(bound(), Contains("create of 2 ops from SCALE 'half' to ADD 'shift' said OK but gave no program"));
  samples::set(control->null_in, "");
  BoundClaims running(backend);
  samples::set(control->fail_in, "program_enqueue");
  CHECK_THAT(error_of([&] { running.executable.run(); }), Contains("enqueue of 2 ops from SCALE 'half'"));
  samples::set(control->fail_in, "");
  samples::set(control->null_in, "program_enqueue");
  CHECK_THAT(error_of([] { Backend incomplete(registry(), "capturing"); }),
             Contains("extension gpunn.program.v1 is not complete"));
}

TEST_CASE("claims and plan must be of one program", "[execution][claims]") {
  const auto control = controlled("capturing");
  control->claims = 100;
  Backend backend(registry(), "capturing");
  const CompiledProgram with = compile(claimable_program(), backend);
  Variables variables(backend);
  const auto plain = plan_op_by_op(with, backend);
  const auto arena = backend.allocate(1024);
  const auto bind = [&](const gpunn::graph::MemoryPlan& plan, const std::vector<Claim>& claims) {
    return error_of([&] { Executable(backend, variables, with.graph, plan, arena.data(), claims); });
  };
  CHECK(bind(with.plan, with.claims.taken) == "(no error)");
  CHECK_THAT(bind(plain, with.claims.taken), Contains("no workspace of 96 bytes for 4 ops from"));
  CHECK_THAT(bind(with.plan, {}), Contains("has no place in the memory plan"));
  Claim late = with.claims.taken[0];
  late.nodes.first = 9;
  CHECK_THAT(bind(plain, {late}), Contains("the claims belong to another graph"));
}
