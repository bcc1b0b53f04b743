// The passes over the program of a model for inference: the changes of each, and that results stay the same.
#include "inference/engine/engine.hpp"

#include <gpunn/engine.hpp>
#include <gpunn/network.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <thread>

#include "catch.hpp"
#include "compiler/decompose.hpp"
#include "execution/steps/compiler.hpp"
#include "execution/steps/executable.hpp"
#include "inference/models.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

struct ShippedModel {
  std::string name;
  Shape sample;
  std::string parameters = "{}";
  std::string task = "classification";
};

const std::vector<ShippedModel> kModels = {
    {"alexnet", {3, 64, 64}, "{classes: 10, hidden: 64, pool: 2}"},
    {"allconv", {3, 32, 32}},
    {"cnn_cifar", {3, 32, 32}},
    {"edsr_small", {3, 12, 10}, "{channels: 3}", "super_resolution"},
    {"espcn", {1, 12, 10}, "{}", "super_resolution"},
    {"fsrcnn", {1, 12, 10}, "{}", "super_resolution"},
    {"lenet5", {1, 28, 28}},
    {"mlp", {1, 28, 28}},
    {"mobilenet_v2", {3, 64, 64}, "{classes: 10}"},
    {"perceptron", {2}},
    {"resnet18", {3, 64, 64}, "{classes: 10}"},
    {"resnet34", {3, 64, 64}, "{classes: 10}"},
    {"resnet50", {3, 64, 64}, "{classes: 10}"},
    {"resnet101", {3, 64, 64}, "{classes: 10}"},
    {"squeezenet1_1", {3, 64, 64}, "{classes: 10}"},
    {"srcnn", {1, 12, 10}, "{}", "super_resolution"},
    {"vgg11", {3, 32, 32}, "{classes: 10, hidden: 64, pool: 2}"},
    {"vgg13", {3, 32, 32}, "{classes: 10, hidden: 64, pool: 2}"},
    {"vgg16", {3, 32, 32}, "{classes: 10, batch_norm: true, hidden: 64, pool: 3}"},
    {"vgg19", {3, 32, 32}, "{classes: 10, hidden: 64, pool: 2}"},
    {"vit", {3, 64, 64}, "{classes: 10, width: 48, depth: 2, heads: 3, mlp: 64}"},
};

// With first weights, and running statistics that are neither 0 nor 1.
Network shipped(const ShippedModel& model) {
  const Experiment experiment = parse_experiment(
      "name: one\ntask: " + model.task + "\nmodel: {file: " GPUNN_SOURCE_DIR "/models/" + model.name +
          ".yaml, parameters: " + model.parameters + "}\ndata: {dataset: arrays, batch_size: 4}\nbackend: cpu\n",
      "one.yaml");
  ModelInfo info{.task = model.task, .fields = {}, .data = {}};
  info.fields.input().type = {DType::f32, model.sample};
  info.fields.input().mean.assign(static_cast<std::size_t>(model.sample[0]), 0.0);
  info.fields.input().stddev.assign(static_cast<std::size_t>(model.sample[0]), 1.0);
  Network network(experiment, info);
  std::mt19937 random(7);
  for (const NetworkTensor& tensor : network.tensors()) {
    const bool variance = tensor.name.ends_with("running_var");
    if (!variance && !tensor.name.ends_with("running_mean")) continue;
    std::vector<float> values(static_cast<std::size_t>(element_count(tensor.shape)));
    std::uniform_real_distribution<float> draw(variance ? 0.5F : -0.2F, variance ? 1.5F : 0.2F);
    for (float& value : values) value = draw(random);
    network.write(tensor.name, values);
  }
  return network;
}

std::vector<std::string> all_passes() {
  std::vector<std::string> names;
  for (const EnginePass& pass : engine_passes()) names.push_back(pass.name);
  return names;
}

// The largest difference, over the largest answer.
double difference(const std::vector<float>& found, const std::vector<float>& expected) {
  double largest = 0, apart = 0;
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    apart = std::max(apart, std::abs(static_cast<double>(found[i]) - expected[i]));
  }
  REQUIRE(largest > 0);
  return apart / largest;
}

const PlannedPass& pass_of(const PlanReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.passes, name, &PlannedPass::name);
  REQUIRE(found != report.passes.end());
  return *found;
}

std::ptrdiff_t ops_of(const PlanReport& report, const std::string& op) {
  return std::ranges::count(report.ops, op, &PlannedOp::op);
}

}  // namespace

TEST_CASE("each model of the project answers the same with all passes and without any") {
  constexpr int64_t kRows = 3;
  for (const ShippedModel& shipped_model : kModels) {
    CAPTURE(shipped_model.name);
    const Network network = shipped(shipped_model);
    const Model optimised = network.model({.max_batch = kRows, .calls = 1, .image_size = {}});
    const Model plain =
        network.model({.max_batch = kRows, .calls = 1, .image_size = {}, .without_passes = all_passes()});
    const Samples samples = drawn(plain, kRows);
    CHECK(difference(logits_of(optimised, samples), logits_of(plain, samples)) < 1e-5);
  }
}

TEST_CASE("each pass can be left out by itself") {
  const Network network = shipped({"resnet18", {3, 32, 32}, "{classes: 10}"});
  const Model plain = network.model({.max_batch = 2, .image_size = {}, .without_passes = all_passes()});
  const Samples samples = drawn(plain, 2);
  const std::vector<float> expected = logits_of(plain, samples);
  for (const std::string& pass : all_passes()) {
    CAPTURE(pass);
    const Model model = network.model({.max_batch = 2, .image_size = {}, .without_passes = {pass}});
    CHECK(difference(logits_of(model, samples), expected) < 1e-5);
  }
  CHECK(message_of([&] { network.model({.image_size = {}, .without_passes = {"fold_constant"}}); }) ==
        "there is no engine pass 'fold_constant'; did you mean 'fold_constants'?");
}

TEST_CASE("the plan of a call says what each pass did") {
  const TemporaryFolder folder;
  const auto file = folder / "resnet18.h5";
  shipped({"resnet18", {3, 32, 32}, "{classes: 10}"}).save(file);
  const PlanReport report = plan_inference(file, 2, {.backend = "cpu", .image_size = {}});
  CHECK(pass_of(report, "fold_batch_norm").changes == 20);
  CHECK(ops_of(report, "BATCH_NORM_INFERENCE") == 0);
  CHECK(pass_of(report, "fuse").changes == 21);  // 20 convolutions and the last product
  CHECK(ops_of(report, "CONV2D_BIAS_ADD_ACTIVATION") == 8);
  CHECK(ops_of(report, "ADD") == 0);
  CHECK(pass_of(report, "fold_constants").changes > 0);
  CHECK(pass_of(report, "in_place").changes > 0);
  for (const PlannedOp& op : report.ops) {
    CHECK(op.arena_bytes <= report.arena_bytes);
    if (op.op.starts_with("CONV2D")) CHECK(op.kernel.starts_with("conv:"));
  }

  const PlanReport plain =
      plan_inference(file, 2, {.backend = "cpu", .image_size = {}, .without_passes = all_passes()});
  for (const PlannedPass& pass : plain.passes) {
    CHECK_FALSE(pass.on);
    CHECK(pass.changes == 0);
  }
  CHECK(ops_of(plain, "BATCH_NORM_INFERENCE") == 20);
  CHECK(ops_of(plain, "CONV2D") == 20);
  const PlanReport apart =
      plan_inference(file, 2, {.backend = "cpu", .image_size = {}, .without_passes = {"in_place"}});
  CHECK(apart.arena_bytes >= report.arena_bytes);
  CHECK(pass_of(apart, "in_place").changes == 0);
  CHECK(ops_of(apart, "COPY") == ops_of(report, "COPY") + 1);  // of the logits
}

TEST_CASE("what is only copied to an output lies there at once") {
  graph::Graph g;
  const TensorType type{DType::f32, {4}}, large{DType::f32, {8}};
  const graph::ValueId x = g.add_value("x", type, graph::Storage::data);
  const graph::ValueId y = g.add_view("y.rows", g.add_value("y", large, graph::Storage::state), type, 16);
  const graph::ValueId z = g.add_value("z", type, graph::Storage::state);
  const graph::ValueId made = g.add1(GPUNN_OP_RELU, "made", {}, {x});
  g.add_into(GPUNN_OP_COPY, "to y", {}, {made}, {y});
  g.add_into(GPUNN_OP_COPY, "to z", {}, {made}, {z});
  SECTION("and is copied to a second one") {
    CHECK(inference::write_outputs_directly(g) == std::vector<std::string>{"made"});
    REQUIRE(g.nodes().size() == 2);
    CHECK(g.root(made) == g.root(y));
    CHECK(g.root_offset(made) == 16);
    CHECK(g.nodes()[1].outputs.front() == z);
  }
  SECTION("but not where it changes behind the copy") {
    g.add_into(GPUNN_OP_EXP, "later", {}, {x}, {made});
    CHECK(inference::write_outputs_directly(g).empty());
    CHECK(g.nodes().size() == 4);
  }
}

TEST_CASE("ops of which nothing is read are removed, and what they alone read") {
  graph::Graph g;
  const TensorType type{DType::f32, {4}};
  const graph::ValueId x = g.add_value("x", type, graph::Storage::data);
  const graph::ValueId y = g.add_value("y", type, graph::Storage::state);
  const graph::ValueId used = g.add1(GPUNN_OP_RELU, "used", {}, {x});
  const graph::ValueId dead = g.add1(GPUNN_OP_EXP, "dead", {}, {used});
  g.add1(GPUNN_OP_SQRT, "deader", {}, {dead});
  g.add_into(GPUNN_OP_COPY, "out", {}, {used}, {y});
  CHECK(inference::remove_dead_ops(g) == std::vector<std::string>{"dead", "deader"});
  REQUIRE(g.nodes().size() == 2);
  CHECK(g.nodes()[0].name == "used");
}

TEST_CASE("ops on constants alone become constants, called by what they are") {
  graph::Graph g;
  const TensorType type{DType::f32, {4}};
  const graph::ValueId w = g.add_value("w", type, graph::Storage::parameters);
  g.value(w).constant = true;
  const graph::ValueId x = g.add_value("x", type, graph::Storage::data);
  const graph::ValueId y = g.add_value("y", type, graph::Storage::state);
  const graph::ValueId once = g.add1(GPUNN_OP_EXP, "once", {}, {w});
  const graph::ValueId twice = g.add1(GPUNN_OP_SQRT, "twice", {}, {once});
  const graph::ValueId sum = g.add1(GPUNN_OP_ADD, "sum", {}, {x, twice});
  g.add_into(GPUNN_OP_COPY, "out", {}, {sum}, {y});
  const graph::Graph making = inference::fold_constants(g);
  REQUIRE(making.nodes().size() == 2);
  REQUIRE(g.nodes().size() == 2);
  CHECK(g.is_constant(twice));
  CHECK_FALSE(making.is_constant(twice));
  CHECK(g.value(twice).storage == graph::Storage::state);
  CHECK(g.value(once).name != g.value(twice).name);
}

TEST_CASE("calls of other numbers of rows and of other threads share the constants of a model") {
  const Network network = shipped({"resnet18", {3, 32, 32}, "{classes: 10}"});
  const Model model = network.model({.max_batch = 4, .calls = 4, .image_size = {}});
  const Model plain = network.model({.max_batch = 4, .image_size = {}, .without_passes = all_passes()});
  std::vector<std::thread> threads;
  std::vector<double> apart(8, 1);
  std::vector<std::vector<float>> expected;
  std::vector<Samples> samples;
  for (int64_t rows = 1; rows <= 4; ++rows) {
    samples.push_back(drawn(plain, rows));
    expected.push_back(logits_of(plain, samples.back()));
  }
  std::vector<std::vector<float>> found(apart.size());
  for (std::size_t i = 0; i < apart.size(); ++i) {
    threads.emplace_back([&, i] {
      Answers answers(model, 0, samples[i % 4].shape.front());
      model.run(samples[i % 4].view(), answers.view());
      found[i] = answers.values;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < apart.size(); ++i) CHECK(difference(found[i], expected[i % 4]) < 1e-5);
}

TEST_CASE("a backend without a kernel of FAKE_QUANTIZE rounds to the same bits by other ops") {
  const plugins::PluginRegistry registry;
  execution::Backend backend(registry, "cpu");
  const std::vector<float> x = {0.5F,
                                1.5F,
                                -0.5F,
                                -2.5F,
                                0.49999997F,
                                127.4999F,
                                300,
                                -300,
                                1e30F,
                                -1e30F,
                                3.3F,
                                std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity()};
  const TensorType type{DType::f32, {static_cast<int64_t>(x.size())}};
  const auto rounded = [&](bool whole) {
    graph::Graph g;
    const graph::ValueId input = g.add_value("x", type, graph::Storage::data);
    const graph::ValueId output = g.add_value("y", type, graph::Storage::state);
    g.add_into(GPUNN_OP_FAKE_QUANTIZE, "q", graph::Attributes::of(gpunn_quantize_attrs{0, 1.0F, 100}), {input},
               {output});
    compiler::decompose_unserved(g, [&](const graph::OpSignature& signature) {
      return signature.op == GPUNN_OP_FAKE_QUANTIZE && !whole ? -1 : backend.place(signature).rank;
    });
    CHECK((g.nodes().size() == 1) == whole);
    const execution::CompiledProgram program =
        execution::place_and_plan(std::move(g), backend, execution::FuseSubgraphs::none);
    execution::Variables variables(backend);
    variables.create("x", type, graph::Storage::data);
    variables.write("x", std::as_bytes(std::span(x)));
    const execution::Buffer arena = backend.allocate(program.plan.arena_bytes);
    execution::Executable(backend, variables, program, arena.data()).run();
    backend.synchronize();
    return variables.read("y");
  };
  CHECK(rounded(true) == rounded(false));
}
