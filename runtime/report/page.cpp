#include "report/page.hpp"

#include <gpunn/version.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "chart/svg.hpp"
#include "report/sections.hpp"
#include "report/style.hpp"

namespace gpunn::reports {

using chart::escaped;

namespace {

std::string duration(double seconds) {
  if (seconds < 90) return fmt::format("{:.3g}\u00A0s", seconds);
  const auto whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}\u00A0min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}\u00A0h", whole / 3600, whole / 60 % 60);
}

struct Section {
  std::string id, title, html;
};

}  // namespace

std::string headline(const Contents& contents) {
  const EvalReport& total = contents.evaluation.total;
  std::string html = "<dl class=\"tiles\">\n";
  const auto tile = [&](const std::string& id, const std::string& name, const std::string& value) {
    html += fmt::format("<div><dt>{}</dt><dd id=\"{}\">{}</dd></div>\n", name, id, value);
  };
  const std::string part = total.part == EvaluationPart::validation ? "Validation" : "Test";
  for (const Score& score : total.scores) {
    if (score.applies) tile(score.metric.name, part + " " + score.metric.title, figure(score));
  }
  tile("loss", part + " loss", decimal(total.loss));
  if (!contents.evaluation.classes.empty()) tile("f1", "Mean F1", percent(contents.evaluation.macro_f1));
  tile("rows", part + " rows", count(total.rows));
  tile("parameters", "Parameters", count(contents.parameters));
  if (!contents.history.epochs.empty()) {
    double seconds = 0;
    for (const Record& one : contents.history.epochs)
      seconds += std::isfinite(one.train_seconds) ? one.train_seconds : 0;
    tile("epochs-done", "Epochs", count(contents.history.epochs.back().epoch));
    tile("seconds", "Time of training", duration(seconds));
  }
  return html + "</dl>\n";
}

std::string page(const Contents& contents) {
  std::vector<Section> sections{
      {"curves", "Learning curves", curves(contents)},
      {"by-class", "Class by class", class_section(contents.evaluation)},
      {"matrix", "Confusion matrix", confusion_section(contents.evaluation)},
      {"by-output", "Each " + contents.evaluation.output, output_section(contents.evaluation)},
      {"scatter", "Predictions and targets", scatter_section(contents.evaluation)},
      {"crops", "Details", crops_section(contents.evaluation)},
      {"detection", "Boxes", detection_section(contents.evaluation)},
      {"worst-images", "Images with the largest loss", worst_pictures_section(contents.evaluation)},
      {"worst", "Worst mistakes", mistakes_section(contents)},
      {"worst-rows", "Rows with the largest loss", worst_rows_section(contents)},
      {"filters", "Filters of the first convolution", filters_section(contents)}};
  std::erase_if(sections, [](const Section& section) { return section.html.empty(); });
  if (!contents.experiment.empty()) {
    sections.push_back({"experiment", "Experiment",
                        "<details><summary>Every key, and the model</summary>\n<pre tabindex=\"0\">" +
                            escaped(contents.experiment) + "</pre></details>\n"});
  }

  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'\">\n"
      "<meta name=\"generator\" content=\"gpunn {}\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{} - gpunn report</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{}</h1>\n",
      version(), escaped(contents.title), style_sheet(), escaped(contents.title));
  if (!contents.notice.empty()) html += "<p class=\"notice\">" + escaped(contents.notice) + "</p>\n";
  html += headline(contents) + "<dl class=\"facts\">\n";
  for (const auto& [name, value] : contents.facts) {
    html += "<dt>" + escaped(name) + "</dt><dd>" + escaped(value) + "</dd>\n";
  }
  html += "</dl>\n<nav aria-label=\"Sections\">";
  for (const Section& section : sections) html += fmt::format("<a href=\"#{}\">{}</a> ", section.id, section.title);
  html += "</nav>\n</header>\n";
  for (const Section& section : sections) {
    html += fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n", section.id,
                        section.title, section.html);
  }
  return html + fmt::format("<footer><p class=\"quiet\">Written by gpunn {}.</p></footer>\n</main>\n</body>\n</html>\n",
                            version());
}

}  // namespace gpunn::reports
