// SGD, ADAM, RMSPROP, ADAGRAD, LION and LARS over flat vectors.
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
using Adagrad = Optimizer<gpunn_adagrad_attrs>;
using Lion = Optimizer<gpunn_lion_attrs>;

// The offsets of the parts are device memory: within [0, n] only after place_in().
struct Lars : Optimizer<gpunn_lars_attrs> {
  int64_t parts = 0;
};

// What an offset read from device memory says of n elements.
constexpr int64_t place_in(int64_t n, int64_t offset) { return offset < 0 ? 0 : offset > n ? n : offset; }

Sgd sgd_of(const OpDesc& desc);
Adam adam_of(const OpDesc& desc);
Rmsprop rmsprop_of(const OpDesc& desc);
Adagrad adagrad_of(const OpDesc& desc);
Lion lion_of(const OpDesc& desc);
Lars lars_of(const OpDesc& desc);

}  // namespace gpunn::backends
