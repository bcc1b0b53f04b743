#include "cli/ranks/ranks_plan.hpp"

#include <gpunn/error.hpp>

#include <cstddef>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/terminal/output.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"
#include "common/parse_number.hpp"

namespace gpunn::cli {

namespace {

void read_link(const std::string& option, const std::string& text, LinkSpeed& link) {
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  const std::string_view view = text;
  const std::optional<double> gigabytes = parse_number<double>(view.substr(0, colon));
  const std::optional<double> microseconds =
      colon == std::string::npos ? std::nullopt : parse_number<double>(view.substr(colon + 1));
  if (!gigabytes || !microseconds || *gigabytes <= 0 || *microseconds < 0) {
    throw Error(option + " " + text + ": expected GIGABYTES:MICROSECONDS, as 290:3.4", ExitCode::usage);
  }
  link = {.bytes_per_second = *gigabytes * 1e9, .hop_seconds = *microseconds * 1e-6};
}

Cluster cluster_of(const RanksPlanOptions& options, int64_t devices) {
  Cluster cluster;
  cluster.devices = static_cast<int>(devices);
  cluster.per_machine = static_cast<int>(options.per_machine);
  read_link("--link", options.link, cluster.inside);
  read_link("--network", options.network, cluster.between);
  return cluster;
}

std::vector<int64_t> estimated(const RanksPlanOptions& options) {
  if (options.estimate_for.empty()) return {options.devices};
  std::vector<int64_t> result;
  std::istringstream text(options.estimate_for);
  for (std::string part; std::getline(text, part, ',');) {
    const std::optional<int64_t> devices = parse_number<int64_t>(part);
    if (!devices || *devices < 1 || *devices > 1 << 20) {
      throw Error("--estimate-for " + options.estimate_for + ": expected numbers of devices, as 8,64,1024",
                  ExitCode::usage);
    }
    result.push_back(*devices);
  }
  return result;
}

// The share of the device's work in a step that is done by then.
std::string share_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

}  // namespace

void RanksPlanOptions::check() const {
  if (devices == 1 && (step_milliseconds > 0 || !estimate_for.empty() || !link.empty() || !network.empty())) {
    throw Error("--step-time, --estimate-for, --link and --network go with --devices of 2 or more", ExitCode::usage);
  }
  if (!estimate_for.empty() && step_milliseconds <= 0) {
    throw Error("--estimate-for needs --step-time: the milliseconds of a step on one device, as gpunn bench has them",
                ExitCode::usage);
  }
  cluster_of(*this, devices);
  estimated(*this);
}

void add_ranks_plan_options(Verb verb, RanksPlanOptions& options) {
  verb.add_option("--devices", options.devices,
                  "Plan the step of rank 0 of this many devices, and the data that they exchange")
      .range(1, 1 << 20)
      .type_name("N");
  verb.add_option("--step-time", options.step_milliseconds,
                  "With --devices: estimate the step from its milliseconds on one device, with the rows of one device")
      .type_name("MS");
  verb.add_option("--estimate-for", options.estimate_for,
                  "With --step-time: numbers of devices to estimate, each device with as many rows; default: --devices")
      .type_name("N,...");
  verb.add_option("--per-machine", options.per_machine, "With --step-time: devices in a machine")
      .capture_default_str()
      .range(1, 1024)
      .type_name("N");
  verb.add_option("--link", options.link,
                  "With --step-time: link between devices of a machine, in GB/s and microseconds of latency; default: "
                  "290:3.4, NVLink of H200s")
      .type_name("GB:US");
  verb.add_option("--network", options.network,
                  "With --step-time: the same between machines, for each device; default: 48:14, 400 Gbit/s")
      .type_name("GB:US");
}

void print_ranks(const PlanReport& report, const RanksPlanOptions& options, bool colour) {
  const PlannedRanks& ranks = report.ranks;
  if (ranks.devices == 1) return;
  put("\n{} devices; this one takes {} rows of a step and sends {} a step\n", ranks.devices, ranks.rows,
      bytes_text(ranks.sent_bytes));
  Table table({{"#", Align::right},
               {"COLLECTIVE"},
               {"NAME"},
               {"BYTES", Align::right},
               {"BEGINS BEHIND #", Align::right},
               {"AT", Align::right},
               {"NEEDED AT", Align::right}});
  for (const PlannedCollective& one : ranks.collectives) {
    table.add({std::to_string(one.index), one.op, printable(one.name), bytes_text(one.bytes),
               one.fused              ? "fused step"
               : one.starts_after < 0 ? "-"
                                      : std::to_string(one.starts_after),
               share_text(one.begins_at), share_text(one.needed_at)});
  }
  put("{}", table.text(colour));
  if (options.step_milliseconds <= 0) return;
  Table estimates({{"DEVICES", Align::right},
                   {"STEP", Align::right},
                   {"COLLECTIVES", Align::right},
                   {"WAITING", Align::right},
                   {"EFFICIENCY", Align::right}});
  for (const int64_t devices : estimated(options)) {
    const StepTime step = estimate_step(ranks, options.step_milliseconds * 1e-3, cluster_of(options, devices));
    estimates.add({count_text(devices), fmt::format("{:.3f} ms", 1e3 * step.seconds),
                   fmt::format("{:.3f} ms", 1e3 * step.collective_seconds),
                   fmt::format("{:.3f} ms", 1e3 * step.waiting_seconds), percent_text(step.efficiency)});
  }
  put("\nestimated, {:.3f} ms on one device\n{}", options.step_milliseconds, estimates.text(colour));
}

Json estimates_json(const PlanReport& report, const RanksPlanOptions& options) {
  Json result = Json::array();
  if (report.ranks.devices == 1 || options.step_milliseconds <= 0) return result;
  for (const int64_t devices : estimated(options)) {
    const StepTime step = estimate_step(report.ranks, options.step_milliseconds * 1e-3, cluster_of(options, devices));
    result.push_back({{"devices", devices},
                      {"seconds", step.seconds},
                      {"collective_seconds", step.collective_seconds},
                      {"waiting_seconds", step.waiting_seconds},
                      {"efficiency", step.efficiency}});
  }
  return result;
}

}  // namespace gpunn::cli
