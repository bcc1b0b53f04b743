#pragma once

#include <gpunn/data.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// The input of a model: samples in the form of the data set.
struct InputInfo {
  std::string name = "image";        // "image", or "features" for other samples
  TensorType sample;                 // one: u8 or f32, [C, H, W] or [features]
  std::vector<double> mean, stddev;  // for each channel or feature; u8 values are scaled by 1/255 first
  std::vector<std::string> columns;  // names of the features, in order; empty: no names
  ImageFit fit;                      // how an image of another size becomes a sample
  bool light_on_dark = false;        // bright on dark, as MNIST's digits; dark-on-light pictures are inverted
};

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
  InputInfo input;
  std::vector<std::string> outputs;      // names of classes, labels, or the numbers of a regression
  std::vector<int64_t> output_ids = {};  // COCO's category id of each class; empty: the data has none
  // Of a regression, for each number: the model's output is (number - mean) / stddev. Else empty.
  std::vector<double> target_mean = {}, target_stddev = {};
  std::optional<PhotographInfo> photographs = {};  // of a model trained on a data set of them
  DataDigest data;                                 // the data of the training, its evaluations and its test
};

}  // namespace gpunn
