// examples/plain_backend has the core ops and nothing else: what networks are written in beside them is composed.
#include <algorithm>
#include <cmath>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

Experiment on_digits(const std::string& model, const std::string& optimizer) {
  return parse_experiment("name: composed\nmodel: " + model +
                              "\ndata: {dataset: digits, synthetic_train: 64, synthetic_test: 16, batch_size: 6}\n"
                              "optimizer: " +
                              optimizer + "\ntraining: {epochs: 3, threads: 1}\nbackend: cpu\nruns: runs\n",
                          "composed.yaml");
}

std::string model(const std::string& name, const std::string& parameters = "") {
  return "{file: " + std::string(GPUNN_SOURCE_DIR) + "/models/" + name + ".yaml" + parameters + "}";
}

std::vector<float> first_losses(Experiment experiment, const std::string& backend, int64_t steps) {
  experiment.backend = backend;
  experiment.plugins = {GPUNN_TRAINING_SAMPLE_DIR};
  training::Session session = training::Session::open(experiment);
  session.train_steps(steps);
  return session.losses(0, steps);
}

void require_same_training(const Experiment& experiment, int64_t steps) {
  const std::vector<float> composed = first_losses(experiment, "plain", steps);
  const std::vector<float> whole = first_losses(experiment, "cpu", steps);
  REQUIRE(composed.size() == static_cast<std::size_t>(steps));
  for (std::size_t i = 0; i < composed.size(); ++i) {
    INFO("step " << i);
    CHECK(std::isfinite(whole[i]));
    CHECK(std::abs(composed[i] - whole[i]) <= 2e-3F * whole[i]);
  }
  CHECK(composed.front() != composed.back());
}

const std::string kMomentum = "{type: sgd, learning_rate: 0.02, momentum: 0.9, nesterov: true, weight_decay: 5e-4}";

}  // namespace

TEST_CASE("a backend of core ops trains LeNet and an MLP as one with all of them does") {
  require_same_training(on_digits(model("lenet5"), kMomentum), 6);
  require_same_training(on_digits(model("mlp"), kMomentum), 15);
  require_same_training(on_digits(model("mlp"), "{type: adamw, learning_rate: 0.002}"), 15);
}

TEST_CASE("a backend of core ops trains a vision transformer") {
  require_same_training(on_digits(model("vit",
                                        ", parameters: {classes: 10, patch: 7, width: 8, depth: 2, heads: 2, mlp: 16, "
                                        "dropout: 0.1}"),
                                  "{type: adamw, learning_rate: 0.002}"),
                        6);
}

TEST_CASE("instance norm is an op, and trains alike composed") {
  const Experiment experiment = on_digits(
      "{layers: [conv2d: {filters: 6, kernel: 5, stride: 2}, instance_norm: {affine: true}, relu, "
      "conv2d: {filters: 8, kernel: 3}, instance_norm, relu, group_norm: {groups: 8}, flatten, linear: {units: 10}]}",
      kMomentum);
  training::Session session = training::Session::open(experiment);
  for (const int32_t op : {GPUNN_OP_INSTANCE_NORM, GPUNN_OP_INSTANCE_NORM_BACKWARD}) {
    CHECK(std::ranges::count(session.training().graph.nodes(), op, &graph::Node::op) == 3);
  }
  require_same_training(experiment, 15);
}

TEST_CASE("a backend of core ops trains ResNet-18", "[long]") {
  require_same_training(on_digits(model("resnet18", ", parameters: {classes: 10, stem: mnist}"), kMomentum), 2);
}
