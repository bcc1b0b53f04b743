#include "export/measured_loss.hpp"

#include <gpunn/error.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "config/checked_backends.hpp"
#include "session/session.hpp"

namespace gpunn::interchange {

namespace {

constexpr double kPerCent = 100;

// The metric of the same name; the loss is one of them.
double value_of(const EvalReport& report, const Metric& metric) {
  const Score* score = report.scores.find(metric.name);
  return score == nullptr ? report.loss : score->value;
}

}  // namespace

double lost(const Metric& metric, double before, double after) {
  if (std::isnan(after)) return std::numeric_limits<double>::infinity();
  if (before == after) return 0;  // infinite values too
  const double worse = metric.larger_is_better ? before - after : after - before;
  if (metric.is_share) return kPerCent * worse;
  if (!std::isfinite(worse) || before == 0) return std::copysign(std::numeric_limits<double>::infinity(), worse);
  return kPerCent * worse / std::abs(before);
}

std::string lost_text(const Metric& metric, double loss) {
  return fmt::format("{:.3g} {}", loss, metric.is_share ? "points" : "%");
}

MeasuredLoss::MeasuredLoss(const training::TrainedFile& trained, const Dataset& data) : trained_(trained), data_(data) {
  if (data.test.rows() == 0) {
    reason_ = "the data set has no test rows";
    return;
  }
  before_ = evaluate(trained.experiment, trained.checkpoint);
  choose_figure();
}

// The first metric of the task that these rows define, else the loss.
void MeasuredLoss::choose_figure() {
  for (const Score& score : before_.scores) {
    if (std::isnan(score.value)) continue;
    figure_ = score;
    return;
  }
  figure_ = {.metric = {.name = "loss", .title = "loss", .larger_is_better = false}, .value = before_.loss};
  if (std::isnan(before_.loss)) {
    reason_ = fmt::format("no metric of the task {} is defined on the {} {} rows", trained_.experiment.task,
                          before_.rows, name_of(before_.part));
  }
}

EvalReport MeasuredLoss::evaluate(Experiment experiment, const storage::Checkpoint& checkpoint) const {
  experiment.backend = config::trained_backend(experiment.backend);
  training::Session session = training::Session::open(experiment, data_);
  session.restore_parameters(checkpoint);
  return session.evaluate();
}

void MeasuredLoss::compare(const std::filesystem::path& file, QuantizeReport& report) const {
  const training::TrainedFile stored = training::read_trained(file);
  // The file has other layers; data, loss and device are those of the model itself.
  Experiment experiment = stored.experiment;
  const Experiment& own = trained_.experiment;
  experiment.task = own.task;
  experiment.loss = own.loss;
  experiment.data = own.data;
  experiment.precision = own.precision;
  experiment.backend = own.backend;
  experiment.plugins = own.plugins;
  experiment.kernels = own.kernels;
  experiment.device = own.device;
  experiment.threads = own.threads;
  const EvalReport after = evaluate(std::move(experiment), stored.checkpoint);
  report.rows = before_.rows;
  report.part = before_.part;
  report.metric = figure_.metric;
  report.before = figure_.value;
  report.after = value_of(after, figure_.metric);
  const bool breaks = after.non_finite && !before_.non_finite;
  report.lost = breaks ? std::numeric_limits<double>::infinity() : lost(figure_.metric, *report.before, *report.after);
  if (figure_.metric.name == "accuracy") {
    report.accuracy_before = report.before;
    report.accuracy_after = report.after;
  }
}

}  // namespace gpunn::interchange
