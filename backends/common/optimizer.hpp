// SGD, ADAM, RMSPROP, ADAGRAD, LION, LARS and LBFGS, CLIP_NORM and L1_GRADIENT over flat vectors.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// n elements, of which the first attrs.decayed use weight decay. Without momentum there is no velocity.
template <class Attrs>
struct Optimizer {
  Attrs attrs{};
  int64_t n = 0;
};

using Sgd = Optimizer<gpunn_sgd_attrs>;
using Adam = Optimizer<gpunn_adam_attrs>;
using Rmsprop = Optimizer<gpunn_rmsprop_attrs>;
using Adagrad = Optimizer<gpunn_adagrad_attrs>;
using Lion = Optimizer<gpunn_lion_attrs>;

// The offsets of the parts lie in device memory. They are within [0, n] only after place_in().
struct Lars : Optimizer<gpunn_lars_attrs> {
  int64_t parts = 0;
};

struct Lbfgs : Optimizer<gpunn_lbfgs_attrs> {
  int64_t pairs = 0;  // of a step and a change

  // Whether the sum of the gradient's absolute values is finite, with room for sums of it in f32.
  static constexpr bool is_finite(double size) { return size <= 3e38; }
  // Whether the last step and the change on it become a pair, by their product.
  static constexpr bool is_good(double product) { return product > 1e-10; }
  // Whether a direction leads down, by its product with the gradient.
  static constexpr bool falls(double product) { return product <= -1e-9; }
  // 1 / (s y) of a pair; 0: it counts for nothing.
  static constexpr double inverse(double product) { return product > 0 ? 1 / product : 0; }
  // What the inverse Hessian begins with, of the newest pair.
  static constexpr double scale(double product, double square) { return product > 0 ? product / square : 1; }
  // The factor of the learning rate.
  static constexpr double rate(int64_t step, double size) { return step != 0 || size <= 1 ? 1 : 1 / size; }
};

// Limits an offset read from device memory to [0, n].
constexpr int64_t place_in(int64_t n, int64_t offset) { return offset < 0 ? 0 : offset > n ? n : offset; }

namespace detail {

template <class Attrs>
Optimizer<Attrs> optimizer_of(const OpDesc& desc) {
  return {.attrs = desc.attrs<Attrs>(), .n = desc.input(0).dim[0]};
}

}  // namespace detail

inline Sgd sgd_of(const OpDesc& desc) { return detail::optimizer_of<gpunn_sgd_attrs>(desc); }
inline Adam adam_of(const OpDesc& desc) { return detail::optimizer_of<gpunn_adam_attrs>(desc); }
inline Rmsprop rmsprop_of(const OpDesc& desc) { return detail::optimizer_of<gpunn_rmsprop_attrs>(desc); }
inline Adagrad adagrad_of(const OpDesc& desc) { return detail::optimizer_of<gpunn_adagrad_attrs>(desc); }
inline Lion lion_of(const OpDesc& desc) { return detail::optimizer_of<gpunn_lion_attrs>(desc); }
inline Lars lars_of(const OpDesc& desc) {
  return {detail::optimizer_of<gpunn_lars_attrs>(desc), desc.input(4).dim[0] - 1};
}
inline Lbfgs lbfgs_of(const OpDesc& desc) {
  return {detail::optimizer_of<gpunn_lbfgs_attrs>(desc), desc.input(6).dim[0]};
}

struct ClipNorm {
  gpunn_clip_norm_attrs attrs{};
  int64_t n = 0;
};

inline ClipNorm clip_norm_of(const OpDesc& desc) {
  return {.attrs = desc.attrs<gpunn_clip_norm_attrs>(), .n = desc.input(0).dim[0]};
}

struct L1Gradient {
  float weight = 0.0F;
  int64_t decayed = 0;  // of the n elements; those behind it stay as they are
};

inline L1Gradient l1_gradient_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_l1_attrs>();
  return {.weight = attrs.weight, .decayed = attrs.decayed};
}

}  // namespace gpunn::backends
