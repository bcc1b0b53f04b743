// What a detector finds: figures, and curves of each class.
#include <fmt/format.h>

#include "chart/chart.hpp"
#include "chart/svg.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

namespace {

using chart::escaped;

constexpr std::size_t kMostPlottedClasses = 8;

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

}  // namespace gpunn::reports
