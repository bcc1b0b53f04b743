// Which plugin of a chain runs an op.
#include "catch.hpp"
#include "execution/fixture.hpp"

using namespace fixture;
using gpunn::execution::abi_tensor;
using gpunn::execution::Kernel;
using gpunn::execution::Placement;
using samples::error_of;

TEST_CASE("an op is run by the first plugin that serves it", "[execution]") {
  const auto top = controlled("only_relu");
  const auto base = controlled("small_base");
  Backend backend(registry(), "only_relu");
  CHECK(backend.chain() == std::vector<std::string>{"only_relu", "small_base"});
  const TensorType type = floats({3});
  CHECK(backend.place(relu(type)).level == 0);
  CHECK(backend.place(add(type)).level == 1);

  // Both on the same memory, which the base owns.
  auto buffer = backend.allocate(type.bytes());
  CHECK(base->open_buffers == 1);
  CHECK(top->open_buffers == 0);
  const float values[3] = {-1, 2, -3};
  backend.upload(buffer.data(), values, sizeof(values));
  const gpunn_tensor tensor = abi_tensor(type, buffer.data());
  const gpunn_tensor inputs[] = {tensor, tensor};
  Kernel adder = backend.create(add(type), 1);
  Kernel rectifier = backend.create(relu(type), 0);
  adder.enqueue(inputs, {&tensor, 1}, nullptr, "ADD");
  rectifier.enqueue({&tensor, 1}, {&tensor, 1}, nullptr, "RELU");
  float results[3] = {};
  backend.download(results, buffer.data(), sizeof(results));
  CHECK(results[0] == 0);
  CHECK(results[1] == 4);
  CHECK(top->enqueues == 1);
  CHECK(base->enqueues == 1);
}

TEST_CASE("if no plugin serves an op each says why", "[execution]") {
  const Backend backend(registry(), "second_storey");
  const Placement placement = backend.place(softmax(floats({2, 2})));
  CHECK(placement.level == -1);
  CHECK(placement.reason ==
        "second_storey: the sample has no such kernel; only_relu: the sample has no such kernel; "
        "small_base: the sample has no such kernel");
}

TEST_CASE("UNSUPPORTED is an answer, any other failure an error", "[execution]") {
  const auto top = controlled("only_relu");
  const Backend backend(registry(), "only_relu");
  samples::set(top->fail_in, "op_query");
  top->fail_status = GPUNN_UNSUPPORTED;
  CHECK(backend.place(relu(floats({3}))).level == 1);
  top->fail_status = GPUNN_INTERNAL;
  CHECK_THAT(error_of([&] { backend.place(relu(floats({3}))); }),
             Contains("plugin 'only_relu': op_query of RELU (f32[3] -> f32[3]) failed (INTERNAL)"));
}

TEST_CASE("an absurd workspace is an error", "[execution]") {
  const auto control = controlled("faulty");
  const Backend backend(registry(), "faulty");
  control->workspace_bytes = (uint64_t{1} << 40) + 1;
  CHECK_THAT(error_of([&] { backend.place(relu(floats({3}))); }),
             Contains("plugin 'faulty': op_query of RELU") && Contains("workspace of 1") && Contains("TiB"));
  control->workspace_bytes = UINT64_MAX;
  CHECK_THAT(error_of([&] { backend.place(relu(floats({3}))); }), Contains("makes no sense"));
  control->workspace_bytes = uint64_t{1} << 40;
  CHECK(backend.place(relu(floats({3}))).workspace_bytes == uint64_t{1} << 40);
}

TEST_CASE("a kernel that needs a workspace is not run without", "[execution]") {
  const auto control = controlled("faulty");
  Backend backend(registry(), "faulty");
  control->workspace_bytes = 64;
  const TensorType type = floats({1});
  Kernel kernel = backend.create(relu(type), 0);
  float value = 1;
  const gpunn_tensor tensor = abi_tensor(type, &value);
  CHECK_THAT(error_of([&] {
               kernel.enqueue({&tensor, 1}, {&tensor, 1}, nullptr, "RELU 'r'");
             }),
             Contains("RELU 'r' needs a workspace of 64"));
  CHECK(control->enqueues == 0);
}

TEST_CASE("determinism is asked for, and a kernel that does not promise it refused", "[execution]") {
  const auto top = controlled("only_relu");
  const auto base = controlled("small_base");
  top->op_flags = GPUNN_OP_CAPTURABLE;
  const OpSignature op = relu(floats({3}));
  {
    const Backend backend(registry(), "only_relu");
    CHECK(backend.place(op).level == 0);
    CHECK(top->last_desc_flags == 0);
  }
  Backend backend(registry(), "only_relu", {.deterministic = true});
  CHECK(backend.place(op).level == 1);
  CHECK(top->last_desc_flags == GPUNN_OP_REQUIRE_DETERMINISTIC);
  CHECK_THAT(error_of([&] { backend.create(op, 0); }), Contains("not deterministic"));
  base->op_flags = 0;
  const Placement unserved = backend.place(op);
  CHECK(unserved.level == -1);
  CHECK_THAT(unserved.reason, Contains("small_base: its kernel is not deterministic"));
}

TEST_CASE("the precision is passed on", "[execution]") {
  const auto control = controlled("faulty");
  const auto precision_of = [&](gpunn::Precision precision) {
    Backend(registry(), "faulty", {.precision = precision}).place(relu(floats({1})));
    return control->last_precision;
  };
  CHECK(precision_of(gpunn::Precision::fp32) == GPUNN_PRECISION_FP32);
  CHECK(precision_of(gpunn::Precision::tf32) == GPUNN_PRECISION_TF32);
  CHECK(precision_of(gpunn::Precision::bf16) == GPUNN_PRECISION_BF16);
}

TEST_CASE("an overlay must share its base's memory, where host copies are not allowed", "[execution]") {
  const auto top = controlled("only_relu");
  const auto open = [] { Backend(registry(), "only_relu"); };
  samples::set(top->memory_domain, "mars:0");
  gpunn::ExitCode code = gpunn::ExitCode::done;
  CHECK_THAT(error_of(open, &code), Contains("'only_relu' works in memory domain 'mars:0'") &&
                                        Contains("base 'small_base' in 'host'") &&
                                        Contains("`host_copies: true` in the experiment, or --set host_copies=true"));
  CHECK(code == gpunn::ExitCode::missing);
  samples::set(top->memory_domain, "host");
  top->alignment = 4096;
  CHECK_THAT(error_of(open), Contains("needs memory aligned to 4096"));
  CHECK(top->open_devices == 0);
}

TEST_CASE("an overlay that can't wrap its base's stream is an error", "[execution]") {
  const auto top = controlled("only_relu");
  const auto base = controlled("small_base");
  const auto open = [] { Backend(registry(), "only_relu"); };
  samples::set(top->throw_in, "stream_wrap");
  CHECK_THAT(error_of(open), Contains("plugin 'only_relu': stream_wrap"));
  samples::set(top->throw_in, "");
  samples::set(top->null_in, "stream_wrap");
  CHECK_THAT(error_of(open), Contains("gave no stream"));
  samples::set(top->null_in, "");
  samples::set(base->throw_in, "stream_native");
  CHECK_THAT(error_of(open), Contains("plugin 'small_base': stream_native"));
  samples::set(base->throw_in, "");
  CHECK(top->open_devices == 0);
  CHECK(base->open_devices == 0);
  CHECK(base->open_streams == 0);
  CHECK(error_of(open) == "(no error)");
}
