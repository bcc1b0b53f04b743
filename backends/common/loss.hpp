// Losses and their gradients, with one loss a row.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct LossRows {
  int64_t rows = 0;
  int64_t columns = 0;  // classes, or elements of a row; at least 1
};

namespace detail {

// Takes x[N,...].
inline LossRows loss_rows(const gpunn_tensor& x) {
  const LossRows shape{.rows = x.dim[0], .columns = size_from(x, 1)};
  require(shape.columns >= 1, "a row must not be empty");
  return shape;
}

}  // namespace detail

// x or its logarithm is the first input of a loss, and as large as the output of its gradient.
inline LossRows loss_of(const OpDesc& desc) { return detail::loss_rows(desc.input(0)); }
inline LossRows loss_backward_of(const OpDesc& desc) { return detail::loss_rows(desc.output(0)); }
inline LossRows cross_entropy_of(const OpDesc& desc) { return loss_of(desc); }
inline LossRows cross_entropy_backward_of(const OpDesc& desc) { return loss_backward_of(desc); }

struct Huber {
  LossRows shape;
  float delta = 1.0F;  // above 0
};

inline Huber huber_of(const OpDesc& desc) {
  return {.shape = loss_of(desc), .delta = desc.attrs<gpunn_huber_attrs>().delta};
}

inline Huber huber_backward_of(const OpDesc& desc) {
  return {.shape = loss_backward_of(desc), .delta = desc.attrs<gpunn_huber_attrs>().delta};
}

struct Hinge {
  LossRows shape;
  float margin = 1.0F;  // finite
  int32_t power = 1;    // 1 or 2
};

inline Hinge hinge_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_hinge_attrs>();
  return {.shape = loss_of(desc), .margin = attrs.margin, .power = attrs.power};
}

inline Hinge hinge_backward_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_hinge_attrs>();
  return {.shape = loss_backward_of(desc), .margin = attrs.margin, .power = attrs.power};
}

}  // namespace gpunn::backends
