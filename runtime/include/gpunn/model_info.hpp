#pragma once

#include <gpunn/data.hpp>
#include <gpunn/field.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// What a model that makes images of photographs sees of them, and how much larger its results are.
struct PhotographInfo {
  int64_t scale = 1;
  ColourPlanes colours = ColourPlanes::rgb;
  ModelInput input = ModelInput::small;
  bool operator==(const PhotographInfo&) const = default;
};

// Describes a trained model without its data set. Checkpoints and exports contain it.
struct ModelInfo {
  std::string task = "classification";
  // Inputs in the form of the data set. Of targets, `names` are those of the outputs: classes, labels or columns.
  Schema fields;
  std::optional<PhotographInfo> photographs = {};  // of a model trained on a data set of them
  DataDigest data;                                 // the data of the training, its evaluations and its test
};

}  // namespace gpunn
