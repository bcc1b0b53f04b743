#include "conformance/kernel_checks.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include "common/text.hpp"
#include "conformance/checks_work.hpp"

namespace gpunn::conformance {

namespace {

// Asks the backend for the names of the kernels that serve each check, in a child process as the checks themselves:
// they come back as the details of its results, with commas between them.
class NamingWork final : public ChecksWork {
 public:
  using ChecksWork::ChecksWork;

  void run(std::size_t index, CheckCase& result, const Note&) override {
    if (!check(index).signature) return;
    // Without a wish, each plugin answers for its own kernels; what a base has is tested with the base.
    for (const execution::NamedKernel& kernel : bench().backend().kernels(*check(index).signature)) {
      if (kernel.level > 0 && options().kernels.empty()) continue;
      result.detail += (result.detail.empty() ? "" : ",") + kernel.name;
    }
  }
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
    throw Error("no case is run by a kernel '" + wanted + "' of '" + options.backend + "'" +
                    (known.empty() ? "; its kernels have no names there"
                                   : did_you_mean_or_list(wanted, {known.begin(), known.end()})),
                ExitCode::usage);
  }
  return result;
}

}  // namespace gpunn::conformance
