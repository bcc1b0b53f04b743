#pragma once

#include <gpunn/data.hpp>
#include <gpunn/field.hpp>

#include "nn/model.hpp"

namespace gpunn::training {

// A sample of each input, as models take it.
nn::SampleTypes model_samples(const Schema& fields);
// Of a data set, whose first input is as its training data have it.
nn::SampleTypes model_samples(const Dataset& dataset);

}  // namespace gpunn::training
