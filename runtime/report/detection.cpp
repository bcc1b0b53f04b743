// What a detector finds: figures, curves of each class, confusion, and the images with the largest loss.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "chart/chart.hpp"
#include "chart/raster.hpp"
#include "chart/svg.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

namespace {

using chart::escaped;

constexpr std::size_t kMostPlottedClasses = 8, kMostMatrixClasses = 20;

std::string curves_of_classes(const DetectionReport& report) {
  chart::Chart picture;
  picture.title = "Precision and recall";
  picture.subtitle = "at an overlap of 0.5, as less and less certain boxes are taken in";
  picture.colours = chart::Colours::of_page;
  chart::Panel panel{.x_label = "recall", .y_label = "precision", .series = {}};
  for (const DetectedClass& one : report.classes) {
    if (one.objects == 0 || panel.series.size() == kMostPlottedClasses) continue;
    chart::Series series{.name = one.name, .points = {}};
    for (std::size_t i = 0; i < one.recall.size(); ++i) series.points.push_back({one.recall[i], one.precision[i]});
    panel.series.push_back(std::move(series));
  }
  if (panel.series.empty()) return "";
  picture.panels.push_back(std::move(panel));
  return "<figure>" + chart::svg(picture) + "</figure>\n";
}

std::string figures_table(const DetectionReport& report) {
  std::string html =
      "<table id=\"map\"><caption>Means over the classes</caption><thead><tr><th scope=\"col\">Figure</th>"
      "<th scope=\"col\">Value</th></tr></thead>\n<tbody>\n";
  for (const auto& [name, value] : report.figures) {
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escaped(name), percent(value));
  }
  return html + "</tbody></table>\n";
}

std::string classes_table(const DetectionReport& report) {
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures of each class\"><table "
      "id=\"detected\"><thead><tr><th scope=\"col\">Class</th><th scope=\"col\">Objects</th><th "
      "scope=\"col\">Boxes</th><th scope=\"col\">AP at 0.5</th><th scope=\"col\">COCO AP</th></tr></thead>\n<tbody>\n";
  for (const DetectedClass& one : report.classes) {
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        escaped(one.name), count(one.objects), count(one.detections), percent(one.ap),
                        percent(one.coco_ap));
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string detection_section(const ClassEvalReport& report) {
  if (!report.detection) return "";
  const DetectionReport& found = *report.detection;
  return "<div class=\"beside\">\n" + figures_table(found) + classes_table(found) + "</div>\n" +
         curves_of_classes(found);
}

std::string detected_confusion_section(const ClassEvalReport& report) {
  if (!report.detection || report.detection->classes.size() > kMostMatrixClasses) return "";
  const DetectionReport& found = *report.detection;
  const std::size_t side = found.classes.size() + 1;
  const auto name = [&](std::size_t i) {
    return i + 1 < side ? escaped(found.classes[i].name) : std::string("nothing");
  };
  std::string html = fmt::format(
      "<p>A row for each class of object, a column for each class that is found, by boxes of a score of at least {} "
      "that overlap the object by half.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Confusion of classes\"><table id=\"confusion\" class=\"matrix\"><thead><tr><td></td>",
      found.least_score);
  for (std::size_t i = 0; i < side; ++i) html += "<th scope=\"col\">" + name(i) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < side; ++i) {
    html += "<tr><th scope=\"row\">" + name(i) + "</th>";
    int64_t all = 0;
    for (std::size_t k = 0; k < side; ++k) all += found.confusion[i * side + k];
    for (std::size_t k = 0; k < side; ++k) {
      const int64_t boxes = found.confusion[i * side + k];
      if (boxes == 0) {
        html += i == side - 1 && k == i ? "<td></td>" : "<td class=\"none\">0</td>";
        continue;
      }
      html += fmt::format("<td class=\"{}\" style=\"--share: {:.3f}\">{}</td>", i == k ? "right" : "wrong",
                          0.12 + 0.46 * static_cast<double>(boxes) / static_cast<double>(all), boxes);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string worst_images_section(const ClassEvalReport& report) {
  if (!report.detection || report.detection->worst.empty()) return "";
  std::string html =
      "<p>Dashed boxes are there, the others are found, with their scores in percent.</p>\n<div class=\"crops\">\n";
  for (const DetectedImage& one : report.detection->worst) {
    html += fmt::format(
        "<figure><img src=\"data:image/png;base64,{}\" alt=\"row {} with boxes\"><figcaption>row {}, loss "
        "{}</figcaption></figure>\n",
        chart::base64(one.picture), one.row, one.row, decimal(one.loss));
  }
  return html + "</div>\n";
}

}  // namespace gpunn::reports
