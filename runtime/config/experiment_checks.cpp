#include "config/experiment_checks.hpp"

#include <algorithm>

#include "common/text.hpp"
#include "config/checked_backends.hpp"
#include "config/schema.hpp"
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
    check_optimizer();
    check_augmentation(e_, given_, diagnostics_);
    check_schedule(e_, given_, diagnostics_);
    check_early_stopping();
    check_data();
    if (!e_.init_from.names.empty() && e_.init_from.file.empty() && sound("init_from.file")) {
      diagnostics_.add(place("init_from.names"), "init_from.names is for the tensors of init_from.file; give that too");
    }
    check_name();
    check_backend();
    check_task();
    check_loss();
    const std::string last = e_.model.layers.empty() ? "" : e_.model.layers.back().type;
    if (e_.loss.kind == LossKind::cross_entropy && (last == "softmax" || last == "log_softmax")) {
      diagnostics_.add(e_.model.layers.back().where,
                       "the loss cross_entropy has a softmax of its own: leave out the model's last layer" +
                           e_.model.layers.back().origin);
    }
    if (e_.loss.kind == LossKind::binary_cross_entropy && (last == "sigmoid" || last == "softmax")) {
      diagnostics_.add(e_.model.layers.back().where,
                       "the loss binary_cross_entropy has a sigmoid of its own: leave out the model's last layer" +
                           e_.model.layers.back().origin);
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

  void check_optimizer() {
    if (e_.optimizer.nesterov && e_.optimizer.kind == OptimizerKind::sgd && e_.optimizer.momentum == 0 &&
        sound("optimizer.momentum")) {
      diagnostics_.add(place("optimizer.nesterov"), "optimizer.nesterov needs optimizer.momentum above 0");
    }
  }

  // What belongs to another task.
  void check_task() {
    if (!sound("task")) return;
    const tasks::Task& task = tasks::find(e_.task);
    const std::vector<std::string> known = tasks::monitor_names(task);
    const auto check_monitor = [&](const std::string& key, const std::string& monitor) {
      if (!sound(key) || std::ranges::find(known, monitor) != known.end()) return;
      diagnostics_.add(place(key), key + ": the task " + e_.task + " has no metric " + in_quotes(monitor) +
                                       "; it has " + join(known, ", "));
    };
    check_monitor("checkpoint.monitor", e_.checkpoint.monitor);
    if (e_.early_stopping) check_monitor("early_stopping.monitor", e_.early_stopping->monitor);
    if (e_.schedule.kind == ScheduleKind::reduce_on_plateau) check_monitor("schedule.monitor", e_.schedule.monitor);
    if (sound("loss.type") && std::ranges::find(task.losses(), e_.loss.kind) == task.losses().end()) {
      std::vector<std::string> fitting;
      for (const LossKind kind : task.losses()) fitting.push_back(tasks::name_of(kind));
      diagnostics_.add(place("loss.type"), "the task " + e_.task + " has no loss " + tasks::name_of(e_.loss.kind) +
                                               "; it has " + join(fitting, ", "));
    }
  }

  void check_loss() {
    if (e_.loss.kind == LossKind::hinge && e_.augmentation.mixup > 0) {
      diagnostics_.add(place("augmentation.mixup"),
                       "augmentation.mixup mixes targets, and the loss hinge takes one class a row; use another loss");
    }
    const std::vector<double>& weights = e_.loss.class_weights;
    if (!weights.empty() && std::count(weights.begin(), weights.end(), 0.0) == std::ssize(weights)) {
      diagnostics_.add(place("loss.class_weights"), "loss.class_weights: expected a number above 0 among them");
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

  void check_shorter_side() {
    const DataConfig& data = e_.data;
    if (!sound("data.image_size") || !sound("data.shorter_side") || data.shorter_side == 0) return;
    if (data.image_size.empty()) {
      diagnostics_.add(place("data.shorter_side"),
                       "data.shorter_side needs data.image_size, which is cut out of the scaled image");
      return;
    }
    const int64_t least = std::ranges::max(data.image_size);
    if (data.shorter_side >= least) return;
    diagnostics_.add(place("data.shorter_side"), "data.shorter_side: expected at least " + std::to_string(least) +
                                                     ", the longer side of data.image_size, found " +
                                                     std::to_string(data.shorter_side));
  }

  void check_data() {
    const DataConfig& data = e_.data;
    if (sound("data.mean") && sound("data.stddev") && data.mean.size() != data.stddev.size()) {
      diagnostics_.add(place(data.mean.empty() ? "data.stddev" : "data.mean"),
                       "data.mean and data.stddev go together, a number a channel each; found " +
                           std::to_string(data.mean.size()) + " and " + std::to_string(data.stddev.size()));
    }
    if (sound("data.image_size") && !data.image_size.empty() &&
        (data.image_size.size() > 2 || std::count(data.image_size.begin(), data.image_size.end(), 0) != 0)) {
      diagnostics_.add(place("data.image_size"), "data.image_size: expected one integer or two, [rows, columns]");
    }
    check_shorter_side();
    if (sound("data.channels") && data.channels == 2) {
      diagnostics_.add(place("data.channels"), "data.channels: expected 1 (grey), 3 (colour) or 0 (as the images)");
    }
    const Key* test_fraction = find_key("data.test_fraction");
    if (sound("data.dataset") && belongs(*test_fraction, e_)) {
      if (data.path.empty() && sound("data.path")) {
        diagnostics_.add(place("data.dataset"),
                         "data.dataset " + data.dataset + " needs data.path, where your data is");
      }
      if (!data.test_path.empty() && data.test_fraction > 0) {
        diagnostics_.add(place("data.test_fraction"),
                         "data.test_fraction and data.test_path are two ways to the test samples; give one");
      }
    }
    if (e_.accumulate > 1 && !data.drop_last && sound("data.drop_last")) {
      diagnostics_.add(place("training.accumulate"),
                       "training.accumulate takes full batches: it needs data.drop_last: true");
    }
    if (sound("data.batch_size") && data.train_limit > 0 && data.train_limit < data.batch_size) {
      diagnostics_.add(place("data.train_limit"),
                       "data.train_limit (" + std::to_string(data.train_limit) +
                           ") is less than one batch (data.batch_size: " + std::to_string(data.batch_size) + ")");
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
