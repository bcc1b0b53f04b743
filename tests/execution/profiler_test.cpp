#include "execution/measurement/profiler.hpp"

#include <algorithm>

#include "catch.hpp"
#include "common/files.hpp"
#include "execution/fixture.hpp"
#include "execution/trace_checks.hpp"
#include "temporary_folder.hpp"

using namespace fixture;
using gpunn::ProfileOptions;
using gpunn::ProfileReport;
using gpunn::execution::CompiledProgram;
using gpunn::execution::Event;
using gpunn::execution::Executable;
using gpunn::execution::HostSpan;
using gpunn::execution::Profiler;
using gpunn::execution::Variables;
using samples::error_of;
using trace_checks::Json;
using trace_checks::of_category;

namespace {

constexpr int64_t kProfiledSize = 1000;
constexpr const char* kCompute = "device: host / stream 0: compute";
constexpr const char* kHost = "host / training";

// y += relu(0.5 x), four bytes an element and tensor.
Graph profiled_program() {
  Graph graph;
  const ValueId x = graph.add_value("x", floats({kProfiledSize}), Storage::data);
  const ValueId y = graph.add_value("y", floats({kProfiledSize}), Storage::state);
  const ValueId scaled = graph.add1(GPUNN_OP_SCALE, "half", Attributes::of(gpunn_scale_attrs{0, 0.5F}), {x});
  const ValueId active = graph.add1(GPUNN_OP_RELU, "active", {}, {scaled});
  graph.add_into(GPUNN_OP_ADD, "accumulate", {}, {active, y}, {y});
  return graph;
}

// The program on a backend under a profiler.
struct Profiled {
  Profiler profiler;
  Backend backend;
  Variables variables{backend};
  CompiledProgram compiled;
  gpunn::execution::Buffer arena;
  std::unique_ptr<Executable> executable;

  Profiled(const std::string& name, const ProfileOptions& options) : profiler(options), backend(registry(), name) {
    profiler.attach(backend);
    compiled = gpunn::execution::compile(profiled_program(), backend);
    arena = backend.allocate(compiled.plan.arena_bytes);
    executable = std::make_unique<Executable>(backend, variables, compiled.graph, compiled.plan, arena.data());
    variables.write("x", bytes_of(std::vector<float>(kProfiledSize, 4.0F)));
  }
  ~Profiled() { profiler.detach(); }
  Profiled(const Profiled&) = delete;
  Profiled& operator=(const Profiled&) = delete;

  void steps(int count) {
    for (int i = 0; i < count; ++i) profiler.step(*executable, *executable, compiled);
  }
  trace_checks::Rows trace() {
    const gpunn::testing::TemporaryFolder folder;
    profiler.write(folder.path() / "trace.json");
    return trace_checks::checked(gpunn::read_text(folder.path() / "trace.json"));
  }
};

double total(const std::vector<Json>& spans) {
  double sum = 0;
  for (const Json& span : spans) sum += span.at("dur").get<double>();
  return sum;
}

}  // namespace

TEST_CASE("a profile has every op of every measured step, inside its step", "[execution]") {
  const char* const names[] = {"small_base", "asynchronous"};
  const std::string name = names[GENERATE(0, 1)];
  CAPTURE(name);
  Profiled on(name, {.file = {}, .steps = 4, .warmup = 2});
  const int runs = 2 + 4 + 20;
  on.steps(runs);
  CHECK(on.profiler.finished());
  on.profiler.detach();
  const std::vector<float> expected(kProfiledSize, 2.0F * static_cast<float>(runs));
  CHECK(floats_of(on.variables.read("y")) == expected);

  const auto rows = on.trace();
  const auto& spans = rows.spans.at(name == "asynchronous" ? kCompute : "device: sample / stream 0: compute");
  const auto ops = of_category(spans, "op"), steps = of_category(spans, "step");
  REQUIRE(ops.size() == 12);
  REQUIRE(steps.size() == 4 + 10);
  const char* const layers[] = {"half: SCALE", "active: RELU", "accumulate: ADD"};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    CHECK(ops[i].at("name") == layers[i % 3]);
    const Json& step = steps[i / 3];
    CHECK(ops[i].at("ts") >= step.at("ts"));
    const double end = ops[i].at("ts").get<double>() + ops[i].at("dur").get<double>();
    CHECK(end <= step.at("ts").get<double>() + step.at("dur").get<double>() + 0.002);
  }
  CHECK(steps[0].at("name") == "step 3");
  CHECK(steps[3].at("name") == "step 6");
  CHECK(steps[4].at("name") == "training step");
  CHECK(steps[4].at("args").at("run as") == "ops one by one");
  // An asynchronous device is kept busy while a step is put on its stream.
  CHECK(of_category(spans, "profiler").size() == (name == "asynchronous" ? 4 : 0));
  CHECK(rows.document.at("otherData").at("backend") == name);
  CHECK_THAT(rows.document.at("otherData").at("how").get<std::string>(), Contains("not as the captured graph"));
  CHECK(rows.document.at("otherData").at("ceiling GB/s").get<double>() > 0);
  CHECK(rows.document.at("otherData").at("ceiling GFLOP/s") == 0.0);

  std::vector<std::string> host;
  for (const Json& span : rows.spans.at(kHost)) host.push_back(span.at("name"));
  CHECK(std::ranges::count(host, "enqueue step 3") == 1);
  CHECK(std::ranges::count(host, "warm-up step") == 2);
}

TEST_CASE("an op's arguments say what it is and how well it does", "[execution]") {
  Profiled on("asynchronous", {.file = {}, .steps = 3, .warmup = 1});
  on.steps(4);
  on.profiler.detach();
  const auto rows = on.trace();
  const Json half = of_category(rows.spans.at(kCompute), "op")[0];
  const Json& arguments = half.at("args");
  CHECK(arguments.at("op") == "SCALE");
  CHECK(arguments.at("layer") == "half");
  CHECK(arguments.at("plugin") == "asynchronous");
  CHECK(arguments.at("inputs") == "f32[1000]");
  CHECK(arguments.at("outputs") == "f32[1000]");
  CHECK(arguments.at("bytes") == 8000.0);
  CHECK(arguments.at("FLOPs") == 1000.0);
  // It sleeps for 300 us, on the device's thread: the time is the device's and not that of the call.
  const double seconds = half.at("dur").get<double>() * 1e-6;
  CHECK(seconds >= 300e-6);
  CHECK(arguments.at("GB/s").get<double>() == Approx(8000 / seconds * 1e-9).epsilon(1e-3));
  CHECK(arguments.at("GFLOP/s").get<double>() == Approx(1000 / seconds * 1e-9).epsilon(1e-3));
  const double ceiling = rows.document.at("otherData").at("ceiling GB/s");
  CHECK(arguments.at("share of ceiling").get<double>() ==
        Approx(arguments.at("GB/s").get<double>() / ceiling).epsilon(1e-3));
  CHECK(arguments.at("ceiling") == "moving bytes");

  const ProfileReport report = on.profiler.report();
  CHECK(report.steps == 3);
  REQUIRE(report.ops.size() == 3);
  CHECK(report.ops[0].name == "half");
  CHECK(report.ops[0].count == 3);
  CHECK(report.ops[0].seconds >= 900e-6);
  CHECK(report.ops[0].gigabytes == Approx(3 * 8000 / report.ops[0].seconds * 1e-9));
  double seconds_of_all = 0, share = 0;
  for (const auto& op : report.ops) {
    seconds_of_all += op.seconds;
    share += op.share;
  }
  CHECK(share == Approx(1));
  CHECK(report.step_seconds == Approx(seconds_of_all / 3));
  CHECK(report.ops[1].seconds >= report.ops[2].seconds);
  CHECK(total(of_category(rows.spans.at(kCompute), "op")) == Approx(seconds_of_all * 1e6).epsilon(1e-3));
}

TEST_CASE("the window is run op by op, and then the graph is captured", "[execution]") {
  const auto control = controlled("capturing");
  Profiled on("capturing", {.file = {}, .steps = 5, .warmup = 3});
  on.steps(8);
  CHECK(control->enqueues == 8 * 3);
  CHECK(control->recorded == 0);
  on.steps(20);
  CHECK(control->launches > 10);
  on.profiler.detach();
  CHECK(on.profiler.report().captured);
  CHECK(on.profiler.report().whole_step_seconds > 0);
  const auto steps = of_category(on.trace().spans.at(kCompute), "step");
  REQUIRE(steps.size() == 15);
  CHECK(steps.back().at("args").at("run as") == "captured graph");
}

TEST_CASE("other streams have rows of their own", "[execution]") {
  Profiled on("asynchronous", {.file = {}, .steps = 2, .warmup = 0});
  const int copies = on.profiler.add_stream("stream 1: copies");
  CHECK_FALSE(on.profiler.recording());
  Event begin = on.backend.make_event(), end = on.backend.make_event();
  on.steps(1);
  REQUIRE(on.profiler.recording());
  begin.record();
  on.backend.fill(on.arena.data(), 0, on.arena.bytes());
  end.record();
  end.synchronize();
  on.profiler.add_span(copies, "upload", begin, end, 4096);
  on.steps(1);
  on.profiler.detach();
  CHECK_FALSE(on.profiler.recording());
  const auto rows = on.trace();
  const auto& spans = rows.spans.at("device: host / stream 1: copies");
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].at("name") == "upload");
  CHECK(spans[0].at("args").at("bytes") == 4096.0);
  // Behind the step before it.
  const auto steps = of_category(rows.spans.at(kCompute), "step");
  CHECK(spans[0].at("ts").get<double>() >= steps[0].at("ts").get<double>() + steps[0].at("dur").get<double>() - 1);
}

TEST_CASE("what the host does is nested as it was", "[execution]") {
  Profiler profiler({});
  {
    const HostSpan outer(&profiler, "epoch");
    { const HostSpan inner(&profiler, "evaluation"); }
    { const HostSpan inner(&profiler, "checkpoint"); }
    const HostSpan unseen(nullptr, "not seen");
  }
  const gpunn::testing::TemporaryFolder folder;
  profiler.write(folder.path() / "t.json");
  const auto rows = trace_checks::checked(gpunn::read_text(folder.path() / "t.json"));
  const auto& spans = rows.spans.at(kHost);
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].at("name") == "epoch");
  CHECK(spans[2].at("name") == "checkpoint");
  CHECK(profiler.report().steps == 0);
}

TEST_CASE("a profile that is cut short keeps what it has, and frees its events", "[execution]") {
  const auto control = controlled("small_base");
  {
    Profiled on("small_base", {.file = {}, .steps = 10, .warmup = 1});
    on.steps(4);
    samples::set(control->fail_in, "event_elapsed");
    on.profiler.detach();
    CHECK(control->open_events == 0);
    CHECK(on.profiler.report().steps == 2);
    CHECK_THAT(on.trace().document.at("otherData").at("cut short").get<std::string>(), Contains("event_elapsed"));
    CHECK_THAT(error_of([&] { on.steps(1); }), Contains("before a backend"));
  }
  CHECK_THAT(error_of([] { Profiler({.file = {}, .steps = 0}); }), Contains("at least one step"));
}
