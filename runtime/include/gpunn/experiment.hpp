#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gpunn {

// An experiment as its YAML file gives it, defaults filled in. docs/experiments.md lists every key.

enum class Precision { fp32, tf32, bf16 };
enum class LossKind { cross_entropy, mean_squared_error, binary_cross_entropy, hinge, huber };
enum class OptimizerKind { sgd, adam, adamw, rmsprop, adagrad, lion, lars, muon };
enum class MuonScale { original, match_rms_adamw };
enum class ScheduleKind { constant, step, multi_step, exponential, cosine, one_cycle, polynomial, reduce_on_plateau };
enum class SchedulePer { epoch_fraction, epoch, step };
enum class Anneal { cosine, linear };
enum class ThresholdMode { relative, absolute };
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
  std::string origin = {};  // the end of a message about a layer of a block: where the block is used
};

// A model file with its parameters put in, its repeats unrolled and its blocks taken apart.
struct ModelSpec {
  std::filesystem::path file;
  std::string name;
  std::map<std::string, std::string> parameters;
  std::vector<int64_t> input;  // [C, H, W] or [features]; empty: the data's
  std::vector<LayerSpec> layers;
  std::string text;  // the file as read, kept in checkpoints
};

struct DataConfig {
  std::string task = "classification";  // the experiment's; no key of its own
  std::string dataset;                  // mnist, cifar10, ...; or the user's own: image_folder, hdf5, csv
  std::filesystem::path path;           // a folder to look in first, or the user's own; empty: none given
  std::filesystem::path test_path;      // of the user's own test samples; empty: with the others
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
  int64_t shorter_side = 0;                 // of images before image_size is cut out; 0: the least that covers it
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

// What is done to the images of a training batch, drawn anew for each image and step. Nothing is done where all is as
// it begins.
struct AugmentationConfig {
  std::vector<int64_t> crop;       // [rows, columns] of padding that an image is cut out of; empty: none
  std::vector<int64_t> translate;  // [rows, columns] that an image is moved by at most: the same, said otherwise
  double flip = 0;                 // the share that is mirrored left to right
  double rotate = 0;               // degrees at most, either way
  double translate_share = 0;      // of the rows and columns, by parts of a pixel
  std::vector<double> scale;       // [least, most] size; empty: as they are
  double brightness = 0, contrast = 0, saturation = 0;
  std::vector<int64_t> erase;  // [rows, columns] of a rectangle that is blanked; empty: none
  double erase_share = 1;      // of the images that have one blanked
  double mixup = 0;            // alpha of the Beta distribution; 0: none
  SourceLocation where;
};

struct LossConfig {
  LossKind kind = LossKind::cross_entropy;
  double label_smoothing = 0;          // cross_entropy: the share of a target that is spread over all classes
  std::vector<double> class_weights;   // cross_entropy: by class, of its term of the loss; empty: 1 each
  SourceLocation class_weights_place;  // the data says how many there have to be
  double margin = 1;                   // hinge: by how much the label's output has to lead
  int64_t power = 1;                   // hinge: 1 or 2, of what is missing
  double delta = 1;                    // huber: squares up to here, distances beyond
};

// Parameters that are updated in another way than the rest.
struct ParameterGroup {
  std::vector<std::string> match;  // names of parameters; '*' stands for any characters, '?' for one
  double learning_rate_factor = 1;
  // Of all that match: the optimizer's or none (true, false), or their own. Else the optimizer's, of weights alone.
  std::variant<std::monostate, bool, double> weight_decay;

  bool operator==(const ParameterGroup&) const = default;
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.01;
  double momentum = 0;  // sgd, rmsprop, lars, muon
  bool nesterov = false;
  double weight_decay = 0;            // on weights only: biases never decay
  double beta1 = 0.9, beta2 = 0.999;  // adam, adamw, lion; of muon, where it is AdamW
  double epsilon = 1e-8;
  double alpha = 0.99;   // rmsprop
  double trust = 0.001;  // lars
  MuonScale scale = MuonScale::original;
  // What is done to the gradients before the update, in this order; 0: nothing.
  double l1 = 0;          // penalty on the absolute values of what decays
  double clip_value = 0;  // bound of each element
  double clip_norm = 0;   // bound of the norm of all
  std::vector<ParameterGroup> groups;
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
  std::string monitor = "loss";    // this and what follows: reduce_on_plateau
  double factor = 0.1;
  int64_t patience = 10;    // epochs without an improvement that are let pass
  double threshold = 1e-4;  // an improvement is more than this
  ThresholdMode threshold_mode = ThresholdMode::relative;
  int64_t cooldown = 0;          // epochs after a drop that are not counted
  double min_learning_rate = 0;  // cosine, one_cycle, polynomial: the end; reduce_on_plateau: the least
};

struct EarlyStoppingConfig {
  std::string monitor = "accuracy";  // a metric of the task, or "loss"; with "train_" before it, of the training
  int64_t patience = 5;              // epochs without an improvement of more than min_delta
  double min_delta = 0;
  bool restore_best = false;  // end with the weights of best.h5
};

struct CheckpointConfig {
  int64_t every_epochs = 1;          // 0: none but the last
  int64_t every_steps = 0;           // more often than epochs; 0: no
  std::string monitor = "accuracy";  // what "best" means
};

// Weights that a new training starts from in place of random ones.
struct InitFromConfig {
  std::filesystem::path file;   // a checkpoint, a run folder or a .safetensors file; empty: none
  std::filesystem::path names;  // a table of what its tensors are called here; empty: they are called the same
};

struct Experiment {
  std::filesystem::path file;
  std::string name;
  std::string text;                     // the file as read
  std::vector<std::string> notes;       // no key: what the user is to hear of how the overrides were put in
  std::string task = "classification";  // what the model is trained for
  ModelSpec model;
  InitFromConfig init_from;
  DataConfig data;
  AugmentationConfig augmentation;
  LossConfig loss;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  int64_t epochs = 10;
  int64_t max_steps = 0;  // stop after so many; 0: no limit
  uint64_t seed = 1;
  int64_t accumulate = 1;           // batches whose gradients make up an update
  double ema = 0;                   // what is kept of the parameters' running average at each step; 0: there is none
  bool check_gradients = false;     // record the norm of the gradients, and end where it is not finite
  std::vector<std::string> freeze;  // names of parameters that are not trained, as ParameterGroup::match
  bool freeze_statistics = false;   // batch norms whose parameters are all frozen keep their running statistics
  Precision precision = Precision::fp32;
  bool deterministic = false;
  std::string backend = "auto";
  int64_t device = 0;
  int64_t threads = 0;       // host threads of the backend; 0: its choice
  int64_t streams = 4;       // of the device, on which ops of a step may run at the same time
  bool programs = true;      // a plugin may run several ops of a step as one
  bool host_copies = false;  // an overlay may work in other memory than its base
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> kernels;  // wanted by name, as "gemm:3"
  // No key: a backend that has no names for its kernels runs with its own choice, in place of an error.
  bool kernels_where_named = false;
  std::optional<EarlyStoppingConfig> early_stopping;
  CheckpointConfig checkpoint;
  int64_t log_every_steps = 0;  // 0: about ten lines an epoch
  std::filesystem::path runs = "runs";
};

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
