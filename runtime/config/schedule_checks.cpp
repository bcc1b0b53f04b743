#include <algorithm>
#include <cmath>

#include "common/text.hpp"
#include "config/experiment_checks.hpp"
#include "config/schema.hpp"

namespace gpunn::config {

namespace {

class ScheduleChecker {
 public:
  ScheduleChecker(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics)
      : e_(experiment), s_(experiment.schedule), given_(given), diagnostics_(diagnostics) {}

  void run() {
    if (!given_.sound("schedule.type")) return;
    check_drops();
    check_warmup();
    if (given_.sound("schedule.per")) check_whole();
    check_least();
  }

 private:
  void add(const std::string& key, const std::string& message) { diagnostics_.add(given_.place(key), message); }
  // At the key, or where nobody wrote it at the schedule's type.
  void missing(const std::string& key, const std::string& message) {
    add(given_.has(key) ? key : "schedule.type", message);
  }

  void check_drops() {
    if (s_.kind == ScheduleKind::step && s_.step_size <= 0 && given_.sound("schedule.step_size")) {
      missing("schedule.step_size",
              "schedule step needs 'step_size', the " + lengths() + " between two drops: a number above 0");
    }
    if (s_.kind != ScheduleKind::multi_step || !given_.sound("schedule.milestones")) return;
    if (s_.milestones.empty()) {
      missing("schedule.milestones", "schedule multi_step needs 'milestones', the " + lengths() +
                                         " of the training after which the rate drops: [30, 60]");
    }
    if (std::adjacent_find(s_.milestones.begin(), s_.milestones.end(), std::greater_equal<>()) != s_.milestones.end()) {
      add("schedule.milestones", "schedule.milestones: expected each to be larger than the one before");
    }
  }

  void check_warmup() {
    if (s_.warmup_epochs > 0 && s_.warmup_steps > 0) {
      add("schedule.warmup_steps", "schedule.warmup_epochs and schedule.warmup_steps both say how long: keep one");
    }
    if (s_.warmup_steps > 0 && s_.per == SchedulePer::epoch) {
      add("schedule.warmup_steps",
          "schedule.warmup_steps can't be followed where the rate changes with each epoch (schedule.per: epoch); give "
          "warmup_epochs, or leave out 'per'");
    }
    if (given_.sound("training.epochs") && s_.warmup_epochs > static_cast<double>(e_.epochs)) {
      add("schedule.warmup_epochs", "schedule.warmup_epochs (" + number_text(s_.warmup_epochs) +
                                        ") must be at most training.epochs (" + std::to_string(e_.epochs) + ")");
    }
  }

  // What the rate changes with can't be cut.
  void check_whole() {
    if (s_.per == SchedulePer::epoch_fraction) return;
    const auto check = [&](const char* key, double value) {
      if (value == std::floor(value)) return;
      const std::string counted = s_.per == SchedulePer::epoch ? "epochs" : "steps";
      const std::string unit = s_.per == SchedulePer::epoch ? "epoch" : "step";
      add(key, std::string(key) + ": expected a whole number of " + counted + " (schedule.per: " + unit + "), found " +
                   number_text(value));
    };
    if (s_.kind == ScheduleKind::step) check("schedule.step_size", s_.step_size);
    if (s_.kind == ScheduleKind::cosine) check("schedule.t_0", s_.t_0);
    if (s_.per == SchedulePer::epoch) check("schedule.warmup_epochs", s_.warmup_epochs);
    if (s_.kind != ScheduleKind::multi_step) return;
    for (const double milestone : s_.milestones) check("schedule.milestones", milestone);
  }

  void check_least() {
    if (!given_.sound("optimizer.learning_rate") || s_.min_learning_rate <= e_.optimizer.learning_rate) return;
    add("schedule.min_learning_rate", "schedule.min_learning_rate (" + number_text(s_.min_learning_rate) +
                                          ") must be at most optimizer.learning_rate (" +
                                          number_text(e_.optimizer.learning_rate) + ")");
  }

  std::string lengths() const { return s_.per == SchedulePer::step ? "steps" : "epochs"; }

  const Experiment& e_;
  const ScheduleConfig& s_;
  const GivenKeys& given_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_schedule(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics) {
  ScheduleChecker(experiment, given, diagnostics).run();
}

}  // namespace gpunn::config
