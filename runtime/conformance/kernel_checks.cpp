#include "conformance/kernel_checks.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>

#include "common/text.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::conformance {

namespace {

// Asks the backend for the names of the kernels that serve each check, in a child process as the checks themselves:
// they come back as the details of its results, with commas between them.
class NamingWork final : public Work {
 public:
  NamingWork(const CheckOptions& options, const Checks& checks) : options_(options), checks_(checks) {}

  Opened open() override {
    if (std::string reason = lack_of_device(options_); !reason.empty()) return {options_.backend, "", reason};
    bench_ = std::make_unique<Workbench>(options_);
    return {bench_->backend().name(), "", ""};
  }
  std::size_t size() const override { return checks_.size(); }
  void run(std::size_t index, CheckCase& result, const Note&) override {
    if (!checks_[index].signature) return;
    // Without a wish, each plugin answers for its own kernels; what a base has is tested with the base.
    for (const execution::NamedKernel& kernel : bench_->backend().kernels(*checks_[index].signature)) {
      if (kernel.level > 0 && options_.kernels.empty()) continue;
      result.detail += (result.detail.empty() ? "" : ",") + kernel.name;
    }
  }
  void close() override {
    bench_ = nullptr;
    if (!options_.in_process) plugins::shutdown_plugins();
  }

 private:
  const CheckOptions& options_;
  const Checks& checks_;
  std::unique_ptr<Workbench> bench_;
};

std::vector<std::string> parted(const std::string& names) {
  std::vector<std::string> result;
  std::istringstream text(names);
  for (std::string name; std::getline(text, name, ',');) {
    if (std::ranges::find(result, name) == result.end()) result.push_back(name);
  }
  return result;
}

}  // namespace

Checks with_kernels(const Checks& checks, const CheckOptions& options) {
  std::vector<std::vector<std::string>> names(checks.size());
  bool no_device = false;
  const WorkListener listener{[&](const Opened& opened) { no_device = !opened.no_device.empty(); },
                              [&](std::size_t index, const CheckCase& result) {
                                // What fails here fails again where it is counted.
                                if (result.verdict == Verdict::passed) names[index] = parted(result.detail);
                              }};
  NamingWork work(options, checks);
  options.in_process ? run_here(work, listener) : run_in_children(work, listener);

  Checks result;
  std::set<std::string> known;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (options.kernels.empty() || no_device) result.push_back(checks[i]);
    for (const std::string& name : names[i]) {
      known.insert(name);
      if (!options.kernels.empty() && std::ranges::find(options.kernels, name) == options.kernels.end()) continue;
      Check check = checks[i];
      check.kernel = check.labels.kernel = name;
      check.labels.name += ", kernel " + name;
      result.push_back(std::move(check));
    }
  }
  if (no_device) return result;
  for (const std::string& wanted : options.kernels) {
    if (known.contains(wanted)) continue;
    throw Error(
        "no case is run by a kernel '" + wanted + "' of '" + options.backend + "'" +
            (known.empty() ? "; its kernels have no names there" : suggestion(wanted, {known.begin(), known.end()})),
        ExitCode::usage);
  }
  return result;
}

}  // namespace gpunn::conformance
