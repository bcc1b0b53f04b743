#include "conformance/checks_work.hpp"

#include <algorithm>

#include "plugins/plugin.hpp"

namespace gpunn::conformance {

Opened ChecksWork::open() {
  if (std::string reason = lack_of_device(options_); !reason.empty()) return {options_.backend, "", reason, "", false};
  bench_ = std::make_unique<Workbench>(options_);
  const execution::Backend& backend = bench_->backend();
  const std::vector<std::string> chain = backend.chain(), fusing = backend.fusing_plugins();
  return {backend.name(), backend.info().name, "", chain.size() > 1 ? chain[1] : "",
          std::ranges::find(fusing, chain.front()) != fusing.end()};
}

void ChecksWork::close() {
  bench_ = nullptr;
  // In a child this is the end; in the host's own process the plugins go on.
  if (!options_.in_process) plugins::shutdown_plugins();
}

}  // namespace gpunn::conformance
