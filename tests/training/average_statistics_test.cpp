// The running statistics that belong to averaged weights.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "catch.hpp"
#include "runs/trained_model.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::Session;

namespace {

Experiment averaged_run(const std::filesystem::path& runs, const std::string& training) {
  return parse_experiment(
      "name: normed\n"
      "model: {layers: [conv2d: {name: conv, filters: 4, kernel: 3, stride: 2, bias: false}, batch_norm: {name: bn}, "
      "relu, flatten, linear: {name: output, units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 128, synthetic_test: 64, batch_size: 16}\n"
      "optimizer: {type: sgd, learning_rate: 0.1}\nbackend: cpu\n"
      "training: {epochs: 2" +
          training + "}\nruns: " + runs.string() + "\n",
      "normed.yaml");
}

std::vector<float> all_floats(const std::vector<storage::StoredTensor>& tensors) {
  std::vector<float> all;
  for (const storage::StoredTensor& tensor : tensors) {
    std::vector<float> values(tensor.values.size() / sizeof(float));
    std::memcpy(values.data(), tensor.values.data(), tensor.values.size());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

storage::Checkpoint saved_state(Session& session) {
  storage::Checkpoint state;
  session.save_state(state);
  return state;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float off = 0;
  for (std::size_t i = 0; i < a.size(); ++i) off = std::max(off, std::abs(a[i] - b[i]));
  return off;
}

// The model of the average as the model of a run without one.
storage::Checkpoint averaged_model(const storage::Checkpoint& state) {
  storage::Checkpoint model;
  model.parameters = state.optimizer.at("ema");
  model.buffers = state.optimizer.at("ema.buffers");
  return model;
}

}  // namespace

TEST_CASE("averaged weights are evaluated with the average of the running statistics") {
  const TemporaryFolder folder;
  const std::string more = GENERATE("", ", accumulate: 2", ", micro_batches: 2");
  CAPTURE(more);
  Session session = Session::open(averaged_run(folder.path(), ", ema: 0.75" + more));
  std::vector<float> expected = all_floats(saved_state(session).buffers);
  for (int step = 0; step < 4; ++step) {
    session.train_step();
    const std::vector<float> now = all_floats(saved_state(session).buffers);
    for (std::size_t i = 0; i < now.size(); ++i) expected[i] = 0.75F * expected[i] + 0.25F * now[i];
  }
  const storage::Checkpoint state = saved_state(session);
  CHECK(largest_difference(all_floats(state.optimizer.at("ema.buffers")), expected) < 1e-6F);
  CHECK(largest_difference(all_floats(state.buffers), expected) > 1e-3F);

  Session plain = Session::open(averaged_run(folder.path(), more));
  plain.restore_parameters(averaged_model(state));
  CHECK(session.evaluate().loss == plain.evaluate().loss);
  storage::Checkpoint mixed = averaged_model(state);
  mixed.buffers = state.buffers;
  plain.restore_parameters(mixed);
  CHECK(session.evaluate().loss != plain.evaluate().loss);
  CHECK(all_floats(training::model_tensors(state)).size() == all_floats(state.parameters).size() + expected.size());
  CHECK(all_floats(training::evaluated_buffers(state)) == all_floats(state.optimizer.at("ema.buffers")));
}

TEST_CASE("the shares of an average add up to 1, and a constant stays what it is") {
  const TemporaryFolder folder;
  Experiment experiment = averaged_run(folder.path(), ", ema: 0.99999, freeze: '*', freeze_statistics: true");
  experiment.freeze = {"conv*", "bn*"};
  Session session = Session::open(experiment);
  storage::Checkpoint start = saved_state(session);
  std::vector<float> many(4, 1000.0F);
  for (auto* tensors : {&start.buffers, &start.optimizer.at("ema.buffers")}) {
    for (storage::StoredTensor& tensor : *tensors) std::memcpy(tensor.values.data(), many.data(), 16);
  }
  session.restore_parameters(start);
  session.train_steps(300);
  // Shares of 0.99999 and 0.00001 in f32 have a sum below 1: these statistics would be 999.996.
  for (const float value : all_floats(saved_state(session).optimizer.at("ema.buffers"))) {
    CHECK(std::abs(value - 1000.0F) < 1e-3F);
  }
}

TEST_CASE("runs with averaged statistics resume to the straight run's bits, and all verbs see the same model") {
  const TemporaryFolder folder;
  const auto [straight, part] = straight_and_resumed(averaged_run(folder.path(), ", ema: 0.9"), folder.path(), 3);
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(same_state(straight.run / "best.h5", part.run / "best.h5"));
  CHECK(part.final_evaluation.loss == straight.final_evaluation.loss);
  CHECK(evaluate({.path = part.run / "last.h5", .overrides = {}}).loss == straight.final_evaluation.loss);

  // The model itself, which predict and the exports take.
  const storage::Checkpoint last = storage::load_checkpoint(part.run / "last.h5");
  storage::Checkpoint alone = last;
  alone.parameters = last.optimizer.at("ema");
  alone.buffers = last.optimizer.at("ema.buffers");
  alone.optimizer.clear();
  storage::save_checkpoint(folder.path() / "alone.h5", alone);
  const PredictRequest rows{.inputs = {}, .rows = {0, 1, 2, 3}};
  const std::vector<Prediction> with_average = predict(TrainedModel{part.run / "last.h5", {}}, rows);
  const std::vector<Prediction> plain = predict(TrainedModel{folder.path() / "alone.h5", {}}, rows);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CHECK(with_average[i].top[0].probability == plain[i].top[0].probability);
  }
  CHECK(all_floats(training::model_tensors(last)) == all_floats(training::model_tensors(alone)));
}

TEST_CASE("a run of an earlier version, whose checkpoint has no average of its statistics, is resumed") {
  const TemporaryFolder folder;
  const RunResult run = train(averaged_run(folder.path(), ", ema: 0.9"));
  storage::Checkpoint state = storage::load_checkpoint(run.run / "last.h5");
  state.optimizer.erase("ema.buffers");
  storage::save_checkpoint(run.run / "last.h5", state);
  CHECK_NOTHROW(resume(run.run, {{"training.epochs", "3"}}));
  CHECK(storage::load_checkpoint(run.run / "last.h5").optimizer.contains("ema.buffers"));
}
