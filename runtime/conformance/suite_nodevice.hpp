#pragma once

#include <memory>

#include "conformance/process/work.hpp"
#include "conformance/suites.hpp"

namespace gpunn::conformance {

// Checks a plugin's behaviour without a device: `labels` of the checks, and the work. The work must run in a child
// process, since it hides the devices from its process for good. `options` must outlive it.
struct NoDeviceSuite {
  std::vector<CheckCase> labels;
  std::unique_ptr<Work> work;
};
NoDeviceSuite nodevice_suite(const CheckOptions& options);

}  // namespace gpunn::conformance
