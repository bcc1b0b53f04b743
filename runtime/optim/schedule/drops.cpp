// step and multi_step: a factor at each of some places. PyTorch's StepLR and MultiStepLR.
#include <algorithm>
#include <cmath>
#include <functional>

#include "optim/schedule/schedule_rows.hpp"

namespace gpunn::training {

namespace {

using config::number_text;

double step_rate(const Curve& curve, double tick) {
  const auto& step = curve.as<StepSchedule>();
  return curve.base * std::pow(step.gamma, std::floor(tick / curve.period(step.step_size)));
}

// The milestones count the warm-up.
double multi_step_rate(const Curve& curve, double tick) {
  const auto& [milestones, gamma] = curve.as<MultiStepSchedule>();
  const auto place = [&](double milestone) { return curve.ticks(milestone) - curve.warmup; };
  const auto passed = std::ranges::upper_bound(milestones, tick, {}, place);
  return curve.base * std::pow(gamma, static_cast<double>(passed - milestones.begin()));
}

std::vector<Turn> step_turns(const Curve& curve) {
  std::vector<Turn> turns;
  const double size = curve.period(curve.as<StepSchedule>().step_size);
  for (double tick = size; tick < curve.length && turns.size() < kMostTurns; tick += size) {
    turns.push_back({tick, "drop"});
  }
  return turns;
}

std::vector<Turn> multi_step_turns(const Curve& curve) {
  std::vector<Turn> turns;
  for (const double milestone : curve.as<MultiStepSchedule>().milestones) {
    const double tick = curve.ticks(milestone) - curve.warmup;
    if (tick > 0 && tick < curve.length && turns.size() < kMostTurns) turns.push_back({tick, "drop"});
  }
  return turns;
}

void check_step(ScheduleCheck& check) {
  const double size = check.as<StepSchedule>().step_size;
  if (size <= 0 && check.sound("step_size")) {
    check.add("step_size",
              "schedule step needs 'step_size', the " + check.unit() + " between two drops: a number above 0");
  }
  if (size > 0) check.require_period("step_size", size);
  check.require_whole("step_size", size);
}

void check_multi_step(ScheduleCheck& check) {
  const std::vector<double>& milestones = check.as<MultiStepSchedule>().milestones;
  for (const double milestone : milestones) check.require_whole("milestones", milestone);
  if (!check.sound("milestones")) return;
  if (milestones.empty()) {
    check.add("milestones", "schedule multi_step needs 'milestones', the " + check.unit() +
                                " of the training after which the rate drops: [30, 60]");
  }
  if (std::ranges::adjacent_find(milestones, std::greater_equal<>()) != milestones.end()) {
    check.add("milestones", "schedule.milestones: expected each to be larger than the one before");
  }
}

void warn_of_step(const Curve& curve, const TrainingExtent& training, std::vector<std::string>& found) {
  const double size = curve.as<StepSchedule>().step_size;
  if (curve.ticks(size) < curve.length) return;
  found.push_back("schedule.step_size (" + number_text(size) + ") is not less than " + training.rest +
                  ": the learning rate never drops");
}

void warn_of_milestones(const Curve& curve, const TrainingExtent& training, std::vector<std::string>& found) {
  const std::vector<double>& milestones = curve.as<MultiStepSchedule>().milestones;
  const auto ticks = [&](double milestone) { return curve.ticks(milestone); };
  const auto early = std::ranges::lower_bound(milestones, curve.warmup, {}, ticks);
  if (const auto count = early - milestones.begin(); count > 0) {
    found.push_back("schedule.milestones: " + number_text(*(early - 1)) +
                    (count > 1 ? " and those before it are" : " is") +
                    " within the warm-up, which rises to the rate behind that drop");
  }
  const auto late = std::ranges::lower_bound(milestones, training.ticks, {}, ticks);
  if (const auto count = milestones.end() - late; count > 0) {
    found.push_back("schedule.milestones: " + number_text(*late) + (count > 1 ? " and those after it are" : " is") +
                    " behind the end of " + training.text + ": no drop there");
  }
}

template <class Kind>
config::KeyOf<Kind> gamma_key() {
  return config::number("gamma", &Kind::gamma, config::above_up_to(0, config::kLargestRate), "The factor of a drop.");
}

}  // namespace

ScheduleRow step_schedule() {
  using namespace config;
  return {.kind = schedule_kind<StepSchedule>(
              "step",
              formerly("step_epochs", number("step_size", &StepSchedule::step_size, between(0, kMostSteps),
                                             "The length between two drops; has to be given.")),
              gamma_key<StepSchedule>()),
          .rate = step_rate,
          .turns = step_turns,
          .check = check_step,
          .warn = warn_of_step,
          .drops_by_factors = true};
}

ScheduleRow multi_step_schedule() {
  using namespace config;
  return {.kind = schedule_kind<MultiStepSchedule>(
              "multi_step",
              optional(numbers("milestones", &MultiStepSchedule::milestones, above_up_to(0, kMostSteps),
                               "Places of the drops, from the start of the training; has to be given.")),
              gamma_key<MultiStepSchedule>()),
          .rate = multi_step_rate,
          .turns = multi_step_turns,
          .check = check_multi_step,
          .warn = warn_of_milestones,
          .drops_by_factors = true};
}

}  // namespace gpunn::training
