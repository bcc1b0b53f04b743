// An overlay whose memory is not its base's: its ops run with their tensors copied through the host.
#include "catch.hpp"
#include "execution/fixture.hpp"

using namespace fixture;
using gpunn::compiler::MemoryPlan;
using gpunn::execution::abi_tensor;
using gpunn::execution::Executable;
using gpunn::execution::Kernel;
using gpunn::execution::place_nodes;
using gpunn::execution::Variables;
using samples::error_of;

namespace {

// Which of the two is the host; all three take another way.
struct Domains {
  const char* overlay;
  const char* base;
};

Domains generate_domains() {
  const int i = GENERATE(0, 1, 2);
  return i == 0 ? Domains{"mars:0", "host"} : i == 1 ? Domains{"host", "mars:0"} : Domains{"mars:0", "venus:0"};
}

// RELU runs on the overlay, all else on its base.
struct Chain {
  samples::Controlled top = controlled("only_relu");
  samples::Controlled base = controlled("small_base");
  explicit Chain(const Domains& domains) {
    samples::set(top->memory_domain, domains.overlay);
    samples::set(base->memory_domain, domains.base);
  }
  void check_nothing_open() const {
    for (const Control* control : {&*top, &*base}) {
      CHECK(control->open_devices == 0);
      CHECK(control->open_streams == 0);
      CHECK(control->open_kernels == 0);
      CHECK(control->open_buffers == 0);
    }
  }
};

BackendOptions allowed() {
  BackendOptions options;
  options.host_copies = true;
  return options;
}

// y += relu(relu(x) - 1) with rows of two sizes.
struct CopyingProgram {
  Graph graph;
  ValueId active;
  CopyingProgram() {
    const ValueId x = graph.add_value("x", floats({3}), Storage::data);
    const ValueId y = graph.add_value("y", floats({3}), Storage::state);
    const ValueId shift = graph.add_value("shift", floats({3}), Storage::parameters);
    const ValueId first = graph.add1(GPUNN_OP_RELU, "first", {}, {x});
    const ValueId sum = graph.add1(GPUNN_OP_ADD, "sum", {}, {first, shift});
    active = graph.add1(GPUNN_OP_RELU, "second", {}, {sum});
    graph.add_into(GPUNN_OP_ADD, "accumulate", {}, {active, y}, {y});
  }
};

}  // namespace

TEST_CASE("ops of an overlay with memory of its own are copied through the host", "[execution]") {
  const Domains domains = generate_domains();
  const Chain chain(domains);
  {
    Backend backend(registry(), "only_relu", allowed());
    CHECK_THAT(backend.notice(),
               Contains("'only_relu' works in memory domain '" + std::string(domains.overlay) + "'") &&
                   Contains("'small_base' in '" + std::string(domains.base) + "'") &&
                   Contains("copied through the host, as host_copies allows"));
    CHECK(std::string(backend.info().memory_domain) == domains.base);
    const CopyingProgram program;
    const auto placements = place_nodes(backend, program.graph);
    CHECK(placements[0].level == 0);
    CHECK(placements[1].level == 1);
    const MemoryPlan plan = gpunn::compiler::plan_memory(program.graph, std::vector<uint64_t>(placements.size(), 0),
                                                         backend.info().alignment);
    auto arena = backend.allocate(plan.arena_bytes);
    Variables variables(backend);
    Executable executable(backend, variables, program.graph, plan, arena.data());
    variables.write("x", bytes_of({-1, 2, 5}));
    variables.write("shift", bytes_of({-1, -1, -1}));
    CHECK(chain.top->open_buffers == 1);

    executable.run();
    const int64_t allocations = backend.allocations();
    for (int i = 2; i <= 4; ++i) {
      executable.run();
      backend.synchronize();
      const auto n = static_cast<float>(i);
      CHECK(floats_of(variables.read("y")) == std::vector<float>{0, n, 4 * n});
    }
    CHECK(backend.allocations() == allocations);
    CHECK(chain.top->enqueues == 8);
    CHECK(chain.base->enqueues == 8);
    // The overlay has never seen an address of its base.
    CHECK(chain.top->last_output != executable.address(program.active));
  }
  chain.check_nothing_open();
}

TEST_CASE("host copies keep in place what is in place, and workspaces apart", "[execution]") {
  const Chain chain(generate_domains());
  chain.top->workspace_bytes = 1000;  // all of which the sample fills
  Backend backend(registry(), "only_relu", allowed());
  const TensorType type = floats({5});
  const auto placement = backend.place(relu(type));
  CHECK(placement.level == 0);
  CHECK(placement.workspace_bytes == 0);
  CHECK(placement.flags == GPUNN_OP_DETERMINISTIC);  // not capturable
  Kernel kernel = backend.create(relu(type), 0);

  auto x = backend.allocate(type.bytes());
  auto y = backend.allocate(type.bytes());
  const std::vector<float> values{-1, 2, -3, 4, 5};
  backend.upload(x.data(), values.data(), type.bytes());
  const gpunn_tensor from = abi_tensor(type, x.data()), to = abi_tensor(type, y.data());
  kernel.enqueue({&from, 1}, {&to, 1}, nullptr, "RELU 'it'");
  CHECK(chain.top->last_input != chain.top->last_output);
  std::vector<float> results(5);
  backend.download(results.data(), y.data(), type.bytes());
  CHECK(results == std::vector<float>{0, 2, 0, 4, 5});
  backend.download(results.data(), x.data(), type.bytes());
  CHECK(results == values);

  kernel.enqueue({&from, 1}, {&from, 1}, nullptr, "RELU 'it'");
  CHECK(chain.top->last_input == chain.top->last_output);
  backend.download(results.data(), x.data(), type.bytes());
  CHECK(results == std::vector<float>{0, 2, 0, 4, 5});
}

TEST_CASE("a larger op makes more room for host copies", "[execution]") {
  const Chain chain(generate_domains());
  Backend backend(registry(), "only_relu", allowed());
  const TensorType small = floats({2}), large = floats({5000}), none = floats({0});
  Kernel first = backend.create(relu(small), 0);
  Kernel second = backend.create(relu(large), 0);
  Kernel empty = backend.create(relu(none), 0);
  CHECK(chain.top->open_buffers == 1);

  auto memory = backend.allocate(large.bytes());
  const std::vector<float> values(5000, -1);
  backend.upload(memory.data(), values.data(), large.bytes());
  const gpunn_tensor two = abi_tensor(small, memory.data()), all = abi_tensor(large, memory.data());
  const gpunn_tensor nothing = abi_tensor(none, memory.data());
  empty.enqueue({&nothing, 1}, {&nothing, 1}, nullptr, "RELU 'none'");
  first.enqueue({&two, 1}, {&two, 1}, nullptr, "RELU 'two'");
  std::vector<float> results(5000);
  backend.download(results.data(), memory.data(), large.bytes());
  CHECK(results[1] == 0);
  CHECK(results[2] == -1);
  second.enqueue({&all, 1}, {&all, 1}, nullptr, "RELU 'all'");
  backend.download(results.data(), memory.data(), large.bytes());
  CHECK(results == std::vector<float>(5000, 0));
}

TEST_CASE("a program with host copies is not captured, and says why", "[execution]") {
  const auto top = controlled("relu_on_capturing");
  samples::set(top->memory_domain, "mars:0");
  Backend backend(registry(), "relu_on_capturing", allowed());
  CHECK(backend.can_capture());
  const CopyingProgram program;
  const auto placements = place_nodes(backend, program.graph);
  const MemoryPlan plan = gpunn::compiler::plan_memory(program.graph, std::vector<uint64_t>(placements.size(), 0),
                                                       backend.info().alignment);
  auto arena = backend.allocate(plan.arena_bytes);
  Variables variables(backend);
  Executable executable(backend, variables, program.graph, plan, arena.data());
  variables.write("x", bytes_of({-1, 2, 5}));
  for (int i = 0; i < 3; ++i) executable.run();
  CHECK_FALSE(executable.captured());
  CHECK(executable.eager_reason() == "RELU 'first' can't be captured by 'relu_on_capturing'");
  CHECK(floats_of(variables.read("y")) == std::vector<float>{0, 6, 15});
}

TEST_CASE("host copies that fail name the plugin, the op and the plugin's words", "[execution]") {
  const Chain chain({"mars:0", "venus:0"});
  const TensorType type = floats({4});
  {
    Backend backend(registry(), "only_relu", allowed());
    Kernel kernel = backend.create(relu(type), 0);
    auto memory = backend.allocate(type.bytes());
    const gpunn_tensor tensor = abi_tensor(type, memory.data());
    const auto run = [&] { kernel.enqueue({&tensor, 1}, {&tensor, 1}, nullptr, "RELU 'it'"); };
    samples::set(chain.top->fail_in, "copy");
    CHECK_THAT(error_of(run), Contains("plugin 'only_relu': copy of 16 B from the host for RELU 'it' failed") &&
                                  Contains("the sample was told to fail"));
    samples::set(chain.top->fail_in, "");
    samples::set(chain.base->fail_in, "copy");
    CHECK_THAT(error_of(run), Contains("plugin 'small_base': copy of 16 B to the host for RELU 'it' failed"));
    samples::set(chain.base->fail_in, "");
    samples::set(chain.top->fail_in, "stream_sync");
    CHECK_THAT(error_of(run), Contains("plugin 'only_relu': stream_sync for RELU 'it'"));
    samples::set(chain.top->fail_in, "memory_alloc");
    CHECK_THAT(error_of([&] { backend.create(relu(floats({400})), 0); }),
               Contains("plugin 'only_relu': memory_alloc of") && Contains("for host copies"));
    samples::set(chain.top->fail_in, "");
    samples::set(chain.top->null_in, "memory_alloc");
    CHECK_THAT(error_of([&] { backend.create(relu(floats({400})), 0); }), Contains("said OK but gave no address"));
  }
  chain.check_nothing_open();
  const auto open = [] { Backend(registry(), "only_relu", allowed()); };
  samples::set(chain.top->null_in, "stream_create");
  CHECK_THAT(error_of(open), Contains("plugin 'only_relu': stream_create said OK but gave no stream"));
  chain.check_nothing_open();
}
