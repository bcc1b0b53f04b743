// A step in parts takes the step of the whole batch.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::Session;

namespace {

Experiment accumulating(const std::filesystem::path& runs, int64_t batch, int64_t accumulate, const std::string& layers,
                        const std::string& data = "") {
  return parse_experiment("model: {layers: [flatten, linear: {name: hidden, units: 12, activation: tanh}, " + layers +
                              "linear: {name: output, units: 10}]}\n"
                              "data: {dataset: digits, synthetic_train: 144, synthetic_test: 64, batch_size: " +
                              std::to_string(batch) + data + "}\nbackend: cpu\nruns: " + runs.string() +
                              "\noptimizer: {learning_rate: 0.5, momentum: 0.9, weight_decay: 0.01}\n"
                              "training: {epochs: 3, accumulate: " +
                              std::to_string(accumulate) + "}\n",
                          "accumulate.yaml");
}

std::vector<float> values_of_parameters(Session& session) {
  storage::Checkpoint state;
  session.save_state(state);
  std::vector<float> result;
  for (const storage::StoredTensor& tensor : state.parameters) {
    std::vector<float> values(tensor.values.size() / sizeof(float));
    std::memcpy(values.data(), tensor.values.data(), tensor.values.size());
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("batches that add up are one large batch, to rounding") {
  const TemporaryFolder folder;
  const int64_t parts = GENERATE(2, 3, 4);
  const std::string residency = GENERATE("device", "stream");
  INFO(parts << " parts, " << residency);
  const std::string data = ", residency: " + residency;
  Session whole = Session::open(accumulating(folder.path(), 48, 1, "", data));
  Session parted = Session::open(accumulating(folder.path(), 48 / parts, parts, "", data));
  CHECK(parted.steps_per_epoch() == 3);
  CHECK(parted.total_steps() == whole.total_steps());
  const std::vector<float> start = values_of_parameters(whole);
  CHECK(distance(start, values_of_parameters(parted)) == 0);
  for (int step = 0; step < 6; ++step) {
    whole.train_step();
    parted.train_step();
  }
  const std::vector<float> end = values_of_parameters(whole);
  CHECK(distance(start, end) > 0.05);
  CHECK(distance(end, values_of_parameters(parted)) < 2e-5);
  CHECK(parted.sums().total(tasks::Total::rows) == whole.sums().total(tasks::Total::rows));
  CHECK(parted.sums().total(tasks::Total::correct) == whole.sums().total(tasks::Total::correct));
  for (int64_t step = 0; step < 6; ++step) {
    CHECK(parted.losses(step, step + 1)[0] == Approx(whole.losses(step, step + 1)[0]).epsilon(1e-5));
  }
}

TEST_CASE("a training whose batches add up resumes to the straight run's bits, dropout and all") {
  const TemporaryFolder folder;
  const Experiment experiment = accumulating(folder.path(), 16, 3, "dropout: {p: 0.4}, ");
  const RunResult straight = train(experiment);
  Experiment shorter = experiment;
  shorter.epochs = 1;
  const RunResult first = train(shorter);
  resume(first.run, {{"training.epochs", "3"}});
  CHECK(same_state(straight.run / "last.h5", first.run / "last.h5"));
}

TEST_CASE("what does not add up is refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(Session::open(accumulating(folder.path(), 48, 4, "")),
                    Contains("training.accumulate 4 batches are 192 samples"));
  CHECK_THROWS_WITH(accumulating(folder.path(), 16, 2, "", ", drop_last: false"),
                    Contains("needs data.drop_last: true"));
}
