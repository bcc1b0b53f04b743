#include "common/optimizer.hpp"

#include <cmath>

namespace gpunn::backends {
namespace {

// `vectors` are the inputs that are as long as w, `in_place` those of them that are also outputs, in order.
template <class Attrs>
Optimizer<Attrs> vectors_of(const OpDesc& desc, const Attrs& attrs, std::initializer_list<std::size_t> vectors,
                            std::initializer_list<std::size_t> in_place) {
  const gpunn_tensor& w = desc.input(0);
  require_packed(w, GPUNN_F32, "w");
  require(w.rank == 1, "w must be [n]");
  for (const std::size_t i : vectors) {
    require_packed(desc.input(i), GPUNN_F32, "the gradient or a state");
    require_same_shape(desc.input(i), w, "w, the gradient and the states");
  }
  std::size_t output = 0;
  for (const std::size_t i : in_place) {
    require_packed(desc.output(output), GPUNN_F32, "an output");
    require_same_shape(desc.output(output), desc.input(i), "an output and its input");
    ++output;
  }
  require_scalar(desc.input(2), GPUNN_F32, "lr");
  require(std::isfinite(attrs.weight_decay), "weight_decay must be finite");
  require(attrs.decayed >= 0 && attrs.decayed <= w.dim[0], "decayed must be 0 to n");
  return {.attrs = attrs, .n = w.dim[0]};
}

}  // namespace

Sgd sgd_of(const OpDesc& desc) {
  const auto attrs = require_attrs<gpunn_sgd_attrs>(desc);
  require(std::isfinite(attrs.momentum) && attrs.momentum >= 0.0F, "momentum must be 0 or more");
  if (attrs.momentum == 0.0F) {
    require_tensors(desc, 3, 3, 1);
    return vectors_of(desc, attrs, {1}, {0});
  }
  require_tensors(desc, 4, 4, 2);
  return vectors_of(desc, attrs, {1, 3}, {0, 3});
}

Adam adam_of(const OpDesc& desc) {
  require_tensors(desc, 6, 6, 3);
  const auto attrs = require_attrs<gpunn_adam_attrs>(desc);
  require(attrs.beta1 >= 0.0F && attrs.beta1 < 1.0F, "beta1 must be 0 to below 1");
  require(attrs.beta2 >= 0.0F && attrs.beta2 < 1.0F, "beta2 must be 0 to below 1");
  require(std::isfinite(attrs.epsilon) && attrs.epsilon >= 0.0F, "epsilon must be 0 or more");
  require_scalar(desc.input(3), GPUNN_I64, "step");
  return vectors_of(desc, attrs, {1, 4, 5}, {0, 4, 5});
}

Rmsprop rmsprop_of(const OpDesc& desc) {
  const auto attrs = require_attrs<gpunn_rmsprop_attrs>(desc);
  require(attrs.alpha >= 0.0F && attrs.alpha <= 1.0F, "alpha must be 0 to 1");
  require(std::isfinite(attrs.epsilon) && attrs.epsilon >= 0.0F, "epsilon must be 0 or more");
  require(std::isfinite(attrs.momentum) && attrs.momentum >= 0.0F, "momentum must be 0 or more");
  if (attrs.momentum == 0.0F) {
    require_tensors(desc, 4, 4, 2);
    return vectors_of(desc, attrs, {1, 3}, {0, 3});
  }
  require_tensors(desc, 5, 5, 3);
  return vectors_of(desc, attrs, {1, 3, 4}, {0, 3, 4});
}

Adagrad adagrad_of(const OpDesc& desc) {
  require_tensors(desc, 4, 4, 2);
  const auto attrs = require_attrs<gpunn_adagrad_attrs>(desc);
  require(std::isfinite(attrs.epsilon) && attrs.epsilon >= 0.0F, "epsilon must be 0 or more");
  return vectors_of(desc, attrs, {1, 3}, {0, 3});
}

Lion lion_of(const OpDesc& desc) {
  require_tensors(desc, 4, 4, 2);
  const auto attrs = require_attrs<gpunn_lion_attrs>(desc);
  require(attrs.beta1 >= 0.0F && attrs.beta1 < 1.0F, "beta1 must be 0 to below 1");
  require(attrs.beta2 >= 0.0F && attrs.beta2 < 1.0F, "beta2 must be 0 to below 1");
  return vectors_of(desc, attrs, {1, 3}, {0, 3});
}

Lars lars_of(const OpDesc& desc) {
  require_tensors(desc, 5, 5, 2);
  const auto attrs = require_attrs<gpunn_lars_attrs>(desc);
  require(std::isfinite(attrs.momentum) && attrs.momentum >= 0.0F, "momentum must be 0 or more");
  require(std::isfinite(attrs.trust) && attrs.trust >= 0.0F, "trust must be 0 or more");
  require(std::isfinite(attrs.epsilon) && attrs.epsilon >= 0.0F, "epsilon must be 0 or more");
  const gpunn_tensor& offset = desc.input(4);
  require_packed(offset, GPUNN_I64, "offset");
  require(offset.rank == 1 && offset.dim[0] >= 1, "offset must be [parts + 1]");
  return {vectors_of(desc, attrs, {1, 3}, {0, 3}), offset.dim[0] - 1};
}

}  // namespace gpunn::backends
