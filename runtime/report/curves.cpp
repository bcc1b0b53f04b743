#include <algorithm>
#include <cmath>

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

Series series_of(const std::string& name, const std::vector<Record>& records, const Time& time, double Record::*member,
                 double factor = 1) {
  Series series{name, {}};
  for (const Record& record : records) series.points.push_back({time.of(record), factor * record.*member});
  return series;
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

// `held_out`: "test" or "validation".
std::string epoch_table(const std::vector<Record>& epochs, const std::string& held_out, bool with_top5) {
  std::string html =
      "<details><summary>The figures of each epoch</summary>\n"
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures of each epoch\">"
      "<table id=\"epochs\"><thead><tr>";
  std::vector<std::string> titles{"epoch", "training loss", "training accuracy", held_out + " loss",
                                  held_out + " accuracy"};
  if (with_top5) titles.emplace_back("top-5 accuracy");
  titles.insert(titles.end(), {"learning rate", "images/s"});
  for (const std::string& title : titles) html += "<th scope=\"col\">" + title + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const Record& one : epochs) {
    html += fmt::format(
        "<tr><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}<td>{}</td><td>{}</td></tr>\n",
        one.epoch, one.best ? " (best)" : "", decimal(one.train_loss), percent(one.train_accuracy), decimal(one.loss),
        percent(one.accuracy), with_top5 ? "<td>" + percent(one.top5_accuracy) + "</td>" : "",
        std::isfinite(one.learning_rate) ? fmt::format("{:.3g}", one.learning_rate) : "-",
        std::isfinite(one.images_per_second) ? count(std::llround(one.images_per_second)) : "-");
  }
  return html + "</tbody></table></div></details>\n";
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
  html += drawn("Accuracy", "higher is better", time, "accuracy, %",
                {series_of("training", trained, time, &Record::train_accuracy, 100),
                 series_of(name_of(contents.held_out), history.epochs, time, &Record::accuracy, 100)});
  html += drawn("Learning rate", "of the schedule", {.by_epoch = false}, "learning rate",
                {series_of("learning rate", all, {.by_epoch = false}, &Record::learning_rate)});
  html += "</div>\n";
  if (!history.epochs.empty()) {
    html +=
        epoch_table(history.epochs, name_of(contents.held_out), contents.evaluation.total.top5_accuracy.has_value());
  }
  return html;
}

}  // namespace gpunn::reports
