// Trainings in bf16: values between layers are rounded, parameters are not.
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::Session;

namespace {

Experiment half_on_digits(const std::string& precision, const std::string& layers) {
  return parse_experiment("model: {layers: [" + layers +
                              "]}\n"
                              "data: {dataset: digits, synthetic_train: 256, synthetic_test: 64, batch_size: 32}\n"
                              "optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}\n"
                              "training: {epochs: 5, precision: " +
                              precision + "}\nbackend: cpu\nruns: runs\n",
                          "half.yaml");
}

std::vector<float> half_losses(const Experiment& experiment, int64_t steps) {
  Session session = Session::open(experiment);
  session.train_steps(steps);
  return session.losses(0, steps);
}

const std::string kConvolutions =
    "conv2d: {filters: 6, kernel: 5}, batch_norm, relu, max_pool: {window: 2}, conv2d: {filters: 8, kernel: 3}, "
    "relu, "
    "dropout: {p: 0.1}, flatten, linear: {units: 32}, gelu, linear: {units: 10}";
const std::string kRows = "flatten, linear: {units: 24, activation: tanh}, layer_norm, linear: {units: 10}";

}  // namespace

TEST_CASE("a training in bf16 follows the one in fp32") {
  const std::string layers = GENERATE(kConvolutions, kRows);
  constexpr int64_t kSteps = 40;
  const std::vector<float> full = half_losses(half_on_digits("fp32", layers), kSteps);
  const std::vector<float> half = half_losses(half_on_digits("bf16", layers), kSteps);
  REQUIRE(half.size() == full.size());
  CHECK(half != full);
  double apart = 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    INFO("step " << i << ": " << full[i] << ", " << half[i]);
    REQUIRE(std::isfinite(half[i]));
    apart += std::abs(half[i] - full[i]) / static_cast<double>(kSteps);
  }
  CHECK(apart < 0.05);
  CHECK(half.back() < 0.6 * half.front());
}

TEST_CASE("what a training in bf16 learns and saves is f32") {
  Session session = Session::open(half_on_digits("bf16", kConvolutions));
  session.train_steps(3);
  storage::Checkpoint state;
  session.save_state(state);
  REQUIRE_FALSE(state.parameters.empty());
  for (const storage::StoredTensor& tensor : state.parameters) CHECK(tensor.type.dtype == DType::f32);
}

TEST_CASE("the weights that have one layout are converted by one op, in training and in evaluation") {
  const std::string precision = GENERATE("bf16", "f16");
  Session session = Session::open(half_on_digits(
      precision,
      "flatten, linear: {units: 24, activation: tanh}, layer_norm, linear: {units: 16}, relu, linear: {units: 10}"));
  const auto conversions = [](const graph::Graph& g) {
    return std::ranges::count_if(g.nodes(), [&](const graph::Node& node) {
      return node.op == GPUNN_OP_COPY && is_half(g.value(node.outputs[0]).type.dtype) &&
             g.value(g.root(node.inputs[0])).storage == graph::Storage::parameters;
    });
  };
  CHECK(conversions(session.training().graph) == 1);
  CHECK(conversions(session.evaluation().graph) == 1);
}
