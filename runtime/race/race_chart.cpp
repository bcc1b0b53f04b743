#include "race/race_chart.hpp"

#include <algorithm>
#include <cstddef>

namespace gpunn::races {

namespace {

// A loss that jumps from batch to batch hides the curve, and thousands of points make a large file.
constexpr std::size_t kMostPoints = 160;

std::size_t longest(const RaceReport& report) {
  std::size_t steps = 0;
  for (const RaceEntry& entry : report.entries) steps = std::max(steps, entry.losses.size());
  return steps;
}

// Means of `block` steps, each at its last step.
std::vector<chart::Point> smoothed(const std::vector<float>& losses, std::size_t block) {
  std::vector<chart::Point> points;
  for (std::size_t first = 0; first < losses.size(); first += block) {
    const std::size_t last = std::min(first + block, losses.size());
    double sum = 0;
    for (std::size_t i = first; i < last; ++i) sum += losses[i];
    points.push_back({static_cast<double>(last), sum / static_cast<double>(last - first)});
  }
  return points;
}

}  // namespace

chart::Chart learning_curves(const RaceReport& report) {
  const std::size_t block = std::max<std::size_t>((longest(report) + kMostPoints - 1) / kMostPoints, 1);
  chart::Panel loss, accuracy;
  EvaluationPart part = EvaluationPart::test;
  Metric telling;
  for (const RaceEntry& entry : report.entries) {
    const std::string name = entry.failure.empty() ? entry.backend : entry.backend + " (failed)";
    loss.series.push_back({name, smoothed(entry.losses, block)});
    chart::Series tests{name, {}};
    for (const EpochReport& epoch : entry.result.epochs) {
      part = epoch.evaluation.part;
      const Score& score = epoch.evaluation.scores.front();
      telling = score.metric;
      tests.points.push_back({static_cast<double>(epoch.epoch), (telling.is_share ? 100 : 1) * score.value});
    }
    accuracy.series.push_back(std::move(tests));
  }
  loss.x_label = "step";
  loss.y_label = "training loss";
  loss.whole_x = true;
  loss.y_scale = chart::fitting_scale(loss.series);
  accuracy.x_label = "epoch";
  accuracy.y_label = std::string(name_of(part)) + " " + telling.title + (telling.is_share ? ", %" : "");
  accuracy.whole_x = true;
  std::string subtitle = "learning curves by backend";
  if (block > 1) subtitle += "; losses are means of " + std::to_string(block) + " steps";
  return {report.experiment, subtitle, {std::move(loss), std::move(accuracy)}};
}

}  // namespace gpunn::races
