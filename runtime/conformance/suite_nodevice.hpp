#pragma once

#include <memory>

#include "conformance/process/work.hpp"
#include "conformance/suites.hpp"

namespace gpunn::conformance {

// What a plugin does where there is no device: `labels` by check, and the work, which must be run in a child process,
// since it hides the devices from its process for good. What `options` refers to must outlive it.
struct NoDeviceSuite {
  std::vector<CheckCase> labels;
  std::unique_ptr<Work> work;
};
NoDeviceSuite nodevice_suite(const CheckOptions& options);

}  // namespace gpunn::conformance
