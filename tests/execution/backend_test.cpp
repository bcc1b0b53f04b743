// Opening plugins on a device, memory, copies and timers; and plugins that break the contract.
#include <utility>

#include "catch.hpp"
#include "execution/fixture.hpp"
#include "execution/streams/event.hpp"

using namespace fixture;
using gpunn::ExitCode;
using gpunn::execution::abi_tensor;
using gpunn::execution::Buffer;
using gpunn::execution::Event;
using gpunn::execution::Kernel;
using samples::error_of;

namespace {

// Calls every function of a plugin without a base at least once.
void exercise(const std::string& name) {
  Backend backend(registry(), name);
  const TensorType type = floats({4});
  Buffer buffer = backend.allocate(type.bytes());
  backend.fill(buffer.data(), 0, buffer.bytes());
  float values[4] = {1, -2, 3, -4};
  backend.upload(buffer.data(), values, sizeof(values));
  const auto timer = backend.make_timer();
  timer->start();
  Kernel kernel = backend.create(relu(type), backend.place(relu(type)).level);
  const gpunn_tensor tensor = abi_tensor(type, buffer.data());
  kernel.enqueue({&tensor, 1}, {&tensor, 1}, nullptr, "RELU 'it'");
  timer->stop();
  const double elapsed = timer->milliseconds();
  CHECK(elapsed >= 0);
  backend.download(values, buffer.data(), sizeof(values));
  backend.synchronize();
  CHECK(values[0] == 1);
  CHECK(values[3] == 0);
}

void check_nothing_open(const Control& control) {
  CHECK(control.open_devices == 0);
  CHECK(control.open_streams == 0);
  CHECK(control.open_events == 0);
  CHECK(control.open_kernels == 0);
  CHECK(control.open_buffers == 0);
}

}  // namespace

TEST_CASE("a backend opens its plugin and closes it", "[execution]") {
  const auto control = controlled("faulty");
  {
    const Backend backend(registry(), "faulty", {.device = 1, .threads = 3});
    CHECK(backend.name() == "faulty");
    CHECK(backend.chain() == std::vector<std::string>{"faulty"});
    CHECK(std::string(backend.info().memory_domain) == "host");
    CHECK(backend.info().alignment == 64);
    CHECK_FALSE(backend.can_capture());
    CHECK(control->host_threads == 3);
    CHECK(control->open_devices == 1);
    CHECK(control->open_streams == 1);
  }
  check_nothing_open(*control);
  exercise("faulty");
  check_nothing_open(*control);
}

TEST_CASE("a device that is not there", "[execution]") {
  ExitCode code = ExitCode::done;
  const auto open = [](int device) { Backend(registry(), "faulty", {.device = device}); };
  CHECK_THAT(error_of([&] { open(2); }, &code), Contains("'faulty' has 2 devices") && Contains("device 2 was asked"));
  CHECK(code == ExitCode::missing);
  CHECK_THAT(error_of([&] { open(-1); }), Contains("device -1"));
  CHECK_THAT(error_of([] { Backend(registry(), "faulty", {.threads = -2}); }, &code), Contains("threads"));
  CHECK(code == ExitCode::usage);
}

TEST_CASE("events mark the stream, and waiting for it is counted", "[execution]") {
  const auto control = controlled("faulty");
  Backend backend(registry(), "faulty");
  {
    Event start = backend.make_event(), stop = backend.make_event();
    CHECK(control->open_events == 2);
    start.record();
    CHECK_FALSE(stop.recorded());
    CHECK_THAT(error_of([&] { stop.milliseconds_since(start); }), Contains("not recorded"));
    stop.record();
    const int64_t before = backend.synchronizations();
    stop.synchronize();
    CHECK(stop.milliseconds_since(start) >= 0);
    CHECK(backend.synchronizations() == before + 1);
    std::vector<Event> kept;
    kept.push_back(std::move(stop));
    kept.front() = backend.make_event();
    CHECK_FALSE(kept.front().recorded());
  }
  CHECK(control->open_events == 0);

  Buffer buffer = backend.allocate(4);
  float value = 0;
  const int64_t before = backend.synchronizations();
  backend.fill(buffer.data(), 0, 4);
  CHECK(backend.synchronizations() == before);
  backend.upload(buffer.data(), &value, 4);
  backend.download(&value, buffer.data(), 4);
  backend.synchronize();
  CHECK(backend.synchronizations() == before + 3);
}

TEST_CASE("a chain is closed if one of its plugins does not open", "[execution]") {
  const auto top = controlled("only_relu");
  const auto base = controlled("small_base");
  const auto open = [] { Backend(registry(), "only_relu"); };
  samples::set(base->fail_in, "device_open");
  base->fail_status = GPUNN_NO_DEVICE;
  ExitCode code = ExitCode::done;
  CHECK_THAT(error_of(open, &code),
             Contains("plugin 'small_base': device_open failed (NO_DEVICE): the sample was told"));
  CHECK(code == ExitCode::missing);
  check_nothing_open(*top);
  samples::set(base->fail_in, "");
  samples::set(top->fail_in, "device_open");
  top->fail_status = GPUNN_OUT_OF_MEMORY;
  CHECK_THAT(error_of(open, &code), Contains("plugin 'only_relu': device_open failed (OUT_OF_MEMORY)"));
  CHECK(code == ExitCode::failed);
  check_nothing_open(*base);
}

TEST_CASE("temporary buffers come from a pool and go back to it", "[execution]") {
  const auto control = controlled("faulty");
  {
    Backend backend(registry(), "faulty");
    const void* first = nullptr;
    {
      const Buffer buffer = backend.allocate_temporary(1000);
      first = buffer.data();
      CHECK(buffer.bytes() == 1000);
      CHECK(backend.allocated_bytes() == 1000);
    }
    CHECK(backend.allocated_bytes() == 0);
    CHECK(control->open_buffers == 1);
    Buffer again = backend.allocate_temporary(800), moved = std::move(again);
    CHECK(moved.data() == first);
    CHECK(backend.allocations() == 1);
    CHECK(backend.pool_statistics().hits == 1);
    CHECK(backend.pool_statistics().peak_bytes == 1024);
    moved = backend.allocate(10);
    CHECK(control->open_buffers == 2);
  }
  check_nothing_open(*control);
}

TEST_CASE("a memory checker may have each temporary buffer by itself", "[execution]") {
  const samples::Environment off("GPUNN_POOL", "0");
  const auto control = controlled("faulty");
  Backend backend(registry(), "faulty");
  { const Buffer buffer = backend.allocate_temporary(1000); }
  CHECK(control->open_buffers == 0);
  CHECK(backend.pool_statistics().requests == 0);
}

TEST_CASE("where a device has no more memory, what the pool keeps is given up first", "[execution]") {
  const auto control = controlled("faulty");
  control->capacity = 10000;
  Backend backend(registry(), "faulty");
  const Buffer planned = backend.allocate(4000);
  { const Buffer temporary = backend.allocate_temporary(5000); }
  CHECK(backend.free_bytes() == 6000);
  CHECK(control->open_buffers == 2);
  {
    const Buffer other = backend.allocate(5500);
    CHECK(control->open_buffers == 2);
    CHECK(backend.free_bytes() == 500);
    ExitCode code = ExitCode::done;
    CHECK_THAT(error_of([&] { backend.allocate(1000); }, &code),
               Contains("plugin 'faulty': memory_alloc of 1000 B of device memory failed (OUT_OF_MEMORY): ") &&
                   Contains("this process holds 9.3 KiB on the device, 500 B are free"));
    CHECK(code == ExitCode::missing);
    CHECK_THROWS_AS(backend.allocate_temporary(1000), gpunn::execution::OutOfMemory);
  }
  const Buffer temporary = backend.allocate_temporary(5000);
  CHECK(backend.pool_statistics().trims == 1);
  CHECK(backend.allocated_bytes() == 9000);
}

TEST_CASE("what a plugin logs is heard", "[execution]") {
  std::vector<std::string> heard;
  BackendOptions options;
  options.log = [&](int level, const std::string& text) { heard.push_back(std::to_string(level) + " " + text); };
  const Backend backend(registry(), "faulty", options);
  CHECK(heard == std::vector<std::string>{"2 the sample was opened"});
  options.log = [](int, const std::string&) { throw std::runtime_error("the listener broke"); };
  CHECK_NOTHROW(Backend(registry(), "faulty", options));
}

TEST_CASE("a plugin that throws in any function is an error, not the end", "[execution]") {
  const std::string function = GENERATE(as<std::string>{}, "device_open", "device_info", "memory_alloc", "copy", "fill",
                                        "stream_create", "stream_sync", "event_create", "event_record", "event_sync",
                                        "event_elapsed", "op_query", "op_create", "op_enqueue");
  const auto control = controlled("faulty");
  samples::set(control->throw_in, function);
  const std::string text = error_of([] { exercise("faulty"); });
  CHECK_THAT(text, Contains("plugin 'faulty': " + function));
  CHECK_THAT(text, Contains("let an exception out") && Contains("thrown in " + function));
  check_nothing_open(*control);
}

TEST_CASE("a plugin that throws where nothing can fail does no harm", "[execution]") {
  const std::string function =
      GENERATE(as<std::string>{}, "memory_free", "stream_destroy", "event_destroy", "op_free", "device_close");
  const auto control = controlled("faulty");
  samples::set(control->throw_in, function);
  CHECK(error_of([] { exercise("faulty"); }) == "(no error)");
  check_nothing_open(*control);
}

TEST_CASE("a failed call names the plugin, the call, the status and the plugin's words", "[execution]") {
  const std::string function = GENERATE(as<std::string>{}, "device_open", "device_info", "memory_alloc", "copy", "fill",
                                        "stream_create", "stream_sync", "event_create", "event_record", "event_sync",
                                        "event_elapsed", "op_query", "op_create", "op_enqueue");
  const auto control = controlled("faulty");
  samples::set(control->fail_in, function);
  control->fail_status = GPUNN_DEVICE_LOST;
  const std::string text = error_of([] { exercise("faulty"); });
  // The line break in the plugin's message is gone.
  CHECK_THAT(text, Contains("plugin 'faulty': " + function) && Contains("failed (DEVICE_LOST): ") &&
                       Contains("the sample was told to fail"));
  check_nothing_open(*control);
}

TEST_CASE("statuses without a message, and unknown ones", "[execution]") {
  const auto control = controlled("faulty");
  samples::set(control->fail_in, "copy");
  control->fail_with_message = false;
  control->fail_status = 4711;
  CHECK_THAT(error_of([] { exercise("faulty"); }), Contains("unknown status 4711") && Contains("gave no reason"));
  samples::set(control->fail_in, "device_open");
  control->fail_status = GPUNN_NO_DEVICE;
  ExitCode code = ExitCode::done;
  CHECK_THAT(error_of([] { exercise("faulty"); }, &code), Contains("NO_DEVICE"));
  CHECK(code == ExitCode::missing);
}

TEST_CASE("OK with NULL is an error", "[execution]") {
  const std::string function =
      GENERATE(as<std::string>{}, "device_open", "stream_create", "memory_alloc", "event_create", "op_create");
  const auto control = controlled("faulty");
  samples::set(control->null_in, function);
  CHECK_THAT(error_of([] { exercise("faulty"); }), Contains("plugin 'faulty': " + function) && Contains("said OK but"));
  check_nothing_open(*control);
}

TEST_CASE("nonsense about a device is an error", "[execution]") {
  const auto control = controlled("faulty");
  const auto open = [] { Backend(registry(), "faulty"); };
  control->alignment = 0;
  CHECK_THAT(error_of(open), Contains("alignment of 0 bytes"));
  control->alignment = 48;
  CHECK_THAT(error_of(open), Contains("alignment of 48 bytes"));
  control->alignment = uint64_t{1} << 40;
  CHECK_THAT(error_of(open), Contains("expected a power of two"));
  control->alignment = 64;
  samples::set(control->memory_domain, "");
  CHECK_THAT(error_of(open), Contains("no memory domain"));
  samples::set(control->memory_domain, "host");
  control->unterminated_texts = true;
  const Backend backend(registry(), "faulty");
  CHECK(std::strlen(backend.info().name) == sizeof(gpunn_device_info::name) - 1);
}

TEST_CASE("memory that is not aligned as promised is an error", "[execution]") {
  const auto control = controlled("faulty");
  control->misaligned_memory = true;
  CHECK_THAT(error_of([] { exercise("faulty"); }), Contains("not aligned to the 64 bytes"));
  check_nothing_open(*control);
}

TEST_CASE("a plugin on plugin.hpp that throws everywhere", "[execution]") {
  Backend backend(registry(), "throwing");
  const TensorType type = floats({2});
  float values[2] = {};
  CHECK_THAT(error_of([&] { backend.allocate(8); }), Contains("memory_alloc of 8 B") && Contains("OUT_OF_MEMORY"));
  CHECK_THAT(error_of([&] { backend.upload(values, values, 8); }), Contains("thrown in copy"));
  CHECK_THAT(error_of([&] { backend.fill(values, 0, 8); }), Contains("exception of unknown type"));
  CHECK_THAT(error_of([&] { backend.synchronize(); }), Contains("thrown in synchronize"));
  CHECK_THAT(error_of([&] { backend.make_timer(); }), Contains("thrown in create_event"));
  CHECK_THAT(error_of([&] { backend.place(relu(type)); }), Contains("op_query of RELU") && Contains("thrown in query"));
  const OpSignature copy{GPUNN_OP_COPY, {}, {type}, {type}};
  CHECK_THAT(error_of([&] { backend.create(copy, 0); }), Contains("op_create of COPY") && Contains("UNSUPPORTED"));
  const gpunn_fill_attrs two{.struct_size = 0, .dtype = GPUNN_F32, .rank = 1, .reserved = 0, .dim = {2}, .value = 0};
  const OpSignature fill{GPUNN_OP_FILL, gpunn::graph::Attributes::of(two), {}, {type}};
  Kernel kernel = backend.create(fill, 0);
  const gpunn_tensor tensor = abi_tensor(type, values);
  CHECK_THAT(error_of([&] {
               kernel.enqueue({}, {&tensor, 1}, nullptr, "FILL 'fc1'");
             }),
             Contains("plugin 'throwing': op_enqueue of FILL 'fc1'") && Contains("thrown in enqueue"));
}

TEST_CASE("buffers are accounted for", "[execution]") {
  const auto control = controlled("faulty");
  Backend backend(registry(), "faulty");
  {
    Buffer first = backend.allocate(1000);
    Buffer second = backend.allocate(24);
    Buffer pinned = backend.allocate(4096, GPUNN_MEMORY_PINNED);
    CHECK(backend.allocated_bytes() == 1024);
    CHECK(backend.allocations() == 3);
    CHECK(first.bytes() == 1000);

    void* const address = first.data();
    Buffer moved = std::move(first);
    CHECK(moved.data() == address);
    second = std::move(moved);
    CHECK(second.data() == address);
    CHECK(backend.allocated_bytes() == 1024);
    const Buffer empty = backend.allocate(0);
    CHECK(empty.data() != nullptr);
    CHECK(backend.allocated_bytes() == 1024);
  }
  CHECK(backend.allocated_bytes() == 0);
  CHECK(control->open_buffers == 0);
  CHECK(backend.allocations() == 4);
}

TEST_CASE("a timer that was not run is an error", "[execution]") {
  Backend backend(registry(), "faulty");
  const auto timer = backend.make_timer();
  timer->start();
  CHECK_THROWS_WITH(timer->milliseconds(), Contains("before it was started and stopped"));
}

TEST_CASE("a tensor crosses the ABI packed", "[execution]") {
  const gpunn_tensor tensor = abi_tensor({DType::i32, {2, 3, 5}}, nullptr);
  CHECK(tensor.struct_size == sizeof(gpunn_tensor));
  CHECK(tensor.dtype == GPUNN_I32);
  CHECK(tensor.rank == 3);
  CHECK(tensor.dim[1] == 3);
  CHECK(tensor.stride[0] == 15);
  CHECK(tensor.stride[2] == 1);
  CHECK(abi_tensor({DType::f32, {}}, nullptr).rank == 0);
  CHECK_THROWS_WITH(abi_tensor(floats({1, 1, 1, 1, 1, 1, 1, 1, 1}), nullptr), Contains("at most 8"));
}
