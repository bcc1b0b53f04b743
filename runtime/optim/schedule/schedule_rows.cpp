#include "optim/schedule/schedule_rows.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpunn::training {

namespace {

using S = ScheduleConfig;
using config::number_text;

double constant_rate(const Curve& curve, double /*tick*/) { return curve.base; }

void check_warmup(const Experiment& experiment, const config::GivenKeys& given, ScheduleCheck& check) {
  const ScheduleConfig& s = experiment.schedule;
  if (s.warmup_epochs > 0 && s.warmup_steps > 0) {
    check.add("warmup_steps", "schedule.warmup_epochs and schedule.warmup_steps both say how long: keep one");
  }
  if (s.warmup_steps > 0 && s.per == SchedulePer::epoch) {
    check.add("warmup_steps",
              "schedule.warmup_steps can't be followed where the rate changes with each epoch (schedule.per: epoch); "
              "give warmup_epochs, or leave out 'per'");
  }
  if (given.sound("training.epochs") && s.warmup_epochs > static_cast<double>(experiment.epochs)) {
    check.add("warmup_epochs", "schedule.warmup_epochs (" + number_text(s.warmup_epochs) +
                                   ") must be at most training.epochs (" + std::to_string(experiment.epochs) + ")");
  }
  if (s.per == SchedulePer::epoch) check.require_whole("warmup_epochs", s.warmup_epochs);
  check.require_whole("length", s.length);
  const bool by_step = s.per == SchedulePer::step;
  const double warmup = by_step ? static_cast<double>(s.warmup_steps) : s.warmup_epochs;
  if (s.length > 0 && warmup > s.length) {
    check.add("length", "schedule.length (" + number_text(s.length) + ") must be at least schedule.warmup_" +
                            (by_step ? "steps (" : "epochs (") + number_text(warmup) + ")");
  }
}

// The key that a rate grows by, or the type.
std::string growing_key(const config::GivenKeys& given) {
  for (const char* key : {"gamma", "final_div_factor", "div_factor"}) {
    if (given.has(std::string("schedule.") + key)) return key;
  }
  return "type";
}

// The rate stays in the range of optimizer.learning_rate all through the training. How many steps there are is not
// known yet: Schedule looks at each.
void check_rates(const Experiment& experiment, const config::GivenKeys& given, const ScheduleRow& row,
                 ScheduleCheck& check) {
  const bool known = given.sound("training.epochs") && given.sound("optimizer.learning_rate");
  if (!known || experiment.schedule.per == SchedulePer::step || experiment.max_steps > 0) return;
  const double length = std::max(static_cast<double>(experiment.epochs) - experiment.schedule.warmup_epochs, 1.0);
  const Curve curve = {.config = experiment.schedule,
                       .base = experiment.optimizer.learning_rate,
                       .unit = 1,
                       .warmup = experiment.schedule.warmup_epochs,
                       .length = length};
  constexpr int kLooks = 1000;
  for (int i = 0; i <= kLooks; ++i) {
    const double epoch = length * i / kLooks;
    const double rate = row.rate(curve, epoch);
    if (is_learning_rate(rate)) continue;
    const std::string key = growing_key(given);
    return check.add(key, "schedule." + key + ": the learning rate becomes " + number_text(rate) + " in epoch " +
                              std::to_string(static_cast<int64_t>(epoch + curve.warmup) + 1) + " of " +
                              std::to_string(experiment.epochs) + "; expected at most " +
                              number_text(config::kLargestRate));
  }
}

ScheduleRow constant_schedule() { return {.kind = schedule_kind<ConstantSchedule>("constant"), .rate = constant_rate}; }

}  // namespace

// A file each.
ScheduleRow step_schedule();
ScheduleRow multi_step_schedule();
ScheduleRow exponential_schedule();
ScheduleRow cosine_schedule();
ScheduleRow one_cycle_schedule();
ScheduleRow polynomial_schedule();
ScheduleRow reduce_on_plateau();

bool is_learning_rate(double rate) { return rate >= 0 && rate <= config::kLargestRate; }

const std::vector<ScheduleRow>& schedule_rows() {
  static const std::vector<ScheduleRow> rows = {constant_schedule(),    step_schedule(),    multi_step_schedule(),
                                                exponential_schedule(), cosine_schedule(),  one_cycle_schedule(),
                                                polynomial_schedule(),  reduce_on_plateau()};
  return rows;
}

std::vector<config::KeyOf<ScheduleConfig>> schedule_keys() {
  using namespace config;
  const std::vector<KindOf<S>> kinds = kinds_of(schedule_rows());
  std::vector<std::string> known_beforehand;
  for (const ScheduleRow& row : schedule_rows()) {
    if (!row.reacts) known_beforehand.push_back(row.kind.name);
  }
  std::vector<KeyOf<S>> keys = {
      kind_key("type", kinds, "How the learning rate changes during the training: see below."),
      only(known_beforehand,
           choice("per", &S::per, {"epoch_fraction", "epoch", "step"},
                  "When the rate changes, and the unit of lengths: with each step, lengths in epochs; with each "
                  "`epoch`, lengths in epochs; with each `step`, lengths in steps.")),
      only(known_beforehand,
           number("length", &S::length, between(0, kMostSteps),
                  "The length of the schedule with its warm-up. Later steps keep its last rate. 0: the length of the "
                  "training.")),
      number("warmup_epochs", &S::warmup_epochs, between(0, kMostEpochs),
             "Epochs in which the learning rate rises linearly to the start of the schedule."),
      integer("warmup_steps", &S::warmup_steps, between(0, kMostSteps),
              "The same in steps, in place of `warmup_epochs`."),
      number("warmup_start_factor", &S::warmup_start_factor, between(0, 1),
             "The share of the rate that the warm-up begins with; 0: start at 1/(n+1) of the rate and rise in n equal "
             "steps."),
  };
  for (KeyOf<S>& key : keys_of_kinds(kinds)) keys.push_back(std::move(key));
  return keys;
}

void check_schedule(const Experiment& experiment, const config::GivenKeys& given, config::Diagnostics& diagnostics) {
  if (!given.sound("schedule.type")) return;
  const std::size_t before = diagnostics.size();
  ScheduleCheck check(experiment, given, diagnostics);
  const ScheduleRow& row = config::row_of(schedule_rows(), experiment.schedule);
  if (row.check != nullptr) row.check(check);
  check_warmup(experiment, given, check);
  const bool sound =
      std::ranges::none_of(given.bad, [](const std::string& key) { return key.starts_with("schedule."); });
  if (sound && diagnostics.size() == before) check_rates(experiment, given, row, check);
}

}  // namespace gpunn::training
