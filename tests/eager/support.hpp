// Arrays of the caller, and the engines to run ops on.
#pragma once

#include <gpunn/ops.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/reference.hpp"

namespace eager_test {

using gpunn::DType;
using gpunn::Layout;
using gpunn::Shape;
using gpunn::TensorType;
using gpunn::eager::Array;
using gpunn::eager::CallerStream;
using gpunn::eager::Engine;
using gpunn::eager::EngineOptions;
using gpunn::eager::NamedAttribute;
using gpunn::eager::Op;

inline Engine cpu() { return Engine::open({.backend = GPUNN_CPU_PLUGIN, .threads = 2}); }

inline Engine sample(const std::string& name) {
  return Engine::open({.backend = name, .alternatives = false, .plugins = {GPUNN_SAMPLE_DIR, GPUNN_CPU_PLUGIN}});
}

// Memory for a tensor, as far off an alignment of 64 bytes as is said.
class HostArray {
 public:
  explicit HostArray(TensorType type, std::size_t offset = 0)
      : type_(std::move(type)), bytes_(type_.bytes() + offset + 128), data_(bytes_.data()) {
    while (reinterpret_cast<uintptr_t>(data_) % 64 != 0) ++data_;
    data_ += offset;
  }
  HostArray(const gpunn::ops::ReferenceTensor& tensor, std::size_t offset = 0) : HostArray(tensor.type, offset) {
    const std::vector<std::byte> encoded = gpunn::ops::encode(tensor);
    std::copy(encoded.begin(), encoded.end(), data_);
  }
  HostArray(HostArray&&) = default;
  HostArray(const HostArray&) = delete;
  HostArray& operator=(const HostArray&) = delete;

  Array array() const { return {type_, data_}; }
  std::vector<double> values() const { return tensor().values; }
  gpunn::ops::ReferenceTensor tensor() const { return gpunn::ops::decode(type_, {data_, type_.bytes()}); }

 private:
  TensorType type_;
  std::vector<std::byte> bytes_;
  std::byte* data_;
};

inline HostArray floats(Shape shape, const std::vector<double>& values, std::size_t offset = 0) {
  return HostArray({{DType::f32, std::move(shape)}, values}, offset);
}

inline std::vector<Array> arrays(const std::vector<HostArray>& memories) {
  std::vector<Array> result;
  for (const HostArray& one : memories) result.push_back(one.array());
  return result;
}

}  // namespace eager_test
