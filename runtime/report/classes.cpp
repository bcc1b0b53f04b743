#include <algorithm>

#include <fmt/format.h>

#include "chart/svg.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

namespace {

using chart::escaped;

constexpr std::size_t kMostCells = 20;   // classes of a matrix in numbers; beyond, it is a picture
constexpr int64_t kMostPictured = 2000;  // classes of that
constexpr std::size_t kMostPairs = 12;

struct Pair {
  int64_t label = 0, predicted = 0, count = 0;
};

std::vector<Pair> confused_pairs(const ClassEvalReport& report) {
  std::vector<Pair> pairs;
  for (const ClassReport& label : report.classes) {
    for (const ClassReport& predicted : report.classes) {
      const int64_t rows = report.confused(label.index, predicted.index);
      if (label.index != predicted.index && rows > 0) pairs.push_back({label.index, predicted.index, rows});
    }
  }
  std::ranges::stable_sort(pairs, std::greater{}, &Pair::count);
  if (pairs.size() > kMostPairs) pairs.resize(kMostPairs);
  return pairs;
}

std::string pairs_table(const ClassEvalReport& report) {
  const std::vector<Pair> pairs = confused_pairs(report);
  if (pairs.empty()) {
    return fmt::format("<p>No row of the {} data was taken for another class.</p>\n", name_of(report.total.part));
  }
  std::string html =
      "<table id=\"pairs\" class=\"words\"><caption>What is confused most often</caption><thead><tr>"
      "<th scope=\"col\">Class</th><th scope=\"col\">taken for</th><th scope=\"col\" class=\"count\">Rows</th>"
      "<th scope=\"col\" class=\"count\">of the class</th></tr></thead>\n<tbody>\n";
  for (const Pair& pair : pairs) {
    const ClassReport& label = report.classes[static_cast<std::size_t>(pair.label)];
    const ClassReport& predicted = report.classes[static_cast<std::size_t>(pair.predicted)];
    html += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"count\">{}</td><td class=\"count\">{}</td></tr>\n",
                        escaped(name_of(label)), escaped(name_of(predicted)), count(pair.count),
                        percent(static_cast<double>(pair.count) / static_cast<double>(label.rows)));
  }
  return html + "</tbody></table>\n";
}

std::string matrix_table(const ClassEvalReport& report) {
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\"><table id=\"confusion\" "
      "class=\"matrix\"><thead><tr><td></td>";
  for (const ClassReport& one : report.classes) {
    html +=
        fmt::format("<th scope=\"col\"><abbr title=\"predicted {}\">{}</abbr></th>", escaped(name_of(one)), one.index);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const ClassReport& label : report.classes) {
    html += "<tr><th scope=\"row\">" + escaped(name_of(label)) + "</th>";
    for (const ClassReport& predicted : report.classes) {
      const int64_t rows = report.confused(label.index, predicted.index);
      if (rows == 0) {
        html += "<td class=\"none\">0</td>";
        continue;
      }
      const double share = static_cast<double>(rows) / static_cast<double>(label.rows);
      html += fmt::format("<td class=\"{}\" style=\"--share: {:.3f}\">{}</td>",
                          label.index == predicted.index ? "right" : "wrong", 0.12 + 0.46 * share, rows);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string class_section(const ClassEvalReport& report) {
  if (report.classes.empty()) return "";
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures of each class\"><table id=\"classes\">"
      "<thead><tr><th scope=\"col\">Class</th><th scope=\"col\">Rows</th><th scope=\"col\">Precision</th>"
      "<th scope=\"col\">Recall</th><th scope=\"col\">F1</th></tr></thead>\n<tbody>\n";
  for (const ClassReport& one : report.classes) {
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        escaped(name_of(one)), count(one.rows), percent(one.precision), percent(one.recall),
                        percent(one.f1));
  }
  html += fmt::format(
      "</tbody>\n<tfoot><tr><th scope=\"row\">mean</th><td></td><td>{}</td><td>{}</td><td>{}</td></tr></tfoot>"
      "</table></div>\n",
      percent(report.macro_precision), percent(report.macro_recall), percent(report.macro_f1));
  return html +
         "<p class=\"quiet\">Precision: the share of the rows taken for the class that are of it. Recall: the share of "
         "its rows that were taken for it. F1: the harmonic mean of the two.</p>\n";
}

std::string confusion_section(const ClassEvalReport& report) {
  if (report.confusion.empty()) return "";
  std::string html = "<div class=\"beside\">\n";
  const auto classes = static_cast<int64_t>(report.classes.size());
  if (report.classes.size() <= kMostCells) {
    html = fmt::format(
               "<p>A row for each class of the {} data, a column for each predicted class, by its number; right in "
               "blue, wrong in orange.</p>\n",
               name_of(report.total.part)) +
           html + matrix_table(report);
  } else if (classes <= kMostPictured) {
    html += fmt::format(
        "<figure class=\"heat\">{}<figcaption>From top to bottom the {} classes of the {} data, from left to right "
        "the predicted ones; the fuller the colour, the larger the share of the class. Blue, on the diagonal, is "
        "right, orange wrong.</figcaption></figure>\n",
        image(heat_map(report),
              fmt::format("Confusion matrix of {} classes; {} of the {} rows are on the diagonal", classes,
                          percent(report.total.scores.value("accuracy")), report.total.rows)),
        classes, name_of(report.total.part));
  }
  return html + pairs_table(report) + "</div>\n";
}

}  // namespace gpunn::reports
