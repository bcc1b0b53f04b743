// An overlay on cpu from a device class: what the sample plugins share.
#pragma once

#include <gpunn/plugin.hpp>

#include <memory>

#include "conformance/samples/loops.hpp"

namespace samples {

template <class OverlayDevice>
class Overlay final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return OverlayDevice::kName; }
  const char* version() const override { return "1"; }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options& /*options*/) override {
    return std::make_unique<OverlayDevice>();
  }
};

}  // namespace samples
