// SAMPLE_INDICES, GATHER_ROWS, SCATTER_ADD and GATHER_NORMALIZE.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct Sample {
  gpunn_sample_attrs attrs{};
  int64_t steps = 0;  // of an epoch, at least 1
};

Sample sample_of(const OpDesc& desc);

// data[rows,...], index i32[batch] -> y[batch,...], row_size elements a row. An index comes from device memory: one
// outside [0, rows) gives a row of zeros.
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

Scatter scatter_add_of(const OpDesc& desc);
Gather gather_rows_of(const OpDesc& desc);
Gather gather_normalize_of(const OpDesc& desc);

}  // namespace gpunn::backends
