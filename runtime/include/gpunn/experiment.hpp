#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// An experiment as its YAML file gives it, defaults filled in. docs/experiments.md lists every key.

enum class Precision { fp32, tf32, bf16 };
enum class LossKind { cross_entropy, mean_squared_error };
enum class OptimizerKind { sgd, adam, adamw, rmsprop };
enum class ScheduleKind { constant, step, multi_step, exponential, cosine, one_cycle, polynomial, reduce_on_plateau };
enum class SchedulePer { epoch_fraction, epoch, step };
enum class Anneal { cosine, linear };
enum class ThresholdMode { relative, absolute };
// What an evaluation at the end of an epoch tells, of the test data where it is not said otherwise.
enum class Metric { loss, accuracy, top5_accuracy, train_loss, train_accuracy };
enum class Residency { automatic, device, stream };
enum class LabelMode { fine, coarse };  // cifar100: 100 classes or 20 superclasses
enum class ImageLayout { automatic, channels_first, channels_last };
enum class Delimiter { comma, semicolon, tab };

// A layer's parameter, parsed but not yet checked against the layer's table.
struct LayerParameter {
  std::string name;
  std::vector<std::string> values;  // one for a scalar
  SourceLocation where;
};

struct LayerSpec {
  std::string type;
  std::string name;               // given, or "<type><ordinal>"
  std::vector<std::string> from;  // names of the inputs; empty: the layer before
  std::vector<LayerParameter> parameters;
  SourceLocation where;
};

// A model file with its parameters put in and its repeats unrolled.
struct ModelSpec {
  std::filesystem::path file;
  std::string name;
  std::map<std::string, std::string> parameters;
  std::vector<int64_t> input;  // [C, H, W] or [features]; empty: the data's
  std::vector<LayerSpec> layers;
  std::string text;  // the file as read, kept in checkpoints
};

struct DataConfig {
  std::string dataset;              // mnist, cifar10, ...; or the user's own: image_folder, hdf5, csv
  std::filesystem::path path;       // a folder to look in first, or the user's own; empty: none given
  std::filesystem::path test_path;  // of the user's own test samples; empty: with the others
  std::string offline_fallback;
  int64_t batch_size = 128;
  int64_t eval_batch_size = 0;  // 0: batch_size
  bool shuffle = true;
  bool drop_last = true;             // of training batches
  std::vector<double> mean, stddev;  // by channel, of pixels scaled to [0, 1]; empty: the data set's own
  int64_t train_limit = 0;           // only the first so many samples; 0: all
  int64_t test_limit = 0;
  LabelMode label_mode = LabelMode::fine;
  std::vector<int64_t> image_size;          // [H, W] that images are scaled to; empty: the one that all have
  int64_t channels = 0;                     // 1 (grey) or 3; 0: as the images
  std::string train_samples, train_labels;  // hdf5: names of the arrays in the file
  std::string test_samples, test_labels;    // empty: no test part, or named as the others in test_path
  ImageLayout layout = ImageLayout::automatic;
  std::string label_column;                // csv: its name in the header, or its number from 0; empty: the last
  bool header = true;                      // csv: the first line has the names of the columns
  Delimiter delimiter = Delimiter::comma;  // csv: between two fields
  double test_fraction = 0;                // of the user's own samples, where they have no test part
  double validation_fraction = 0;  // of the training samples: evaluated while training instead of the test samples
  bool stratify = true;            // the same fraction of each class
  uint64_t seed = 1;               // of the synthetic sets and of what the fractions take
  int64_t synthetic_train = 0;     // sizes of the synthetic sets; 0: the set's own
  int64_t synthetic_test = 0;
  Residency residency = Residency::automatic;  // where the samples are while training
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.01;
  double momentum = 0;  // sgd, rmsprop
  bool nesterov = false;
  double weight_decay = 0;  // on weights only: biases never decay
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double alpha = 0.99;  // rmsprop
};

// Lengths, and the time that a decay goes by, are in epochs, or with `per: step` in steps.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::constant;
  SchedulePer per = SchedulePer::epoch_fraction;  // how often the rate changes; epoch_fraction: with each step
  double warmup_epochs = 0;                       // linear, in front of any; or
  int64_t warmup_steps = 0;
  double warmup_start_factor = 0;  // of the first rate; 0: 1 / (length + 1), the first of equal rises from 0
  double step_size = 0;            // step: the length between two drops
  std::vector<double> milestones;  // multi_step: places of the drops, from the start of the training
  double gamma = 0.1;              // step, multi_step: factor of a drop
  double k = 0.1;                  // exponential: learning_rate * exp(-k t)
  double t_0 = 0;                  // cosine: length up to the first restart; 0: none
  int64_t t_mult = 1;              // cosine: each length is so many times the one before
  double pct_start = 0.3;          // one_cycle: the share of the rise
  double div_factor = 25;          // one_cycle: starts from learning_rate / div_factor
  double final_div_factor = 1e4;   // one_cycle: ends in the start / final_div_factor
  Anneal anneal = Anneal::cosine;  // one_cycle
  double power = 1;                // polynomial
  Metric monitor = Metric::loss;   // this and what follows: reduce_on_plateau
  double factor = 0.1;
  int64_t patience = 10;    // epochs without an improvement that are let pass
  double threshold = 1e-4;  // an improvement is more than this
  ThresholdMode threshold_mode = ThresholdMode::relative;
  int64_t cooldown = 0;          // epochs after a drop that are not counted
  double min_learning_rate = 0;  // cosine, one_cycle, polynomial: the end; reduce_on_plateau: the least
};

struct EarlyStoppingConfig {
  Metric monitor = Metric::accuracy;
  int64_t patience = 5;  // epochs without an improvement of more than min_delta
  double min_delta = 0;
  bool restore_best = false;  // end with the weights of best.h5
};

struct CheckpointConfig {
  int64_t every_epochs = 1;           // 0: none but the last
  int64_t every_steps = 0;            // more often than epochs; 0: no
  Metric monitor = Metric::accuracy;  // what "best" means
};

struct Experiment {
  std::filesystem::path file;
  std::string name;
  std::string text;  // the file as read
  ModelSpec model;
  DataConfig data;
  LossKind loss = LossKind::cross_entropy;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  int64_t epochs = 10;
  int64_t max_steps = 0;  // stop after so many; 0: no limit
  uint64_t seed = 1;
  Precision precision = Precision::fp32;
  bool deterministic = false;
  std::string backend = "auto";
  int64_t device = 0;
  int64_t threads = 0;       // host threads of the backend; 0: its choice
  int64_t streams = 4;       // of the device, on which ops of a step may run at the same time
  bool host_copies = false;  // an overlay may work in other memory than its base
  std::vector<std::filesystem::path> plugins;
  std::optional<EarlyStoppingConfig> early_stopping;
  CheckpointConfig checkpoint;
  int64_t log_every_steps = 0;  // 0: about ten lines an epoch
  std::filesystem::path runs = "runs";
};

// As experiments and records call it: "loss", "top5_accuracy".
std::string name_of(Metric metric);
const std::vector<std::string>& metric_names();  // of all, in the order of Metric
// Of two values of a metric, which is better.
bool larger_is_better(Metric metric);

// `--set key=value` on the command line; key is dotted: "optimizer.learning_rate", "model.parameters.width".
struct Override {
  std::string key;
  std::string value;
};

// Reads and checks an experiment and its model. Throws ConfigError with everything that is wrong.
Experiment load_experiment(const std::filesystem::path& file, const std::vector<Override>& overrides = {});
// The same from text, for a resolved experiment kept in a checkpoint; the model is inline. `origin` names it in errors.
Experiment parse_experiment(const std::string& text, const std::string& origin,
                            const std::vector<Override>& overrides = {});

// One YAML document with every key and the model inline; parse_experiment gives the same experiment back.
std::string resolved_yaml(const Experiment& experiment);

}  // namespace gpunn
