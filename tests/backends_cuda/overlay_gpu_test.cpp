// An overlay on cuda_naive: its kernels on the base's stream, alone and in a captured graph.
#include <gpunn/ops.h>

#include "catch.hpp"
#include "compiler/memory_plan.hpp"
#include "conformance/abi/raw_device.hpp"
#include "execution/steps/executable.hpp"
#include "execution/steps/variables.hpp"
#include "gpu.hpp"

using namespace gpunn;
using execution::Backend;
using execution::Executable;
using execution::Variables;
using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  const auto* begin = reinterpret_cast<const std::byte*>(values.data());
  return {begin, begin + values.size() * sizeof(float)};
}

float first_of(const std::vector<std::byte>& bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

TEST_CASE("a captured step holds an overlay's kernels between its base's, and reads what changes anew") {
  Backend backend(gpu::registry(), "cuda_test");
  REQUIRE(backend.chain() == std::vector<std::string>{"cuda_test", "cuda_naive"});
  // y += relu(2 x), of which the overlay does the relu.
  Graph graph;
  const TensorType type{DType::f32, {1000}};
  const ValueId x = graph.add_value("x", type, Storage::data), y = graph.add_value("y", type, Storage::state);
  const ValueId twice = graph.add1(GPUNN_OP_SCALE, "twice", Attributes::of(gpunn_scale_attrs{0, 2.0F}), {x});
  const ValueId active = graph.add1(GPUNN_OP_RELU, "active", {}, {twice});
  graph.add_into(GPUNN_OP_ADD, "sum", {}, {active, y}, {y});

  std::vector<uint64_t> workspaces;
  for (const auto& placement : execution::place_nodes(backend, graph)) workspaces.push_back(placement.workspace_bytes);
  const compiler::MemoryPlan plan = compiler::plan_memory(graph, workspaces, backend.info().alignment);
  const execution::Buffer arena = backend.allocate(plan.arena_bytes);
  Variables variables(backend);
  Executable executable(backend, variables, graph, plan, arena.data());

  variables.write("x", bytes_of(std::vector<float>(1000, 1.0F)));
  const int32_t before = gpu::control().relus;
  executable.run(2);  // the second is captured
  REQUIRE(executable.captured());
  const int32_t put = gpu::control().relus - before;
  CHECK(put == 2);
  CHECK(first_of(variables.read("y")) == 4.0F);
  variables.write("x", bytes_of(std::vector<float>(1000, 5.0F)));
  for (int i = 0; i < 3; ++i) executable.run();
  CHECK(gpu::control().relus - before == put);  // the graph's, not put on the stream again
  CHECK(first_of(variables.read("y")) == 34.0F);
}

TEST_CASE("a wrapped stream is its maker's: in order with it, and whole after the wrapper has gone") {
  const auto chain = gpu::registry().chain("cuda_test");
  const conformance::RawDevice base(chain[1], 0, nullptr);
  constexpr std::size_t kCount = 1 << 20;
  const conformance::RawMemory memory(base, GPUNN_MEMORY_DEVICE, kCount * sizeof(float));
  const TensorType type{DType::f32, {kCount}};
  const std::vector<gpunn_tensor> in_place{execution::abi_tensor(type, memory.data())};
  std::vector<std::byte> found(kCount * sizeof(float));
  {
    const conformance::RawDevice overlay(chain[0], 0, &base);
    void *ours = nullptr, *theirs = nullptr;
    base.call("stream_native",
              [&](gpunn_error* error) { return base.table().stream_native(base.stream(), &theirs, error); });
    overlay.call("stream_native",
                 [&](gpunn_error* error) { return overlay.table().stream_native(overlay.stream(), &ours, error); });
    CHECK(ours == theirs);

    const conformance::RawDescription description(GPUNN_OP_RELU, nullptr, in_place, in_place);
    gpunn_kernel* kernel = nullptr;
    overlay.call("op_create", [&](gpunn_error* error) {
      return overlay.table().op_create(overlay.device(), description.get(), &kernel, error);
    });
    gpunn_op_args args{};
    args.struct_size = sizeof(args);
    args.n_inputs = 1;
    args.inputs = description.inputs();
    args.n_outputs = 1;
    args.outputs = description.outputs();
    // Negative numbers by the base, relu of them by the overlay, read by the base: 0 only if all is in order.
    base.call("fill", [&](gpunn_error* error) {
      return base.table().fill(base.stream(), memory.data(), 0xBF, kCount * sizeof(float), error);
    });
    overlay.call("op_enqueue", [&](gpunn_error* error) {
      return overlay.table().op_enqueue(kernel, overlay.stream(), &args, error);
    });
    memory.read(found);
    CHECK(found == std::vector<std::byte>(found.size()));
    overlay.table().op_free(kernel);
  }
  base.call("fill", [&](gpunn_error* error) {
    return base.table().fill(base.stream(), memory.data(), 7, kCount * sizeof(float), error);
  });
  memory.read(found);
  CHECK(found == std::vector<std::byte>(found.size(), std::byte{7}));
}
