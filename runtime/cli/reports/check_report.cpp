#include "cli/reports/check_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

namespace {

struct Tally {
  int passed = 0, failed = 0, skipped = 0;
  double error = 0;
  std::set<std::string> plugins;  // that served
};

using Key = std::pair<std::string, std::string>;  // suite, op
using Tallies = std::map<Key, Tally>;

Tallies tallies_of(const CheckReport& report) {
  Tallies tallies;
  for (const CheckCase& result : report.cases) {
    Tally& tally = tallies[{result.suite, result.op}];
    tally.passed += result.verdict == Verdict::passed ? 1 : 0;
    tally.failed += result.verdict == Verdict::failed ? 1 : 0;
    tally.skipped += result.verdict == Verdict::unsupported || result.verdict == Verdict::no_device ? 1 : 0;
    tally.error = std::max(tally.error, result.error);
    if (!result.plugin.empty()) tally.plugins.insert(result.plugin);
  }
  return tallies;
}

Table table_of(const CheckReport& report, bool colour) {
  Table table({{"SUITE"},
               {"OP"},
               {"PASSED", Align::right},
               {"FAILED", Align::right},
               {"SKIPPED", Align::right},
               {"WORST", Align::right},
               {"BY"}});
  for (const auto& [key, tally] : tallies_of(report)) {
    table.add({key.first, key.second, std::to_string(tally.passed),
               coloured(std::to_string(tally.failed), Colour::red, colour && tally.failed > 0),
               std::to_string(tally.skipped), fmt::format("{:.3f}", tally.error),
               fmt::format("{}", fmt::join(tally.plugins, ", "))});
  }
  return table;
}

// "82 passed, 1 skipped, worst 0.31"
std::string cell_of(const Tally& tally, bool colour) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (tally.passed > 0) add(fmt::format("{} passed", tally.passed));
  if (tally.failed > 0) add(coloured(fmt::format("{} FAILED", tally.failed), Colour::red, colour));
  if (tally.skipped > 0) add(fmt::format("{} skipped", tally.skipped));
  if (tally.error > 0) add(fmt::format("worst {:.2f}", tally.error));
  return text;
}

Table table_of(const std::vector<CheckReport>& reports, bool colour) {
  std::vector<Column> columns{{"SUITE"}, {"OP"}};
  std::vector<Tallies> tallies;
  Tallies all;  // for its keys
  for (const CheckReport& report : reports) {
    columns.push_back({report.backend});
    tallies.push_back(tallies_of(report));
    for (const auto& [key, tally] : tallies.back()) all[key] = {};
  }
  Table table(columns);
  for (const auto& [key, unused] : all) {
    std::vector<std::string> cells{key.first, key.second};
    for (const Tallies& one : tallies) {
      const auto found = one.find(key);
      cells.push_back(found == one.end() ? "-" : cell_of(found->second, colour));
    }
    table.add(std::move(cells));
  }
  return table;
}

std::string op_time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return fmt::format("{:.2f} ms", seconds * 1e3);
}

// Results of the suite perf, a row for each op; empty if it did not run. With several backends, only the times.
Table perf_table(const std::vector<CheckReport>& reports) {
  std::vector<Column> columns{{"OP"}, {"SHAPE"}};
  for (const CheckReport& report : reports) columns.push_back({report.backend, Align::right});
  if (reports.size() == 1) {
    columns.back().title = "TIME";
    columns.push_back({"GFLOP/S", Align::right});
    columns.push_back({"GB/S", Align::right});
  }
  std::vector<Key> order;
  std::map<Key, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    for (const CheckCase& result : reports[i].cases) {
      if (result.suite != "perf") continue;
      const Key key{result.op, result.name};
      auto& cells = rows[key];
      if (cells.empty()) {
        order.push_back(key);
        cells = {key.first, key.second};
        cells.resize(columns.size(), "-");
      }
      if (result.seconds <= 0) continue;
      cells[2 + i] = op_time_text(result.seconds);
      if (reports.size() > 1) continue;
      cells[3] = fmt::format("{:.1f}", result.gflops);
      cells[4] = fmt::format("{:.1f}", result.gigabytes);
    }
  }
  Table table(columns);
  for (const Key& key : order) table.add(rows[key]);
  return table;
}

// "; of the cases of ops 95 by mine, 6472 by cpu", if more than one plugin ran them.
std::string parts_of(const CheckReport& report) {
  std::map<std::string, int> cases;
  for (const CheckCase& result : report.cases) {
    if (!result.plugin.empty()) ++cases[result.plugin];
  }
  if (cases.empty() || (cases.size() == 1 && cases.contains(report.backend))) return "";
  std::string text = fmt::format("; of the cases of ops {} by {}", cases[report.backend], report.backend);
  for (const auto& [plugin, count] : cases) {
    if (plugin != report.backend) text += fmt::format(", {} by {}", count, plugin);
  }
  return text;
}

std::string summary_of(const CheckReport& report) {
  return fmt::format("{}{}: {} passed, {} failed, {} skipped{}", report.backend,
                     report.device.empty() ? "" : " (" + printable(report.device) + ")", report.passed, report.failed,
                     report.skipped, parts_of(report));
}

// The table holds figures only; failures are described below it.
std::string failures_of(const CheckReport& report) {
  std::string text;
  for (const CheckCase& result : report.cases) {
    if (result.verdict != Verdict::failed) continue;
    text += fmt::format("- {}: {} {} {}: {}\n", report.backend, result.suite, result.op, result.name,
                        printable(result.detail));
  }
  return text;
}

}  // namespace

std::string check_report(const std::vector<CheckReport>& reports, ReportFormat format, bool colour) {
  const bool markdown = format == ReportFormat::markdown;
  const bool coloured_table = colour && !markdown;
  const Table table =
      reports.size() == 1 ? table_of(reports.front(), coloured_table) : table_of(reports, coloured_table);
  const Table perf = perf_table(reports);
  std::string text = (markdown ? table.markdown() : table.text(coloured_table)) + "\n";
  if (!perf.empty()) text += (markdown ? perf.markdown() : perf.text(coloured_table)) + "\n";
  for (std::size_t i = 0; i < reports.size(); ++i) {
    text += (markdown ? "- " : "") + summary_of(reports[i]);
    text += i + 1 == reports.size() ? "; worst is the largest error as a share of the tolerance\n" : "\n";
  }
  if (!markdown) return text;  // stderr has shown each failure at once
  std::string failures;
  for (const CheckReport& report : reports) failures += failures_of(report);
  return failures.empty() ? text : text + "\nFailures:\n\n" + failures;
}

}  // namespace gpunn::cli
