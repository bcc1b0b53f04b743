// RAdam, an optimizer written in core ops: a hundred of its steps by the reference are those of torch.optim.RAdam
// (PyTorch 2.15, float64). The gradient of element i in step t is cos(1.3 t + 0.7 i) / (1 + i), the learning rate 0.05
// / (1 + 0.02 t); betas, epsilon and decay are what f32 holds of 0.9, 0.999, 1e-8 and the number below.
#include <cmath>
#include <cstdint>
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

constexpr int64_t kDecayed = 4, kSize = 6;

OptimizerConfig radam_of(double weight_decay) {
  OptimizerConfig config;
  config.kind = RAdam{};
  config.weight_decay = weight_decay;
  return config;
}

// The weights after each of the steps named.
std::vector<std::vector<double>> radam_steps(double weight_decay, const std::vector<int>& named) {
  const OptimizerConfig config = radam_of(weight_decay);
  const ParameterLayout layout = lay_out(
      {{.name = "weight", .shape = {kDecayed}, .decayed = true}, {.name = "bias", .shape = {kSize - kDecayed}}}, 4);
  graph::Graph g;
  const TensorType flat{DType::f32, {kSize}};
  const UpdateValues in{.parameters = g.add_value("parameters", flat, graph::Storage::parameters),
                        .gradients = g.add_value("gradients", flat, graph::Storage::gradients),
                        .rate = g.add_value("rate", {DType::f32, {}}, graph::Storage::state),
                        .step = g.add_value("step", {DType::i64, {}}, graph::Storage::state)};
  add_optimizer(g, config, layout, in);

  ops_test::ValueMap values;
  for (graph::ValueId id = 0; id < static_cast<graph::ValueId>(g.values().size()); ++id) {
    const graph::Value& value = g.value(id);
    if (value.storage == graph::Storage::optimizer) values[id] = {value.type, std::vector<double>(kSize, 0.0)};
  }
  values[in.parameters] = {flat, {0.5, 0.2, -0.1, -0.4, -0.7, -1.0}};
  std::vector<std::vector<double>> result;
  for (int t = 0; t < named.back(); ++t) {
    std::vector<double> gradient;
    for (int i = 0; i < kSize; ++i) gradient.push_back(std::cos(1.3 * t + 0.7 * i) / (1 + i));
    values[in.gradients] = {flat, gradient};
    values[in.rate] = {{DType::f32, {}}, {0.05 / (1 + 0.02 * t)}};
    values[in.step] = {{DType::i64, {}}, {static_cast<double>(t)}};
    ops_test::evaluate(g, values);
    if (t + 1 == named[result.size()]) result.push_back(values.at(in.parameters).values);
  }
  return result;
}

}  // namespace

TEST_CASE("steps of RAdam are PyTorch's, before its rectifier is defined and after") {
  struct Expected {
    double weight_decay;
    std::vector<std::vector<double>> weights;
  };
  const Expected expected = GENERATE(values<Expected>({
      {0.0,
       {{0.424317700499722, 0.188032986999475, -0.0869764020313522, -0.379074997764756, -0.682207239615529,
         -0.991268911873017},
        {0.423445094805355, 0.188089147926596, -0.0859651390979266, -0.377608890832124, -0.681004388909467,
         -0.990842250967697},
        {0.422861797616267, 0.188306765272741, -0.085032606977544, -0.376411628782699, -0.680110036526755,
         -0.990655275012882}}},
      {0.1,
       {{0.413256224809183, 0.183502403117544, -0.0846241100543833, -0.369677413974029, -0.682207239615529,
         -0.991268911873017},
        {0.410373212783761, 0.181741851616058, -0.0823157579947204, -0.361189327434799, -0.681004388909467,
         -0.990842250967697},
        {0.393277673714405, 0.167457122651563, -0.0716995842580225, -0.305476585302504, -0.680110036526755,
         -0.990655275012882}}},
  }));
  const std::vector<std::vector<double>> found = radam_steps(expected.weight_decay, {5, 20, 100});
  for (std::size_t at = 0; at < found.size(); ++at) {
    for (std::size_t i = 0; i < kSize; ++i) {
      INFO("decay " << expected.weight_decay << ", row " << at << ", element " << i);
      // The formula's constants are f32, and the logarithm of a beta takes part a hundred times.
      CHECK(std::abs(found[at][i] - expected.weights[at][i]) <= 2e-7);
    }
  }
}

TEST_CASE("RAdam trains on the cpu backend") {
  const Experiment experiment = parse_experiment(
      "model: {layers: [flatten, linear: {units: 16, activation: relu}, linear: {units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 128, synthetic_test: 64, batch_size: 32}\n"
      "optimizer: {type: radam, learning_rate: 0.01, weight_decay: 0.01}\nbackend: cpu\nruns: runs\n",
      "radam.yaml");
  Session session = Session::open(experiment);
  session.train_steps(60);
  const std::vector<float> losses = session.losses(0, 60);
  CHECK(losses.back() < losses.front() / 2);
}
