// REDUCE, MEAN_ROWS, MEAN_ROWS_BACKWARD and NORM.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// The kept or the reduced dimensions of x, outermost first; strides in elements.
struct Nest {
  int32_t rank = 0;
  int64_t dim[GPUNN_MAX_RANK] = {};
  int64_t stride[GPUNN_MAX_RANK] = {};

  void add(int64_t size, int64_t step) {
    dim[rank] = size;
    stride[rank] = step;
    ++rank;
  }
  int64_t count() const {
    int64_t product = 1;
    for (int32_t i = 0; i < rank; ++i) product *= dim[i];
    return product;
  }
};

// The dimensions of x in their order in memory, in which y has those that are kept: the elements of y are those of
// `kept` in order. Dimensions of size 1 are dropped and neighbours of one kind are merged, so that kept and reduced
// dimensions alternate. A maximum always has at least one term.
struct Reduce {
  int32_t kind = GPUNN_REDUCE_SUM;
  Nest kept;
  Nest reduced;
  bool innermost_is_reduced = false;  // of x's dimensions in memory; false where none is left
  int64_t outputs = 0;
  int64_t terms = 0;  // of an output
};

Reduce reduce_of(const OpDesc& desc);

// N of x[N], or of dx[N].
inline int64_t mean_rows_of(const OpDesc& desc) { return desc.input(0).dim[0]; }
inline int64_t mean_rows_backward_of(const OpDesc& desc) { return desc.output(0).dim[0]; }

// The number of elements of x, which may have any shape.
inline int64_t norm_of(const OpDesc& desc) { return plugin::element_count(desc.input(0)); }

}  // namespace gpunn::backends
