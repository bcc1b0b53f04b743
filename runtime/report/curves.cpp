#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "chart/chart.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

namespace {

using chart::Chart;
using chart::Series;

// By epoch; within the first one, by step.
struct Time {
  bool by_epoch = true;
  double of(const Record& record) const { return static_cast<double>(by_epoch ? record.epoch : record.step); }
  std::string name() const { return by_epoch ? "epoch" : "step"; }
};

Series series_of(const std::string& name, const std::vector<Record>& records, const Time& time,
                 const std::function<double(const Record&)>& value) {
  Series series{name, {}};
  for (const Record& record : records) series.points.push_back({time.of(record), value(record)});
  return series;
}

// Of one metric, as `scores` has it of each record: of the training or of the evaluation.
Series series_of_metric(const std::string& name, const std::vector<Record>& records, const Time& time,
                        const Metric& metric, std::vector<double> Record::*scores, std::size_t index) {
  const double factor = metric.is_share ? 100 : 1;
  return series_of(name, records, time, [&](const Record& one) { return factor * (one.*scores)[index]; });
}

bool says_something(const std::vector<Record>& records, std::vector<double> Record::*scores, std::size_t index) {
  return std::ranges::any_of(records, [&](const Record& one) { return is_defined((one.*scores)[index]); });
}

std::string drawn(const std::string& title, const std::string& subtitle, const Time& time, const std::string& label,
                  std::vector<Series> series, chart::Scale scale = chart::Scale::linear) {
  Chart picture;
  picture.title = title;
  picture.subtitle = subtitle;
  picture.panel_width = 400;
  picture.plot_height = 220;
  picture.colours = chart::Colours::of_page;
  picture.panels.push_back({time.name(), label, scale, true, std::move(series)});
  return chart::svg(picture);
}

// `held_out`: "test" or "validation". A column a metric that any epoch has a figure of.
std::string epoch_table(const History& history, const std::string& held_out) {
  struct Column {
    std::string title;
    std::function<std::string(const Record&)> text;
  };
  std::vector<Column> columns{{"training loss", [](const Record& one) { return decimal(one.train_loss); }}};
  const auto add_metrics = [&](const std::string& of, std::vector<double> Record::*scores) {
    for (std::size_t i = 0; i < history.metrics.size(); ++i) {
      if (!says_something(history.epochs, scores, i)) continue;
      const Metric& metric = history.metrics[i];
      columns.push_back({of + " " + metric.title, [&metric, scores, i](const Record& one) {
                           return figure({metric, (one.*scores)[i]});
                         }});
    }
  };
  add_metrics("training", &Record::train_scores);
  columns.push_back({held_out + " loss", [](const Record& one) { return decimal(one.loss); }});
  add_metrics(held_out, &Record::scores);
  columns.push_back({"learning rate", [](const Record& one) {
                       return std::isfinite(one.learning_rate) ? fmt::format("{:.3g}", one.learning_rate) : "-";
                     }});
  columns.push_back({"samples/s", [](const Record& one) {
                       return std::isfinite(one.samples_per_second) ? count(std::llround(one.samples_per_second)) : "-";
                     }});
  std::string html =
      "<details><summary>The figures of each epoch</summary>\n"
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures of each epoch\">"
      "<table id=\"epochs\"><thead><tr>";
  html += "<th scope=\"col\">epoch</th>";
  for (const Column& column : columns) html += "<th scope=\"col\">" + column.title + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const Record& one : history.epochs) {
    html += fmt::format("<tr><th scope=\"row\">{}{}</th>", one.epoch, one.best ? " (best)" : "");
    for (const Column& column : columns) html += "<td>" + column.text(one) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></details>\n";
}

// Of the task's most telling metric.
std::string telling_chart(const Contents& contents, const std::vector<Record>& trained, const Time& time) {
  const History& history = contents.history;
  if (history.metrics.empty()) return "";
  const Metric& metric = history.metrics.front();
  std::vector<Series> series;
  if (says_something(trained, &Record::train_scores, 0)) {
    series.push_back(series_of_metric("training", trained, time, metric, &Record::train_scores, 0));
  }
  series.push_back(series_of_metric(name_of(contents.held_out), history.epochs, time, metric, &Record::scores, 0));
  std::string title = metric.title;
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return drawn(title, metric.larger_is_better ? "higher is better" : "lower is better", time,
               metric.title + (metric.is_share ? ", %" : ""), std::move(series));
}

}  // namespace

std::string curves(const Contents& contents) {
  const History& history = contents.history;
  if (history.epochs.empty() && history.steps.empty()) return "";
  const Time time{.by_epoch = history.epochs.size() > 1};
  std::vector<Record> all = history.steps;
  all.insert(all.end(), history.epochs.begin(), history.epochs.end());
  std::ranges::stable_sort(all, {}, &Record::step);
  const std::vector<Record>& trained = time.by_epoch ? history.epochs : all;

  std::vector<Series> losses{series_of("training", trained, time, &Record::train_loss),
                             series_of(name_of(contents.held_out), history.epochs, time, &Record::loss)};
  const chart::Scale scale = chart::fitting_scale(losses);
  std::string html = "<div class=\"charts\">\n";
  html += drawn("Loss", scale == chart::Scale::logarithmic ? "lower is better; logarithmic" : "lower is better", time,
                "loss", std::move(losses), scale);
  html += telling_chart(contents, trained, time);
  html += drawn("Learning rate", "of the schedule", {.by_epoch = false}, "learning rate",
                {series_of("learning rate", all, {.by_epoch = false}, &Record::learning_rate)});
  html += "</div>\n";
  if (!history.epochs.empty()) {
    html += epoch_table(history, name_of(contents.held_out));
  }
  return html;
}

}  // namespace gpunn::reports
