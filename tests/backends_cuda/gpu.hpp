// Backends for the tests that need a GPU.
#pragma once

#include <gpunn/plugins.hpp>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "plugins/plugin.hpp"
#include "samples/control.hpp"

namespace gpu {

inline const std::filesystem::path& sample() {
  static const std::filesystem::path file = GPUNN_CUDA_SAMPLE;
  return file;
}

// The project's plugins and the sample overlay, cuda_test.
inline const gpunn::plugins::PluginRegistry& registry() {
  static const gpunn::plugins::PluginRegistry instance({std::filesystem::path(GPUNN_PLUGIN_DIR), sample()});
  return instance;
}

// Of the overlay; a device of it must have been opened before the flags are used.
inline CudaControl& control() {
  const auto plugin = registry().chain("cuda_test").front();
  return *static_cast<CudaControl*>(const_cast<void*>(plugin->table().extension("test.cuda_control")));
}

template <class T>
std::vector<T> read(gpunn::execution::Backend& backend, const gpunn::execution::Buffer& buffer, std::size_t count) {
  std::vector<T> values(count);
  backend.download(values.data(), buffer.data(), count * sizeof(T));
  return values;
}

}  // namespace gpu
