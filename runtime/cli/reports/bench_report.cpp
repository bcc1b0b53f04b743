#include "cli/reports/bench_report.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Finer than duration_text(): kernels take microseconds and differ by per cents.
std::string kernel_time_text(double seconds) {
  if (seconds <= 0) return "-";
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return fmt::format("{:.3f} ms", seconds * 1e3);
}

std::string number(double value, int decimals) { return value > 0 ? fmt::format("{:.{}f}", value, decimals) : "-"; }

std::string rate_of(double teraflops) { return number(teraflops, teraflops < 0.1 ? 4 : teraflops < 10 ? 2 : 1); }

std::string error_text(const OpBenchRow& row) {
  if (!row.wrong.empty()) return fmt::format("WRONG {:.1e}", row.error);
  return row.error < 0 ? "-" : fmt::format("{:.1e}", row.error);
}

std::string by(const OpBenchRow& row) {
  std::string text = row.backend;
  if (!row.kernel.empty()) text += " " + printable(row.kernel);
  // An overlay that leaves the op to its base is no kernel of its own.
  if (!row.served_by.empty() && row.served_by != row.backend) text += " (" + row.served_by + ")";
  return text;
}

}  // namespace

std::string bench_report(const OpBenchReport& report, ReportFormat format, bool colour) {
  Table table({{"OP"},
               {"SHAPE"},
               {"PRECISION"},
               {"BACKEND"},
               {"MEDIAN", Align::right},
               {"MIN", Align::right},
               {"TFLOP/s", Align::right},
               {"GB/s", Align::right},
               {"SPEED-UP", Align::right},
               {"CEILING", Align::right},
               {"ERROR", Align::right}});
  std::string notes;
  for (const OpBenchRow& row : report.rows) {
    table.add({lower(row.op), row.shape, name_of(row.precision), by(row), kernel_time_text(row.median_seconds),
               kernel_time_text(row.min_seconds), rate_of(row.teraflops), number(row.gigabytes, 1),
               number(row.speed_up, 2), row.ceiling_share > 0 ? fmt::format("{:.0f} %", 100 * row.ceiling_share) : "-",
               error_text(row)});
    const std::string what = lower(row.op) + " " + row.shape + " by " + by(row);
    if (!row.failure.empty()) notes += "not measured  " + what + ": " + printable(row.failure) + "\n";
    if (!row.wrong.empty()) notes += "wrong  " + what + ": " + printable(row.wrong) + "\n";
  }
  std::string text = format == ReportFormat::markdown ? table.markdown() : table.text(colour);
  for (const OpCeiling& ceiling : report.ceilings) {
    text += fmt::format("{}ceiling {}, {}: {:.0f} GB/s ({}), {} TFLOP/s ({})\n",
                        format == ReportFormat::markdown ? "\n" : "", ceiling.memory_domain, name_of(ceiling.precision),
                        ceiling.bytes_per_second * 1e-9, ceiling.copy_by, rate_of(ceiling.flops_per_second * 1e-12),
                        ceiling.matmul_by.empty() ? "no product" : ceiling.matmul_by);
  }
  const bool eager = std::ranges::any_of(
      report.rows, [](const OpBenchRow& row) { return row.failure.empty() && !row.captured && row.runs > 1; });
  if (eager) text += "Some ops were not captured as a graph: their times include the host's overhead.\n";
  return text + notes;
}

}  // namespace gpunn::cli
