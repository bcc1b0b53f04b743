// PyTorch's ExponentialLR with gamma = exp(-k).
#include <cmath>

#include "optim/schedule/schedule_rows.hpp"

namespace gpunn::training {

namespace {

double exponential_rate(const Curve& curve, double tick) {
  return curve.base * std::exp(-curve.as<ExponentialSchedule>().k * tick / curve.unit);
}

}  // namespace

ScheduleRow exponential_schedule() {
  using namespace config;
  return {.kind = schedule_kind<ExponentialSchedule>(
              "exponential", number("k", &ExponentialSchedule::k, above_up_to(0, kLargestRate),
                                    "The rate falls as exp(-k t), with t in epochs, or with `per: step` in steps.")),
          .rate = exponential_rate,
          .drops_by_factors = true};
}

}  // namespace gpunn::training
