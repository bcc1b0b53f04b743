// Frozen batch norms: whether their running statistics change, and the gradient through one that uses them.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/plan.hpp>

#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include "catch.hpp"
#include "compiler/autodiff.hpp"
#include "ops/reference.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

using graph::Graph;
using graph::Storage;
using graph::ValueId;

// A frozen batch norm between two layers that train, and one that trains.
Experiment frozen_norm(const std::filesystem::path& runs, const std::vector<Override>& more = {}) {
  return parse_experiment(
      "name: frozen_norm\n"
      "model: {layers: [conv2d: {name: conv, filters: 4, kernel: 3, stride: 2, bias: false}, batch_norm: {name: bn1}, "
      "relu, flatten, linear: {name: hidden, units: 16}, batch_norm: {name: bn2}, linear: {name: output, units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 320, synthetic_test: 100, batch_size: 60, drop_last: false}\n"
      "optimizer: {type: sgd, learning_rate: 0.05}\n"
      "training: {epochs: 2, freeze: [\"bn1.*\"]}\nbackend: cpu\nruns: " +
          runs.string() + "\n",
      "frozen_norm.yaml", more);
}

class Announcements : public TrainingListener {
 public:
  void on_message(const std::string& message) override { text += message + "\n"; }
  std::string text;
};

std::map<std::string, std::vector<std::byte>> trained_tensors(const Experiment& experiment, std::string& said) {
  Announcements messages;
  const RunResult run = train(experiment, {.listener = &messages, .stop = nullptr, .run_folder = {}});
  said = messages.text;
  const storage::Checkpoint checkpoint = storage::load_checkpoint(run.run / "last.h5");
  std::map<std::string, std::vector<std::byte>> tensors;
  for (const auto* list : {&checkpoint.parameters, &checkpoint.buffers}) {
    for (const storage::StoredTensor& tensor : *list) tensors[tensor.name] = tensor.values;
  }
  return tensors;
}

std::vector<std::byte> constant_bytes(float value, std::size_t count) {
  const std::vector<float> numbers(count, value);
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

// What a graph computes, in float64. Views are of all of a value.
class ReferenceRun {
 public:
  explicit ReferenceRun(const Graph& graph) : graph_(graph) {}
  void set(ValueId id, std::vector<double> values) { values_[graph_.root(id)] = std::move(values); }
  const std::vector<double>& get(ValueId id) { return values_.at(graph_.root(id)); }
  void run() {
    for (const graph::Node& node : graph_.nodes()) {
      std::vector<ops::ReferenceTensor> inputs;
      for (const ValueId input : node.inputs) inputs.push_back({graph_.value(input).type, get(input)});
      const auto outputs = ops::run_reference(graph_.signature(node), inputs);
      for (std::size_t i = 0; i < outputs.size(); ++i) set(node.outputs[i], outputs[i].values);
    }
  }

 private:
  const Graph& graph_;
  std::map<ValueId, std::vector<double>> values_;
};

std::vector<double> sine_values(std::size_t count, double step, double offset) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<double>(i + 1)) + offset;
  return values;
}

}  // namespace

TEST_CASE("a frozen batch norm's statistics stay with freeze_statistics, and move with a note without") {
  const TemporaryFolder folder;
  std::string said;
  auto moving = trained_tensors(frozen_norm(folder.path()), said);
  CHECK_THAT(said, Contains("note: training.freeze holds weight and bias of the batch norm bn1") &&
                       Contains("training.freeze_statistics: true keeps them"));
  CHECK(moving["bn1.running_mean"] != constant_bytes(0, 4));
  CHECK(moving["bn1.running_var"] != constant_bytes(1, 4));

  auto kept = trained_tensors(frozen_norm(folder.path(), {{"training.freeze_statistics", "true"}}), said);
  CHECK_THAT(said, !Contains("freeze"));
  CHECK(kept["bn1.running_mean"] == constant_bytes(0, 4));
  CHECK(kept["bn1.running_var"] == constant_bytes(1, 4));
  CHECK(kept["bn1.weight"] == constant_bytes(1, 4));
  CHECK(kept["bn2.running_mean"] != constant_bytes(0, 16));  // it is not frozen
  CHECK(kept["conv.weight"] != moving["conv.weight"]);
}

TEST_CASE("a frozen batch norm trains what is before it as the same scale and shift would") {
  // With a mean of 0 and a variance of 1 it divides by sqrt(1 + epsilon): next to nothing.
  const TemporaryFolder folder;
  std::string said;
  const Override still{"training.freeze_statistics", "true"};
  const RunResult begun = train(frozen_norm(folder.path(), {still, {"training.epochs", "1"}}));
  const Override start{"init_from", begun.run.string()};
  auto with = trained_tensors(frozen_norm(folder.path(), {still, start}), said);
  Experiment plain = frozen_norm(folder.path(), {start});
  std::erase_if(plain.model.layers, [](const LayerSpec& layer) { return layer.name == "bn1"; });
  plain.freeze.clear();
  auto without = trained_tensors(plain, said);
  for (const std::string name : {"conv.weight", "hidden.weight", "bn2.weight", "output.bias"}) {
    CAPTURE(name);
    const auto& a = with.at(name);
    const auto& b = without.at(name);
    REQUIRE(a.size() == b.size());
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); i += sizeof(float)) {
      float x = 0, y = 0;
      std::memcpy(&x, a.data() + i, sizeof x);
      std::memcpy(&y, b.data() + i, sizeof y);
      largest = std::max(largest, std::abs(x - y));
    }
    CHECK(largest < 1e-3F);
  }
}

TEST_CASE("the gradients of batch norm by given statistics are those of finite differences") {
  Graph g;
  const Shape channels{3};
  const ValueId x = g.add_value("x", {DType::f32, {4, 3, 2, 1}}, Storage::parameters);
  const ValueId gamma = g.add_value("gamma", {DType::f32, channels}, Storage::parameters);
  const ValueId beta = g.add_value("beta", {DType::f32, channels}, Storage::parameters);
  const ValueId mean = g.add_value("mean", {DType::f32, channels}, Storage::state);
  const ValueId variance = g.add_value("variance", {DType::f32, channels}, Storage::state);
  const ValueId target = g.add_value("target", {DType::f32, {4, 3, 2, 1}}, Storage::data);
  const ValueId count = g.add_value("count", {DType::i32, {}}, Storage::data);
  const ValueId y =
      g.add1(GPUNN_OP_BATCH_NORM_INFERENCE, "bn",
             graph::Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = 0.5F, .momentum = 0}),
             {x, gamma, beta, mean, variance});
  const ValueId losses = g.add1(GPUNN_OP_MSE_LOSS, "loss", {}, {y, target});
  const ValueId loss = g.add1(GPUNN_OP_MEAN_ROWS, "mean", {}, {losses, count});
  const std::vector<ValueId> targets{x, gamma, beta};
  const std::vector<ValueId> gradients = compiler::add_gradients(g, loss, targets);

  std::map<ValueId, std::vector<double>> values = {{x, sine_values(24, 1.3, 0.2)},
                                                   {gamma, sine_values(3, 0.9, 0.4)},
                                                   {beta, sine_values(3, 2.1, -0.3)},
                                                   {mean, sine_values(3, 0.7, 0)},
                                                   {variance, sine_values(3, 1.1, 1.5)},
                                                   {target, sine_values(24, 0.37, 0)},
                                                   {count, {4}}};
  const auto run = [&] {
    ReferenceRun result(g);
    for (const auto& [id, numbers] : values) result.set(id, numbers);
    result.run();
    return result;
  };
  ReferenceRun at = run();
  for (std::size_t t = 0; t < targets.size(); ++t) {
    CAPTURE(g.value(targets[t]).name);
    REQUIRE(gradients[t] != graph::kNoValue);
    CHECK(g.value(gradients[t]).type == g.value(targets[t]).type);
    const std::vector<double> found = at.get(gradients[t]);
    for (std::size_t i = 0; i < found.size(); ++i) {
      constexpr double kStep = 1e-4;
      double& number = values[targets[t]][i];
      const double before = number;
      number = before + kStep;
      const double above = run().get(loss)[0];
      number = before - kStep;
      const double below = run().get(loss)[0];
      number = before;
      CHECK(found[i] == Approx((above - below) / (2 * kStep)).margin(1e-7));
    }
  }
}

TEST_CASE("freeze_statistics without a frozen batch norm is an error, half frozen ones do not count") {
  const TemporaryFolder folder;
  for (const std::string freeze : {"[]", "[conv.*]", "[bn1.weight]"}) {
    const Experiment experiment =
        frozen_norm(folder.path(), {{"training.freeze", freeze}, {"training.freeze_statistics", "true"}});
    CHECK_THROWS_WITH(train(experiment), Contains("training.freeze matches weight and bias of no batch norm"));
  }
  CHECK(plan(frozen_norm(folder.path(), {{"training.freeze", "[bn1.weight]"}})).notice.empty());
  CHECK_THAT(plan(frozen_norm(folder.path(), {{"training.freeze", "['bn?.*']"}})).notice,
             Contains("of 2 batch norms (bn1 to bn2)"));
}

TEST_CASE("a training with kept statistics resumes to the straight run's bits") {
  const TemporaryFolder folder;
  const Override still{"training.freeze_statistics", "true"};
  const RunResult straight = train(frozen_norm(folder.path(), {still}));
  const RunResult first = train(frozen_norm(folder.path(), {still, {"training.epochs", "1"}}));
  resume(first.run, {{"training.epochs", "2"}});
  CHECK(same_state(straight.run / "last.h5", first.run / "last.h5"));
}
