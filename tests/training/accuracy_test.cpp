// The accuracy that the shipped experiments must reach, on real data where it is there.
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

bool have_mnist() {
  const auto data = std::filesystem::path(GPUNN_SOURCE_DIR) / ".." / "shared" / "data";
  if (std::getenv("GPUNN_DATA_DIR") == nullptr && std::filesystem::exists(data)) {
    setenv("GPUNN_DATA_DIR", data.c_str(), 1);
  }
  for (const DatasetInfo& info : list_datasets()) {
    if (info.name == "mnist") return !info.found.empty();
  }
  return false;
}

double best_accuracy(const std::string& name, const std::filesystem::path& runs, const char* seed,
                     int64_t most_epochs = 10) {
  const Experiment experiment =
      load_experiment(experiment_file(name), {{"backend", "cpu"}, {"runs", runs.string()}, {"training.seed", seed}});
  CHECK(experiment.epochs <= most_epochs);
  return train(experiment).best_metric;
}

// On each seed, of MNIST.
void check_accuracy(const std::string& name, const std::vector<const char*>& seeds, double wanted) {
  if (!have_mnist()) {
    WARN("no MNIST here: set GPUNN_DATA_DIR; nothing was tested");
    return;
  }
  const TemporaryFolder folder;
  for (const char* seed : seeds) {
    const double accuracy = best_accuracy(name, folder.path(), seed);
    WARN(name << ", seed " << seed << ": " << 100 * accuracy << " %");
    CHECK(accuracy >= wanted);
  }
}

}  // namespace

TEST_CASE("LeNet-5 reaches 99.0 % on MNIST within 10 epochs", "[long]") { check_accuracy("lenet_mnist", {"1"}, 0.990); }
TEST_CASE("LeNet-5 reaches 99.0 % on MNIST on other seeds too", "[.campaign]") {
  check_accuracy("lenet_mnist", {"2", "3"}, 0.990);
}

TEST_CASE("the MLP reaches 97.9 % on MNIST within 10 epochs", "[long]") { check_accuracy("mlp_mnist", {"1"}, 0.979); }
TEST_CASE("the MLP reaches 97.9 % on MNIST on other seeds too", "[.campaign]") {
  check_accuracy("mlp_mnist", {"2", "3"}, 0.979);
}

TEST_CASE("LeNet-5 reaches 99.3 % on shifted MNIST within 20 epochs in the mean of three seeds", "[.campaign]") {
  if (!have_mnist()) {
    WARN("no MNIST here: set GPUNN_DATA_DIR; nothing was tested");
    return;
  }
  const TemporaryFolder folder;
  double sum = 0;
  for (const char* seed : {"1", "2", "3"}) {
    const double accuracy = best_accuracy("lenet_mnist_shifts", folder.path(), seed, 20);
    WARN("LeNet-5, shifted MNIST, seed " << seed << ": " << 100 * accuracy << " %");
    sum += accuracy;
  }
  CHECK(sum / 3 >= 0.993);
}

TEST_CASE("LeNet-5 learns MNIST in one epoch while its digits are moved about", "[long]") {
  if (!have_mnist()) {
    WARN("no MNIST here: set GPUNN_DATA_DIR; nothing was tested");
    return;
  }
  const TemporaryFolder folder;
  const Experiment experiment = load_experiment(
      experiment_file("lenet_mnist_shifts"),
      {{"backend", "cpu"}, {"runs", folder.path().string()}, {"training.epochs", "1"}, {"schedule", "constant"}});
  const double accuracy = train(experiment).final_evaluation.scores.value("accuracy");
  WARN("LeNet-5, shifted MNIST, one epoch: " << 100 * accuracy << " %");
  CHECK(accuracy > 0.96);
}

TEST_CASE("LeNet-5 reaches 97 % on the drawn digits", "[long]") {
  const TemporaryFolder folder;
  const double accuracy = best_accuracy("lenet_digits", folder.path(), "1");
  WARN("LeNet-5, digits: " << 100 * accuracy << " %");
  CHECK(accuracy >= 0.97);
}
