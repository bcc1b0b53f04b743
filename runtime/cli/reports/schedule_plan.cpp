#include "cli/reports/schedule_plan.hpp"

#include <fmt/format.h>

#include "cli/terminal/line_plot.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

// A table with more rows shows only the first and the last ones.
constexpr std::size_t kMostScheduleRows = 24, kLastRows = 4;

}  // namespace

std::string schedule_text(const ScheduleReport& report, std::size_t columns, bool utf8, bool colour) {
  const double epochs = static_cast<double>(report.steps) / static_cast<double>(report.steps_per_epoch);
  std::string text = fmt::format("learning rate of {}: {}, {} steps, {} an epoch{}\n\n", report.experiment, report.type,
                                 count_text(report.steps), count_text(report.steps_per_epoch),
                                 report.logarithmic ? ", drawn on a logarithmic axis" : "");
  if (report.reacts) text += "Drops depend on the training: this is the curve without any.\n\n";
  text +=
      drawing({.values = report.learning_rates, .x_end = epochs, .x_label = "epoch", .logarithmic = report.logarithmic},
              columns, utf8);
  Table table({{"STEP", Align::right}, {"EPOCH", Align::right}, {"LEARNING RATE", Align::right}, {"WHERE"}});
  const std::size_t count = report.points.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool left_out = count > kMostScheduleRows && i >= kMostScheduleRows - kLastRows - 1 && i < count - kLastRows;
    if (left_out) {
      if (i == kMostScheduleRows - kLastRows - 1) {
        table.add({"...", "", "", fmt::format("{} more", count_text(static_cast<int64_t>(count - kLastRows - i)))});
      }
      continue;
    }
    const SchedulePoint& point = report.points[i];
    table.add({count_text(point.step), fmt::format("{:.6g}", point.epoch), fmt::format("{:.6g}", point.learning_rate),
               point.what});
  }
  return text + "\n" + table.text(colour);
}

}  // namespace gpunn::cli
