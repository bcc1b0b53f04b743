#include <gpunn/check.hpp>
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "common/text.hpp"
#include "conformance/arithmetic.hpp"
#include "conformance/checks_work.hpp"
#include "conformance/kernel_checks.hpp"
#include "conformance/process/work.hpp"
#include "conformance/profiles.hpp"
#include "conformance/reporter.hpp"
#include "conformance/suite_nodevice.hpp"
#include "conformance/suites.hpp"
#include "ops/op.hpp"

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

Check make_check(std::string_view suite, const graph::OpSignature& signature, std::string_view name) {
  Check check = make_check(suite, ops::op_info(signature.op).name, name);
  check.op = signature.op;
  check.signature = signature;
  std::vector<TensorType> types = signature.inputs;
  types.insert(types.end(), signature.outputs.begin(), signature.outputs.end());
  const auto half = std::ranges::find_if(types, [](const TensorType& type) { return is_half(type.dtype); });
  check.labels.extra = half != types.end() || std::ranges::any_of(types, [](const TensorType& type) {
                         return type.layout == Layout::channels_last;
                       });
  check.labels.dtype = name_of((half != types.end() ? *half : types.front()).dtype);
  return check;
}

namespace {

struct NamedSuite {
  const char* name;
  Checks (*make)(const CheckOptions& options);
  bool usual;  // runs where no suite is named
};

constexpr NamedSuite kSuites[] = {{"abi", abi_suite, true},
                                  {"ops", ops_suite, true},
                                  {"grad", gradient_suite, true},
                                  {"state", state_suite, true},
                                  {"stream", stream_suite, true},
                                  {"graph", graph_suite, true},
                                  {"subgraphs", subgraphs_suite, true},
                                  {"collectives", collectives_suite, true},
                                  {"train", train_suite, true},
                                  {"perf", perf_suite, false}};
constexpr const char* kNoDevice = "nodevice";  // is not about an open backend

std::set<std::string> chosen_suites(const CheckOptions& options) {
  const std::vector<std::string> known = check_suites();
  std::vector<std::string> usual{kNoDevice};
  for (const NamedSuite& suite : kSuites) {
    if (suite.usual) usual.emplace_back(suite.name);
  }
  for (const std::string& name : options.suites) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error("there is no suite '" + name + "'" + advice_or_list(name, known, ""), ExitCode::usage);
    }
  }
  const std::vector<std::string>& chosen = options.suites.empty() ? usual : options.suites;
  return {chosen.begin(), chosen.end()};
}

}  // namespace

ops::Ops ops_of(const CheckOptions& options) {
  if (options.ops.empty()) return ops::all_ops();
  ops::Ops result;
  for (const std::string& name : options.ops) {
    const ops::OpInfo* info = ops::find_op(name);
    if (info == nullptr) {
      throw Error("there is no op '" + name + "'" + advice_or_list(name, check_ops(), "'gpunn help ops'"),
                  ExitCode::usage);
    }
    if (std::ranges::find(result, info) == result.end()) result.push_back(info);
  }
  return result;
}

namespace {

bool chosen_by_name(const CheckCase& labels, const CheckOptions& options) {
  const std::string name = labels.op + " " + labels.name;
  const auto held = [&name](const std::string& text) { return name.find(text) != std::string::npos; };
  return (options.cases.empty() || std::ranges::any_of(options.cases, held)) &&
         std::ranges::none_of(options.without, held);
}

// The checks that the options ask for by suites, ops and names. Options with ops or names leave out the other checks.
struct Plan {
  Checks checks;
  bool nodevice = false;
};

Plan plan_of(const CheckOptions& options) {
  if (!options.profile.empty()) find_profile(options.profile);
  const std::set<std::string> suites = chosen_suites(options);
  const ops::Ops ops = ops_of(options);
  const auto is_chosen = [&](int32_t op) { return std::ranges::find(ops, op, &ops::OpInfo::id) != ops.end(); };
  Plan plan;
  plan.nodevice = options.ops.empty() && options.cases.empty() && suites.contains(kNoDevice);
  for (const NamedSuite& suite : kSuites) {
    if (!suites.contains(suite.name)) continue;
    for (Check& check : suite.make(options)) {
      if (!options.ops.empty() && !is_chosen(check.op)) continue;
      if (chosen_by_name(check.labels, options)) plan.checks.push_back(std::move(check));
    }
  }
  if (plan.checks.empty() && !plan.nodevice) {
    throw Error("no case is of the suites, ops and names asked for; without --suite all suites run", ExitCode::usage);
  }
  return plan;
}

// The checks on one backend.
class BackendWork final : public ChecksWork {
 public:
  using ChecksWork::ChecksWork;

  void run(std::size_t index, CheckCase& result, const Note& note) override {
    bench().want(check(index).kernel);
    if (!is_of_this_plugin(check(index), result)) return;
    check(index).run(bench(), result, note);
    if (std::string fault = mend_arithmetic(); !fault.empty() && result.verdict == Verdict::passed) {
      result.verdict = Verdict::failed;
      result.detail = "'" + bench().backend().name() + "' " + fault;
    }
  }

 private:
  // Says who serves it. False, with the verdict, where that is a base that is to be left out.
  bool is_of_this_plugin(const Check& check, CheckCase& result) {
    const std::vector<std::string> chain = bench().backend().chain();
    const bool alone = options().strict && chain.size() > 1;
    if (!check.signature) {
      if (!alone || check.labels.suite == "abi" || check.labels.suite == "stream") return true;
      result.detail = "a training, which its base takes part in";
    } else {
      const execution::Placement placement = bench().backend().place(*check.signature);
      result.refusal = placement.reason;
      if (placement.level >= 0) result.plugin = chain[static_cast<std::size_t>(placement.level)];
      if (!alone || placement.level <= 0) return true;
      result.detail = placement.reason;
      result.plugin.clear();
    }
    result.verdict = Verdict::unsupported;
    return false;
  }
};

void leave_out_large(Checks& checks) {
  using Kind = std::tuple<std::string, int32_t, std::string, std::string, bool>;
  std::set<Kind> met;
  std::erase_if(checks, [&met](const Check& check) {
    if (!check.signature || ops::elements_of(*check.signature) <= ops::kOrdinaryElements) return false;
    const bool turned = std::ranges::any_of(
        check.signature->inputs, [](const TensorType& type) { return type.layout == Layout::channels_last; });
    return !met.emplace(check.labels.suite, check.op, check.kernel, check.labels.dtype, turned).second;
  });
}

// Where a plugin is checked that has a base, the base's cases alone would make it look well.
void require_part(const CheckOptions& options, const Opened& opened, Reporter& reporter, const CheckReport& report) {
  struct Cases {
    int own = 0, others = 0;
    std::string refusal;
  };
  std::map<std::string, Cases> cases;
  for (const CheckCase& result : report.cases) {
    if (result.suite != "ops") continue;
    // What gpunn composes of ops that are served needs no kernel.
    if (result.verdict == Verdict::unsupported && result.optional) continue;
    Cases& of = cases[options.ops.empty() ? "" : result.op];
    // What crashes ends before it says who it was.
    const bool crashed = result.verdict == Verdict::failed && result.plugin.empty();
    ++(crashed || result.plugin == opened.backend ? of.own : of.others);
    if (of.refusal.empty()) of.refusal = result.refusal;
  }
  for (const auto& [op, of] : cases) {
    if (of.own > 0 || (op.empty() && opened.fuses)) continue;
    CheckCase result = make_check("abi", "op_query", "serves " + (op.empty() ? std::string("an op") : op)).labels;
    result.verdict = Verdict::failed;
    result.detail = "'" + opened.backend + "' served none of the " + std::to_string(of.others) + " cases" +
                    (op.empty() ? "" : " of " + op) +
                    (opened.base.empty() ? "" : "; what passed was run by '" + opened.base + "' under it") +
                    (of.refusal.empty() ? "" : ". Asked about the first, " + of.refusal);
    reporter.add(std::move(result));
  }
}

// One backend's report in the making.
struct Examination {
  explicit Examination(CheckOptions of) : options(std::move(of)) { report.backend = options.backend; }
  Examination(const Examination&) = delete;
  Examination& operator=(const Examination&) = delete;

  CheckOptions options;
  CheckReport report;
  Reporter reporter{options, report};
};

void add_failure(Examination& one, const std::string& name, const std::string& detail) {
  CheckCase result = make_check("abi", "device_open", name).labels;
  result.verdict = Verdict::failed;
  result.detail = detail;
  one.reporter.add(std::move(result));
}

void run_nodevice(Examination& one) {
  const NoDeviceSuite suite = nodevice_suite(one.options);
  LongWork work("checking " + one.options.backend + " without devices", suite.labels.size());
  const WorkListener listener{[](const Opened&) {},
                              [&](std::size_t index, CheckCase result) {
                                one.reporter.add(suite.labels[index], std::move(result));
                                work.advance();
                              }};
  const std::string trouble = run_in_children(*suite.work, listener);
  if (!trouble.empty()) add_failure(one, "a process without devices", trouble);
}

void run_checks(Examination& one, const Checks& listed) {
  Checks checks = with_kernels(listed, one.options);
  if (one.options.quick) leave_out_large(checks);
  LongWork progress("checking " + one.options.backend, checks.size());
  const auto tell = [&](std::size_t index) {
    if (index < checks.size()) progress.tell(checks[index].labels.suite + " " + checks[index].labels.op);
  };
  tell(0);
  Opened opened;
  const WorkListener listener{[&](const Opened& by) {
                                opened = by;
                                one.report.backend = opened.backend;
                                one.report.device = opened.device;
                                if (opened.no_device.empty()) return;
                                CheckCase result = make_check("abi", "probe", "finds a device").labels;
                                result.verdict = Verdict::no_device;
                                result.detail = opened.no_device;
                                one.reporter.add(std::move(result));
                              },
                              [&](std::size_t index, CheckCase result) {
                                one.reporter.add(checks[index].labels, std::move(result));
                                progress.advance();
                                tell(index + 1);
                              }};
  BackendWork work(one.options, checks);
  WorkLimits limits;
  limits.check = std::chrono::seconds(one.options.limit_seconds);
  const std::string trouble =
      one.options.in_process ? run_here(work, listener) : run_in_children(work, listener, limits);
  if (!trouble.empty()) add_failure(one, "opens and closes", trouble);
  if (opened.no_device.empty()) require_part(one.options, opened, one.reporter, one.report);
}

}  // namespace

}  // namespace conformance

std::vector<std::string> check_suites() {
  std::vector<std::string> names{conformance::kNoDevice};
  for (const conformance::NamedSuite& suite : conformance::kSuites) names.emplace_back(suite.name);
  return names;
}

std::vector<std::string> check_ops() {
  std::vector<std::string> names;
  for (const ops::OpInfo* op : ops::all_ops()) names.emplace_back(op->name);
  return names;
}

CheckReport check(const CheckOptions& options) { return std::move(check(options, {options.backend}).front()); }

std::vector<CheckReport> check(const CheckOptions& options, const std::vector<std::string>& backends) {
  using namespace conformance;
  const Plan plan = plan_of(options);
  std::vector<std::unique_ptr<Examination>> all;
  for (const std::string& backend : backends) {
    CheckOptions one = options;
    one.backend = backend;
    all.push_back(std::make_unique<Examination>(std::move(one)));
  }
  // First of all, while no driver was started in this process, whatever is asked of it later.
  for (const auto& one : all) {
    if (plan.nodevice) run_nodevice(*one);
  }
  std::vector<CheckReport> reports;
  for (const auto& one : all) {
    try {
      if (!plan.checks.empty()) run_checks(*one, plan.checks);
    } catch (const Error& error) {
      // One of several backends that can't be used does not keep the others from being checked.
      if (all.size() == 1) throw;
      add_failure(*one, "can be used", error.what());
    }
    reports.push_back(std::move(one->report));
  }
  return reports;
}

std::vector<CheckProfile> check_profiles() {
  std::vector<CheckProfile> result;
  for (const conformance::Profile& profile : conformance::profiles()) {
    result.push_back({std::string(profile.name), std::string(profile.what)});
  }
  return result;
}

}  // namespace gpunn
