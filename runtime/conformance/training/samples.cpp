#include "conformance/training/samples.hpp"

namespace gpunn::conformance {

namespace {

constexpr const char* kPerceptron = R"(
model:
  layers:
    - flatten
    - linear: {units: 48, activation: relu}
    - dropout: {p: 0.25}
    - linear: {units: 10}
data: {dataset: digits, synthetic_train: 320, synthetic_test: 64, batch_size: 32}
optimizer: {type: adamw, learning_rate: 0.003, weight_decay: 0.01}
schedule: {type: cosine, warmup_epochs: 2}
training: {epochs: 12}
)";

// Batch 48 of 320 rows without drop_last: every epoch ends with a batch that is not full.
constexpr const char* kConvolution = R"(
model:
  layers:
    - conv2d: {name: first, filters: 6, kernel: 5, padding: 2, stride: 2}
    - relu
    - conv2d: {name: second, filters: 6, kernel: 3, padding: 1, activation: relu}
    - add: {from: [relu1, second]}
    - max_pool: {window: 2}
    - flatten
    - dropout: {p: 0.1}
    - linear: {units: 10}
data: {dataset: digits, synthetic_train: 320, synthetic_test: 64, batch_size: 48, drop_last: false}
optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9, nesterov: true, weight_decay: 5e-4}
schedule: {type: exponential, k: 0.05}
training: {epochs: 17}
)";

constexpr const char* kSquares = R"(
model:
  layers:
    - flatten
    - linear: {units: 24}
    - relu
    - linear: {units: 10}
    - softmax
data: {dataset: digits, synthetic_train: 256, synthetic_test: 64, batch_size: 16}
loss: mean_squared_error
optimizer: {type: rmsprop, learning_rate: 0.002, momentum: 0.5}
schedule: {type: one_cycle, warmup_epochs: 1}
training: {epochs: 7}
)";

constexpr const char* kTreated = R"(
model:
  layers:
    - flatten
    - linear: {name: hidden, units: 24, activation: relu}
    - linear: {name: output, units: 10}
data: {dataset: digits, synthetic_train: 256, synthetic_test: 64, batch_size: 32}
optimizer:
  {type: muon, learning_rate: 0.02, weight_decay: 0.01, l1: 1e-5, clip_value: 0.5, clip_norm: 1,
   groups: [{match: "*.bias", learning_rate_factor: 0.1}]}
training: {epochs: 14, ema: 0.9}
)";

// 300 steps of LeNet's shape with fewer filters. At a learning rate of 0.05 the last losses are smaller, and say more
// of chance than of the backend.
constexpr const char* kLeNet = R"(
model:
  layers:
    - conv2d: {filters: 6, kernel: 5, padding: 2, activation: relu}
    - max_pool: {window: 2}
    - conv2d: {filters: 12, kernel: 5, activation: relu}
    - max_pool: {window: 2}
    - flatten
    - linear: {units: 64, activation: relu}
    - linear: {units: 10}
data: {dataset: digits, synthetic_train: 3200, synthetic_test: 512, batch_size: 64}
optimizer: {type: sgd, learning_rate: 0.02, momentum: 0.9, nesterov: true, weight_decay: 5e-4}
schedule: {type: cosine, warmup_epochs: 1}
training: {epochs: 6}
)";

constexpr const char* kWide = R"(
model:
  layers:
    - flatten
    - linear: {units: 128, activation: relu}
    - linear: {units: 10}
data: {dataset: digits, synthetic_train: 6400, synthetic_test: 512, batch_size: 64}
optimizer: {type: adam, learning_rate: 0.004}
schedule: {type: cosine, warmup_epochs: 1}
training: {epochs: 3}
)";

}  // namespace

std::vector<SampleTraining> graph_trainings() {
  return {{"perceptron", "dropout, AdamW, warm-up and cosine", kPerceptron},
          {"convolution", "a skip connection, SGD with momentum, an epoch's last batch not full", kConvolution},
          {"squares", "softmax, mean squared error, RMSprop, one cycle", kSquares},
          {"treated", "Muon, L1, gradients clipped, a group of its own rate, an average", kTreated}};
}

std::vector<SampleTraining> curve_trainings() {
  return {{"CNN", "LeNet's shape on drawn digits, 300 steps of SGD", kLeNet, false},
          {"MLP", "784-128-10 on drawn digits, 300 steps of Adam", kWide, true}};
}

Experiment experiment_of(const SampleTraining& sample, const CheckOptions& options, const std::string& backend) {
  Experiment experiment = parse_experiment(sample.yaml, "the sample training '" + sample.name + "'");
  experiment.name = sample.name;
  experiment.backend = backend;
  experiment.plugins = options.plugins;
  experiment.threads = options.threads;
  experiment.seed = options.seed;
  experiment.data.seed = options.seed;
  return experiment;
}

}  // namespace gpunn::conformance
