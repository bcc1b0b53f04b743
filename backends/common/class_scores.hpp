// CROSS_ENTROPY, its gradient, ARGMAX and CONFUSION_ACCUMULATE: scores x[N,C,...] of C classes at each position.
//
// In memory, x is [outer][classes][inner], and what the ops have for each position is [outer][inner]. Channels-last
// images are rows of classes: inner is 1, and outer counts all positions.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct ClassScores {
  int64_t rows = 0;  // N
  int64_t outer = 0;
  int64_t classes = 0;  // at least 1
  int64_t inner = 0;

  constexpr int64_t positions() const { return outer * inner; }
  constexpr int64_t elements() const { return positions() * classes; }
  // The element of the first class of a position. The other classes follow `inner` elements apart.
  constexpr int64_t first(int64_t position) const { return position / inner * inner * classes + position % inner; }
  // The positions of the first count rows. count comes from device memory.
  constexpr int64_t counted(int32_t count) const {
    const int64_t of_rows = count < 0 ? 0 : count < rows ? int64_t{count} : rows;
    return rows > 0 ? positions() / rows * of_rows : 0;
  }
};

inline ClassScores class_scores(const OpDesc& desc, const gpunn_tensor& x) {
  ClassScores shape{.rows = x.dim[0], .outer = x.dim[0], .classes = x.dim[1], .inner = size_from(x, 2)};
  if (!plugin::has_channels_last(desc)) return shape;
  require(x.rank == 4, "what it has for each position must be packed row-major");
  shape.outer *= shape.inner;
  shape.inner = 1;
  return shape;
}

// x is the first input of ARGMAX and of CONFUSION_ACCUMULATE.
inline ClassScores argmax_of(const OpDesc& desc) { return class_scores(desc, desc.input(0)); }

struct CrossEntropy {
  ClassScores shape;
  int32_t ignore_index = 0;
  float smoothing = 0.0F;  // in [0, 1]
  bool weighted = false;

  // Whether the label of a position is a class that counts.
  constexpr bool counts(int32_t label) const { return label >= 0 && label < shape.classes && label != ignore_index; }
};

namespace detail {

// x is input `at`, and `inputs` the number of inputs without weights.
inline CrossEntropy cross_entropy(const OpDesc& desc, std::size_t at, std::size_t inputs) {
  const auto attrs = desc.attrs<gpunn_cross_entropy_attrs>();
  return {.shape = class_scores(desc, desc.input(at)),
          .ignore_index = attrs.ignore_index,
          .smoothing = attrs.label_smoothing,
          .weighted = desc.inputs() > inputs};
}

}  // namespace detail

inline CrossEntropy dense_cross_entropy_of(const OpDesc& desc) { return detail::cross_entropy(desc, 0, 2); }
inline CrossEntropy dense_cross_entropy_backward_of(const OpDesc& desc) { return detail::cross_entropy(desc, 1, 4); }

}  // namespace gpunn::backends
