#include <gpunn/check.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "common/text.hpp"
#include "conformance/suites.hpp"
#include "graph/op_info.hpp"

namespace gpunn {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "failed";
    case Verdict::unsupported:
      return "unsupported";
    case Verdict::no_device:
      return "no device";
  }
  return "?";
}

namespace conformance {

CheckCase make_check(std::string_view suite, std::string_view op, std::string_view name) {
  CheckCase result;
  result.suite = suite;
  result.op = op;
  result.name = name;
  return result;
}

namespace {

using Suite = void (*)(const SuiteContext&);

struct NamedSuite {
  const char* name;
  Suite run;
  bool by_op;  // whether CheckOptions.ops chooses among its cases
};

constexpr NamedSuite kSuites[] = {
    {"abi", run_abi_suite, false}, {"ops", run_ops_suite, true}, {"grad", run_gradient_suite, true}};

std::vector<NamedSuite> chosen_suites(const CheckOptions& options) {
  std::vector<std::string> known;
  for (const NamedSuite& suite : kSuites) known.emplace_back(suite.name);
  for (const std::string& name : options.suites) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error("there is no suite '" + name + "'" + suggestion(name, known), ExitCode::usage);
    }
  }
  std::vector<NamedSuite> result;
  for (const NamedSuite& suite : kSuites) {
    const bool named = std::find(options.suites.begin(), options.suites.end(), suite.name) != options.suites.end();
    // Who asks for ops means the suites that are about ops.
    if (options.suites.empty() ? suite.by_op || options.ops.empty() : named) result.push_back(suite);
  }
  return result;
}

std::set<int32_t> chosen_ops(const CheckOptions& options) {
  std::set<int32_t> result;
  for (const std::string& name : options.ops) {
    const graph::OpInfo* info = graph::find_op(name);
    if (info == nullptr) {
      std::vector<std::string> known;
      for (const graph::OpInfo* op : graph::all_ops()) known.emplace_back(op->name);
      throw Error("there is no op '" + name + "'" + suggestion(name, known), ExitCode::usage);
    }
    result.insert(info->id);
  }
  return result;
}

// Why the backend has no device here; nothing where it has one, or where something else keeps it from serving.
std::optional<std::string> lack_of_device(const plugins::PluginRegistry& registry, const std::string& backend) {
  std::vector<PluginReport> reports = registry.reports();
  if (backend.find_first_of("/.") != std::string::npos) {
    reports = plugins::PluginRegistry({backend}).reports();
    for (PluginReport& report : reports) {
      std::error_code error;
      if (std::filesystem::equivalent(report.path, backend, error)) report.name = backend;
    }
  }
  std::string wanted = backend;
  for (std::size_t depth = 0; depth <= reports.size(); ++depth) {
    const auto found = std::ranges::find(reports, wanted, &PluginReport::name);
    if (found == reports.end()) return std::nullopt;
    if (found->status == PluginStatus::no_device) return found->name + ": " + found->detail;
    if (found->base.empty()) return std::nullopt;
    wanted = found->base;
  }
  return std::nullopt;
}

// Counts cases and hands them on.
class Reporter {
 public:
  Reporter(const CheckOptions& options, CheckReport& report) : options_(options), report_(report) {}

  void operator()(CheckCase result) {
    const bool skipped = result.verdict == Verdict::unsupported || result.verdict == Verdict::no_device;
    if (skipped && options_.required && !has_substitute(result)) {
      result.detail = std::string(name_of(result.verdict)) + ", but required: " + result.detail;
      result.verdict = Verdict::failed;
    }
    switch (result.verdict) {
      case Verdict::passed:
        ++report_.passed;
        break;
      case Verdict::failed:
        ++report_.failed;
        break;
      case Verdict::unsupported:
      case Verdict::no_device:
        ++report_.skipped;
        break;
    }
    if (options_.on_case) options_.on_case(result);
    report_.cases.push_back(std::move(result));
  }

 private:
  // A fused op is optional even where all is required: its decomposition runs in its place.
  static bool has_substitute(const CheckCase& result) {
    const graph::OpInfo* info = result.verdict == Verdict::unsupported ? graph::find_op(result.op) : nullptr;
    return info != nullptr && info->composite();
  }

  const CheckOptions& options_;
  CheckReport& report_;
};

}  // namespace

}  // namespace conformance

CheckReport check(const CheckOptions& options) {
  using namespace conformance;
  const std::vector<NamedSuite> suites = chosen_suites(options);
  const std::set<int32_t> ops = chosen_ops(options);

  CheckReport report;
  report.backend = options.backend;
  Reporter reporter(options, report);
  const plugins::PluginRegistry registry(options.plugins);
  if (const auto reason = lack_of_device(registry, options.backend)) {
    CheckCase result = make_check("abi", "probe", "finds a device");
    result.verdict = Verdict::no_device;
    result.detail = *reason;
    reporter(std::move(result));
    return report;
  }

  execution::BackendOptions backend_options;
  backend_options.threads = options.threads;
  execution::Backend backend(registry, options.backend, backend_options);
  report.backend = backend.name();
  const SuiteContext context{backend, registry.chain(options.backend), options,
                             [&ops](int32_t op) { return ops.empty() || ops.contains(op); },
                             [&reporter](CheckCase result) { reporter(std::move(result)); }};
  for (const NamedSuite& suite : suites) suite.run(context);
  if (report.cases.empty()) {
    throw Error("no case is of the suites and ops asked for; without --suite all suites run", ExitCode::usage);
  }
  return report;
}

}  // namespace gpunn
