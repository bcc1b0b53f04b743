// Backends on the sample plugins of tests/plugins.
#pragma once

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <cstring>
#include <string>
#include <vector>

#include "compiler/memory_plan.hpp"
#include "execution/backend.hpp"
#include "execution/steps/executable.hpp"
#include "execution/steps/variables.hpp"
#include "graph/graph.hpp"
#include "plugins/samples.hpp"

namespace fixture {

using gpunn::DType;
using gpunn::TensorType;
using gpunn::execution::Backend;
using gpunn::execution::BackendOptions;
using gpunn::graph::Attributes;
using gpunn::graph::Graph;
using gpunn::graph::OpSignature;
using gpunn::graph::Storage;
using gpunn::graph::ValueId;
using gpunn::plugins::PluginRegistry;

inline const PluginRegistry& registry() {
  static const PluginRegistry instance(
      {samples::folder("overlays"), samples::folder("faulty"), samples::folder("throwing"),
       samples::folder("capturing"), samples::folder("forking"), samples::folder("asynchronous"),
       samples::folder("on_capturing"), samples::folder("named"), samples::folder("on_named"),
       samples::folder("minor_0"), samples::folder("alternatives")});
  return instance;
}

// The sample that serves this name, in good order while the object lives.
inline samples::Controlled controlled(const std::string& name) {
  return samples::Controlled(*registry().chain(name).front());
}

inline TensorType floats(gpunn::Shape shape) { return {DType::f32, std::move(shape)}; }

inline OpSignature relu(const TensorType& type) { return {GPUNN_OP_RELU, {}, {type}, {type}}; }
inline OpSignature add(const TensorType& type) { return {GPUNN_OP_ADD, {}, {type, type}, {type}}; }
inline OpSignature softmax(const TensorType& type) { return {GPUNN_OP_SOFTMAX, {}, {type}, {type}}; }

inline std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace fixture
