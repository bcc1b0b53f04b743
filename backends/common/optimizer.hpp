// SGD, ADAM and RMSPROP over flat vectors.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// n elements, of which the first attrs.decayed decay. Without momentum there is no velocity.
template <class Attrs>
struct Optimizer {
  Attrs attrs{};
  int64_t n = 0;
};

using Sgd = Optimizer<gpunn_sgd_attrs>;
using Adam = Optimizer<gpunn_adam_attrs>;
using Rmsprop = Optimizer<gpunn_rmsprop_attrs>;

Sgd sgd_of(const OpDesc& desc);
Adam adam_of(const OpDesc& desc);
Rmsprop rmsprop_of(const OpDesc& desc);

}  // namespace gpunn::backends
