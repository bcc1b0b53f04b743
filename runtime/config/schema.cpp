#include "config/schema.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "config/key_builders.hpp"
#include "tasks/task.hpp"

namespace gpunn::config {

namespace {

Key betas() {
  Key key;
  key.path = "optimizer.betas";
  key.type = ValueType::numbers;
  key.help =
      "Decay of the running means of the gradient and of its square. For lion: beta1 weighs the momentum in the "
      "update, "
      "beta2 the old momentum in the new one; default there: [0.9, 0.99].";
  key.range = from_to_below(0, 1);
  key.count = 2;
  key.set = [](Experiment& e, const Value& value) {
    const auto& both = std::get<std::vector<double>>(value);
    e.optimizer.beta1 = both.at(0);
    e.optimizer.beta2 = both.at(1);
  };
  key.get = [](const Experiment& e) -> Value { return std::vector{e.optimizer.beta1, e.optimizer.beta2}; };
  return key;
}

Key image_size() {
  Key key;
  key.path = "data.image_size";
  key.type = ValueType::numbers;
  key.help =
      "Rows and columns, or one number for both, that images are scaled and cropped to. Default: the size that all "
      "have.";
  key.range = between(1, 16384);
  key.set = [](Experiment& e, const Value& value) {
    e.data.image_size.clear();
    for (const double size : std::get<std::vector<double>>(value)) {
      e.data.image_size.push_back(size == std::floor(size) ? static_cast<int64_t>(size) : 0);  // 0: refused by a check
    }
    if (e.data.image_size.size() == 1) e.data.image_size.push_back(e.data.image_size.front());
  };
  key.get = [](const Experiment& e) -> Value {
    return std::vector<double>(e.data.image_size.begin(), e.data.image_size.end());
  };
  return key;
}

Key plugins() {
  Key key;
  key.path = "plugins";
  key.type = ValueType::paths;
  key.help = "Plugin files, or folders of them, to look at before the usual places.";
  key.set = [](Experiment& e, const Value& value) {
    const auto& files = std::get<std::vector<std::string>>(value);
    e.plugins.assign(files.begin(), files.end());
  };
  key.get = [](const Experiment& e) -> Value {
    std::vector<std::string> files;
    for (const auto& file : e.plugins) files.push_back(file.string());
    return files;
  };
  return key;
}

Key groups() {
  return tie<std::vector<ParameterGroup>>("optimizer.groups", ValueType::groups,
                                          in(&Experiment::optimizer, &OptimizerConfig::groups),
                                          "Parameters that are updated in another way, see below.");
}

constexpr double kLargestBound = 1e6;
constexpr double kMostSamples = 2147483647;  // an index of a sample is an i32
constexpr double kLargestBatch = 1 << 20;

const std::vector<std::string> kDatasets = {"mnist",  "fashion_mnist", "cifar10", "cifar100", "digits",
                                            "points", "image_folder",  "hdf5",    "csv"};
const std::vector<std::string> kOwnData = {"image_folder", "hdf5", "csv"};  // read from data.path

std::vector<Key> data_keys() {
  using E = Experiment;
  using I = InitFromConfig;
  using D = DataConfig;
  return {
      text("name", in(&E::name), "Names the run's folder. Default: the file's name without its ending."),
      word("task", in(&E::task), tasks::names(),
           "What is learnt: one class a sample, numbers, or any number of labels a sample."),
      optional(path("init_from.file", in(&E::init_from, &I::file),
                    "Weights to start from: a checkpoint, a run folder or a .safetensors file. Tensors that fit in "
                    "name and shape are taken, the others begin as always.")),
      optional(path("init_from.names", in(&E::init_from, &I::names),
                    "A table of what the tensors of `init_from.file` are called in this model.")),
      required(word("data.dataset", in(&E::data, &D::dataset), kDatasets, "The data set.")),
      optional(path("data.path", in(&E::data, &D::path),
                    "A folder to look in first; for your own data, the folder or file itself.")),
      only(kOwnData,
           optional(path("data.test_path", in(&E::data, &D::test_path), "The folder or file of the test samples."))),
      only({"cifar100"}, choice("data.label_mode", in(&E::data, &D::label_mode), {"fine", "coarse"},
                                "100 classes, or 20 superclasses.")),
      only({"image_folder"}, optional(image_size())),
      only({"image_folder"}, integer("data.shorter_side", in(&E::data, &D::shorter_side), between(0, 16384),
                                     "Pixels that the shorter side of images is scaled to before `image_size` is cut "
                                     "out of the middle; 0: as few as cover `image_size`.")),
      only({"image_folder"}, integer("data.channels", in(&E::data, &D::channels), between(0, 3),
                                     "1: grey, 3: colour; 0: as the images, colour where any of them is.")),
      only({"hdf5"}, optional(text("data.train_samples", in(&E::data, &D::train_samples),
                                   "The array of the training samples: images or [rows, features]. Has to be given."))),
      only({"hdf5"}, optional(text("data.train_labels", in(&E::data, &D::train_labels),
                                   "The array of their classes, numbers from 0. Has to be given."))),
      only({"hdf5"}, optional(text("data.test_samples", in(&E::data, &D::test_samples),
                                   "The array of the test samples. In `test_path`, default: `train_samples`."))),
      only({"hdf5"}, optional(text("data.test_labels", in(&E::data, &D::test_labels),
                                   "The array of their classes. In `test_path`, default: `train_labels`."))),
      only({"hdf5"}, choice("data.layout", in(&E::data, &D::layout), {"auto", "channels_first", "channels_last"},
                            "Of images: [rows, C, H, W] or [rows, H, W, C]; `auto`: the one with 1 or 3 channels.")),
      only({"csv"}, optional(text("data.label_column", in(&E::data, &D::label_column),
                                  "The column of the classes: its name, or its number from 0. Default: the last."))),
      only({"csv"}, boolean("data.header", in(&E::data, &D::header), "The first line has the names of the columns.")),
      only({"csv"}, choice("data.delimiter", in(&E::data, &D::delimiter), {"comma", "semicolon", "tab"},
                           "What is between two columns.")),
      only(kOwnData, number("data.test_fraction", in(&E::data, &D::test_fraction), from_to_below(0, 1),
                            "The share of the samples that becomes the test part, where there is none.")),
      number(
          "data.validation_fraction", in(&E::data, &D::validation_fraction), from_to_below(0, 1),
          "The share of the training samples that is put aside and evaluated while training; the test samples are then "
          "left to `gpunn eval`."),
      boolean("data.stratify", in(&E::data, &D::stratify), "Both fractions take the same share of each class."),
      optional(word("data.offline_fallback", in(&E::data, &D::offline_fallback), {"digits", "points"},
                    "The synthetic set to train on, announced loudly, where the data set can't be had.")),
      integer("data.batch_size", in(&E::data, &D::batch_size), between(1, kLargestBatch),
              "Samples in a training step."),
      integer("data.eval_batch_size", in(&E::data, &D::eval_batch_size), between(0, kLargestBatch),
              "Samples in a batch of the evaluation; 0: `batch_size`."),
      boolean("data.shuffle", in(&E::data, &D::shuffle), "Draw a new order of the training samples for each epoch."),
      boolean("data.drop_last", in(&E::data, &D::drop_last), "Skip the last training batch where it is not full."),
      optional(numbers(
          "data.mean", in(&E::data, &D::mean), {},
          "What is subtracted from the pixels of each channel, scaled to [0, 1]. Default: the data set's own mean.")),
      optional(
          numbers("data.stddev", in(&E::data, &D::stddev), above(0),
                  "What they are divided by then, for each channel. Default: the data set's own standard deviation.")),
      integer("data.train_limit", in(&E::data, &D::train_limit), between(0, kMostSamples),
              "Train on this many samples, the first ones; 0: on all."),
      integer("data.test_limit", in(&E::data, &D::test_limit), between(0, kMostSamples),
              "Evaluate on this many samples, the first ones; 0: on all."),
      integer("data.seed", in(&E::data, &D::seed), at_least(0),
              "Seed of the synthetic sets, and of which samples the fractions take."),
      integer("data.synthetic_train", in(&E::data, &D::synthetic_train), between(0, kMostSamples),
              "Training samples of a synthetic set; 0: the set's own number."),
      integer("data.synthetic_test", in(&E::data, &D::synthetic_test), between(0, kMostSamples),
              "Test samples of a synthetic set; 0: the set's own number."),
      choice("data.residency", in(&E::data, &D::residency), {"auto", "device", "stream"},
             "Where the samples are: all on the `device`, or on the host, a `stream` of batches to the device; "
             "`auto`: see below."),
  };
}

std::vector<Key> loss_and_optimizer_keys() {
  using E = Experiment;
  using L = LossConfig;
  using O = OptimizerConfig;
  return {
      choice("loss.type", in(&E::loss, &L::kind),
             {"cross_entropy", "mean_squared_error", "binary_cross_entropy", "hinge", "huber"},
             "`cross_entropy` takes the model's output before any softmax, `binary_cross_entropy` before any sigmoid."),
      only({"cross_entropy"}, number("loss.label_smoothing", in(&E::loss, &L::label_smoothing), between(0, 1),
                                     "The share of each target that is spread evenly over all classes.")),
      only({"cross_entropy"}, optional(numbers("loss.class_weights", in(&E::loss, &L::class_weights), at_least(0),
                                               "A factor for each class, of its term of the loss. Default: 1 each."))),
      only({"hinge"}, number("loss.margin", in(&E::loss, &L::margin), above_up_to(0, kLargestRate),
                             "By how much the output of the row's class has to be above the others.")),
      only({"hinge"}, integer("loss.power", in(&E::loss, &L::power), between(1, 2),
                              "1: what is missing from the margin counts; 2: its square.")),
      only({"huber"}, number("loss.delta", in(&E::loss, &L::delta), above_up_to(0, kLargestRate),
                             "Up to this distance squares count, beyond it distances.")),
      choice("optimizer.type", in(&E::optimizer, &O::kind),
             {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "lars", "muon"}, "The update rule."),
      number("optimizer.learning_rate", in(&E::optimizer, &O::learning_rate), above_up_to(0, kLargestRate),
             "The step size that the schedule starts from."),
      only({"sgd", "rmsprop", "lars", "muon"},
           number("optimizer.momentum", in(&E::optimizer, &O::momentum), from_to_below(0, 1),
                  "The share of the last step that is kept; of muon 0.95 where it is not given.")),
      only({"sgd", "muon"}, boolean("optimizer.nesterov", in(&E::optimizer, &O::nesterov),
                                    "Nesterov's look-ahead; needs a momentum. Of muon true where it is not given.")),
      number("optimizer.weight_decay", in(&E::optimizer, &O::weight_decay), between(0, kLargestRate),
             "Pulls weights, never biases, towards 0."),
      only({"adam", "adamw", "lion", "muon"}, betas()),
      only({"adam", "adamw", "rmsprop", "adagrad", "lars", "muon"},
           number("optimizer.epsilon", in(&E::optimizer, &O::epsilon), above_up_to(0, 1),
                  "Added to the root that the update is divided by.")),
      only({"rmsprop"}, number("optimizer.alpha", in(&E::optimizer, &O::alpha), from_to_below(0, 1),
                               "Decay of the running mean of the gradient's square.")),
      only({"lars"}, number("optimizer.trust", in(&E::optimizer, &O::trust), above_up_to(0, kLargestRate),
                            "A weight's step, before the learning rate, as a share of the weight's norm.")),
      only({"muon"},
           choice("optimizer.scale", in(&E::optimizer, &O::scale), {"original", "match_rms_adamw"},
                  "How the learning rate is fitted to a matrix of r rows and c columns: times sqrt(max(1, r / c)), or "
                  "times 0.2 sqrt(max(r, c)), which makes the steps as large as AdamW's.")),
      number("optimizer.l1", in(&E::optimizer, &O::l1), between(0, kLargestRate),
             "A penalty on the absolute values of weights, never biases; 0: none."),
      number("optimizer.clip_value", in(&E::optimizer, &O::clip_value), between(0, kLargestBound),
             "Bounds each element of the gradients, from minus this to this; 0: no bound."),
      number("optimizer.clip_norm", in(&E::optimizer, &O::clip_norm), between(0, kLargestBound),
             "Shrinks the gradients to this norm, of all together, where theirs is larger; 0: no bound."),
      optional(groups()),
  };
}

// Those below the schedule's in the documentation.
std::vector<Key> keys_below() {
  using E = Experiment;
  using C = CheckpointConfig;
  using Stop = EarlyStoppingConfig;
  return {
      integer("training.epochs", in(&E::epochs), between(1, kMostEpochs), "Passes over the training samples."),
      integer("training.max_steps", in(&E::max_steps), between(0, kMostSteps),
              "Stop after this many training steps; 0: no limit."),
      integer("training.seed", in(&E::seed), at_least(0),
              "Of the initial weights, the order of the samples, the dropout masks and the augmentation."),
      optional(texts("training.freeze", in(&E::freeze),
                     "Patterns, as `conv1.*`, of the parameters that are not trained: they keep their values.")),
      boolean("training.freeze_statistics", in(&E::freeze_statistics),
              "Batch norms whose weight and bias `freeze` matches keep their running statistics, and normalise by them "
              "while training, as PyTorch's do after `.eval()`."),
      integer("training.accumulate", in(&E::accumulate), between(1, 4096),
              "Batches whose gradients make up an update, as one batch that much larger would; a step is an update."),
      number("training.ema", in(&E::ema), from_to_below(0, 1),
             "Evaluate, predict and choose the best by a running average of the parameters that keeps this share of "
             "itself at each step; 0: by the parameters."),
      boolean(
          "training.check_gradients", in(&E::check_gradients),
          "Record the norm of the gradients at each step, as clip_norm does, and end the run where it is not finite."),
      choice("training.precision", in(&E::precision), {"fp32", "tf32", "bf16"},
             "What the factors of a product may be rounded to; sums stay fp32."),
      boolean("training.deterministic", in(&E::deterministic),
              "Only kernels that give the same bits each time; an error where there are none."),
      integer("training.threads", in(&E::threads), between(0, 1024), "Host threads; 0: the backend's choice."),
      integer("training.streams", in(&E::streams), between(1, 64),
              "Streams of the device on which ops of a step may run at the same time; the numbers stay the same."),
      boolean("training.programs", in(&E::programs),
              "A backend that has fused kernels for several ops in a row, as for a whole small network, may use them."),
      integer("training.log_every_steps", in(&E::log_every_steps), between(0, kMostSteps),
              "Steps between two log lines; 0: about ten lines an epoch."),
      word("early_stopping.monitor", in(&E::early_stopping, &Stop::monitor), tasks::monitor_names(),
           "The metric of the task that has to improve: of the test data, or while training."),
      integer("early_stopping.patience", in(&E::early_stopping, &Stop::patience), between(1, kMostEpochs),
              "Stop after so many epochs without an improvement."),
      number("early_stopping.min_delta", in(&E::early_stopping, &Stop::min_delta), at_least(0),
             "An improvement is more than this."),
      boolean("early_stopping.restore_best", in(&E::early_stopping, &Stop::restore_best),
              "End with the weights of `best.h5`; needs the same metric in `checkpoint.monitor`."),
      integer("checkpoint.every_epochs", in(&E::checkpoint, &C::every_epochs), between(0, kMostEpochs),
              "Epochs between two checkpoints; 0: only at the end."),
      integer("checkpoint.every_steps", in(&E::checkpoint, &C::every_steps), between(0, kMostSteps),
              "Steps between two checkpoints within an epoch; 0: none there."),
      word("checkpoint.monitor", in(&E::checkpoint, &C::monitor), tasks::monitor_names(),
           "The metric of the task that says what is best."),
      text("backend", in(&E::backend),
           "A backend plugin's name, or its file; `auto`: the fastest that works here; `check:A,B`: train on A, "
           "compare B "
           "at every step."),
      integer("device", in(&E::device), between(0, 1023), "Which of the backend's devices, counted from 0."),
      boolean("host_copies", in(&E::host_copies),
              "Let a plugin whose base works in other memory run, its tensors copied through the host. Slow."),
      optional(plugins()),
      optional(
          texts("kernels", in(&E::kernels),
                "Kernels wanted by name, as `gemm:3`, by each op that its backend has them for; `gpunn plan` shows "
                "who runs with which.")),
      path("runs", in(&E::runs), "The folder of all runs, relative to the working directory."),
  };
}

std::vector<Key> make_schema() {
  std::vector<Key> keys = data_keys();
  for (auto part : {augmentation_keys(), loss_and_optimizer_keys(), schedule_keys(), keys_below()}) {
    keys.insert(keys.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
  return keys;
}

}  // namespace

std::string Key::section() const {
  const std::size_t dot = path.find('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

std::string Key::name() const { return path.substr(path.find('.') + 1); }

const std::vector<Key>& schema() {
  static const std::vector<Key> table = make_schema();
  return table;
}

const Key* find_key(std::string_view path) {
  for (const Key& key : schema()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

std::vector<std::string> sections() {
  std::vector<std::string> result;
  for (const Key& key : schema()) {
    const std::string section = key.section();
    if (!section.empty() && std::find(result.begin(), result.end(), section) == result.end()) result.push_back(section);
  }
  return result;
}

std::vector<std::string> keys_of(std::string_view section) {
  std::vector<std::string> result;
  for (const Key& key : schema()) {
    if (key.section() == section) result.push_back(key.name());
  }
  if (section.empty()) {
    result.insert(result.begin() + 1, "model");
    for (const std::string& name : sections()) result.push_back(name);
  }
  return result;
}

std::string kind_key_of(std::string_view section) {
  return section == "data" ? "data.dataset" : std::string(section) + ".type";
}

std::string kind_of(const Experiment& experiment, std::string_view section) {
  const Key* type = find_key(kind_key_of(section));
  return type == nullptr ? std::string() : std::get<std::string>(type->get(experiment));
}

bool belongs(const Key& key, const Experiment& experiment) {
  return key.kinds.empty() ||
         std::find(key.kinds.begin(), key.kinds.end(), kind_of(experiment, key.section())) != key.kinds.end();
}

}  // namespace gpunn::config
