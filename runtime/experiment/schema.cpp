#include "experiment/schema.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "config/key_builders.hpp"
#include "data/keys.hpp"
#include "data/variation/augmentation_keys.hpp"
#include "optim/optimizer/optimizer_rows.hpp"
#include "optim/schedule/schedule_rows.hpp"
#include "tasks/loss_keys.hpp"
#include "tasks/task.hpp"

namespace gpunn::config {

namespace {

using E = Experiment;

// The keys of a section's struct as those of the experiment. A section that may be missing is there when a key is set.
template <class Member, class Section>
std::vector<Key> in_section(const std::string& name, Member E::*member, const std::vector<KeyOf<Section>>& keys) {
  const auto reach = [member](auto& experiment) -> auto& {
    if constexpr (std::is_same_v<Member, std::optional<Section>>) {
      return (experiment.*member).value();
    } else {
      return experiment.*member;
    }
  };
  std::vector<Key> result;
  for (const KeyOf<Section>& key : keys) {
    Key whole{static_cast<const KeyDescription&>(key), {}, {}};
    whole.path = name + "." + key.path;
    whole.set = [reach, set = key.set](E& experiment, const Value& value) { set(reach(experiment), value); };
    whole.get = [reach, get = key.get](const E& experiment) { return get(reach(experiment)); };
    result.push_back(std::move(whole));
  }
  return result;
}

std::vector<KeyOf<InitFromConfig>> init_from_keys() {
  using I = InitFromConfig;
  return {
      optional(path("file", &I::file,
                    "Weights to start from: a checkpoint, a run folder, a .safetensors or an .onnx file. Tensors that "
                    "match in name and shape are loaded, the others start at random.")),
      optional(path("names", &I::names, "A table that maps the names in `init_from.file` to the names in this model.")),
  };
}

// Members of Experiment itself.
std::vector<Key> training_keys() {
  std::vector<Key> keys = {
      integer("epochs", &E::epochs, between(1, kMostEpochs), "Passes over the training samples."),
      integer("max_steps", &E::max_steps, between(0, kMostSteps), "Stop after this many training steps; 0: no limit."),
      integer("seed", &E::seed, at_least(0),
              "Seed of the initial weights, the order of the samples, the dropout masks and the augmentation."),
      optional(texts("freeze", &E::freeze,
                     "Patterns, as `conv1.*`, of the parameters that are not trained: they keep their values.")),
      boolean("freeze_statistics", &E::freeze_statistics,
              "Batch norms whose weight and bias `freeze` matches keep their running statistics, and normalise by them "
              "while training, as PyTorch's do after `.eval()`."),
      integer("accumulate", &E::accumulate, between(1, 4096),
              "Batches whose gradients are added up for one update, as if they were one larger batch. A step is an "
              "update."),
      integer("micro_batches", &E::micro_batches, between(0, 4096),
              "Parts of each batch that pass through the model one by one. Their gradients are added in order, so that "
              "any number of ranks gives the same bits with `deterministic`. 0: one part for each rank."),
      integer(
          "bucket_kib", &E::bucket_kib, between(1, 1 << 20),
          "Kibibytes of gradients that ranks add up at a time. On a GPU the sum of a bucket runs while the gradients "
          "of earlier layers are computed. Large buckets have fewer waits, small ones begin sooner."),
      choice("wire", &E::wire, {"f32", "bf16"},
             "Type of gradients while they pass between ranks. bf16 halves the bytes and rounds each by at most 1/256; "
             "weights and the optimizer's states stay f32."),
      choice("shard", &E::shard, {"none", "optimizer"},
             "`optimizer`: each rank updates a part of the parameters and keeps the optimizer's states of that part "
             "alone, which saves memory. Checkpoints and curves are the same."),
      boolean("global_batch_norm", &E::global_batch_norm,
              "Batch norms use the rows of all ranks, so that the curve is that of one rank; false: only the rows of "
              "their own rank."),
      number("ema", &E::ema, from_to_below(0, 1),
             "Evaluate, predict and choose the best with a running average of the parameters, which keeps this share "
             "of itself at each step; 0: use the parameters."),
      boolean("check_gradients", &E::check_gradients,
              "Record the norm of the gradients at each step, as clip_norm does, and end the run if it is not finite."),
      optional(texts("recompute", &E::recompute,
                     "Patterns, as `stage1` or `stage?.*`, of blocks and layers whose activations are not kept: the "
                     "gradients compute them again from the block's input. This takes less memory and more time, and "
                     "gives the same numbers.")),
      choice(
          "precision", &E::precision, {"fp32", "tf32", "bf16", "f16"},
          "Precision of the factors of a product; sums stay fp32. With bf16 and f16 the values between "
          "layers are of that type too; parameters, statistics, losses and the optimizer's states "
          "stay f32. A step that a backend fuses as a whole in f32, which small networks have, stays f32 in bf16. f16 "
          "scales the loss."),
      boolean("deterministic", &E::deterministic,
              "Use only kernels that give the same bits each time; an op without one is an error."),
      integer("threads", &E::threads, between(0, 1024), "Host threads; 0: the backend's choice."),
      integer("streams", &E::streams, between(1, 64),
              "Streams of the device on which ops of a step may run at the same time; the numbers stay the same."),
      boolean("subgraphs", &E::subgraphs,
              "The backend may fuse consecutive ops of a step into one kernel, up to a whole small network."),
      boolean("alternatives", &E::alternatives,
              "Time the kernels of plugins that the backend names as alternatives, and run the fastest at each op; "
              "false: only the backend and its bases. A race uses none."),
      integer("log_every_steps", &E::log_every_steps, between(0, kMostSteps),
              "Steps between two log lines; 0: about ten lines an epoch."),
  };
  for (Key& key : keys) key.path.insert(0, "training.");
  return keys;
}

std::vector<KeyOf<EarlyStoppingConfig>> early_stopping_keys() {
  using Stop = EarlyStoppingConfig;
  return {
      word("monitor", &Stop::monitor, tasks::monitor_names(),
           "The metric of the task that has to improve: of the test data, or while training."),
      integer("patience", &Stop::patience, between(1, kMostEpochs),
              "Stop after so many epochs without an improvement."),
      number("min_delta", &Stop::min_delta, at_least(0), "An improvement is more than this."),
      boolean("restore_best", &Stop::restore_best,
              "End with the weights of `best.h5`; needs the same metric in `checkpoint.monitor`."),
  };
}

std::vector<KeyOf<CheckpointConfig>> checkpoint_keys() {
  using C = CheckpointConfig;
  return {
      integer("every_epochs", &C::every_epochs, between(0, kMostEpochs),
              "Epochs between two checkpoints; 0: only at the end."),
      integer("every_steps", &C::every_steps, between(0, kMostSteps),
              "Steps between two checkpoints within an epoch; 0: none there."),
      word("monitor", &C::monitor, tasks::monitor_names(), "The metric of the task that chooses `best.h5`."),
  };
}

// Those at the top of the file but for the name.
std::vector<Key> top_keys() {
  return {
      text("backend", &E::backend,
           "A backend plugin's name, or its file; `auto`: the fastest that works here; `check:A,B`: train on A, "
           "compare B "
           "at every step."),
      integer("device", &E::device, between(0, 1023), "Number of the backend's device, counted from 0."),
      boolean("host_copies", &E::host_copies,
              "Allow a plugin whose base uses other memory: its tensors are copied through the host. Slow."),
      optional(paths("plugins", &E::plugins, "Plugin files, or folders of them, to search before the usual places.")),
      optional(texts("kernels", &E::kernels,
                     "Names of kernels, as `gemm:3`: each op that has one of them uses it. `gpunn plan` shows the "
                     "kernel of each op.")),
      path("runs", &E::runs, "The folder of all runs, relative to the working directory."),
  };
}

// In the order of the documentation.
std::vector<Key> make_schema() {
  std::vector<Key> keys = {
      text("name", &E::name, "Names the run's folder. Default: the file's name without its ending."),
      word("task", &E::task, tasks::names(),
           "The kind of target: one class a sample, numbers, any number of labels, an image or boxes.")};
  for (std::vector<Key>& part : std::vector{
           in_section("init_from", &E::init_from, init_from_keys()),
           in_section("data", &E::data, data::data_keys()),
           in_section("augmentation", &E::augmentation, data::augmentation_keys()),
           in_section("loss", &E::loss, tasks::loss_keys()),
           in_section("optimizer", &E::optimizer, training::optimizer_keys()),
           in_section("schedule", &E::schedule, training::schedule_keys()),
           training_keys(),
           in_section("early_stopping", &E::early_stopping, early_stopping_keys()),
           in_section("checkpoint", &E::checkpoint, checkpoint_keys()),
           top_keys(),
       }) {
    std::ranges::move(part, std::back_inserter(keys));
  }
  return keys;
}

}  // namespace

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
