#include "cli/reports/class_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

constexpr std::size_t kMostClasses = 100, kWorstClasses = 20;

// "3 cat", or "3" if that is the name.
std::string label_of(std::size_t number, const std::string& name) {
  const std::string index = std::to_string(number);
  return name == index ? index : index + " " + printable(name);
}

template <class Report>
std::string label_of(const Report& one) {
  return label_of(static_cast<std::size_t>(one.index), one.name);
}

// The letters from a to z alone.
std::string in_capitals(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

// Undefined values come last.
bool is_smaller(double a, double b) { return is_better({"", "", false, false}, a, b); }

std::string output_table(const ClassEvalReport& report, bool colour) {
  if (report.outputs.size() < 2) return "";
  std::vector<OutputReport> shown = report.outputs;
  std::string note;
  if (shown.size() > kMostClasses) {
    const auto first = [](const OutputReport& one) { return one.scores.empty() ? 0 : one.scores.front().value; };
    std::ranges::stable_sort(shown, [&](const auto& a, const auto& b) { return is_smaller(first(a), first(b)); });
    shown.resize(kWorstClasses);
    note = fmt::format("the {} of {} with the smallest {}; --json has all\n", kWorstClasses, report.outputs.size(),
                       report.outputs.front().scores.front().metric.title);
  }
  const OutputReport& pattern = report.outputs.front();
  std::vector<Column> columns{{in_capitals(report.output)}};
  if (pattern.rows) columns.push_back({in_capitals(report.counted), Align::right});
  for (const Score& score : pattern.scores) columns.push_back({in_capitals(score.metric.title), Align::right});
  Table table(std::move(columns));
  for (const OutputReport& one : shown) {
    std::vector<std::string> cells{label_of(one)};
    if (one.rows) cells.push_back(count_text(*one.rows));
    for (const Score& score : one.scores) cells.push_back(score_text(score));
    table.add(std::move(cells));
  }
  return table.text(colour) + note;
}

std::string detection_tables(const DetectionReport& report, bool colour) {
  Table figures({{"MEAN OVER THE CLASSES"}, {"VALUE", Align::right}});
  for (const auto& [name, value] : report.figures) figures.add({name, percent_text(value)});
  Table classes(
      {{"CLASS"}, {"OBJECTS", Align::right}, {"BOXES", Align::right}, {"AP", Align::right}, {"COCO AP", Align::right}});
  for (const DetectedClass& one : report.classes) {
    classes.add({printable(one.name), count_text(one.objects), count_text(one.detections), percent_text(one.ap),
                 percent_text(one.coco_ap)});
  }
  return figures.text(colour) + "\n" + classes.text(colour);
}

}  // namespace

std::string class_table(const ClassEvalReport& report, bool colour) {
  if (report.detection) return detection_tables(*report.detection, colour);
  if (report.classes.empty()) return output_table(report, colour);
  std::vector<ClassReport> shown = report.classes;
  std::string note;
  if (shown.size() > kMostClasses) {
    std::ranges::stable_sort(shown, is_smaller, &ClassReport::f1);
    shown.resize(kWorstClasses);
    note = fmt::format("the {} of {} classes with the smallest F1; --json has all\n", kWorstClasses,
                       report.classes.size());
  }
  Table table({{"CLASS"},
               {"ROWS", Align::right},
               {"PREDICTED", Align::right},
               {"PRECISION", Align::right},
               {"RECALL", Align::right},
               {"F1", Align::right}});
  for (const ClassReport& one : shown) {
    table.add({label_of(one), count_text(one.rows), count_text(one.predicted), percent_text(one.precision),
               percent_text(one.recall), percent_text(one.f1)});
  }
  table.add({"mean", "", "", percent_text(report.macro_precision), percent_text(report.macro_recall),
             percent_text(report.macro_f1)});
  return table.text(colour) + note;
}

std::string confusion_table(const ClassEvalReport& report, bool colour) {
  const ConfusionMatrix& matrix = report.confusion;
  if (matrix.names.empty()) return "no matrix where there are no classes\n";
  if (matrix.counts.empty()) return fmt::format("no matrix of more than {} classes\n", kMostConfusionClasses);
  std::vector<Column> columns{{"CLASS \\ PREDICTED"}};
  for (std::size_t i = 0; i < matrix.side(); ++i) columns.push_back({std::to_string(i), Align::right});
  Table table(std::move(columns));
  for (std::size_t truth = 0; truth < matrix.side(); ++truth) {
    std::vector<std::string> cells{label_of(truth, matrix.names[truth])};
    for (std::size_t predicted = 0; predicted < matrix.side(); ++predicted) {
      const int64_t count = matrix.at(truth, predicted);
      cells.push_back(count > 0 ? std::to_string(count) : ".");
    }
    table.add(std::move(cells));
  }
  return table.text(colour) + (matrix.note.empty() ? "" : matrix.note + "\n");
}

}  // namespace gpunn::cli
