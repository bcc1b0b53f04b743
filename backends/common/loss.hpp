// NLL_LOSS, MSE_LOSS, SOFTMAX_CROSS_ENTROPY, SOFT_CROSS_ENTROPY and their backwards, one loss a row.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct LossRows {
  int64_t rows = 0;
  int64_t columns = 0;  // classes, or elements of a row; at least 1
};

LossRows nll_of(const OpDesc& desc);
LossRows nll_backward_of(const OpDesc& desc);
LossRows mse_of(const OpDesc& desc);
LossRows mse_backward_of(const OpDesc& desc);
LossRows cross_entropy_of(const OpDesc& desc);
LossRows cross_entropy_backward_of(const OpDesc& desc);
LossRows soft_cross_entropy_of(const OpDesc& desc);
LossRows soft_cross_entropy_backward_of(const OpDesc& desc);

}  // namespace gpunn::backends
