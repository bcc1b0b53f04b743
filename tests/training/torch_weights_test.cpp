// A network that PyTorch made: its weights and running statistics found by name, its probabilities ours.
#include <cmath>
#include <cstring>
#include <utility>

#include "catch.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "fields/values.hpp"
#include "runs/transfer.hpp"
#include "session/session.hpp"
#include "storage/safetensors.hpp"
#include "training/fixtures.hpp"
#include "training/predictions.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

const std::string kSource = GPUNN_SOURCE_DIR;

// models/resnet18.yaml with fewer layers and filters, as tests/fixtures/resnet.py has it.
const std::string kModel = R"(
model:
  blocks:
    basic:
      parameters: {filters: , stride: 1, project: false}
      layers:
        - conv2d: {name: conv1, filters: $filters, kernel: 3, stride: $stride, padding: 1, bias: false}
        - batch_norm: {name: bn1}
        - relu
        - conv2d: {name: conv2, filters: $filters, kernel: 3, padding: 1, bias: false}
        - batch_norm: {name: bn2}
        - branch: shortcut
          from: input
          when: $project
          layers:
            - conv2d: {name: conv, filters: $filters, kernel: 1, stride: $stride, bias: false}
            - batch_norm: {name: bn}
        - add: {from: [bn2, shortcut]}
        - relu
  layers:
    - conv2d: {name: conv1, filters: 4, kernel: 3, stride: 2, padding: 1, bias: false}
    - batch_norm: {name: bn1}
    - relu
    - basic: {name: stage1, repeat: 2, filters: 4}
    - basic: {name: stage2, repeat: 2, filters: 8, first: {stride: 2, project: true}}
    - global_avg_pool
    - linear: {name: output, units: 10}
)";

const storage::StoredTensor& tensor(const storage::Safetensors& file, const std::string& name) {
  for (const storage::StoredTensor& candidate : file.tensors) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no tensor " + name);
}

}  // namespace

TEST_CASE("a residual network of PyTorch's gives PyTorch's probabilities") {
  const std::string weights = kSource + "/tests/fixtures/resnet.safetensors";
  const Experiment experiment = parse_experiment(
      kModel + "init_from: {file: " + weights + ", names: " + kSource +
          "/models/resnet.names.yaml}\n"
          "data: {dataset: digits, synthetic_train: 200, synthetic_test: 100, mean: [0], stddev: [1]}\nbackend: cpu\n",
      "e.yaml");
  const storage::Safetensors file = storage::load_safetensors(weights);
  Dataset dataset = training::load_for(experiment.data, EvaluationPart::test);
  dataset.test.samples = tensor(file, "fixture.samples").type;
  dataset.test.values = tensor(file, "fixture.samples").values;
  dataset.test.fields[kLabelField] = fields::class_values(std::vector<int32_t>(5));
  training::Session session = training::Session::open(experiment, std::move(dataset));
  const auto start = training::find_start(experiment, training::model_samples(session.dataset()));
  REQUIRE(start);
  session.initialise_from(*start);
  CHECK_THAT(
      start->report.text(),
      Contains("starts from " + weights + ": 52 of 52 tensors\n  there, but not in the model: fixture.probabilities"));

  const storage::StoredTensor expected = tensor(file, "fixture.probabilities");
  const std::vector<float> found = predictions_of(session);
  REQUIRE(found.size() * sizeof(float) == expected.values.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    float probability = 0;
    std::memcpy(&probability, expected.values.data() + i * sizeof(float), sizeof(float));
    CHECK(std::abs(found[i] - probability) < 2e-6F);
  }
}
