#include "config/key_builders.hpp"
#include "tasks/task.hpp"

namespace gpunn::config {

namespace {

using E = Experiment;
using S = ScheduleConfig;

template <class T>
auto of(T S::*member) {
  return in(&E::schedule, member);
}

std::vector<Key> warmup_keys() {
  return {
      number("schedule.warmup_epochs", of(&S::warmup_epochs), between(0, kMostEpochs),
             "The learning rate rises in a straight line for so long, up to where the schedule begins."),
      integer("schedule.warmup_steps", of(&S::warmup_steps), between(0, kMostSteps),
              "The same in steps, in place of `warmup_epochs`."),
      number("schedule.warmup_start_factor", of(&S::warmup_start_factor), between(0, 1),
             "The share of the rate that the warm-up begins with; 0: start at 1/(n+1) of the rate and rise in n equal "
             "steps."),
  };
}

std::vector<Key> plateau_keys() {
  std::vector<Key> keys = {
      word("schedule.monitor", of(&S::monitor), tasks::monitor_names(),
           "The metric that has to improve: of the test data, or while training."),
      number("schedule.factor", of(&S::factor), {.min = 0, .max = 1, .above_min = true, .below_max = true},
             "What the rate is multiplied with."),
      integer("schedule.patience", of(&S::patience), between(0, kMostEpochs),
              "Epochs without an improvement that are let pass; the next one lowers the rate."),
      number("schedule.threshold", of(&S::threshold), between(0, kLargestRate), "An improvement is more than this."),
      choice("schedule.threshold_mode", of(&S::threshold_mode), {"relative", "absolute"},
             "`threshold` is a share of the best value so far, or a difference to it."),
      integer("schedule.cooldown", of(&S::cooldown), between(0, kMostEpochs),
              "Epochs after a drop that are not counted."),
  };
  for (Key& key : keys) key = only({"reduce_on_plateau"}, std::move(key));
  return keys;
}

std::vector<Key> curve_keys() {
  constexpr Range kLength = between(0, kMostSteps);
  return {
      only({"step"},
           number("schedule.step_size", of(&S::step_size), kLength, "The length between two drops; has to be given.")),
      only({"multi_step"}, optional(numbers("schedule.milestones", of(&S::milestones), above_up_to(0, kMostSteps),
                                            "Where the drops are, from the start of the training; has to be given."))),
      only({"step", "multi_step"},
           number("schedule.gamma", of(&S::gamma), above_up_to(0, kLargestRate), "The factor of a drop.")),
      only({"exponential"}, number("schedule.k", of(&S::k), above_up_to(0, kLargestRate),
                                   "The rate falls as exp(-k t), with t in epochs, or with `per: step` in steps.")),
      only({"cosine"}, number("schedule.t_0", of(&S::t_0), kLength,
                              "The length up to the first restart; 0: none, one curve over the whole training.")),
      only({"cosine"}, integer("schedule.t_mult", of(&S::t_mult), between(1, 1000),
                               "After each restart the length is so many times the one before.")),
      only({"one_cycle"}, number("schedule.pct_start", of(&S::pct_start), between(0, 1),
                                 "The share of the training in which the rate rises.")),
      only({"one_cycle"}, number("schedule.div_factor", of(&S::div_factor), above_up_to(0, 1e12),
                                 "The rate begins at `optimizer.learning_rate` divided by this.")),
      only({"one_cycle"}, number("schedule.final_div_factor", of(&S::final_div_factor), above_up_to(0, 1e12),
                                 "The rate ends at where it began divided by this.")),
      only({"one_cycle"}, choice("schedule.anneal", of(&S::anneal), {"cosine", "linear"}, "The form of both parts.")),
      only({"polynomial"}, number("schedule.power", of(&S::power), above_up_to(0, 100),
                                  "The rate falls as (1 - t / length) to this power.")),
  };
}

}  // namespace

std::vector<Key> schedule_keys() {
  std::vector<Key> keys = {
      choice(
          "schedule.type", of(&S::kind),
          {"constant", "step", "multi_step", "exponential", "cosine", "one_cycle", "polynomial", "reduce_on_plateau"},
          "How the learning rate changes during the training: see below."),
      only({"constant", "step", "multi_step", "exponential", "cosine", "one_cycle", "polynomial"},
           choice("schedule.per", of(&S::per), {"epoch_fraction", "epoch", "step"},
                  "When the rate changes, and what lengths count: with each step, lengths in epochs; with each "
                  "`epoch`, lengths in epochs; with each `step`, lengths in steps.")),
  };
  Key least = only({"cosine", "one_cycle", "polynomial", "reduce_on_plateau"},
                   number("schedule.min_learning_rate", of(&S::min_learning_rate), between(0, kLargestRate),
                          "Where the curve ends, or the least that is left. `one_cycle`: 0: `final_div_factor` says."));
  for (const std::vector<Key>& part : {warmup_keys(), curve_keys(), {std::move(least)}, plateau_keys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  for (Key& key : keys) {
    if (key.path == "schedule.step_size") key.formerly = "step_epochs";
  }
  return keys;
}

}  // namespace gpunn::config
