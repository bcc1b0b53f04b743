// The layers that normalise. In a training with batch norm, its running statistics are right, are kept, and are used by
// evaluations.
#include <gpunn/evaluation.hpp>
#include <gpunn/ops.h>
#include <gpunn/plan.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

// Batch norm behind a convolution and behind a linear layer, on drawn digits.
Experiment small_cnn(const std::filesystem::path& runs, const std::vector<Override>& more = {}) {
  const std::string text =
      "name: small_cnn\n"
      "model:\n"
      "  layers:\n"
      "    - conv2d: {name: conv, filters: 4, kernel: 3, stride: 2, bias: false}\n"
      "    - batch_norm: {name: bn1}\n    - relu\n    - flatten\n"
      "    - linear: {units: 32, bias: false}\n"
      "    - batch_norm: {name: bn2, momentum: 0.2, epsilon: 1e-3}\n    - relu\n"
      "    - linear: {units: 10}\n"
      "data: {dataset: digits, synthetic_train: 640, synthetic_test: 200, batch_size: 60, drop_last: false}\n"
      "optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9, weight_decay: 1e-4}\n"
      "training: {epochs: 3, log_every_steps: 1}\n"
      "backend: cpu\n"
      "runs: " +
      runs.string() + "\n";
  return parse_experiment(text, "small_cnn.yaml", more);
}

// The layer alone in front of a linear one, on points, whose values stay with the session where they are streamed.
Experiment points(const std::filesystem::path& runs, const std::vector<Override>& more = {}) {
  const std::string text =
      "name: normed_points\n"
      "model:\n"
      "  layers:\n    - batch_norm: {name: bn, momentum: 0.3}\n    - linear: {name: fc, units: 2}\n"
      "data: {dataset: points, synthetic_train: 100, synthetic_test: 37, batch_size: 32, drop_last: false, "
      "residency: stream}\n"
      "optimizer: {type: sgd, learning_rate: 0.1}\n"
      "training: {epochs: 4}\n"
      "backend: cpu\n"
      "runs: " +
      runs.string() + "\n";
  return parse_experiment(text, "normed_points.yaml", more);
}

std::vector<double> numbers(const std::vector<storage::StoredTensor>& tensors, const std::string& name) {
  for (const storage::StoredTensor& tensor : tensors) {
    if (tensor.name != name) continue;
    std::vector<float> values(tensor.values.size() / sizeof(float));
    std::memcpy(values.data(), tensor.values.data(), tensor.values.size());
    return {values.begin(), values.end()};
  }
  FAIL("there is no tensor " << name);
  return {};
}

// Value `channel` of a row of a streamed split, normalised as the program does.
double value_of(const Dataset& set, const Split& split, int64_t row, std::size_t channel) {
  float value = 0;
  std::memcpy(&value, split.values.data() + (static_cast<std::size_t>(row) * 2 + channel) * sizeof(float),
              sizeof(float));
  return (static_cast<double>(value) - set.fields.input().mean[channel]) / set.fields.input().stddev[channel];
}

std::size_t inputs_of(const graph::Graph& program, int32_t op) {
  for (const graph::Node& node : program.nodes()) {
    if (node.op == op) return node.inputs.size();
  }
  return 0;
}

bool near(double a, double b, double tolerance = 1e-5) { return std::abs(a - b) <= tolerance * (1 + std::abs(b)); }

}  // namespace

TEST_CASE("a network with batch norm learns, and its checkpoint evaluates as the run did") {
  const TemporaryFolder folder;
  const RunResult run = train(small_cnn(folder.path()));
  CHECK(run.final_evaluation.scores.value("accuracy") > 0.7);
  const storage::Checkpoint last = storage::load_checkpoint(run.run / "last.h5");
  REQUIRE(last.buffers.size() == 4);
  CHECK(last.buffers[0].name == "bn1.running_mean");
  CHECK(last.buffers[1].name == "bn1.running_var");
  CHECK(last.buffers[3].type == TensorType{DType::f32, {32}});
  CHECK(numbers(last.buffers, "bn2.running_var") != std::vector<double>(32, 1.0));
  CHECK(evaluate({.path = run.run / "last.h5", .overrides = {}}).loss == run.final_evaluation.loss);
}

TEST_CASE("running statistics are those of the rows that count, batch after batch") {
  const TemporaryFolder folder;
  // 100 rows by 32: the last batch of an epoch has 4.
  training::Session session = training::Session::open(points(folder.path()));
  CHECK(inputs_of(session.training().graph, GPUNN_OP_BATCH_NORM) == 6);
  const Dataset& set = session.dataset();
  const training::Sampling sampling =
      training::training_sampling(session.experiment(), {.name = "train", .samples = set.train.samples});
  double mean[2] = {0, 0}, variance[2] = {1, 1};
  storage::Checkpoint state;
  for (int64_t step = 0; step < 9; ++step) {
    std::vector<int32_t> rows(32);
    const int32_t count = sampling.rows_of_step(step, rows);
    CHECK(count == (step % 4 == 3 ? 4 : 32));
    for (std::size_t channel = 0; channel < 2; ++channel) {
      double sum = 0, squares = 0;
      for (int32_t i = 0; i < count; ++i) sum += value_of(set, set.train, rows[static_cast<std::size_t>(i)], channel);
      const double batch_mean = sum / count;
      for (int32_t i = 0; i < count; ++i) {
        const double apart = value_of(set, set.train, rows[static_cast<std::size_t>(i)], channel) - batch_mean;
        squares += apart * apart;
      }
      mean[channel] = 0.7 * mean[channel] + 0.3 * batch_mean;
      variance[channel] = 0.7 * variance[channel] + 0.3 * squares / (count - 1);
    }
    session.train_step();
    session.save_state(state);
    for (std::size_t channel = 0; channel < 2; ++channel) {
      INFO("step " << step << ", channel " << channel);
      CHECK(near(numbers(state.buffers, "bn.running_mean")[channel], mean[channel]));
      CHECK(near(numbers(state.buffers, "bn.running_var")[channel], variance[channel]));
    }
  }
}

TEST_CASE("an evaluation normalises by the running statistics and leaves them alone") {
  const TemporaryFolder folder;
  training::Session session = training::Session::open(points(folder.path()));
  session.train_steps(6);
  storage::Checkpoint before, after;
  session.save_state(before);
  const double loss = session.evaluate().loss;
  session.save_state(after);
  CHECK(state_bytes(before) == state_bytes(after));

  const auto mean = numbers(before.buffers, "bn.running_mean"), variance = numbers(before.buffers, "bn.running_var");
  const auto gamma = numbers(before.parameters, "bn.weight"), beta = numbers(before.parameters, "bn.bias");
  const auto weight = numbers(before.parameters, "fc.weight"), bias = numbers(before.parameters, "fc.bias");
  const Dataset& set = session.dataset();
  double expected = 0;
  for (int64_t row = 0; row < set.test.rows(); ++row) {
    double logit[2] = {bias[0], bias[1]};
    for (std::size_t channel = 0; channel < 2; ++channel) {
      const double x = value_of(set, set.test, row, channel);
      const double y = (x - mean[channel]) / std::sqrt(variance[channel] + 1e-5) * gamma[channel] + beta[channel];
      for (std::size_t k = 0; k < 2; ++k) logit[k] += weight[k * 2 + channel] * y;
    }
    const auto label = static_cast<std::size_t>(labels_of(set.test)[static_cast<std::size_t>(row)]);
    expected += std::log(std::exp(logit[0]) + std::exp(logit[1])) - logit[label];
  }
  CHECK(near(loss, expected / static_cast<double>(set.test.rows())));
}

TEST_CASE("batches that are always full are not counted") {
  const TemporaryFolder folder;
  for (const Override& full : {Override{"data.drop_last", "true"}, Override{"data.batch_size", "20"}}) {
    training::Session session = training::Session::open(points(folder.path(), {full}));
    CHECK(inputs_of(session.training().graph, GPUNN_OP_BATCH_NORM) == 5);
    CHECK(inputs_of(session.training().graph, GPUNN_OP_BATCH_NORM_BACKWARD) == 5);
  }
}

TEST_CASE("buffers are part of the memory that is counted, and are there once for all programs") {
  const TemporaryFolder folder;
  training::Session session = training::Session::open(small_cnn(folder.path()));
  session.train_step();
  session.evaluate();
  CHECK(session.buffers().count() == 2 * (4 + 32));
  CHECK(session.backend().allocated_bytes() ==
        session.arena_bytes() + session.persistent_bytes() + session.data_bytes());
  const PlanReport report = plan(small_cnn(folder.path()));
  const auto found = std::ranges::find(report.tensors, std::string("buffers"), &PlannedTensor::name);
  REQUIRE(found != report.tensors.end());
  CHECK(found->type == session.buffers().type());
}

TEST_CASE("a run with batch norm, stopped and resumed, gives the straight run's bits") {
  const TemporaryFolder folder;
  const Experiment experiment = small_cnn(folder.path());
  const RunResult straight = train(experiment);
  StopAfter stop(16);
  const RunResult part = train(experiment, {.listener = &stop, .stop = &stop.stop, .run_folder = {}});
  CHECK(part.interrupted);
  resume(part.run, {});
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(same_state(straight.run / "best.h5", part.run / "best.h5"));
}

TEST_CASE("batch norm trains alike streamed, on any number of threads, and checked with itself") {
  const TemporaryFolder folder;
  const std::vector<Override> short_run{{"training.epochs", "1"}, {"data.synthetic_train", "200"}};
  const auto state = [&](std::vector<Override> more) {
    more.insert(more.end(), short_run.begin(), short_run.end());
    return state_bytes(storage::load_checkpoint(train(small_cnn(folder.path(), more)).run / "last.h5"));
  };
  const auto alone = state({});
  CHECK(alone.size() > 4);
  CHECK(state({{"data.residency", "stream"}}) == alone);
  CHECK(state({{"training.threads", "3"}}) == alone);
  CHECK(state({{"backend", "check:cpu,cpu"}}) == alone);
}

TEST_CASE("a network with layer norm and local response norm learns, and needs no buffers") {
  const TemporaryFolder folder;
  const std::string text =
      "name: small_norms\n"
      "model:\n"
      "  layers:\n"
      "    - conv2d: {filters: 6, kernel: 3, stride: 2}\n    - local_response_norm\n    - relu\n    - layer_norm\n"
      "    - flatten\n    - linear: {units: 32}\n    - layer_norm\n    - relu\n    - linear: {units: 10}\n"
      "data: {dataset: digits, synthetic_train: 640, synthetic_test: 200, batch_size: 60, drop_last: false}\n"
      "optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}\n"
      "training: {epochs: 3}\n"
      "backend: cpu\n"
      "runs: " +
      folder.path().string() + "\n";
  const RunResult run = train(parse_experiment(text, "small_norms.yaml"));
  CHECK(run.final_evaluation.scores.value("accuracy") > 0.6);
  CHECK(storage::load_checkpoint(run.run / "last.h5").buffers.empty());
}

TEST_CASE("a checkpoint without the model's buffers is refused, one of a model without any needs none") {
  const TemporaryFolder folder;
  training::Session session = training::Session::open(points(folder.path()));
  storage::Checkpoint state;
  session.save_state(state);
  state.buffers.pop_back();
  CHECK_THROWS_WITH(session.restore_parameters(state), Contains("buffer 'bn.running_var' f32[2] is missing"));
  CHECK_THROWS_WITH(session.restore_state(state), Contains("buffer 'bn.running_var' f32[2] is missing"));

  training::Session plain = training::Session::open(small_mlp(folder.path()));
  storage::Checkpoint without;
  plain.save_state(without);
  CHECK(without.buffers.empty());
  CHECK_NOTHROW(plain.restore_state(without));
}
