#pragma once

#include <gpunn/data.hpp>

namespace gpunn::training {

// What is evaluated: while training the validation samples, where data.validation_fraction puts some aside, later the
// test samples, where there are any.
enum class EvaluationPart { validation, test };

// The data set with that part as its `test`, and its `validation` empty.
Dataset load_for(const DataConfig& config, EvaluationPart part);

// The same of load_sizes(), as a training would have it: for a plan.
Dataset sizes_for_training(const DataConfig& config);

// Of one sample: [C, H, W] or [features].
Shape sample_shape(const Dataset& set);

}  // namespace gpunn::training
