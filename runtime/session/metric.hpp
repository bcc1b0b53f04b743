#pragma once

#include <gpunn/training.hpp>

#include <string_view>

namespace gpunn::training {

// What early stopping, the choice of the best checkpoint and reduce_on_plateau go by; can be kUndefined.
double value_of(std::string_view monitor, const EpochReport& epoch);

}  // namespace gpunn::training
