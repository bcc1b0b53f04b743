#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>

#include "fields/standardise.hpp"

namespace gpunn::training {

// Throws Error(usage), with task, loss, last layer and data, if the data set lacks what the task learns.
void require_targets(const Experiment& experiment, const Dataset& dataset);

// Throws Error(usage) if a weight of a row is negative, or if none of a split is above 0.
void require_weights(const Dataset& dataset);

// Throws Error(usage) if the model takes samples of another shape.
void require_samples(const Experiment& experiment, const Dataset& dataset);

// Brings a field, in this dtype, to the device: numbers become (number - mean) / stddev, if the field has means.
fields::Standardiser field_standardiser(const Field& field, DType dtype);

}  // namespace gpunn::training
