#include <gpunn/ops.h>

#include <utility>
#include <vector>

#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

// In training by the batch, whose statistics the running ones follow; otherwise, and where they are fixed, by those.
ValueId batch_norm(const LayerContext& c) {
  const Shape channels{c.input_shape().at(1)};
  const ValueId gamma = c.parameter({.name = "weight", .shape = channels, .init = InitKind::ones});
  const ValueId beta = c.parameter({.name = "bias", .shape = channels, .init = InitKind::zeros});
  const ValueId mean = c.buffer({.name = "running_mean", .shape = channels, .init = InitKind::zeros});
  const ValueId variance = c.buffer({.name = "running_var", .shape = channels, .init = InitKind::ones});
  const auto epsilon = static_cast<float>(c.arguments.number("epsilon"));
  const auto momentum = static_cast<float>(c.arguments.number("momentum"));
  const Attributes attrs =
      Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = epsilon, .momentum = momentum});
  std::vector<ValueId> inputs{c.inputs[0], gamma, beta, mean, variance};
  if (!c.options.training || c.options.fixed_buffers.contains(c.layer.name)) {
    return c.graph.add1(GPUNN_OP_BATCH_NORM_INFERENCE, c.layer.name, attrs, std::move(inputs));
  }
  if (c.options.count != graph::kNoValue) inputs.push_back(c.options.count);
  return c.graph.add(GPUNN_OP_BATCH_NORM, c.layer.name, attrs, std::move(inputs)).front();
}

// Over all of a sample's dimensions, which the op sees as one.
ValueId layer_norm(const LayerContext& c) {
  const Shape x = c.input_shape();
  const Shape sample(x.begin() + 1, x.end());
  const int64_t elements = element_count(sample);
  const ValueId gamma = c.parameter({.name = "weight", .shape = sample, .init = InitKind::ones});
  const ValueId beta = c.parameter({.name = "bias", .shape = sample, .init = InitKind::zeros});
  const gpunn_layer_norm_attrs attrs{.struct_size = 0, .epsilon = static_cast<float>(c.arguments.number("epsilon"))};
  const ValueId y =
      c.graph
          .add(GPUNN_OP_LAYER_NORM, c.layer.name, Attributes::of(attrs),
               {view(c, c.inputs[0], {x[0], elements}), view(c, gamma, {elements}), view(c, beta, {elements})})
          .front();
  return view(c, y, x);
}

ValueId local_response_norm(const LayerContext& c) {
  const auto number = [&c](const char* key) { return static_cast<float>(c.arguments.number(key)); };
  const gpunn_local_response_norm_attrs attrs{.struct_size = 0,
                                              .size = static_cast<int32_t>(c.arguments.integer("size")),
                                              .alpha = number("alpha"),
                                              .beta = number("beta"),
                                              .k = number("k")};
  return c.graph.add1(GPUNN_OP_LOCAL_RESPONSE_NORM, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

}  // namespace

LayerFunctions normalization_layers() {
  return {
      {"batch_norm", batch_norm},
      {"layer_norm", layer_norm},
      {"local_response_norm", local_response_norm},
  };
}

}  // namespace gpunn::nn
