// Weights of rows: a row of weight 2 counts as two, a row of weight 0 as none.
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/training.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "storage/checkpoint.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

constexpr int kRows = 24;

// A table of x, y and what is learnt of them. `weights` of the rows; without, each row is there as often as it weighs.
void write_table(const std::filesystem::path& file, const std::vector<int>& weights, bool has_weights) {
  std::ofstream table(file);
  table << "x,y," << (has_weights ? "w," : "") << "target\n";
  for (int i = 0; i < kRows; ++i) {
    const int weight = weights[static_cast<std::size_t>(i) % weights.size()];
    for (int copy = 0; copy < (has_weights ? 1 : weight); ++copy) {
      table << (i % 7) / 3.0 << "," << (i % 5) / 2.0 << ",";
      if (has_weights) table << weight << ",";
      table << std::sin(i) << "\n";
    }
  }
}

// A training whose every step sees all rows.
Experiment experiment_of(const std::filesystem::path& folder, const std::string& table, const std::string& more) {
  return parse_experiment(
      "task: regression\nmodel: {layers: [linear: {units: 8, activation: tanh}, linear: {units: 1}]}\n"
      "data: {dataset: csv, path: " +
          (folder / table).string() + ", test_path: " + (folder / table).string() +
          ", batch_size: 24, shuffle: false, mean: [0, 0], stddev: [1, 1], scale_targets: false" + more +
          "}\noptimizer: {type: sgd, learning_rate: 0.1}\ntraining: {epochs: 20}\n"
          "backend: cpu\nruns: " +
          folder.string() + "\n",
      table);
}

std::vector<float> trained(const Experiment& experiment) {
  std::vector<float> numbers;
  const RunResult result = train(experiment);
  for (const storage::StoredTensor& tensor : storage::load_checkpoint(result.run / "last.h5").parameters) {
    const auto first = numbers.size();
    numbers.resize(first + tensor.values.size() / sizeof(float));
    std::memcpy(numbers.data() + first, tensor.values.data(), tensor.values.size());
  }
  return numbers;
}

}  // namespace

TEST_CASE("a row of weight 2 counts as two rows, one of weight 0 as none") {
  const TemporaryFolder folder;
  const std::vector<int> weights = {2, 0, 1};  // 1 in the mean, so that the loss has the same size
  write_table(folder / "weighted.csv", weights, true);
  write_table(folder / "copied.csv", weights, false);
  write_table(folder / "plain.csv", {1}, false);
  const auto weighted = trained(experiment_of(folder.path(), "weighted.csv", ", weight_column: w"));
  const auto copied = trained(experiment_of(folder.path(), "copied.csv", ""));
  const auto plain = trained(experiment_of(folder.path(), "plain.csv", ""));
  REQUIRE(weighted.size() == copied.size());
  float apart = 0, from_plain = 0;
  for (std::size_t i = 0; i < weighted.size(); ++i) {
    apart = std::max(apart, std::abs(weighted[i] - copied[i]));
    from_plain = std::max(from_plain, std::abs(weighted[i] - plain[i]));
  }
  CHECK(apart < 1e-5F);
  CHECK(from_plain > 1e-3F);
}

TEST_CASE("weights of rows that can't be are refused") {
  const TemporaryFolder folder;
  write_table(folder / "negative.csv", {1, 1, -1}, true);
  write_table(folder / "zero.csv", {0}, true);
  write_table(folder / "good.csv", {1}, true);
  const auto refused = [&](const std::string& table, const std::string& more) {
    return train(experiment_of(folder.path(), table, more));
  };
  CHECK_THROWS_WITH(refused("negative.csv", ", weight_column: w"),
                    Contains("the weight of row 2 of the training part is -1; expected 0 or more"));
  CHECK_THROWS_WITH(refused("zero.csv", ", weight_column: w"), Contains("all weights of the training part are 0"));
  CHECK_THROWS_WITH(refused("good.csv", ", weight_column: v"), Contains("no column 'v' (data.weight_column)"));
  CHECK_THROWS_WITH(refused("good.csv", ", weight_column: target"),
                    Contains("the column 'target' is data.weight_column; it can't be what is learnt. Name"));
}
