#include <gpunn/check.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "common/text.hpp"
#include "conformance/process/work.hpp"
#include "conformance/reporter.hpp"
#include "conformance/suites.hpp"
#include "graph/op_info.hpp"
#include "plugins/plugin.hpp"

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

Check make_check(std::string_view suite, std::string_view op, std::string_view name) {
  Check check;
  check.labels.suite = suite;
  check.labels.op = op;
  check.labels.name = name;
  return check;
}

namespace {

struct NamedSuite {
  const char* name;
  Checks (*make)(const CheckOptions& options);
};

constexpr NamedSuite kSuites[] = {
    {"abi", abi_suite}, {"ops", ops_suite}, {"grad", gradient_suite}, {"stream", stream_suite}};

std::set<std::string> chosen_suites(const CheckOptions& options) {
  std::vector<std::string> known;
  for (const NamedSuite& suite : kSuites) known.emplace_back(suite.name);
  for (const std::string& name : options.suites) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error("there is no suite '" + name + "'" + suggestion(name, known), ExitCode::usage);
    }
  }
  const std::vector<std::string>& chosen = options.suites.empty() ? known : options.suites;
  return {chosen.begin(), chosen.end()};
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

// What the suites and ops asked for come to. Who asks for ops means the checks that are about ops.
Checks chosen_checks(const CheckOptions& options) {
  const std::set<std::string> suites = chosen_suites(options);
  const std::set<int32_t> ops = chosen_ops(options);
  Checks checks;
  for (const NamedSuite& suite : kSuites) {
    if (!suites.contains(suite.name)) continue;
    for (Check& check : suite.make(options)) {
      if (ops.empty() || ops.contains(check.op)) checks.push_back(std::move(check));
    }
  }
  if (checks.empty()) {
    throw Error("no case is of the suites and ops asked for; without --suite all suites run", ExitCode::usage);
  }
  return checks;
}

// The checks on one backend.
class BackendWork final : public Work {
 public:
  BackendWork(const CheckOptions& options, const Checks& checks) : options_(options), checks_(checks) {}

  Opened open() override {
    if (std::string reason = lack_of_device(options_); !reason.empty()) return {options_.backend, "", reason};
    bench_ = std::make_unique<Workbench>(options_);
    return {bench_->backend().name(), bench_->backend().info().name, ""};
  }
  std::size_t size() const override { return checks_.size(); }
  void run(std::size_t index, CheckCase& result, const Note& note) override {
    checks_[index].run(*bench_, result, note);
  }
  void close() override {
    bench_ = nullptr;
    // In a child this is the end; in the host's own process the plugins go on.
    if (!options_.in_process) plugins::shutdown_plugins();
  }

 private:
  const CheckOptions& options_;
  const Checks& checks_;
  std::unique_ptr<Workbench> bench_;
};

CheckReport check_backend(const CheckOptions& options, const Checks& checks) {
  CheckReport report;
  report.backend = options.backend;
  Reporter reporter(options, report);
  WorkListener listener;
  listener.opened = [&](const Opened& opened) {
    report.backend = opened.backend;
    report.device = opened.device;
    if (opened.no_device.empty()) return;
    CheckCase result = make_check("abi", "probe", "finds a device").labels;
    result.verdict = Verdict::no_device;
    result.detail = opened.no_device;
    reporter.add(std::move(result));
  };
  listener.done = [&](std::size_t index, CheckCase result) { reporter.add(checks[index].labels, std::move(result)); };

  BackendWork work(options, checks);
  const std::string trouble = options.in_process ? run_here(work, listener) : run_in_children(work, listener);
  if (!trouble.empty()) {
    CheckCase result = make_check("abi", "device_open", "opens and closes").labels;
    result.verdict = Verdict::failed;
    result.detail = trouble;
    reporter.add(std::move(result));
  }
  return report;
}

// One of several backends that can't be used does not keep the others from being checked.
CheckReport unusable(const CheckOptions& options, const std::string& why) {
  CheckReport report;
  report.backend = options.backend;
  CheckCase result = make_check("abi", "device_open", "can be used").labels;
  result.verdict = Verdict::failed;
  result.detail = why;
  Reporter(options, report).add(std::move(result));
  return report;
}

}  // namespace

}  // namespace conformance

CheckReport check(const CheckOptions& options) {
  return conformance::check_backend(options, conformance::chosen_checks(options));
}

std::vector<CheckReport> check(const CheckOptions& options, const std::vector<std::string>& backends) {
  const conformance::Checks checks = conformance::chosen_checks(options);
  std::vector<CheckReport> reports;
  for (const std::string& backend : backends) {
    CheckOptions one = options;
    one.backend = backend;
    try {
      reports.push_back(conformance::check_backend(one, checks));
    } catch (const Error& error) {
      if (backends.size() == 1) throw;
      reports.push_back(conformance::unusable(one, error.what()));
    }
  }
  return reports;
}

}  // namespace gpunn
