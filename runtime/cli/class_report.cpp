#include "cli/class_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "cli/units.hpp"

namespace gpunn::cli {

namespace {

constexpr std::size_t kMostClasses = 100, kWorstClasses = 20;

// "3 cat", or "3" where that is the name.
std::string label_of(const ClassReport& one) {
  const std::string index = std::to_string(one.index);
  return one.name == index ? index : index + " " + printable(one.name);
}

}  // namespace

std::string class_table(const ClassEvalReport& report, bool colour) {
  std::vector<ClassReport> shown = report.classes;
  std::string note;
  if (shown.size() > kMostClasses) {
    std::ranges::stable_sort(shown, {}, &ClassReport::f1);
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
  if (report.confusion.empty()) return fmt::format("no matrix of more than {} classes\n", kMostConfusionClasses);
  std::vector<Column> columns{{"CLASS \\ PREDICTED"}};
  for (const ClassReport& one : report.classes) columns.push_back({std::to_string(one.index), Align::right});
  Table table(std::move(columns));
  for (const ClassReport& one : report.classes) {
    std::vector<std::string> cells{label_of(one)};
    for (const ClassReport& other : report.classes) {
      const int64_t count = report.confused(one.index, other.index);
      cells.push_back(count > 0 ? std::to_string(count) : ".");
    }
    table.add(std::move(cells));
  }
  return table.text(colour);
}

}  // namespace gpunn::cli
