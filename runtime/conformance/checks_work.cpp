#include "conformance/checks_work.hpp"

#include "plugins/plugin.hpp"

namespace gpunn::conformance {

Opened ChecksWork::open() {
  if (std::string reason = lack_of_device(options_); !reason.empty()) return {options_.backend, "", reason};
  bench_ = std::make_unique<Workbench>(options_);
  return {bench_->backend().name(), bench_->backend().info().name, ""};
}

void ChecksWork::close() {
  bench_ = nullptr;
  // In a child this is the end; in the host's own process the plugins go on.
  if (!options_.in_process) plugins::shutdown_plugins();
}

}  // namespace gpunn::conformance
