// Which engines cuDNN offers an H200, asked without one: plans are made for the properties of a device.
#include "engines.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "common/requirements.hpp"

namespace {

using gpunn::backends::ConvolutionAxis;
using gpunn::backends::ConvolutionPass;
using gpunn::backends::ConvolutionShape;
using gpunn::cudnn::convolution_graph;
using gpunn::cudnn::Descriptor;
using gpunn::cudnn::EngineRules;
using gpunn::cudnn::Epilogue;
using gpunn::cudnn::execution_plan;
using gpunn::cudnn::execution_plans;
using gpunn::cudnn::ExecutionPlan;
using gpunn::cudnn::OperationGraph;
using gpunn::cudnn::Target;

constexpr const char* kH200 = R"({"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":132,
"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,
"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,
"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":1980000,
"memClockRateKHz":3201000,"l2CacheSize":62914560,"deviceName":"NVIDIA H200","totalGlobalMem":150754820096})";

const Target& h200() {
  static const Descriptor properties = [] {
    const std::string text = kH200;
    Descriptor made(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    made.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(text.size()),
             text.data());
    made.finalize();
    return made;
  }();
  static const Target target{.handle = nullptr, .properties = &properties};
  return target;
}

ConvolutionAxis axis(int64_t inputs, int64_t taps, int64_t stride, int64_t pad, int64_t dilation) {
  return {.inputs = inputs,
          .outputs = (inputs + 2 * pad - dilation * (taps - 1) - 1) / stride + 1,
          .taps = taps,
          .stride = stride,
          .pad = pad,
          .dilation = dilation};
}

// LeNet's two; strides, pads and dilations that differ between the axes; groups; depthwise; a single element; windows
// of padding alone.
const std::vector<ConvolutionShape>& shapes() {
  static const std::vector<ConvolutionShape> all = {
      {128, 1, 1, 6, axis(28, 5, 1, 2, 1), axis(28, 5, 1, 2, 1)},
      {128, 1, 6, 16, axis(14, 5, 1, 0, 1), axis(14, 5, 1, 0, 1)},
      {2, 1, 2, 3, axis(15, 3, 2, 1, 3), axis(12, 2, 3, 2, 2)},
      {2, 3, 2, 4, axis(8, 3, 2, 0, 1), axis(9, 3, 2, 1, 1)},
      {2, 8, 1, 1, axis(10, 3, 1, 1, 1), axis(10, 3, 1, 1, 1)},
      {1, 1, 1, 1, axis(1, 1, 1, 0, 1), axis(1, 1, 1, 0, 1)},
      {1, 1, 3, 4, axis(6, 3, 1, 4, 1), axis(6, 3, 1, 4, 1)},
  };
  return all;
}

struct Operation {
  ConvolutionPass pass;
  Epilogue epilogue;
};

constexpr Operation kOperations[] = {
    {ConvolutionPass::forward, Epilogue::none},          {ConvolutionPass::forward, Epilogue::bias},
    {ConvolutionPass::forward, Epilogue::bias_relu},     {ConvolutionPass::forward, Epilogue::bias_add},
    {ConvolutionPass::forward, Epilogue::bias_add_relu}, {ConvolutionPass::backward_data, Epilogue::none},
    {ConvolutionPass::backward_filter, Epilogue::none}};

constexpr uint64_t kRoom = uint64_t{64} << 20U;
constexpr std::size_t kAll = 100;

bool has_note(const OperationGraph& graph, const std::string& plan, cudnnBackendNumericalNote_t note) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, int64_t{std::stol(plan.substr(1))});
  engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *h200().properties);
  engine.finalize();
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const int64_t count =
      engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
  return std::find(notes, notes + count, note) != notes + count;
}

}  // namespace

TEST_CASE("every convolution has plans in fp32, deterministic and without tensor cores") {
  const std::size_t i = GENERATE(range(std::size_t{0}, shapes().size()));
  const std::size_t k = GENERATE(range(std::size_t{0}, std::size(kOperations)));
  const bool channels_last = GENERATE(false, true);
  CAPTURE(i, k, channels_last);
  const OperationGraph graph = convolution_graph(h200(), kOperations[k].pass, shapes()[i], kOperations[k].epilogue,
                                                 {.dtype = GPUNN_F32, .channels_last = channels_last});
  const EngineRules rules{.tensor_cores = false, .workspace_bytes = kRoom};
  const std::vector<ExecutionPlan> plans = execution_plans(h200(), graph, rules, kAll);
  CHECK(!plans.empty());
  for (const ExecutionPlan& plan : plans) {
    CAPTURE(plan.name);
    CHECK(plan.workspace_bytes <= kRoom);
    CHECK(!has_note(graph, plan.name, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
    CHECK(!has_note(graph, plan.name, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
    CHECK(!has_note(graph, plan.name, CUDNN_NUMERICAL_NOTE_WINOGRAD));
    CHECK(!has_note(graph, plan.name, CUDNN_NUMERICAL_NOTE_FFT));
  }
}

TEST_CASE("every convolution has plans for tensors of half precision, which sum in f32") {
  const std::size_t i = GENERATE(range(std::size_t{0}, shapes().size()));
  const auto pass =
      GENERATE(ConvolutionPass::forward, ConvolutionPass::backward_data, ConvolutionPass::backward_filter);
  const int32_t dtype = GENERATE(int32_t{GPUNN_BF16}, int32_t{GPUNN_F16});
  const bool channels_last = GENERATE(false, true);
  CAPTURE(i, static_cast<int>(pass), dtype, channels_last);
  const OperationGraph graph =
      convolution_graph(h200(), pass, shapes()[i], Epilogue::none, {.dtype = dtype, .channels_last = channels_last});
  const EngineRules rules{.tensor_cores = true, .workspace_bytes = kRoom};
  const std::vector<ExecutionPlan> plans = execution_plans(h200(), graph, rules, kAll);
  CHECK(!plans.empty());
  for (const ExecutionPlan& plan : plans) {
    CHECK(!has_note(graph, plan.name, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
  }
}

TEST_CASE("with tf32 tensor cores are among the plans") {
  const EngineRules rules{.tensor_cores = true, .workspace_bytes = kRoom};
  for (const Operation& operation : kOperations) {
    const OperationGraph graph = convolution_graph(h200(), operation.pass, shapes()[1], operation.epilogue);
    const std::vector<ExecutionPlan> plans = execution_plans(h200(), graph, rules, kAll);
    CHECK(std::any_of(plans.begin(), plans.end(), [&](const ExecutionPlan& plan) {
      return has_note(graph, plan.name, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    }));
  }
}

TEST_CASE("a plan is made again from its name") {
  const EngineRules rules{.tensor_cores = true, .workspace_bytes = kRoom};
  const OperationGraph graph = convolution_graph(h200(), ConvolutionPass::forward, shapes()[1], Epilogue::bias_relu);
  const std::vector<ExecutionPlan> plans = execution_plans(h200(), graph, rules, kAll);
  REQUIRE(plans.size() > 5);
  for (const ExecutionPlan& plan : plans) {
    const ExecutionPlan again = execution_plan(h200(), graph, rules, plan.name);
    CHECK(again.name == plan.name);
    CHECK(again.workspace_bytes == plan.workspace_bytes);
  }
}

TEST_CASE("a plan that needs more memory than the limit, or breaks a rule, is not made") {
  const OperationGraph graph = convolution_graph(h200(), ConvolutionPass::forward, shapes()[1], Epilogue::none);
  const EngineRules all{.tensor_cores = true, .workspace_bytes = kRoom};
  bool rounds = false, needs_memory = false;
  for (const ExecutionPlan& plan : execution_plans(h200(), graph, all, kAll)) {
    CAPTURE(plan.name);
    if (has_note(graph, plan.name, CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) {
      rounds = true;
      CHECK_THROWS_WITH(execution_plan(h200(), graph, {.tensor_cores = false, .workspace_bytes = kRoom}, plan.name),
                        Contains("TF32"));
    }
    if (plan.workspace_bytes > 0) {
      needs_memory = true;
      const EngineRules tight{.tensor_cores = true, .workspace_bytes = plan.workspace_bytes - 1};
      CHECK_THROWS_WITH(execution_plan(h200(), graph, tight, plan.name), Contains("limit"));
    }
  }
  CHECK(rounds);
  CHECK(needs_memory);
  for (const ExecutionPlan& plan : execution_plans(h200(), graph, {.tensor_cores = true, .workspace_bytes = 0}, kAll)) {
    CHECK(plan.workspace_bytes == 0);
  }
}

TEST_CASE("what is no name of a plan is refused") {
  const EngineRules rules{.tensor_cores = true, .workspace_bytes = kRoom};
  const OperationGraph graph = convolution_graph(h200(), ConvolutionPass::forward, shapes()[1], Epilogue::none);
  for (const char* name : {"", "e", "28", "e28x", "e28 ", "e28 2", "e28 2=", "e28 2=x", "e28  2=4", "e-1", "e99999",
                           "e28 99999=1", "e28 2=99999", "e99999999999999999999", "e28 2=4 2=4 2=4junk"}) {
    CAPTURE(name);
    CHECK_THROWS(execution_plan(h200(), graph, rules, name));
  }
}
