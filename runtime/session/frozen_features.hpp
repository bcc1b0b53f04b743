#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/precision.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/images/planes.hpp"
#include "execution/steps/program_runner.hpp"
#include "graph/expressions.hpp"
#include "nn/frozen/frozen_network.hpp"
#include "tasks/style/frozen_features.hpp"

namespace gpunn::training {

// Which network looks at images, and at which of its layers they are compared.
struct FrozenRequest {
  std::string network = "vgg19";  // a known network, or a run folder, a checkpoint or an ONNX file
  std::filesystem::path weights;  // of a known network: a .safetensors file; empty: looked for in $GPUNN_DATA_DIR
  FeatureColours colours = FeatureColours::centred;  // of these weights
  std::vector<std::string> content, style;           // layers; empty: those that the network is known for
  bool compares_styles = true;                       // else there are no style layers
  uint64_t seed = 1;                                 // of drawn weights
  Precision precision = Precision::fp32;             // bf16: values between its layers have that dtype
};

// Without styles. Throws Error: usage for a layer or network that is not there, missing for a file, and where a tensor
// is not in it.
tasks::FrozenFeatures load_frozen(const FrozenRequest& request);
// Of an experiment whose loss compares images by features; else nothing.
std::unique_ptr<tasks::FrozenFeatures> load_frozen_of(const Experiment& experiment);

// What becomes of what a layer gives.
using OfLayer = graph::ValueId (*)(graph::Expressions& e, graph::ValueId features);
// Runs the network once on a picture of 3 channels. Of each of the layers, what `of` makes of it, under the layer's
// name. The network's constants are on the device.
std::vector<nn::Constant> seen_in(execution::ProgramRunner& runner, const nn::FrozenNetwork& network,
                                  const data::Planes& picture, const std::vector<std::string>& layers, OfLayer of);

// Makes variables of constants.
void upload(execution::ProgramRunner& runner, const std::vector<nn::Constant>& constants);
// The network's constants, and the Gram matrices of the styles of a loss that has any: of one that the program draws
// where none is named.
void place_frozen(execution::ProgramRunner& runner, const LossConfig& loss, tasks::FrozenFeatures& frozen);

}  // namespace gpunn::training
