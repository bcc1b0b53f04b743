#include "tasks/metrics/accuracy.hpp"

namespace gpunn::tasks {

namespace {

constexpr int64_t kTop = 5;  // classes that top5_accuracy counts; with no more than these it is always 1

double share_of(Total counted, const Accumulated& sums) {
  const double rows = sums.total(Total::rows);
  return rows > 0 ? sums.total(counted) / rows : kUndefined;
}

double share_correct(const Accumulated& sums) { return share_of(Total::correct, sums); }

double share_in_top5(const Accumulated& sums) { return share_of(Total::correct5, sums); }

}  // namespace

std::array<TaskMetric, 2> accuracies() {
  return {TaskMetric{.metric = {"accuracy", "accuracy", true, true},
                     .tally = make_tally<OfSums<share_correct>>,
                     .while_training = true},
          TaskMetric{.metric = {"top5_accuracy", "top-5 accuracy", true, true},
                     .tally = make_tally<OfSums<share_in_top5>>,
                     .above_outputs = kTop}};
}

}  // namespace gpunn::tasks
