// SAMPLE_INDICES, GATHER_ROWS, SCATTER_ADD and GATHER_NORMALIZE.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct Sample {
  gpunn_sample_attrs attrs{};
  int64_t steps = 0;  // of an epoch, at least 1
};

inline Sample sample_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_sample_attrs>();
  return {.attrs = attrs,
          .steps = attrs.drop_last != 0 ? attrs.rows / attrs.batch : (attrs.rows + attrs.batch - 1) / attrs.batch};
}

// data[rows,...], index i32[batch] -> y[batch,...], row_size elements a row. An index comes from device memory: an
// index outside [0, rows) gives a row of zeros.
struct Gather {
  int64_t rows = 0;
  int64_t batch = 0;
  int64_t row_size = 0;
  int32_t from = 0;  // dtypes
  int32_t to = 0;
  int64_t channels = 0;  // of GATHER_NORMALIZE
};

// x[batch,...], index i32[batch] -> y[rows,...], row_size elements a row. An index outside [0, rows) adds nothing.
struct Scatter {
  int64_t rows = 0;
  int64_t batch = 0;
  int64_t row_size = 1;
};

inline Scatter scatter_add_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(0);
  return {.rows = desc.output(0).dim[0], .batch = x.dim[0], .row_size = size_from(x, 1)};
}

inline Gather gather_rows_of(const OpDesc& desc) {
  const gpunn_tensor& data = desc.input(0);
  return {.rows = data.dim[0],
          .batch = desc.input(1).dim[0],
          .row_size = size_from(data, 1),
          .from = data.dtype,
          .to = desc.output(0).dtype};
}

inline Gather gather_normalize_of(const OpDesc& desc) {
  Gather plan = gather_rows_of(desc);
  plan.channels = desc.input(0).dim[1];
  return plan;
}

}  // namespace gpunn::backends
