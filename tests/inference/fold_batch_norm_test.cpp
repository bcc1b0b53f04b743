// Batch norms that the layer in front of them does the work of.
#include "inference/engine/fold_batch_norm.hpp"

#include <gpunn/model.hpp>
#include <gpunn/ops.h>

#include <algorithm>

#include "catch.hpp"
#include "evaluation/open_trained.hpp"
#include "inference/models.hpp"
#include "nn/model.hpp"
#include "runs/trained_model.hpp"
#include "training/predictions.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

Experiment with_layers(const std::filesystem::path& runs, const std::string& layers) {
  return parse_experiment("name: folding\nmodel: {layers: [" + layers +
                              "]}\n"
                              "data: {dataset: digits, synthetic_train: 256, synthetic_test: 96, batch_size: 32}\n"
                              "optimizer: {type: sgd, learning_rate: 0.05}\ntraining: {epochs: 1}\nbackend: cpu\n"
                              "runs: " +
                              runs.string() + "\n",
                          "folding.yaml");
}

constexpr const char* kEveryWay =
    "conv2d: {filters: 4, kernel: 3}, batch_norm, relu, "                         // with a bias
    "conv2d: {filters: 8, kernel: 3, stride: 2, bias: false}, batch_norm, "       // without
    "conv2d: {filters: 8, kernel: 3, groups: 2, padding: 1}, relu, batch_norm, "  // relu between: can't be folded
    "conv2d: {name: twice, filters: 8, kernel: 1}, batch_norm: {name: norm}, "    // read by two: can't be
    "add: {from: [twice, norm]}, flatten, "
    "linear: {units: 16}, batch_norm, tanh, linear: {units: 10}";

std::ptrdiff_t nodes_of(const graph::Graph& g, int32_t op) {
  return std::ranges::count(g.nodes(), op, &graph::Node::op);
}

graph::Graph forward(const ModelSpec& model) {
  graph::Graph g;
  const graph::ValueId x = g.add_value("x", {DType::f32, {2, 1, 28, 28}}, graph::Storage::data);
  std::vector<graph::ValueId> parameters, buffers;
  for (const nn::Parameter& one : nn::model_parameters(model, {1, 28, 28})) {
    parameters.push_back(g.add_value(one.name, {DType::f32, one.shape}, graph::Storage::parameters));
  }
  for (const nn::Parameter& one : nn::model_buffers(model, {1, 28, 28})) {
    buffers.push_back(g.add_value(one.name, {DType::f32, one.shape}, graph::Storage::state));
  }
  nn::build_forward(g, model, {{.value = x}}, parameters, {.training = false, .buffers = buffers});
  return g;
}

}  // namespace

TEST_CASE("a batch norm is folded into the layer in front of it where nothing else reads what is between") {
  graph::Graph g = forward(with_layers("runs", kEveryWay).model);
  REQUIRE(nodes_of(g, GPUNN_OP_BATCH_NORM_INFERENCE) == 5);
  const std::ptrdiff_t bias_adds = nodes_of(g, GPUNN_OP_BIAS_ADD);
  const std::vector<inference::FoldedNorm> norms = inference::fold_batch_norms(g);
  REQUIRE(norms.size() == 3);
  CHECK(nodes_of(g, GPUNN_OP_BATCH_NORM_INFERENCE) == 2);
  CHECK(nodes_of(g, GPUNN_OP_BIAS_ADD) == bias_adds + 1);  // that of the convolution that had no bias
  CHECK(norms[0].bias != graph::kNoValue);
  CHECK(norms[1].bias == graph::kNoValue);
  CHECK(inference::fold_batch_norms(g).empty());
}

TEST_CASE("a model with folded batch norms predicts what its training's session does") {
  const TemporaryFolder folder;
  const RunResult run = train(with_layers(folder.path(), kEveryWay));
  const auto session = training::open_trained({.path = run.run, .overrides = {}}, nullptr);
  const std::vector<float> expected = predictions_of(*session);

  const Model model = Model::load(run.run);
  Samples samples(model, 64);
  std::memcpy(samples.bytes.data(), session->dataset().test.values.data(), samples.bytes.size());
  Answers probabilities(model, 1, 64);
  model.run(samples.view(), probabilities.view());
  for (std::size_t i = 0; i < probabilities.values.size(); ++i) {
    CHECK(probabilities.values[i] == Approx(expected.at(i)).epsilon(1e-4).margin(1e-6));
  }
}
