// Programs in eight bits: which ops run on stored numbers, and that these give the bits of the ops that they stand for.
#include <gpunn/ops.h>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "execution/steps/compiler.hpp"
#include "execution/steps/executable.hpp"
#include "inference/eight_bits/quantizers.hpp"

using namespace gpunn;
using graph::Attributes;
using graph::Graph;
using graph::Node;
using graph::ValueId;

namespace {

constexpr float kScale = 1.0F / 48;

Attributes stored_with(float scale) {
  return Attributes::of(gpunn_quantize_attrs{.struct_size = 0, .scale = scale, .zero_point = 128});
}

const TensorType kImages{DType::f32, {2, 5, 9, 8}};

// Two convolutions side by side, joined, pooled and read by a dense layer, as in SqueezeNet. The second convolution is
// stored with `other`.
class Program {
 public:
  // other: 0 leaves all roundings out, as they are before a calibration.
  explicit Program(float other) : rounds_(other > 0) {
    const ValueId x = graph.add_value("x", kImages, graph::Storage::data);
    const ValueId pixels = graph.add1(GPUNN_OP_RELU, "pixels", {}, {x});
    const ValueId in = fake("in", pixels, kScale);
    const ValueId wide = fake("wide", convolution("left", in, 6), kScale);
    const ValueId narrow = fake("narrow", convolution("right", in, 3), other);
    const Attributes channels = Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = 1});
    const ValueId whole = fake("whole", graph.add1(GPUNN_OP_CONCAT, "joined", channels, {wide, narrow}), kScale);
    gpunn_pool2d_attrs window{};
    window.window[0] = window.window[1] = 3;
    window.stride[0] = window.stride[1] = 2;
    const ValueId pooled = graph.add1(GPUNN_OP_MAX_POOL2D, "pooled", Attributes::of(window), {whole});
    const ValueId kept = fake("kept", pooled, kScale);
    const Shape& shape = graph.value(kept).type.shape;
    const int64_t terms = shape[1] * shape[2] * shape[3];
    const ValueId rows = graph.add_view("rows", kept, {DType::f32, {shape[0], terms}});
    const ValueId weights = weight("dense.weight", {7, terms});
    const Attributes turned = Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1});
    const ValueId sums = graph.add1(GPUNN_OP_MATMUL, "dense", turned, {rows, weights});
    const TensorType answers = graph.value(sums).type;
    const ValueId biased = graph.add1(GPUNN_OP_BIAS_ADD, "dense.biased", {}, {sums, weight("dense.bias", {7})});
    graph.add_into(GPUNN_OP_COPY, "y", {}, {biased}, {graph.add_value("y", answers, graph::Storage::state)});
    graph.add_into(GPUNN_OP_COPY, "z", {}, {kept},
                   {graph.add_value("z", graph.value(kept).type, graph::Storage::state)});
  }

  Graph graph;

 private:
  ValueId fake(const std::string& name, ValueId x, float scale) {
    if (!rounds_) return x;
    return graph.add1(GPUNN_OP_FAKE_QUANTIZE, name + ".quantize", stored_with(scale), {x});
  }
  ValueId weight(const std::string& name, const Shape& shape) {
    const ValueId w = graph.add_value(name, {DType::f32, shape}, graph::Storage::parameters);
    graph.value(w).constant = true;
    return w;
  }
  ValueId convolution(const std::string& name, ValueId x, int64_t filters) {
    gpunn_conv2d_attrs attrs{};
    for (std::size_t i = 0; i < 2; ++i) attrs.stride[i] = attrs.pad[i] = attrs.dilation[i] = 1;
    attrs.groups = 1;
    const ValueId w = weight(name + ".weight", {filters, kImages.shape[1], 3, 3});
    const ValueId sums = graph.add1(GPUNN_OP_CONV2D, name, Attributes::of(attrs), {x, w});
    const ValueId y = graph.add1(GPUNN_OP_BIAS_ADD, name + ".biased", {}, {sums, weight(name + ".bias", {filters})});
    return graph.add1(GPUNN_OP_RELU, name + ".relu", {}, {y});
  }

  bool rounds_;
};

// A convolution of 1x1 and the mean of windows behind it, both stored with scales that are powers of two: of whole
// images of 8 x 8 by default, so that every mean is exact.
class MeanProgram {
 public:
  explicit MeanProgram(int32_t window = 8) {
    constexpr int64_t kSide = 8, kChannels = 5, kFilters = 70;
    const ValueId x = graph.add_value("x", {DType::f32, {3, kChannels, kSide, kSide}}, graph::Storage::data);
    const ValueId pixels = graph.add1(GPUNN_OP_RELU, "pixels", {}, {x});
    const ValueId in = graph.add1(GPUNN_OP_FAKE_QUANTIZE, "in", stored_with(1.0F / 64), {pixels});
    gpunn_conv2d_attrs attrs{};
    for (std::size_t i = 0; i < 2; ++i) attrs.stride[i] = attrs.dilation[i] = 1;
    attrs.groups = 1;
    const ValueId w = weight("weight", {kFilters, kChannels, 1, 1});
    const ValueId sums = graph.add1(GPUNN_OP_CONV2D, "convolution", Attributes::of(attrs), {in, w});
    const ValueId y = graph.add1(GPUNN_OP_BIAS_ADD, "biased", {}, {sums, weight("bias", {kFilters})});
    const ValueId kept = graph.add1(GPUNN_OP_FAKE_QUANTIZE, "kept", stored_with(1.0F / 32), {y});
    gpunn_pool2d_attrs pool{};
    pool.window[0] = pool.window[1] = pool.stride[0] = pool.stride[1] = window;
    const ValueId mean = graph.add1(GPUNN_OP_AVG_POOL2D, "mean", Attributes::of(pool), {kept});
    const ValueId stored = graph.add1(GPUNN_OP_FAKE_QUANTIZE, "mean.kept", stored_with(1.0F / 128), {mean});
    graph.add_into(GPUNN_OP_COPY, "y", {}, {stored},
                   {graph.add_value("y", graph.value(stored).type, graph::Storage::state)});
  }

  Graph graph;

 private:
  ValueId weight(const std::string& name, const Shape& shape) {
    const ValueId w = graph.add_value(name, {DType::f32, shape}, graph::Storage::parameters);
    graph.value(w).constant = true;
    return w;
  }
};

std::ptrdiff_t ops_of(const Graph& g, int32_t op) { return std::ranges::count(g.nodes(), op, &Node::op); }

// Adds what the mean of stored images stands for.
void append_mean_in_numbers(Graph& g, const Node& node) {
  const auto attrs = node.attrs.as<gpunn_requantize_attrs>();
  const auto stored = [](float scale, int32_t zero_point) {
    return Attributes::of(gpunn_quantize_attrs{.struct_size = 0, .scale = scale, .zero_point = zero_point});
  };
  const Shape& x = g.value(node.inputs[0]).type.shape;
  gpunn_pool2d_attrs whole{};
  for (std::size_t i = 0; i < 2; ++i) whole.window[i] = whole.stride[i] = static_cast<int32_t>(x[2 + i]);
  const ValueId numbers =
      g.add1(GPUNN_OP_DEQUANTIZE, node.name + ".in", stored(attrs.x_scale, attrs.x_zero_point), {node.inputs[0]});
  const ValueId mean = g.add1(GPUNN_OP_AVG_POOL2D, node.name, Attributes::of(whole), {numbers});
  g.add_into(GPUNN_OP_QUANTIZE, node.name + ".out", stored(attrs.y_scale, attrs.y_zero_point), {mean}, node.outputs);
}

// The program with DEQUANTIZE, the op on numbers and QUANTIZE in place of each op that moves stored numbers, or is a
// mean of them.
Graph in_numbers(Graph g) {
  std::vector<Node> nodes = std::move(g.nodes());
  g.nodes().clear();
  for (Node& node : nodes) {
    if (node.op == GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D) {
      append_mean_in_numbers(g, node);
      continue;
    }
    const bool joins = node.op == GPUNN_OP_QUANTIZED_CONCAT;
    if (!joins && node.op != GPUNN_OP_QUANTIZED_MAX_POOL2D) {
      g.nodes().push_back(std::move(node));
      continue;
    }
    std::vector<ValueId> numbers;
    for (const ValueId input : node.inputs) {
      numbers.push_back(g.add1(GPUNN_OP_DEQUANTIZE, node.name + ".in", stored_with(kScale), {input}));
    }
    const ValueId y = g.add1(joins ? GPUNN_OP_CONCAT : GPUNN_OP_MAX_POOL2D, node.name, node.attrs, numbers);
    g.add_into(GPUNN_OP_QUANTIZE, node.name + ".out", stored_with(kScale), {y}, node.outputs);
  }
  return g;
}

// The bytes of y and z.
std::vector<std::byte> run(Graph g, execution::Backend& from) {
  execution::Variables variables(from);
  std::mt19937 random(11);
  std::vector<std::string> results;
  for (const graph::Value& value : g.values()) {
    if (value.storage == graph::Storage::arena || value.view_of != graph::kNoValue) continue;
    variables.create(value.name, value.type, value.storage);
    if (value.storage == graph::Storage::state) {
      results.push_back(value.name);
      continue;
    }
    const float most = value.storage == graph::Storage::data ? 2.5F : 0.4F;
    std::uniform_real_distribution<float> draw(-most, most);
    std::vector<float> numbers(static_cast<std::size_t>(value.type.elements()));
    for (float& number : numbers) number = draw(random);
    variables.write(value.name, std::as_bytes(std::span(numbers)));
  }
  const execution::Backend* const only = &from;
  const execution::CompiledProgram program = execution::place_and_plan(execution::lower(std::move(g), {&only, 1}, {}),
                                                                       from, execution::FuseSubgraphs::allowed, {});
  const execution::Buffer arena = from.allocate(program.plan.arena_bytes);
  execution::Executable(from, variables, program, arena.data()).run();
  from.synchronize();
  std::vector<std::byte> all;
  for (const std::string& name : results) {
    const std::vector<std::byte> bytes = variables.read(name);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

TEST_CASE("a max-pool and a concatenation of stored numbers give the bits of those of numbers") {
  const plugins::PluginRegistry registry;
  execution::Backend backend(registry, "cpu");
  Program stored(kScale);
  const std::vector<inference::EightBitOp> ops =
      inference::use_eight_bits(stored.graph, backend, inference::FloatWeights::rounded);
  CHECK(ops.size() == 5);
  CHECK(ops_of(stored.graph, GPUNN_OP_QUANTIZED_CONV2D) == 2);
  CHECK(ops_of(stored.graph, GPUNN_OP_QUANTIZED_CONCAT) == 1);
  CHECK(ops_of(stored.graph, GPUNN_OP_QUANTIZED_MAX_POOL2D) == 1);
  CHECK(ops_of(stored.graph, GPUNN_OP_QUANTIZED_LINEAR) == 1);
  const std::vector<std::byte> found = run(stored.graph, backend);
  CHECK(std::ranges::count(found, std::byte{0}) < std::ssize(found) / 2);
  CHECK(found == run(in_numbers(stored.graph), backend));
}

TEST_CASE("float weights stay in f32 unless they are to be rounded") {
  const plugins::PluginRegistry registry;
  execution::Backend backend(registry, "cpu");
  Program program(kScale);
  const std::size_t nodes = program.graph.nodes().size();
  CHECK(inference::use_eight_bits(program.graph, backend, inference::FloatWeights::kept).empty());
  CHECK(program.graph.nodes().size() == nodes);
}

TEST_CASE("a mean of whole images between two stored tensors gives the bits of one of numbers") {
  const plugins::PluginRegistry registry;
  execution::Backend backend(registry, "cpu");
  const MeanProgram program;
  Graph stored = program.graph;
  const std::vector<inference::EightBitOp> ops =
      inference::use_eight_bits(stored, backend, inference::FloatWeights::rounded);
  REQUIRE(ops.size() == 2);
  CHECK(ops_of(stored, GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D) == 1);
  CHECK(ops_of(stored, GPUNN_OP_AVG_POOL2D) == 0);
  const std::vector<std::byte> found = run(stored, backend);
  CHECK(std::ranges::count(found, std::byte{0}) < 3 * std::ssize(found) / 4);
  CHECK(found == run(in_numbers(stored), backend));
}

TEST_CASE("a mean of parts of images stays one of numbers") {
  const plugins::PluginRegistry registry;
  execution::Backend backend(registry, "cpu");
  MeanProgram program(2);
  inference::use_eight_bits(program.graph, backend, inference::FloatWeights::rounded);
  CHECK(ops_of(program.graph, GPUNN_OP_QUANTIZED_CONV2D) == 1);
  CHECK(ops_of(program.graph, GPUNN_OP_AVG_POOL2D) == 1);
}

TEST_CASE("tensors of two scales are joined as numbers") {
  const plugins::PluginRegistry registry;
  execution::Backend backend(registry, "cpu");
  Program mixed(kScale / 2);
  inference::use_eight_bits(mixed.graph, backend, inference::FloatWeights::rounded);
  CHECK(ops_of(mixed.graph, GPUNN_OP_QUANTIZED_CONV2D) == 2);
  CHECK(ops_of(mixed.graph, GPUNN_OP_QUANTIZED_CONCAT) == 0);
  CHECK(ops_of(mixed.graph, GPUNN_OP_CONCAT) == 1);
}

TEST_CASE("what is joined and pooled has the range of the whole") {
  const Program program(0);
  const std::vector<inference::QuantizedTensor> tensors = inference::tensors_to_quantize(program.graph);
  std::map<std::string, std::string> range_of;
  for (const inference::QuantizedTensor& tensor : tensors) range_of[tensor.name] = tensors[tensor.range].name;
  CHECK(range_of == std::map<std::string, std::string>{{"pixels", "pixels"},
                                                       {"left.relu", "joined"},
                                                       {"right.relu", "joined"},
                                                       {"joined", "joined"},
                                                       {"pooled", "joined"}});
}
