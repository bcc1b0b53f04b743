#include <gpunn/data.hpp>
#include <gpunn/plan.hpp>

#include <algorithm>

#include "chart/chart.hpp"
#include "common/files.hpp"
#include "common/text.hpp"
#include "feed/evaluation_part.hpp"
#include "optim/schedule/schedule_rows.hpp"
#include "runs/own_files.hpp"
#include "session/notices.hpp"
#include "session/schedule.hpp"
#include "session/training_length.hpp"

namespace gpunn {

namespace {

// Above this ratio of the highest rate to the lowest the small ones can't be told apart on a linear axis.
constexpr float kLogarithmicFrom = 20;
// More don't show, and make a large file.
constexpr std::size_t kMostPoints = 1000;

// Two at the same step become one.
std::vector<SchedulePoint> points_of(const ScheduleReport& report, const training::Schedule& schedule) {
  const std::vector<float>& rates = report.learning_rates;
  std::vector<training::Schedule::Mark> marks = {{0, "first"}};
  for (training::Schedule::Mark& mark : schedule.marks()) marks.push_back(std::move(mark));
  marks.push_back({std::ranges::max_element(rates) - rates.begin(), "highest"});
  marks.push_back({static_cast<int64_t>(rates.size()) - 1, "last"});
  std::ranges::stable_sort(marks, {}, &training::Schedule::Mark::step);
  std::vector<SchedulePoint> points;
  for (const training::Schedule::Mark& mark : marks) {
    if (!points.empty() && points.back().step == mark.step + 1) {
      if (points.back().what.find(mark.what) == std::string::npos) points.back().what += ", " + mark.what;
      continue;
    }
    points.push_back({.step = mark.step + 1,
                      .epoch = static_cast<double>(mark.step) / static_cast<double>(report.steps_per_epoch),
                      .learning_rate = rates[static_cast<std::size_t>(mark.step)],
                      .what = mark.what});
  }
  return points;
}

// The first and the last of each part of the steps, so that a drop stays one.
std::vector<chart::Point> thinned(const ScheduleReport& report) {
  const std::vector<float>& rates = report.learning_rates;
  const std::size_t part = std::max<std::size_t>((2 * rates.size() + kMostPoints - 1) / kMostPoints, 1);
  std::vector<chart::Point> points;
  const auto add = [&](std::size_t step) {
    points.push_back({static_cast<double>(step) / static_cast<double>(report.steps_per_epoch), rates[step]});
  };
  for (std::size_t first = 0; first < rates.size(); first += part) {
    const std::size_t last = std::min(first + part, rates.size()) - 1;
    add(first);
    if (last > first) add(last);
  }
  return points;
}

}  // namespace

ScheduleReport plan_schedule(const Experiment& experiment) {
  const Dataset dataset = training::sizes_for_training(experiment.data);
  const training::TrainingLength length = training::training_length(experiment, dataset);
  const training::Schedule schedule(experiment, length);
  const training::ScheduleRow& row = config::row_of(training::schedule_rows(), experiment.schedule);
  ScheduleReport report;
  for (const std::string& notice :
       {join(experiment.notes, "\n"), training::fallback_notice(dataset), training::schedule_notice(schedule),
        dataset.from_registry ? training::data_text(dataset) : ""}) {
    report.notice = training::joined(report.notice, notice);
  }
  report.experiment = experiment.name;
  report.type = row.kind.name;
  report.steps_per_epoch = length.steps_per_epoch;
  report.steps = length.steps;
  report.reacts = row.reacts;
  report.learning_rates = schedule.rates();
  report.points = points_of(report, schedule);
  const auto [low, high] = std::ranges::minmax(report.learning_rates);
  report.logarithmic = row.drops_by_factors && low > 0 && high > kLogarithmicFrom * low;
  return report;
}

void write_chart(const ScheduleReport& report, const std::filesystem::path& file) {
  chart::Panel panel;
  panel.x_label = "epoch";
  panel.y_label = "learning rate";
  panel.y_scale = report.logarithmic ? chart::Scale::logarithmic : chart::Scale::linear;
  panel.series.push_back({report.type, thinned(report)});
  std::string subtitle =
      std::to_string(report.steps) + " steps, " + std::to_string(report.steps_per_epoch) + " an epoch";
  if (report.reacts) subtitle += "; without the drops that depend on the training";
  training::require_output(file);
  write_atomically(file, chart::svg({"learning rate of " + report.experiment, subtitle, {std::move(panel)}}));
}

}  // namespace gpunn
