// Attribute structs out of JSON, by the names of their members, for the fixtures that PyTorch wrote.
#pragma once

#include <gpunn/ops.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

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

// As many entries as the list has; the struct's rank says how many those are.
template <class T>
void take_list(const json& attrs, const char* name, T (&list)[8]) {
  const auto values = attrs.at(name).get<std::vector<T>>();
  for (std::size_t i = 0; i < values.size() && i < 8; ++i) list[i] = values[i];
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
  using detail::take_list;
  if (j.empty()) return {};
  switch (op) {
    case GPUNN_OP_SCALE:
      return attributes<gpunn_scale_attrs>([&](auto& a) { take(j, "factor", a.factor); });
    case GPUNN_OP_AXPBY:
      return attributes<gpunn_axpby_attrs>([&](auto& a) {
        take(j, "alpha", a.alpha);
        take(j, "beta", a.beta);
      });
    case GPUNN_OP_CLAMP:
      return attributes<gpunn_clamp_attrs>([&](auto& a) {
        take(j, "low", a.low);
        take(j, "high", a.high);
      });
    case GPUNN_OP_CLIP_NORM:
      return attributes<gpunn_clip_norm_attrs>([&](auto& a) {
        take(j, "max_norm", a.max_norm);
        take(j, "epsilon", a.epsilon);
        take(j, "rescale", a.rescale);
      });
    case GPUNN_OP_L1_GRADIENT:
      return attributes<gpunn_l1_attrs>([&](auto& a) {
        take(j, "weight", a.weight);
        take(j, "decayed", a.decayed);
      });
    case GPUNN_OP_HINGE_LOSS:
    case GPUNN_OP_HINGE_LOSS_BACKWARD:
      return attributes<gpunn_hinge_attrs>([&](auto& a) {
        take(j, "margin", a.margin);
        take(j, "power", a.power);
      });
    case GPUNN_OP_HUBER_LOSS:
    case GPUNN_OP_HUBER_LOSS_BACKWARD:
      return attributes<gpunn_huber_attrs>([&](auto& a) { take(j, "delta", a.delta); });
    case GPUNN_OP_LEAKY_RELU:
    case GPUNN_OP_LEAKY_RELU_BACKWARD:
      return attributes<gpunn_leaky_relu_attrs>([&](auto& a) { take(j, "slope", a.slope); });
    case GPUNN_OP_GELU:
    case GPUNN_OP_GELU_BACKWARD:
      return attributes<gpunn_gelu_attrs>([&](auto& a) { take(j, "tanh", a.tanh); });
    case GPUNN_OP_EXPAND:
      return attributes<gpunn_expand_attrs>([&](auto& a) {
        take(j, "rank", a.rank);
        take_list(j, "dim", a.dim);
      });
    case GPUNN_OP_MATMUL:
    case GPUNN_OP_BATCH_MATMUL:
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
    case GPUNN_OP_AVG_POOL2D:
    case GPUNN_OP_AVG_POOL2D_BACKWARD:
      return attributes<gpunn_pool2d_attrs>([&](auto& a) {
        take(j, "window", a.window);
        take(j, "stride", a.stride);
        take(j, "pad", a.pad);
        take(j, "count_padding", a.count_padding);
        take(j, "input_size", a.input_size);
      });
    case GPUNN_OP_UPSAMPLE2D:
    case GPUNN_OP_UPSAMPLE2D_BACKWARD:
      return attributes<gpunn_upsample2d_attrs>([&](auto& a) {
        take(j, "factor", a.factor);
        take(j, "mode", a.mode);
      });
    case GPUNN_OP_PAD:
      return attributes<gpunn_pad_attrs>([&](auto& a) {
        take(j, "rank", a.rank);
        take_list(j, "before", a.before);
        take_list(j, "after", a.after);
      });
    case GPUNN_OP_SLICE:
      return attributes<gpunn_slice_attrs>([&](auto& a) {
        take(j, "rank", a.rank);
        take_list(j, "start", a.start);
        take_list(j, "size", a.size);
      });
    case GPUNN_OP_CONCAT:
      return attributes<gpunn_concat_attrs>([&](auto& a) { take(j, "axis", a.axis); });
    case GPUNN_OP_TRANSPOSE:
      return attributes<gpunn_transpose_attrs>([&](auto& a) {
        take(j, "rank", a.rank);
        take_list(j, "permutation", a.permutation);
      });
    case GPUNN_OP_BATCH_NORM:
    case GPUNN_OP_BATCH_NORM_INFERENCE:
      return attributes<gpunn_batch_norm_attrs>([&](auto& a) {
        take(j, "epsilon", a.epsilon);
        take(j, "momentum", a.momentum);
      });
    case GPUNN_OP_LAYER_NORM:
      return attributes<gpunn_layer_norm_attrs>([&](auto& a) { take(j, "epsilon", a.epsilon); });
    case GPUNN_OP_LOCAL_RESPONSE_NORM:
    case GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD:
      return attributes<gpunn_local_response_norm_attrs>([&](auto& a) {
        take(j, "size", a.size);
        take(j, "alpha", a.alpha);
        take(j, "beta", a.beta);
        take(j, "k", a.k);
      });
    case GPUNN_OP_NLL_LOSS_BACKWARD:
      return attributes<gpunn_classes_attrs>([&](auto& a) { take(j, "classes", a.classes); });
    case GPUNN_OP_REDUCE:
      return attributes<gpunn_reduce_attrs>([&](auto& a) {
        take(j, "kind", a.kind);
        take(j, "axes", a.axes);
        take(j, "keep_dims", a.keep_dims);
      });
    case GPUNN_OP_SCATTER_ADD:
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
    case GPUNN_OP_ADAGRAD_UPDATE:
      return attributes<gpunn_adagrad_attrs>([&](auto& a) {
        take(j, "epsilon", a.epsilon);
        take(j, "weight_decay", a.weight_decay);
        take(j, "decayed", a.decayed);
      });
    case GPUNN_OP_LION_UPDATE:
      return attributes<gpunn_lion_attrs>([&](auto& a) {
        take(j, "beta1", a.beta1);
        take(j, "beta2", a.beta2);
        take(j, "weight_decay", a.weight_decay);
        take(j, "decayed", a.decayed);
      });
    case GPUNN_OP_LARS_UPDATE:
      return attributes<gpunn_lars_attrs>([&](auto& a) {
        take(j, "momentum", a.momentum);
        take(j, "weight_decay", a.weight_decay);
        take(j, "trust", a.trust);
        take(j, "epsilon", a.epsilon);
        take(j, "decayed", a.decayed);
      });
    default:
      throw std::runtime_error("no attributes of op " + std::to_string(op) + " are read from fixtures");
  }
}

}  // namespace gpunn::testing
