// Figures of each output, such as a label or a target column, and single rows.
#include <algorithm>

#include <fmt/format.h>

#include "chart/chart.hpp"
#include "chart/svg.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

namespace {

using chart::escaped;

constexpr std::size_t kMostScattered = 1500;  // points of a plot
constexpr std::size_t kMostPlots = 12;

// Predictions over targets of one column, and the line on which they would be equal.
std::string scatter_plot(const ClassEvalReport& report, std::size_t column) {
  const std::size_t columns = report.outputs.size(), rows = report.target_values.size() / columns;
  const std::size_t every = (rows + kMostScattered - 1) / kMostScattered;
  chart::Series points{"rows", {}, true};
  double low = report.target_values[column], high = low;
  for (std::size_t row = 0; row < rows; ++row) {
    const double target = report.target_values[row * columns + column];
    low = std::min(low, target);
    high = std::max(high, target);
    if (row % every == 0) {
      points.points.push_back({target, static_cast<double>(report.predicted_values[row * columns + column])});
    }
  }
  const std::size_t drawn = points.points.size();
  chart::Chart picture;
  picture.title = report.outputs[column].name;
  picture.subtitle = drawn < rows ? fmt::format("{} of {} rows", drawn, rows) : fmt::format("{} rows", rows);
  picture.panel_width = 400;
  picture.plot_height = 280;
  picture.colours = chart::Colours::of_page;
  picture.panels.push_back({.x_label = "target",
                            .y_label = "prediction",
                            .series = {std::move(points), {"prediction = target", {{low, low}, {high, high}}}}});
  return chart::svg(picture);
}

}  // namespace

std::string output_section(const ClassEvalReport& report) {
  if (report.outputs.empty()) return "";
  const OutputReport& pattern = report.outputs.front();
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures of each {0}\"><table id=\"outputs\">"
      "<thead><tr><th scope=\"col\">{0}</th>",
      escaped(report.output));
  if (pattern.rows) html += "<th scope=\"col\">" + escaped(report.counted) + "</th>";
  for (const Score& score : pattern.scores) html += "<th scope=\"col\">" + escaped(score.metric.title) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const OutputReport& one : report.outputs) {
    html += "<tr><th scope=\"row\">" + escaped(numbered_name(one.index, one.name)) + "</th>";
    if (one.rows) html += "<td>" + count(*one.rows) + "</td>";
    for (const Score& score : one.scores) html += "<td>" + figure(score) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string scatter_section(const ClassEvalReport& report) {
  if (report.target_values.empty() || report.outputs.empty()) return "";
  const std::size_t plots = std::min(report.outputs.size(), kMostPlots);
  std::string html = fmt::format("<p>A point a row of the {} data; on the line the prediction is the target.</p>\n",
                                 name_of(report.total.part));
  if (plots < report.outputs.size()) {
    html += fmt::format("<p>The first {} of {} columns.</p>\n", plots, report.outputs.size());
  }
  html += "<div class=\"charts\">\n";
  for (std::size_t column = 0; column < plots; ++column) html += scatter_plot(report, column);
  return html + "</div>\n";
}

std::string worst_rows_section(const Contents& contents) {
  if (contents.worst_rows.empty()) return "";
  const std::string part = name_of(contents.evaluation.total.part);
  std::string html = "<ol class=\"mistakes\" id=\"worst-of-rows\">\n";
  for (const ShownRow& shown : contents.worst_rows) {
    const RowReport& one = shown.row;
    html += "<li><figure>";
    if (shown.picture) {
      html += image(*shown.picture,
                    fmt::format("{} row {}, target {}, prediction {}", part, one.row, one.target, one.prediction));
    } else if (!shown.values.empty()) {
      html += "<p>" + escaped(shown.values) + "</p>";
    }
    html += fmt::format(
        "<figcaption>Target <strong>{}</strong>, prediction <strong>{}</strong>. Loss {}, {} row {}"
        "</figcaption></figure></li>\n",
        escaped(one.target), escaped(one.prediction), decimal(one.loss), part, one.row);
  }
  return html + "</ol>\n";
}

}  // namespace gpunn::reports
