#include "experiment/experiment_checks.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <cstddef>
#include <variant>

#include "common/pattern.hpp"
#include "common/text.hpp"
#include "config/checked_backends.hpp"
#include "config/layer_names.hpp"
#include "data/keys.hpp"
#include "data/registry.hpp"
#include "data/variation/augmentation_keys.hpp"
#include "experiment/schema.hpp"
#include "fields/kind.hpp"
#include "optim/optimizer/optimizer_rows.hpp"
#include "optim/schedule/schedule_rows.hpp"
#include "tasks/loss_keys.hpp"
#include "tasks/losses.hpp"
#include "tasks/task.hpp"

namespace gpunn::config {

namespace {

constexpr std::size_t kMostListed = 10;  // keys in a message

class Checker {
 public:
  Checker(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics)
      : e_(experiment), given_(given), diagnostics_(diagnostics) {}

  void run() {
    check_kinds();
    training::check_optimizer(e_.optimizer, given_, diagnostics_);
    data::check_augmentation(e_.augmentation, given_, diagnostics_);
    training::check_schedule(e_, given_, diagnostics_);
    tasks::check_loss(e_.loss, given_, diagnostics_);
    data::check_data(e_.data, given_, diagnostics_);
    check_early_stopping();
    check_accumulation();
    check_ranks();
    check_mixup();
    check_recomputation();
    if (!e_.init_from.names.empty() && e_.init_from.file.empty() && sound("init_from.file")) {
      diagnostics_.add(place("init_from.names"), "init_from.names is for the tensors of init_from.file; give that too");
    }
    check_name();
    check_backend();
    check_task();
    const std::string last = e_.model.layers.empty() ? "" : e_.model.output_layer().type;
    if (std::holds_alternative<BinaryCrossEntropy>(e_.loss.kind) && (last == "softmax" || last == "log_softmax")) {
      diagnostics_.add(e_.model.output_layer().where,
                       "the loss binary_cross_entropy judges each output by itself, with a sigmoid: leave out the "
                       "model's last layer" +
                           e_.model.output_layer().origin);
    }
  }

 private:
  const SourceLocation& place(const std::string& key) const { return given_.place(key); }
  bool sound(const std::string& key) const { return given_.sound(key); }

  void check_kinds() {
    for (const auto& [path, where] : given_.places) {
      const Key* key = find_key(path);
      if (key == nullptr || belongs(*key, e_) || !sound(kind_key_of(key->section()))) continue;
      std::vector<std::string> others;
      for (const Key& other : schema()) {
        if (other.section() == key->section() && other.path != kind_key_of(key->section()) && belongs(other, e_)) {
          others.push_back(other.name());
        }
      }
      const std::string section = key->section();
      const bool few = !others.empty() && others.size() <= kMostListed;
      diagnostics_.add(where, section + " " + kind_of(e_, section) + " has no '" + key->name() + "'; " +
                                  (few ? "it has " + join(others, ", ") : "that is for " + join(key->kinds, ", ")));
    }
  }

  // What belongs to another task.
  void check_task() {
    if (!sound("task")) return;
    const tasks::Task& task = tasks::find(e_.task);
    check_learnt(task);
    const std::vector<std::string> known = tasks::monitor_names(task);
    const auto check_monitor = [&](const std::string& key, const std::string& monitor) {
      if (!sound(key) || std::ranges::find(known, monitor) != known.end()) return;
      diagnostics_.add(place(key), key + ": the task " + e_.task + " has no metric " + in_quotes(monitor) +
                                       "; it has " + join(known, ", "));
    };
    check_monitor("checkpoint.monitor", e_.checkpoint.monitor);
    if (e_.early_stopping) check_monitor("early_stopping.monitor", e_.early_stopping->monitor);
    const ReduceOnPlateau* plateau = std::get_if<ReduceOnPlateau>(&e_.schedule.kind);
    if (plateau != nullptr) check_monitor("schedule.monitor", plateau->monitor);
    for (const std::string_view name : task.unused_loss_keys()) {
      const std::string key = "loss." + std::string(name);
      if (given_.has(key)) diagnostics_.add(place(key), key + " is not for the task " + e_.task + "; leave it out");
    }
    if (sound("loss.type") && std::ranges::find(task.losses(), e_.loss.type()) == task.losses().end()) {
      std::vector<std::string> fitting;
      for (const LossKind kind : task.losses()) fitting.push_back(tasks::name_of(kind));
      diagnostics_.add(place("loss.type"), "the task " + e_.task + " has no loss " + tasks::name_of(e_.loss.type()) +
                                               "; it has " + join(fitting, ", "));
    }
  }

  // Data sets that are for one kind of field, and tasks that learn from such sets only.
  void check_learnt(const tasks::Task& task) {
    if (!sound("data.dataset") || e_.data.dataset.empty()) return;
    const data::DatasetRow& row = data::find_dataset(e_.data.dataset);
    if (row.origin == data::Origin::memory) return;
    const std::string& wanted = e_.data.learnt;
    if (row.learnt == wanted) return task.check_data(e_.data, given_, diagnostics_);
    if (!row.learnt.empty()) {
      std::vector<std::string> fitting;
      for (const tasks::Task* other : tasks::all()) {
        if (other->target_kind() == row.learnt) fitting.emplace_back(other->name());
      }
      diagnostics_.add(place("data.dataset"), "data.dataset " + row.name + " has " +
                                                  std::string(fields::find(row.learnt).data()) + ", not for the task " +
                                                  e_.task + "; set task: " + join(fitting, " or "));
      return;
    }
    std::vector<std::string> fitting;
    for (const data::DatasetRow& other : data::registry()) {
      if (other.learnt == wanted) fitting.push_back(other.name);
    }
    if (fitting.empty()) return;
    diagnostics_.add(place("data.dataset"), "the task " + e_.task + " learns from " +
                                                std::string(fields::find(wanted).data()) + "; data.dataset " +
                                                row.name + " has none. Choose " + join(fitting, ", "));
  }

  void check_mixup() {
    if (!std::holds_alternative<Hinge>(e_.loss.kind)) return;
    for (const auto& [key, alpha] : {std::pair("augmentation.mixup", e_.augmentation.mixup),
                                     std::pair("augmentation.cutmix", e_.augmentation.cutmix)}) {
      if (alpha == 0) continue;
      diagnostics_.add(place(key),
                       std::string(key) + " mixes targets, and the loss hinge takes one class a row; use another loss");
    }
  }

  void check_early_stopping() {
    if (!e_.early_stopping || !e_.early_stopping->restore_best) return;
    const std::string &watched = e_.early_stopping->monitor, &best = e_.checkpoint.monitor;
    if (watched == best || !sound("early_stopping.monitor") || !sound("checkpoint.monitor")) return;
    diagnostics_.add(
        place("early_stopping.restore_best"),
        "early_stopping.restore_best ends with the weights of best.h5, and that goes by checkpoint.monitor (" + best +
            "), not by early_stopping.monitor (" + watched + "); give both the same");
  }

  void check_accumulation() {
    if (e_.accumulate <= 1 || e_.data.drop_last || !sound("data.drop_last")) return;
    diagnostics_.add(place("training.accumulate"),
                     "training.accumulate takes full batches: it needs data.drop_last: true");
  }

  // What several ranks can't do together, said to a single one too.
  void check_ranks() {
    const auto refuse = [&](const char* key, const std::string& text) {
      if (sound(key)) diagnostics_.add(place(key), std::string(key) + " " + text);
    };
    const bool parts = e_.micro_batches > 0;
    if (e_.wire == Wire::bf16 && parts) {
      refuse("training.wire",
             "bf16 rounds by rank, and training.micro_batches promises the same bits on any number "
             "of ranks; leave one of them out");
    }
    if (e_.global_batch_norm && (parts || e_.accumulate > 1)) {
      refuse("training.global_batch_norm", std::string("takes the batch at once, and training.") +
                                               (parts ? "micro_batches" : "accumulate") +
                                               " cuts it into parts; leave one of them out");
    }
    if (e_.shard != Shard::optimizer) return;
    const training::OptimizerRow& row = row_of(training::optimizer_rows(), e_.optimizer);
    if (row.by_parameter || row.formula != nullptr || row.orthogonal_matrices) {
      refuse("training.shard",
             "optimizer is for optimizers that update each number by itself: sgd, adam, adamw, "
             "rmsprop, adagrad, lion");
    }
    if (parts) refuse("training.shard", "optimizer does not go with training.micro_batches; leave one of them out");
    if (e_.precision == Precision::f16) {
      refuse("training.shard",
             "optimizer does not go with training.precision f16, whose scale all ranks must find "
             "by all gradients; take bf16");
    }
  }

  void check_recomputation() {
    if (e_.recompute.empty() || e_.model.layers.empty() || !sound("training.recompute")) return;
    const std::vector<std::string> names = layers_and_blocks(e_.model);
    for (const std::string& pattern : e_.recompute) {
      if (std::ranges::any_of(names, [&](const std::string& name) { return matches(pattern, name); })) continue;
      const std::string near = did_you_mean(pattern, names);
      const auto listed = static_cast<std::ptrdiff_t>(std::min(names.size(), kMostListed));
      std::vector<std::string> first(names.begin(), names.begin() + listed);
      if (first.size() < names.size()) first.emplace_back("...");
      diagnostics_.add(place("training.recompute"), "training.recompute: " + in_quotes(pattern) +
                                                        " matches no layer or block of the model" +
                                                        (near.empty() ? "; there are " + join(first, ", ") : near));
    }
  }

  // It becomes a folder.
  void check_name() {
    if (!sound("name")) return;
    const auto allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
             c == '.';
    };
    constexpr std::size_t kLongest = 100;
    if (e_.name.empty() || e_.name.front() == '.' || e_.name.size() > kLongest ||
        !std::all_of(e_.name.begin(), e_.name.end(), allowed)) {
      diagnostics_.add(place("name"), "name: expected letters, digits, '_', '-' and '.', found " + in_quotes(e_.name));
    }
  }

  void check_backend() {
    if (!sound("backend")) return;
    try {
      checked_backends(e_.backend);
    } catch (const Error& error) {
      diagnostics_.add(place("backend"), error.what());
    }
  }

  const Experiment& e_;
  const GivenKeys& given_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_experiment(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics) {
  Checker(experiment, given, diagnostics).run();
}

}  // namespace gpunn::config
