// The plugin "cuda_tiled": optimised kernels. Ops without one fall back to its base, cuda_naive. Each family is a
// ladder of numbered kernels, from the first step beyond cuda_naive's kernel to the fastest.
#include <gpunn/plugin.hpp>
#include <gpunn/rank_subgraph.hpp>
#include <gpunn/subgraph.hpp>

#include <cstring>
#include <memory>

#include "device.hpp"
#include "plugin_version.hpp"

namespace gpunn::cuda_tiled {
namespace {

class TiledBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "cuda_tiled"; }
  const char* version() const override { return backends::kPluginVersion; }
  const char* build() const override { return cuda::build_text(); }
  const char* base() const override { return "cuda_naive"; }
  const char* alternatives() const override { return "cudnn"; }
  int priority() const override { return 50; }
  bool concurrent_streams() const override { return true; }
  const void* extension(const char* name) override {
    if (std::strcmp(name, GPUNN_EXTENSION_COLLECTIVE) == 0) return plugin::collective_extension<TiledDevice>();
    if (std::strcmp(name, GPUNN_EXTENSION_RANK_SUBGRAPH) == 0) return plugin::rank_subgraph_extension<TiledDevice>();
    return std::strcmp(name, GPUNN_EXTENSION_SUBGRAPH) == 0 ? plugin::subgraph_extension<TiledDevice>() : nullptr;
  }
  int probe() override { return cuda::probe_devices(); }
  std::unique_ptr<plugin::Device> open(const gpunn_device_options& options) override {
    return std::make_unique<TiledDevice>(options);
  }
};

}  // namespace
}  // namespace gpunn::cuda_tiled

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return gpunn::plugin::export_backend<gpunn::cuda_tiled::TiledBackend>(host_major, host_minor);
}
