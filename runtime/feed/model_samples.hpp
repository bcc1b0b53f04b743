#pragma once

#include <gpunn/data.hpp>
#include <gpunn/field.hpp>

#include <vector>

#include "nn/model.hpp"

namespace gpunn::training {

// A sample of each input, as models take it.
nn::SampleTypes model_samples(const Schema& fields);
nn::SampleTypes model_samples(const Dataset& dataset);

// The fields of a data set; the first input's type is the one that its training samples have on the device.
Schema typed_fields(const Dataset& dataset);

// An input of a model and the one of some data that it is given.
struct InputPair {
  const Field* taken = nullptr;
  Field* given = nullptr;  // null: the data lacks it
};
// Pairs the inputs by their names. If both have a single one, it is a pair whatever its names.
std::vector<InputPair> paired_inputs(const Schema& model, Schema& data);

// Gives inputs of the data the mean and deviation that the model has of them.
void take_normalisation(const Schema& model, Schema& data);

}  // namespace gpunn::training
