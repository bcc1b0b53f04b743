#pragma once

#include <gpunn/explanation.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace gpunn::inference {

// What a layer gives for an image, and the gradient of a class's logit with respect to it: [channels, height, width].
struct LayerGradients {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> activations, gradients;
};

// The weight of each channel: of Grad-CAM the mean of its gradients (equation 1 of the paper), of Grad-CAM++ the sum of
// its positive ones weighed by alpha (equation 19), with 1e-6 in the denominator as the package grad-cam has it.
std::vector<float> channel_weights(const LayerGradients& layer, ExplainMethod method);

// The map of an image of height x width, from 0 to 1, as the package grad-cam makes it: max(0, sum of the weighted
// channels), stretched to the range from 0 to 1, enlarged bilinearly, and stretched again.
std::vector<float> class_activation_map(const LayerGradients& layer, ExplainMethod method, int64_t height,
                                        int64_t width);

// Bilinear with the pixels' centres aligned and borders repeated, as OpenCV's INTER_LINEAR and PyTorch's
// interpolate(mode="bilinear") have it.
std::vector<float> resize_bilinear(std::span<const float> map, int64_t rows, int64_t columns, int64_t height,
                                   int64_t width);

}  // namespace gpunn::inference
