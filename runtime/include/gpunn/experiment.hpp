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
  std::string monitor = "accuracy";  // a metric of the task, or "loss"; with "train_" before it, of the training
  int64_t patience = 5;              // epochs without an improvement of more than min_delta
  double min_delta = 0;
  bool restore_best = false;  // end with the weights of best.h5
};

// The section `checkpoint` of an experiment.
struct CheckpointConfig {
  int64_t every_epochs = 1;          // 0: none but the last
  int64_t every_steps = 0;           // more often than epochs; 0: no
  std::string monitor = "accuracy";  // what "best" means
};

// What gradients are on the way between the ranks of a training.
enum class Wire { f32, bf16 };
// What each rank keeps a part of, and not the whole.
enum class Shard { none, optimizer };

// Weights that a new training starts from in place of random ones.
struct InitFromConfig {
  std::filesystem::path file;   // a checkpoint, a run folder or a .safetensors file; empty: none
  std::filesystem::path names;  // a table of what its tensors are called here; empty: they are called the same
};

// An experiment as read, with every default filled in.
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
  int64_t accumulate = 1;              // batches whose gradients make up an update
  int64_t micro_batches = 0;           // parts of a batch, in whose order gradients are added; 0: one a rank
  int64_t bucket_kib = 8192;           // of gradients that are added up over the ranks at a time
  Wire wire = Wire::f32;               // what gradients are on the way between ranks
  bool global_batch_norm = false;      // statistics of the batch of all ranks
  Shard shard = Shard::none;           // what each rank keeps a part of
  double ema = 0;                      // what is kept of the parameters' running average at each step; 0: there is none
  bool check_gradients = false;        // record the norm of the gradients, and end where it is not finite
  std::vector<std::string> freeze;     // names of parameters that are not trained, as ParameterGroup::match
  bool freeze_statistics = false;      // batch norms whose parameters are all frozen keep their running statistics
  std::vector<std::string> recompute;  // names of layers and blocks whose activations are computed again, likewise
  Precision precision = Precision::fp32;
  bool deterministic = false;
  std::string backend = "auto";
  int64_t device = 0;
  int64_t threads = 0;       // host threads of the backend; 0: its choice
  int64_t streams = 4;       // of the device, on which ops of a step may run at the same time
  bool subgraphs = true;     // a plugin may fuse consecutive ops of a step
  bool alternatives = true;  // a plugin that the backend names may run ops where its kernel is faster
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
GPUNN_API Experiment load_experiment(const std::filesystem::path& file, const std::vector<Override>& overrides = {});
// The same from text, for a resolved experiment kept in a checkpoint; the model is inline. `origin` names it in errors.
GPUNN_API Experiment parse_experiment(const std::string& text, const std::string& origin,
                                      const std::vector<Override>& overrides = {});

// The keys of `data` for what a command line names as the data: an experiment's file, whose data it is, or a data set's
// name. Throws ConfigError where the experiment can't be read.
GPUNN_API std::vector<Override> data_settings(const std::string& name);

// One YAML document with every key and the model inline; parse_experiment gives the same experiment back.
GPUNN_API std::string resolved_yaml(const Experiment& experiment);

}  // namespace gpunn
