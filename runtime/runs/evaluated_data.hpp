#pragma once

#include <gpunn/data.hpp>

#include <string>

#include "runs/trained_model.hpp"

namespace gpunn::training {

struct EvaluatedData {
  Dataset dataset;     // its `test` is what the model is evaluated on
  std::string notice;  // of other rows than those of the training; empty: there is nothing to say
};

// The data set of a trained model. Throws Error(usage) where an ONNX file does not tell which it is, or the data's
// samples or classes are not the model's.
EvaluatedData load_evaluated(const TrainedFile& trained);

}  // namespace gpunn::training
