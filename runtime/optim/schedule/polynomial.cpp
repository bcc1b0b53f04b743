// PyTorch's PolynomialLR.
#include <algorithm>
#include <cmath>

#include "optim/schedule/schedule_rows.hpp"

namespace gpunn::training {

namespace {

double polynomial_rate(const Curve& curve, double tick) {
  const auto& [power, least] = curve.as<PolynomialSchedule>();
  const double left = std::max(1 - tick / curve.length, 0.0);
  return least + (curve.base - least) * std::pow(left, power);
}

}  // namespace

ScheduleRow polynomial_schedule() {
  using namespace config;
  return {.kind = schedule_kind<PolynomialSchedule>("polynomial",
                                                    number("power", &PolynomialSchedule::power, above_up_to(0, 100),
                                                           "The rate falls as (1 - t / length) to this power."),
                                                    min_learning_rate_key<PolynomialSchedule>()),
          .rate = polynomial_rate,
          .check = check_min_learning_rate<PolynomialSchedule>};
}

}  // namespace gpunn::training
