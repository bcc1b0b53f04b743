#pragma once

#include <gpunn/data.hpp>

namespace gpunn::data {

// Sets mean and stddev to those of the training samples, channel by channel (feature by feature of [rows, features]).
void normalise_by_training_samples(Dataset& set);

}  // namespace gpunn::data
