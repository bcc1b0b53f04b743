#pragma once

#include <gpunn/data.hpp>
#include <gpunn/tensor_type.hpp>

#include <string>
#include <vector>

namespace gpunn {

// The input of a model: samples in the form in which its data set has them.
struct InputInfo {
  std::string name = "image";        // "image", or "features" of samples that are no images
  TensorType sample;                 // one: u8 or f32, [C, H, W] or [features]
  std::vector<double> mean, stddev;  // by channel or feature, of values scaled by 1/255 where u8
  std::vector<std::string> columns;  // the names of the features, in their order; empty: they have none
  ImageFit fit;                      // how an image of another size becomes a sample
  bool light_on_dark = false;        // as MNIST's digits: a picture of dark on light is its negative
};

// Describes a trained model without its data set: checkpoints and exports hold it.
struct ModelInfo {
  std::string task = "classification";
  InputInfo input;
  std::vector<std::string> outputs;  // the names of what it tells: classes, labels, or the numbers of a regression
  // Of a regression, by number: the model gives (number - mean) / stddev. Else empty.
  std::vector<double> target_mean = {}, target_stddev = {};
  DataDigest data;  // what it was trained, watched and tested on
};

}  // namespace gpunn
