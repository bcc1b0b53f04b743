// The keys of what ../plateau.cpp does between two epochs.
#include "optim/schedule/schedule_rows.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

namespace {

double first_rate(const Curve& curve, double /*tick*/) { return curve.base; }

}  // namespace

ScheduleRow reduce_on_plateau() {
  using namespace config;
  using P = ReduceOnPlateau;
  return {.kind = schedule_kind<P>(
              "reduce_on_plateau", min_learning_rate_key<P>(),
              word("monitor", &P::monitor, tasks::monitor_names(),
                   "The metric that has to improve: of the test data, or while training."),
              number("factor", &P::factor, {.min = 0, .max = 1, .above_min = true, .below_max = true},
                     "Factor of the rate at a drop."),
              integer("patience", &P::patience, between(0, kMostEpochs),
                      "Epochs without an improvement to tolerate; the next one lowers the rate."),
              number("threshold", &P::threshold, between(0, kLargestRate), "An improvement is more than this."),
              choice("threshold_mode", &P::threshold_mode, {"relative", "absolute"},
                     "`threshold` is a share of the best value so far, or a difference to it."),
              integer("cooldown", &P::cooldown, between(0, kMostEpochs), "Epochs after a drop that are not counted.")),
          .rate = first_rate,
          .check = check_min_learning_rate<P>,
          .reacts = true};
}

}  // namespace gpunn::training
