#include "training/metric.hpp"

namespace gpunn::training {

double value_of(Metric metric, const EpochReport& epoch) {
  switch (metric) {
    case Metric::loss:
      return epoch.evaluation.loss;
    case Metric::accuracy:
      return epoch.evaluation.accuracy;
    case Metric::top5_accuracy:
      return epoch.evaluation.top5_accuracy.value_or(1);
    case Metric::train_loss:
      return epoch.train_loss;
    case Metric::train_accuracy:
      return epoch.train_accuracy;
  }
  return 0;
}

bool improves(Metric metric, double value, double best, double min_delta) {
  return larger_is_better(metric) ? value > best + min_delta : value < best - min_delta;
}

}  // namespace gpunn::training
