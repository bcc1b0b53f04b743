// L-BFGS: its steps by the reference are those of torch.optim.LBFGS with max_iter=1
// (PyTorch 2.15, float64) on a hundredth of Rosenbrock's function of six numbers.
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "../ops/evaluate.hpp"
#include "catch.hpp"
#include "program/layout.hpp"
#include "program/optimizer_ops.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using namespace gpunn::training;

namespace {

constexpr int64_t kSize = 6;

std::vector<double> rosenbrock_gradient(const std::vector<double>& x) {
  std::vector<double> gradient(x.size(), 0.0);
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double bend = x[i + 1] - x[i] * x[i];
    gradient[i] += 0.01 * (-400 * x[i] * bend - 2 * (1 - x[i]));
    gradient[i + 1] += 0.01 * 200 * bend;
  }
  return gradient;
}

// The weights and states of an L-BFGS, step by step.
class Steps {
 public:
  Steps(int64_t history, double rate) {
    OptimizerConfig config;
    config.kind = Lbfgs{.history = history};
    const ParameterLayout layout = lay_out({{.name = "weight", .shape = {kSize}, .decayed = true}}, 4);
    in_ = {.parameters = g_.add_value("parameters", flat_, graph::Storage::parameters),
           .gradients = g_.add_value("gradients", flat_, graph::Storage::gradients),
           .rate = g_.add_value("rate", {DType::f32, {}}, graph::Storage::state),
           .step = g_.add_value("step", {DType::i64, {}}, graph::Storage::state)};
    add_optimizer(g_, config, layout, in_);
    for (graph::ValueId id = 0; id < static_cast<graph::ValueId>(g_.values().size()); ++id) {
      const graph::Value& value = g_.value(id);
      if (value.storage != graph::Storage::optimizer) continue;
      values_[id] = {value.type, std::vector<double>(static_cast<std::size_t>(value.type.elements()), 0.0)};
    }
    values_[in_.parameters] = {flat_, {-1.2, 1.0, 0.7, -0.4, 0.5, 1.3}};
    values_[in_.rate] = {{DType::f32, {}}, {rate}};
  }

  const std::vector<double>& weights() const { return values_.at(in_.parameters).values; }

  void take(std::vector<double> gradient) {
    values_[in_.gradients] = {flat_, std::move(gradient)};
    values_[in_.step] = {{DType::i64, {}}, {static_cast<double>(taken_++)}};
    ops_test::evaluate(g_, values_);
  }

 private:
  const TensorType flat_{DType::f32, {kSize}};
  graph::Graph g_;
  UpdateValues in_{};
  ops_test::ValueMap values_;
  int taken_ = 0;
};

}  // namespace

TEST_CASE("steps of L-BFGS are PyTorch's, with a history that is full and one that is not") {
  struct Expected {
    int64_t history;
    double rate;
    std::vector<std::vector<double>> weights;  // after 1, 2, 5, 20 and 60 steps
  };
  const Expected expected = GENERATE(values<Expected>({
      {3,
       0.5,
       {{-1.08226299694, 0.98252512014, 0.597007426824, -0.330974224552, 0.578090869375, 1.18532110092},
        {-0.99521802139, 0.857872654332, 0.503613090145, -0.24702703442, 0.691536275664, 0.99788103832},
        {-0.675898794073, 0.479670942644, 0.221107562321, 0.0825583815578, 0.284039593534, 0.131846707793},
        {-0.722702234841, 0.533029324633, 0.276098605305, 0.0713291183291, 0.00982764377914, 0.00126618720289},
        {-0.986999934289, 0.984239398938, 0.973738085767, 0.950631021083, 0.90475012434, 0.818590251449}}},
      {10,
       0.5,
       {{-1.08226299694, 0.98252512014, 0.597007426824, -0.330974224552, 0.578090869375, 1.18532110092},
        {-0.99521802139, 0.857872654332, 0.503613090145, -0.24702703442, 0.691536275664, 0.99788103832},
        {-0.673494545138, 0.482602487718, 0.21945904741, 0.0831040723084, 0.283799563118, 0.132451240351},
        {-0.648989774479, 0.432706479814, 0.192184590906, 0.0404918523282, 0.00383935979952, 0.00769418239537},
        {-0.986569016119, 0.983391100093, 0.972093064381, 0.947416918966, 0.898611664184, 0.807504399248}}},
      {10,
       1.0,
       {{-0.964525993884, 0.96505024028, 0.494014853648, -0.261948449104, 0.656181738751, 1.07064220183},
        {-0.870784229226, 0.697811066761, 0.383685748463, -0.138738213816, 0.800549967828, 0.783016556786},
        {-0.513503900594, 0.322258509557, 0.150733666051, -0.037158133921, 0.189181518199, 0.0191298448563},
        {-0.366467927352, 0.148812124357, 0.0270296613555, 0.0105060362384, 0.0104614038466, -0.00115246716473},
        {0.643031708252, 0.421359971657, 0.179655006156, 0.0421262810115, 0.0108636011642, 0.00016707226974}}},
  }));
  const std::vector<int> named = {1, 2, 5, 20, 60};
  Steps steps(expected.history, expected.rate);
  std::size_t row = 0;
  for (int t = 1; t <= named.back(); ++t) {
    steps.take(rosenbrock_gradient(steps.weights()));
    if (t != named[row]) continue;
    for (std::size_t i = 0; i < kSize; ++i) {
      INFO("history " << expected.history << ", rate " << expected.rate << ", step " << t << ", element " << i);
      // The bounds and the start are f32 at best, and the function is curved.
      CHECK(std::abs(steps.weights()[i] - expected.weights[row][i]) <= (t <= 20 ? 1e-7 : 1e-4));
    }
    ++row;
  }
}

TEST_CASE("where a gradient is not finite L-BFGS goes half of its last step back, as often as it takes") {
  Steps steps(3, 0.5);
  steps.take(rosenbrock_gradient(steps.weights()));
  const std::vector<double> before = steps.weights();
  steps.take(rosenbrock_gradient(before));
  const std::vector<double> after = steps.weights();
  const double bad = GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  std::vector<double> gradient(kSize, 1.0);
  gradient[2] = bad;
  double share = 0.5;
  for (int tries = 0; tries < 3; ++tries, share /= 2) {
    steps.take(gradient);
    for (std::size_t i = 0; i < kSize; ++i) {
      CHECK(std::abs(steps.weights()[i] - (before[i] + share * (after[i] - before[i]))) < 1e-12);
    }
  }
  for (int t = 0; t < 60; ++t) steps.take(rosenbrock_gradient(steps.weights()));
  const std::vector<double> end = rosenbrock_gradient(steps.weights());
  for (const double slope : end) CHECK(std::abs(slope) < 0.1);
}

TEST_CASE("at the bottom L-BFGS stays") {
  Steps steps(3, 1);
  const std::vector<double> start = steps.weights();
  for (int t = 0; t < 3; ++t) steps.take(std::vector<double>(kSize, 0.0));
  CHECK(steps.weights() == start);
}

TEST_CASE("L-BFGS trains on the cpu backend, on batches that stay") {
  const Experiment experiment = parse_experiment(
      "model: {layers: [flatten, linear: {units: 16, activation: tanh}, linear: {units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 128, synthetic_test: 64, batch_size: 128, shuffle: false}\n"
      "optimizer: {type: lbfgs, learning_rate: 0.5, history: 5}\nbackend: cpu\nruns: runs\n",
      "lbfgs.yaml");
  Session session = Session::open(experiment);
  session.train_steps(60);
  const std::vector<float> losses = session.losses(0, 60);
  CHECK(losses.back() < losses.front() / 10);

  // The pairs are one array on the device, and each its own in a checkpoint.
  storage::Checkpoint checkpoint;
  session.save_state(checkpoint);
  CHECK(checkpoint.optimizer.size() == 2 + 2 * 5);
  const std::vector<storage::StoredTensor>& newest = checkpoint.optimizer.at("steps.4");
  REQUIRE(newest.size() == checkpoint.parameters.size());
  CHECK(newest.front().type == checkpoint.parameters.front().type);
  CHECK(newest.front().values != checkpoint.optimizer.at("steps.3").front().values);
  CHECK(newest.front().values != checkpoint.optimizer.at("changes.4").front().values);
}
