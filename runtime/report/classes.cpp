#include <algorithm>

#include <fmt/format.h>

#include "chart/svg.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

namespace {

using chart::escaped;

constexpr std::size_t kMostCells = 20;       // classes of a matrix in numbers; beyond, it is a picture
constexpr std::size_t kMostPictured = 2000;  // classes of that
constexpr std::size_t kMostPairs = 12;

std::string name_in(const ConfusionMatrix& matrix, std::size_t place) {
  return numbered_name(static_cast<int64_t>(place), matrix.names[place]);
}

struct Pair {
  std::size_t truth = 0, predicted = 0;
  int64_t count = 0;
};

std::vector<Pair> confused_pairs(const ConfusionMatrix& matrix) {
  std::vector<Pair> pairs;
  for (std::size_t truth = 0; truth < matrix.side(); ++truth) {
    for (std::size_t predicted = 0; predicted < matrix.side(); ++predicted) {
      const int64_t count = matrix.at(truth, predicted);
      if (truth != predicted && count > 0) pairs.push_back({truth, predicted, count});
    }
  }
  std::ranges::stable_sort(pairs, std::greater{}, &Pair::count);
  if (pairs.size() > kMostPairs) pairs.resize(kMostPairs);
  return pairs;
}

std::string pairs_table(const ClassEvalReport& report) {
  const std::vector<Pair> pairs = confused_pairs(report.confusion);
  if (pairs.empty()) {
    return fmt::format("<p>Nothing of the {} data was taken for another class.</p>\n", name_of(report.total.part));
  }
  std::string html = fmt::format(
      "<table id=\"pairs\" class=\"words\"><caption>What is confused most often</caption><thead><tr>"
      "<th scope=\"col\">Class</th><th scope=\"col\">taken for</th><th scope=\"col\" class=\"count\">{}</th>"
      "<th scope=\"col\" class=\"count\">of the class</th></tr></thead>\n<tbody>\n",
      escaped(report.counted));
  for (const Pair& pair : pairs) {
    const ConfusionMatrix& matrix = report.confusion;
    html +=
        fmt::format("<tr><td>{}</td><td>{}</td><td class=\"count\">{}</td><td class=\"count\">{}</td></tr>\n",
                    escaped(name_in(matrix, pair.truth)), escaped(name_in(matrix, pair.predicted)), count(pair.count),
                    percent(static_cast<double>(pair.count) / static_cast<double>(matrix.row_sum(pair.truth))));
  }
  return html + "</tbody></table>\n";
}

std::string matrix_table(const ConfusionMatrix& matrix) {
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\"><table id=\"confusion\" "
      "class=\"matrix\"><thead><tr><td></td>";
  for (std::size_t i = 0; i < matrix.side(); ++i) {
    html +=
        fmt::format("<th scope=\"col\"><abbr title=\"predicted {}\">{}</abbr></th>", escaped(name_in(matrix, i)), i);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t truth = 0; truth < matrix.side(); ++truth) {
    html += "<tr><th scope=\"row\">" + escaped(name_in(matrix, truth)) + "</th>";
    const auto all = static_cast<double>(matrix.row_sum(truth));
    for (std::size_t predicted = 0; predicted < matrix.side(); ++predicted) {
      const int64_t count = matrix.at(truth, predicted);
      if (count == 0) {
        html += "<td class=\"none\">0</td>";
        continue;
      }
      html += fmt::format("<td class=\"{}\" style=\"--share: {:.3f}\">{}</td>", truth == predicted ? "right" : "wrong",
                          0.12 + 0.46 * static_cast<double>(count) / all, count);
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
                        escaped(numbered_name(one.index, one.name)), count(one.rows), percent(one.precision),
                        percent(one.recall), percent(one.f1));
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
  const ConfusionMatrix& matrix = report.confusion;
  const std::size_t side = matrix.side();
  if (side == 0) return "";
  const std::string part = name_of(report.total.part);
  std::string html;
  if (!matrix.note.empty()) html += "<p>" + escaped(matrix.note) + "</p>\n";
  if (side <= kMostCells) {
    html += fmt::format(
        "<p>A row for each class of the {} data, a column for each predicted class, by its number; right in blue, "
        "wrong in orange.</p>\n<div class=\"beside\">\n",
        part);
    html += matrix_table(matrix);
  } else {
    html += "<div class=\"beside\">\n";
    if (side <= kMostPictured) {
      int64_t right = 0, all = 0;
      for (std::size_t i = 0; i < side; ++i) right += matrix.at(i, i), all += matrix.row_sum(i);
      html += fmt::format(
          "<figure class=\"heat\">{}<figcaption>From top to bottom the {} classes of the {} data, from left to right "
          "the predicted ones; the fuller the colour, the larger the share of the class. Blue, on the diagonal, is "
          "right, orange wrong.</figcaption></figure>\n",
          image(heat_map(matrix), fmt::format("Confusion matrix of {} classes; {} of them all are on the diagonal",
                                              side, percent(static_cast<double>(right) / static_cast<double>(all)))),
          side, part);
    }
  }
  return html + pairs_table(report) + "</div>\n";
}

std::string worst_pictures_section(const ClassEvalReport& report) {
  if (report.worst_pictures.empty()) return "";
  std::string html = "<p>" + escaped(report.pictures_note) + "</p>\n<div class=\"crops\">\n";
  for (const WorstPicture& one : report.worst_pictures) {
    html += fmt::format(
        "<figure><img src=\"data:image/png;base64,{0}\" alt=\"row {1}\"><figcaption>row {1}, loss "
        "{2}</figcaption></figure>\n",
        chart::base64(one.picture), one.row, decimal(one.loss));
  }
  return html + "</div>\n";
}

}  // namespace gpunn::reports
