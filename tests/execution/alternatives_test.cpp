// With plugins that name each other as alternatives, the faster one runs an op.
#include <fstream>

#include "catch.hpp"
#include "execution/fixture.hpp"
#include "execution/measurement/kernel_times.hpp"
#include "execution/steps/compiler.hpp"

using namespace fixture;
using gpunn::execution::compile;
using gpunn::execution::compile_fastest;
using gpunn::execution::measure_alternatives;
using gpunn::execution::Placement;
using Names = std::vector<std::string>;

namespace {

const BackendOptions kWithAlternatives = {.alternatives = true};
constexpr int kSlow = 300;  // microseconds, far beyond what an op of three numbers takes

struct Racers {
  samples::TemporaryFolder cache;
  samples::Environment environment{"GPUNN_CACHE_DIR", cache.path().string()};
  samples::Controlled racer = controlled("racer"), rival = controlled("rival"), base = controlled("small_base"),
                      far = controlled("far_rival");
};

}  // namespace

TEST_CASE("alternatives join the chain where they are there and share its memory", "[execution]") {
  const Racers racers;
  CHECK(Backend(registry(), "racer").chain() == Names{"racer", "small_base"});
  CHECK(Backend(registry(), "racer", kWithAlternatives).chain() == Names{"racer", "rival", "small_base"});
  CHECK(Backend(registry(), "rival", kWithAlternatives).chain() == Names{"rival", "racer", "small_base"});
  CHECK(Backend(registry(), "over_racer", kWithAlternatives).chain() ==
        Names{"over_racer", "racer", "rival", "small_base"});
  CHECK(racers.far->open_devices == 0);
}

TEST_CASE("an alternative that can't be opened is left out", "[execution]") {
  const Racers racers;
  samples::set(racers.rival->fail_in, "device_open");
  CHECK(Backend(registry(), "racer", kWithAlternatives).chain() == Names{"racer", "small_base"});
  CHECK_THROWS(Backend(registry(), "rival", kWithAlternatives));
}

TEST_CASE("the faster of two alternatives runs an op, and the times are kept", "[execution]") {
  const Racers racers;
  racers.racer->delay = kSlow;
  racers.base->delay = 0;
  {
    Backend backend(registry(), "racer", kWithAlternatives);
    CHECK(backend.rank(1) == 0);
    CHECK(backend.rank(2) == 2);
    CHECK(backend.place(relu(floats({3}))).level == 0);  // before anything was timed
    CHECK(racers.racer->enqueues == 0);
    REQUIRE(measure_alternatives(backend));
    const Placement placement = backend.place(relu(floats({3})));
    CHECK(placement.level == 1);
    CHECK(placement.rank == 0);
    CHECK(placement.seconds < kSlow * 1e-6);
    CHECK_THAT(placement.reason, Contains("racer 3") && Contains("rival"));
    CHECK(backend.place(relu(floats({4}))).level == 0);  // another shape
  }
  const int runs = racers.racer->enqueues;
  CHECK(runs > 0);
  {
    Backend again(registry(), "rival", kWithAlternatives);
    CHECK(again.place(relu(floats({3}))).level == 0);
    racers.rival->delay = 10 * kSlow;  // the file says otherwise
    CHECK_FALSE(measure_alternatives(again));
    CHECK(again.place(relu(floats({3}))).level == 0);
  }
  CHECK(racers.racer->enqueues == runs);
  CHECK(racers.racer->open_kernels == 0);
  CHECK(racers.rival->open_kernels == 0);
  CHECK(racers.base->open_buffers == 0);
}

TEST_CASE("an overlay that names no alternatives keeps its op however slow it is", "[execution]") {
  const Racers racers;
  const auto over = controlled("over_racer");
  over->delay = kSlow;
  Backend backend(registry(), "over_racer", kWithAlternatives);
  CHECK(backend.place(relu(floats({3}))).level == 0);
  CHECK_FALSE(measure_alternatives(backend));
  CHECK(backend.place(relu(floats({3}))).level == 0);
  CHECK(over->enqueues == 0);
}

TEST_CASE("no clock chooses kernels where they must be deterministic", "[execution]") {
  const Racers racers;
  racers.racer->delay = kSlow;
  Backend backend(registry(), "racer", {.deterministic = true, .alternatives = true});
  CHECK(backend.kernel_times() == nullptr);
  CHECK(backend.place(relu(floats({3}))).level == 0);
  CHECK_FALSE(measure_alternatives(backend));
}

TEST_CASE("a damaged file of times is done without, and the times of another build are forgotten", "[execution]") {
  const Racers racers;
  racers.racer->delay = kSlow;
  const auto file = racers.cache.path() / "kernel_times.json";
  for (const char* content : {"{", "[1]", "{\"sample, driver none\": 5}", ""}) {
    std::ofstream(file) << content;
    Backend backend(registry(), "racer", kWithAlternatives);
    CHECK(backend.place(relu(floats({3}))).level == 0);
    CHECK(measure_alternatives(backend));
    CHECK(backend.place(relu(floats({3}))).level == 1);
  }
  std::ifstream in(file);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto at = text.find("\"stamp\": \"");
  REQUIRE(at != std::string::npos);
  for (std::size_t i = at; i != std::string::npos; i = text.find("\"stamp\": \"", i + 12)) text.insert(i + 10, "1");
  std::ofstream(file) << text;
  Backend backend(registry(), "racer", kWithAlternatives);
  CHECK(backend.place(relu(floats({3}))).level == 0);
  CHECK(measure_alternatives(backend));
}

TEST_CASE("a kernel that fails while it is timed loses", "[execution]") {
  const Racers racers;
  racers.rival->delay = kSlow;
  samples::set(racers.racer->fail_in, "op_enqueue");
  Backend backend(registry(), "racer", kWithAlternatives);
  backend.place(relu(floats({3})));
  CHECK(measure_alternatives(backend));
  CHECK(backend.place(relu(floats({3}))).level == 1);
}

TEST_CASE("a step program is compiled to the faster kernels", "[execution]") {
  const Racers racers;
  racers.racer->delay = kSlow;
  Graph graph;
  const ValueId x = graph.add_value("x", floats({3}), Storage::data);
  graph.add1(GPUNN_OP_ADD, "sum", {}, {graph.add1(GPUNN_OP_RELU, "relu", {}, {x}), x});
  Backend backend(registry(), "racer", kWithAlternatives);
  const auto compiled = compile_fastest(graph, backend);
  REQUIRE(compiled.placements.size() == 2);
  CHECK(compiled.placements[0].level == 1);
  CHECK(compiled.placements[1].level == 1);
}

TEST_CASE("a subgraph is taken if it saves more than its ops gain by an alternative", "[execution][subgraphs]") {
  const Racers racers;
  racers.racer->delay = kSlow;
  Graph graph;
  const ValueId x = graph.add_value("x", floats({3}), Storage::data);
  graph.add1(GPUNN_OP_ADD, "sum", {}, {graph.add1(GPUNN_OP_RELU, "relu", {}, {x}), x});
  racers.racer->saves = kSlow * 1e-6;  // of the two ops, each of which loses about as much
  {
    Backend backend(registry(), "racer", kWithAlternatives);
    CHECK(compile(graph, backend).subgraphs.taken.size() == 1);  // before anything was timed
    REQUIRE(measure_alternatives(backend));
    const auto compiled = compile(graph, backend);
    CHECK(compiled.subgraphs.taken.empty());
    REQUIRE(!compiled.subgraphs.reasons.empty());
    CHECK_THAT(compiled.subgraphs.reasons[0], Contains("'all of it' saves about 300.0 us"));
  }
  racers.racer->saves = 1;
  Backend backend(registry(), "racer", kWithAlternatives);
  CHECK(compile(graph, backend).subgraphs.taken.size() == 1);
}
