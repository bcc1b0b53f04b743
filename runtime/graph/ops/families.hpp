#pragma once

#include <vector>

#include "graph/op_info.hpp"

namespace gpunn::graph {

std::vector<OpInfo> arithmetic_ops();
std::vector<OpInfo> elementwise_ops();
std::vector<OpInfo> activation_ops();
std::vector<OpInfo> linear_ops();
std::vector<OpInfo> convolution_ops();
std::vector<OpInfo> pooling_ops();
std::vector<OpInfo> upsampling_ops();
std::vector<OpInfo> shape_ops();
std::vector<OpInfo> softmax_ops();
std::vector<OpInfo> normalization_ops();
std::vector<OpInfo> layer_norm_ops();
std::vector<OpInfo> local_response_norm_ops();
std::vector<OpInfo> loss_ops();
std::vector<OpInfo> pointwise_loss_ops();
std::vector<OpInfo> hinge_loss_ops();
std::vector<OpInfo> reduction_ops();
std::vector<OpInfo> optimizer_ops();
std::vector<OpInfo> regularization_ops();
std::vector<OpInfo> random_ops();
std::vector<OpInfo> batch_ops();
std::vector<OpInfo> augmentation_ops();
std::vector<OpInfo> counter_ops();

}  // namespace gpunn::graph
