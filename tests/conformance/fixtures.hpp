// Attribute structs out of JSON, by the names of their members, for the fixtures that PyTorch wrote.
#pragma once

#include <gpunn/ops.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "conformance/oracle.hpp"

namespace gpunn::testing {

using nlohmann::json;

// A file of tests/fixtures/.
inline json fixture(const std::string& name) {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/" + name);
  return json::parse(file);
}

namespace detail {

template <class T>
void take(const json& attrs, const char* name, T& member) {
  if (attrs.contains(name)) member = attrs.at(name).get<T>();
}

inline void take(const json& attrs, const char* name, int32_t (&pair)[2]) {
  if (!attrs.contains(name)) return;
  for (std::size_t i = 0; i < 2; ++i) pair[i] = attrs.at(name).at(i).get<int32_t>();
}

template <class Struct, class Fill>
graph::Attributes attributes(Fill fill) {
  Struct attrs{};
  fill(attrs);
  return graph::Attributes::of(attrs);
}

}  // namespace detail

// Throws where the struct of the op is not known here.
inline graph::Attributes attributes_of(int32_t op, const json& j) {
  using detail::attributes;
  using detail::take;
  if (j.empty()) return {};
  switch (op) {
    case GPUNN_OP_SCALE:
      return attributes<gpunn_scale_attrs>([&](auto& a) { take(j, "factor", a.factor); });
    case GPUNN_OP_LEAKY_RELU:
    case GPUNN_OP_LEAKY_RELU_BACKWARD:
      return attributes<gpunn_leaky_relu_attrs>([&](auto& a) { take(j, "slope", a.slope); });
    case GPUNN_OP_GELU:
    case GPUNN_OP_GELU_BACKWARD:
      return attributes<gpunn_gelu_attrs>([&](auto& a) { take(j, "tanh", a.tanh); });
    case GPUNN_OP_MATMUL:
      return attributes<gpunn_matmul_attrs>([&](auto& a) {
        take(j, "transpose_a", a.transpose_a);
        take(j, "transpose_b", a.transpose_b);
      });
    case GPUNN_OP_MATMUL_BIAS_ACTIVATION:
      return attributes<gpunn_matmul_bias_activation_attrs>([&](auto& a) {
        take(j, "transpose_a", a.transpose_a);
        take(j, "transpose_b", a.transpose_b);
        take(j, "activation", a.activation);
      });
    case GPUNN_OP_BIAS_ACTIVATION_BACKWARD:
      return attributes<gpunn_bias_activation_backward_attrs>([&](auto& a) { take(j, "activation", a.activation); });
    case GPUNN_OP_CONV2D:
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
    case GPUNN_OP_CONV2D_BACKWARD_FILTER:
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION:
      return attributes<gpunn_conv2d_attrs>([&](auto& a) {
        take(j, "activation", a.activation);
        take(j, "stride", a.stride);
        take(j, "pad", a.pad);
        take(j, "dilation", a.dilation);
        take(j, "groups", a.groups);
        take(j, "input_size", a.input_size);
        take(j, "filter_size", a.filter_size);
      });
    case GPUNN_OP_MAX_POOL2D:
    case GPUNN_OP_MAX_POOL2D_BACKWARD:
      return attributes<gpunn_pool2d_attrs>([&](auto& a) {
        take(j, "window", a.window);
        take(j, "stride", a.stride);
        take(j, "pad", a.pad);
      });
    case GPUNN_OP_NLL_LOSS_BACKWARD:
      return attributes<gpunn_classes_attrs>([&](auto& a) { take(j, "classes", a.classes); });
    case GPUNN_OP_REDUCE:
      return attributes<gpunn_reduce_attrs>([&](auto& a) {
        take(j, "kind", a.kind);
        take(j, "axes", a.axes);
        take(j, "keep_dims", a.keep_dims);
      });
    case GPUNN_OP_MEAN_ROWS_BACKWARD:
      return attributes<gpunn_rows_attrs>([&](auto& a) { take(j, "rows", a.rows); });
    case GPUNN_OP_SGD_UPDATE:
      return attributes<gpunn_sgd_attrs>([&](auto& a) {
        take(j, "momentum", a.momentum);
        take(j, "weight_decay", a.weight_decay);
        take(j, "nesterov", a.nesterov);
        take(j, "decayed", a.decayed);
      });
    case GPUNN_OP_ADAM_UPDATE:
      return attributes<gpunn_adam_attrs>([&](auto& a) {
        take(j, "beta1", a.beta1);
        take(j, "beta2", a.beta2);
        take(j, "epsilon", a.epsilon);
        take(j, "weight_decay", a.weight_decay);
        take(j, "decoupled", a.decoupled);
        take(j, "decayed", a.decayed);
      });
    case GPUNN_OP_RMSPROP_UPDATE:
      return attributes<gpunn_rmsprop_attrs>([&](auto& a) {
        take(j, "alpha", a.alpha);
        take(j, "epsilon", a.epsilon);
        take(j, "momentum", a.momentum);
        take(j, "weight_decay", a.weight_decay);
        take(j, "decayed", a.decayed);
      });
    default:
      throw std::runtime_error("no attributes of op " + std::to_string(op) + " are read from fixtures");
  }
}

}  // namespace gpunn::testing
