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

// 320 rows in batches of 48 without drop_last: every epoch ends with a partial batch.
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

// 300 steps of LeNet's shape with fewer filters. With a learning rate of 0.05 the last losses are so small that chance
// decides them more than the backend.
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

// Models on digits of 28x28: linear layers, or LeNet's shape.
std::string perceptron(const std::vector<int>& units) {
  std::string layers = "model:\n  layers:\n    - flatten\n";
  for (const int width : units) layers += "    - linear: {units: " + std::to_string(width) + ", activation: relu}\n";
  return layers + "    - linear: {units: 10}\n";
}

std::string lenet(int filters, int more_filters, int kernel, int units) {
  const std::string size = std::to_string(kernel);
  return "model:\n  layers:\n    - conv2d: {filters: " + std::to_string(filters) + ", kernel: " + size +
         ", padding: " + std::to_string(kernel / 2) +
         ", activation: relu}\n    - max_pool: {window: 2}\n    - conv2d: {filters: " + std::to_string(more_filters) +
         ", kernel: " + size +
         ", activation: relu}\n    - max_pool: {window: 2}\n    - flatten\n    - linear: {units: " +
         std::to_string(units) + ", activation: relu}\n    - linear: {units: 10}\n";
}

std::string digits(int rows, int batch, bool drop_last = true) {
  return "data: {dataset: digits, synthetic_train: " + std::to_string(rows) +
         ", synthetic_test: 100, batch_size: " + std::to_string(batch) + (drop_last ? "" : ", drop_last: false") +
         "}\ntraining: {epochs: 20}\n";
}

constexpr const char* kPlain = "optimizer: {type: sgd, learning_rate: 0.05}\n";
constexpr const char* kNesterov =
    "optimizer: {type: sgd, learning_rate: 0.02, momentum: 0.9, nesterov: true, weight_decay: 5e-4}\n"
    "schedule: {type: cosine, warmup_epochs: 1}\n";
constexpr const char* kAdam = "optimizer: {type: adam, learning_rate: 0.002}\n";
constexpr const char* kAdamW =
    "optimizer: {type: adamw, learning_rate: 0.002, weight_decay: 0.01}\nschedule: {type: cosine, warmup_epochs: 1}\n";

constexpr const char* kMomentum = "optimizer: {type: sgd, learning_rate: 0.02, momentum: 0.9}\n";

// LeNet's shape of other parts: `norm` is batch norm behind each layer, `dropped` the share that dropout drops.
std::string lenet_of(const std::string& activation, const std::string& pooling, bool norm, double dropped) {
  const std::string bias = norm ? ", bias: false" : "";
  const auto finish = [&](bool pooled) {
    std::string layers = norm ? "    - batch_norm\n" : "";
    layers += "    - " + activation + "\n";
    if (pooled) layers += "    - " + pooling + ": {window: 2}\n";
    if (dropped > 0) layers += "    - dropout: {p: " + std::to_string(dropped) + "}\n";
    return layers;
  };
  return "model:\n  layers:\n    - conv2d: {filters: 6, kernel: 5, padding: 2" + bias + "}\n" + finish(true) +
         "    - conv2d: {filters: 10, kernel: 5" + bias + "}\n" + finish(true) +
         "    - flatten\n    - linear: {units: 72" + bias + "}\n" + finish(false) + "    - linear: {units: 10}\n";
}

// The same of linear layers.
std::string perceptron_of(const std::string& activation, const std::vector<int>& units, bool norm, double dropped) {
  std::string layers = "model:\n  layers:\n    - flatten\n";
  for (const int width : units) {
    layers += "    - linear: {units: " + std::to_string(width) + (norm ? ", bias: false}\n" : "}\n");
    if (norm) layers += "    - batch_norm\n";
    layers += "    - " + activation + "\n";
    if (dropped > 0) layers += "    - dropout: {p: " + std::to_string(dropped) + "}\n";
  }
  return layers + "    - linear: {units: 10}\n";
}

// A step whose parts the pattern of a training step may or may not know.
constexpr const char* kTreatment =
    "augmentation: {translate: 2}\n"
    "loss: {type: cross_entropy, label_smoothing: 0.1}\n"
    "optimizer: {type: sgd, learning_rate: 0.02, momentum: 0.9, nesterov: true, weight_decay: 5e-4, clip_norm: 0.5}\n";
constexpr const char* kBounds =
    "optimizer: {type: rmsprop, learning_rate: 0.001, momentum: 0.5, weight_decay: 0.01, l1: 1e-5, clip_value: 0.5,\n"
    "            groups: [{match: \"*.bias\", learning_rate_factor: 0.1}]}\n";

std::string with_average(std::string yaml) {
  const std::string training = "training: {epochs: 20";
  return yaml.replace(yaml.find(training), training.size(), training + ", ema: 0.9");
}

// Max pooling behind convolution, bias and ReLU, and behind batch norm and ReLU: windows that halve the image, and
// windows that overlap and reach over the edge.
constexpr const char* kMaxima = R"(
model:
  layers:
    - conv2d: {filters: 6, kernel: 5, padding: 2, activation: relu}
    - max_pool: {window: 2}
    - dropout: {p: 0.1}
    - conv2d: {filters: 9, kernel: 4, activation: relu}
    - max_pool: {window: 3, stride: 2, padding: 1}
    - conv2d: {filters: 12, kernel: 3, padding: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {window: 2}
    - flatten
    - linear: {units: 10}
)";

// Batch norm behind convolutions of many channels, alone, with ReLU, and with a sum and ReLU: 7x7 at stride 2, 3x3, 1x1
// at stride 1 and 2, channels that fill no tile.
constexpr const char* kStrided = R"(
model:
  layers:
    - conv2d: {filters: 40, kernel: 7, stride: 2, padding: 3, bias: false}
    - batch_norm
    - relu: {name: stem}
    - conv2d: {filters: 72, kernel: 3, padding: 1, bias: false}
    - batch_norm
    - relu
    - conv2d: {filters: 40, kernel: 1, bias: false}
    - batch_norm: {name: inner}
    - add: {from: [inner, stem]}
    - relu: {name: first}
    - conv2d: {filters: 37, kernel: 3, stride: 2, padding: 1, bias: false}
    - batch_norm: {name: halved}
    - branch: shortcut
      from: first
      layers:
        - conv2d: {filters: 37, kernel: 1, stride: 2, bias: false}
        - batch_norm: {name: projected}
    - add: {from: [halved, shortcut]}
    - relu
    - global_avg_pool
    - linear: {units: 10}
)";

// Pooling of 25x25, 12x12 and 5x5 pixels.
constexpr const char* kMeans = R"(
model:
  layers:
    - conv2d: {filters: 6, kernel: 4, activation: relu}
    - avg_pool: {window: 2}
    - dropout: {p: 0.1}
    - conv2d: {filters: 20, kernel: 3, padding: 1, activation: relu}
    - avg_pool: {window: 3, stride: 2}
    - conv2d: {filters: 12, kernel: 3, padding: 1, activation: relu}
    - max_pool: {window: 2}
    - flatten
    - linear: {units: 10}
)";

// A residual network whose images lie channels-last where a backend prefers that: the sum and the ReLU behind batch
// norm, its skip connection with batch norm and without, depthwise convolutions.
constexpr const char* kResidual = R"(
model:
  layers:
    - conv2d: {filters: 32, kernel: 3, padding: 1, stride: 2, bias: false}
    - batch_norm
    - relu: {name: first}
    - conv2d: {filters: 32, kernel: 3, padding: 1, bias: false}
    - batch_norm: {name: norm}
    - add: {from: [norm, first]}
    - relu: {name: second}
    - conv2d: {filters: 32, kernel: 3, padding: 1, stride: 2, groups: 32, bias: false}
    - batch_norm
    - relu
    - conv2d: {filters: 40, kernel: 1, bias: false}
    - batch_norm: {name: main}
    - conv2d: {from: second, filters: 40, kernel: 1, stride: 2, bias: false}
    - batch_norm: {name: skip}
    - add: {from: [main, skip]}
    - relu
    - global_avg_pool
    - linear: {units: 10}
)";

// No bias in front of batch norm: its gradient would be nothing but rounding.
constexpr const char* kOddities = R"(
model:
  layers:
    - flatten
    - linear: {units: 32, activation: tanh}
    - dropout: {p: 0.2}
    - linear: {units: 24, bias: false}
    - batch_norm
    - relu
    - linear: {units: 10}
data: {dataset: digits, synthetic_train: 200, synthetic_test: 100, batch_size: 40}
optimizer: {type: sgd, learning_rate: 0.02, momentum: 0.9, clip_norm: 1}
training: {epochs: 30, accumulate: 2, ema: 0.9}
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

std::vector<FusedTraining> fused_trainings() {
  const auto sample = [](std::string what, std::string yaml) {
    return SampleTraining{"training", std::move(what), std::move(yaml)};
  };
  const auto rare = [&](std::string what, std::string yaml, bool adaptive = false) {
    return FusedTraining{sample(std::move(what), std::move(yaml)), adaptive, true};
  };
  return {
      {sample("MLP 784-128-10, batch 128, SGD", perceptron({128}) + digits(512, 128) + kPlain)},
      {sample("MLP 784-128-10, batch 128, momentum, weight decay, schedule",
              perceptron({128}) + digits(512, 128) + kNesterov)},
      {sample("MLP 784-128-10, batch 64, Adam", perceptron({128}) + digits(512, 64) + kAdam), true},
      {sample("MLP 784-96-48-10, batch 48 of 200, the last one not full, AdamW",
              perceptron({96, 48}) + digits(200, 48, false) + kAdamW),
       true},
      {sample("LeNet 6-16-120, batch 128, momentum, weight decay, schedule",
              lenet(6, 16, 5, 120) + digits(512, 128) + kNesterov)},
      {sample("LeNet 6-16-84, batch 32, Adam", lenet(6, 16, 5, 84) + digits(320, 32) + kAdam), true},
      {sample("LeNet 8-12-64, batch 40 of 200, the last one not full, SGD",
              lenet(8, 12, 5, 64) + digits(210, 40, false) + kPlain)},
      rare("MLP 784-37-10, batch 13 of 100, the last one not full, SGD",
           perceptron({37}) + digits(100, 13, false) + kPlain),
      rare("MLP 784-1-10, batch 1, SGD", perceptron({1}) + digits(40, 1) + kPlain),
      rare("LeNet 3-5-17, kernel 3, batch 7, SGD", lenet(3, 5, 3, 17) + digits(70, 7) + kPlain),
      rare("LeNet 6-16-120, batch 200, AdamW", lenet(6, 16, 5, 120) + digits(600, 200) + kAdamW, true),
      rare("convolutions and maxima of windows, batch 40 of 210, the last one not full, SGD",
           kMaxima + digits(210, 40, false) + kPlain),
      rare("convolutions and means of windows, batch 32, momentum, weight decay, schedule",
           kMeans + digits(320, 32) + kNesterov),
      rare("a residual network with batch norm and depthwise convolutions, batch 40 of 210, the last one not full",
           kResidual + digits(210, 40, false) + kMomentum),
      rare("convolutions with batch norm, sums and ReLU, batch 40 of 210, the last one not full, momentum",
           kStrided + digits(210, 40, false) + kMomentum),
      rare("convolutions with batch norm, sums and ReLU, batch 32, SGD", kStrided + digits(128, 32) + kPlain),
      rare("MLP of seven layers, batch 100 of 250, the last one not full, momentum, weight decay, schedule",
           perceptron({140, 96, 80, 132, 64, 37}) + digits(250, 100, false) + kNesterov),
      rare("LeNet with tanh and means of windows, batch 64, momentum, weight decay, schedule",
           lenet_of("tanh", "avg_pool", false, 0) + digits(320, 64) + kNesterov),
      rare("LeNet with dropout, batch 48 of 200, the last one not full, SGD",
           lenet_of("relu", "max_pool", false, 0.2) + digits(200, 48, false) + kPlain),
      rare("LeNet with batch norm behind all layers, batch 40 of 210, the last one not full, momentum",
           lenet_of("relu", "max_pool", true, 0) + digits(210, 40, false) + kMomentum),
      rare("LeNet with batch norm, tanh, means of windows and dropout, batch 100, SGD",
           lenet_of("tanh", "avg_pool", true, 0.1) + digits(300, 100) + kPlain),
      rare("LeNet with shifts, label smoothing, a norm's bound and an average of the parameters, batch 64",
           with_average(lenet(6, 16, 5, 84) + digits(320, 64)) + kTreatment),
      rare("LeNet with GELU, RMSprop, L1, a bound of the gradients, a group of its own rate, batch 32",
           lenet_of("gelu", "max_pool", false, 0) + digits(320, 32) + kBounds, true),
      rare("LeNet with leaky ReLU, images turned and mixed, batch 50 of 220, the last one not full, Adagrad",
           lenet_of("leaky_relu", "max_pool", false, 0) + digits(220, 50, false) +
               "augmentation: {rotate: 10, mixup: 0.2}\noptimizer: {type: adagrad, learning_rate: 0.01}\n",
           true),
      rare("LeNet 6-16-84, batch 600 of 1400, the last one not full, momentum, weight decay, schedule",
           lenet(6, 16, 5, 84) + digits(1400, 600, false) + kNesterov),
      rare("LeNet with tanh, means of windows and dropout, batch 450 of 1000, the last one not full, SGD",
           lenet_of("tanh", "avg_pool", false, 0.1) + digits(1000, 450, false) + kPlain),
      rare("MLP 784-37-10, batch 530 of 1200, the last one not full, SGD",
           perceptron({37}) + digits(1200, 530, false) + kPlain),
      rare("MLP with dropout, batch 128, AdamW", perceptron_of("relu", {128}, false, 0.2) + digits(512, 128) + kAdamW,
           true),
      rare("MLP with batch norm and SiLU, batch 60 of 200, the last one not full, Adam",
           perceptron_of("silu", {96, 40}, true, 0) + digits(200, 60, false) + kAdam, true),
      rare("MLP with sigmoid, mean squared error, batch 32, LARS",
           perceptron_of("sigmoid", {64}, false, 0) + digits(320, 32) +
               "loss: mean_squared_error\noptimizer: {type: lars, learning_rate: 0.5}\n"),
      rare("MLP with tanh, hinge loss, batch 32, a norm's bound, Lion",
           perceptron_of("tanh", {64, 48}, false, 0) + digits(320, 32) +
               "loss: hinge\noptimizer: {type: lion, learning_rate: 0.0005, clip_norm: 1}\n",
           true),
      rare("dropout, batch norm, tanh, clipping, two passes a step, an average of the parameters", kOddities),
  };
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
