#pragma once

#include <gpunn/augmentation_config.hpp>
#include <gpunn/data_config.hpp>
#include <gpunn/export.h>
#include <gpunn/loss_config.hpp>
#include <gpunn/model_spec.hpp>
#include <gpunn/optimizer_config.hpp>
#include <gpunn/precision.hpp>
#include <gpunn/schedule_config.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// An experiment as its YAML file gives it, defaults filled in. docs/experiments.md lists every key.

// The section `early_stopping` of an experiment.
struct EarlyStoppingConfig {
  std::string monitor = "accuracy";  // a metric of the task, or "loss"; the prefix "train_" means the training rows
  int64_t patience = 5;              // epochs without an improvement of more than min_delta
  double min_delta = 0;
  bool restore_best = false;  // end with the weights of best.h5
};

// The section `checkpoint` of an experiment.
struct CheckpointConfig {
  int64_t every_epochs = 1;          // 0: only the last epoch
  int64_t every_steps = 0;           // also after every so many steps; 0: no
  std::string monitor = "accuracy";  // the metric that chooses best.h5
};

// The dtype of gradients while they pass between the ranks of a training.
enum class Wire { f32, bf16 };
// What each rank stores only a part of.
enum class Shard { none, optimizer };

// Weights from which a new training starts, instead of random ones.
struct InitFromConfig {
  std::filesystem::path file;   // a checkpoint, a run folder or a .safetensors file; empty: none
  std::filesystem::path names;  // a table that maps the file's names to the model's; empty: the names are equal
};

// An experiment as read, with every default filled in.
struct Experiment {
  std::filesystem::path file;
  std::string name;
  std::string text;                     // the file as read, its paths absolute
  std::vector<std::string> notes;       // not a key: messages for the user about how the overrides were applied
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
  int64_t accumulate = 1;              // batches whose gradients make up an update
  int64_t micro_batches = 0;           // parts of a batch whose gradients are added in order; 0: one for each rank
  int64_t bucket_kib = 8192;           // size of the pieces in which gradients are added up over the ranks
  Wire wire = Wire::f32;               // dtype of gradients while they pass between ranks
  bool global_batch_norm = false;      // batch norm uses the statistics of all ranks
  Shard shard = Shard::none;           // what each rank stores only a part of
  double ema = 0;                      // share that the parameters' running average keeps at each step; 0: none
  bool check_gradients = false;        // record the norm of the gradients, and stop if it is not finite
  std::vector<std::string> freeze;     // names of parameters that are not trained, as ParameterGroup::match
  bool freeze_statistics = false;      // batch norms whose parameters are all frozen keep their running statistics
  std::vector<std::string> recompute;  // patterns of layers and blocks whose activations are computed again
  Precision precision = Precision::fp32;
  bool deterministic = false;
  std::string backend = "auto";
  int64_t device = 0;
  int64_t threads = 0;       // host threads of the backend; 0: its choice
  int64_t streams = 4;       // of the device; ops of a step may run on them at the same time
  bool subgraphs = true;     // a plugin may fuse consecutive ops of a step
  bool alternatives = true;  // plugins that the backend names may run ops, if their kernels are faster
  bool host_copies = false;  // an overlay may use other memory than its base
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> kernels;  // names of wanted kernels, as "gemm:3"
  // Not a key: a backend without named kernels uses its own choice instead of failing.
  bool kernels_where_named = false;
  std::optional<EarlyStoppingConfig> early_stopping;
  CheckpointConfig checkpoint;
  int64_t log_every_steps = 0;  // 0: about ten lines for each epoch
  std::filesystem::path runs = "runs";
};

// `--set key=value` on the command line; key is dotted: "optimizer.learning_rate", "model.parameters.width".
struct Override {
  std::string key;
  std::string value;
};

// Reads and checks an experiment and its model. Throws ConfigError with all mistakes.
GPUNN_API Experiment load_experiment(const std::filesystem::path& file, const std::vector<Override>& overrides = {});
// The same from text, for a resolved experiment kept in a checkpoint; the model is inline. `origin` names it in errors.
GPUNN_API Experiment parse_experiment(const std::string& text, const std::string& origin,
                                      const std::vector<Override>& overrides = {});

// The keys of `data` for the data that a command line names: an experiment's file, or the name of a data set. Throws
// ConfigError if the experiment can't be read.
GPUNN_API std::vector<Override> data_settings(const std::string& name);

// One YAML document with every key and the model inline. parse_experiment() turns it back into the same experiment.
GPUNN_API std::string resolved_yaml(const Experiment& experiment);

}  // namespace gpunn
