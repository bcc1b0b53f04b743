#include "conformance/workbench.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "plugins/store.hpp"

namespace gpunn::conformance {

Workbench::Workbench(const CheckOptions& options)
    : options_(options), registry_(options.plugins), plugins_(registry_.chain(options.backend)) {
  execution::BackendOptions backend_options;
  backend_options.threads = options.threads;
  backend_options.precision = options.precision;
  backend_ = std::make_unique<execution::Backend>(registry_, options.backend, backend_options);
}

void Workbench::want(const std::string& kernel) {
  wanted_kernel_ = kernel;
  backend_->want_kernels(kernel.empty() ? std::vector<std::string>() : std::vector<std::string>(1, kernel));
}

const RawChain& Workbench::chain() {
  if (!chain_) chain_.emplace(plugins_, options_.threads);
  return *chain_;
}

const Delay& Workbench::delay() {
  if (!delay_) delay_ = std::make_unique<Delay>(chain());
  return *delay_;
}

namespace {

bool is_path(const std::string& backend) { return backend.find_first_of("/.") != std::string::npos; }

// The file that a backend is in; empty: there is none.
std::filesystem::path file_of(const plugins::PluginRegistry& registry, const std::string& backend) {
  if (is_path(backend)) return backend;
  const auto found = std::ranges::find(registry.files(), backend, &PluginReport::name);
  return found == registry.files().end() ? std::filesystem::path() : found->path;
}

}  // namespace

std::string lack_of_device(const CheckOptions& options) {
  const plugins::PluginRegistry registry(options.plugins);
  std::set<std::string> seen;
  for (std::string wanted = options.backend; seen.insert(wanted).second;) {
    const std::filesystem::path file = file_of(registry, wanted);
    std::error_code error;
    if (file.empty() || !std::filesystem::exists(file, error)) return "";
    const PluginReport report = plugins::probe_plugin(file).report;
    if (report.status == PluginStatus::no_device) return report.name + ": " + report.detail;
    if (report.base.empty()) return "";
    wanted = report.base;
  }
  return "";
}

}  // namespace gpunn::conformance
