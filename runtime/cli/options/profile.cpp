#include "cli/options/profile.hpp"

#include <gpunn/error.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

// A deep network has more ops than a table should; the trace has all of them.
constexpr std::size_t kMostOps = 40;

std::string number(double value) { return value > 0 ? fmt::format("{:.1f}", value) : "-"; }

std::string heading(const ProfileReport& report) {
  std::string text = fmt::format("{} steps op by op on {} ({}): {} a step", report.steps, report.backend, report.device,
                                 duration_text(report.step_seconds));
  if (report.whole_step_seconds > 0) {
    text += fmt::format("; {} {}", report.captured ? "as a captured graph" : "without marks between the ops",
                        duration_text(report.whole_step_seconds));
  }
  for (const std::string& subgraph : report.subgraphs) text += "\nfused in whole steps by " + printable(subgraph);
  text += fmt::format("\nceilings: copy {:.1f} GB/s, ", report.ceiling_gigabytes);
  text += report.ceiling_gflops > 0 ? fmt::format("matrix product {:.1f} GFLOP/s\n", report.ceiling_gflops)
                                    : std::string("no matrix product\n");
  return text;
}

}  // namespace

std::optional<ProfileOptions> ProfileArguments::get() const {
  if (!option.given()) return std::nullopt;
  return values;
}

void add_profile_options(Verb verb, ProfileArguments& arguments, const std::string& what,
                         const std::string& without_file) {
  arguments.option = verb.add_option("--profile", arguments.values.file,
                                     "Write a timeline of " + what + " for ui.perfetto.dev, " + without_file)
                         .expected(0, 1)
                         .type_name("[FILE]");
  verb.add_option("--profile-steps", arguments.values.steps, "Steps to measure op by op")
      .capture_default_str()
      .range(1, 10'000)
      .needs("--profile")
      .type_name("N");
}

std::string profile_text(const ProfileReport& report, bool colour) {
  if (report.steps == 0) {
    return fmt::format("profile   {}: the training ended before a step was measured\n", report.file.string());
  }
  Table table({{"TIME", Align::right},
               {"SHARE", Align::right},
               {"COUNT", Align::right},
               {"MEAN", Align::right},
               {"GFLOP/s", Align::right},
               {"GB/s", Align::right},
               {"OF CEILING", Align::right},
               {"BACKEND"},
               {"NAME"},
               {"OP"}});
  const std::size_t shown = std::min(report.ops.size(), kMostOps);
  double rest = 0;
  for (std::size_t i = 0; i < report.ops.size(); ++i) {
    const ProfiledOp& op = report.ops[i];
    if (i >= shown) {
      rest += op.share;
      continue;
    }
    table.add({duration_text(op.seconds), percent_text(op.share), std::to_string(op.count),
               duration_text(op.seconds / static_cast<double>(op.count)), number(op.gflops), number(op.gigabytes),
               op.ceiling_share > 0 ? percent_text(op.ceiling_share) : "-", op.backend, op.name, op.op});
  }
  std::string text = heading(report) + "\n" + table.text(colour);
  if (report.ops.size() > shown) {
    text += fmt::format("and {} more, {}\n", report.ops.size() - shown, percent_text(rest));
  }
  if (report.file.empty()) return text;
  return text + fmt::format("\nprofile   {}: open it in ui.perfetto.dev\n", report.file.string());
}

}  // namespace gpunn::cli
