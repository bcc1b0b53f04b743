#pragma once

#include <vector>

#include "graph/op_info.hpp"

namespace gpunn::graph {

std::vector<OpInfo> elementwise_ops();
std::vector<OpInfo> activation_ops();
std::vector<OpInfo> linear_ops();
std::vector<OpInfo> convolution_ops();
std::vector<OpInfo> pooling_ops();
std::vector<OpInfo> softmax_ops();
std::vector<OpInfo> loss_ops();
std::vector<OpInfo> reduction_ops();
std::vector<OpInfo> optimizer_ops();
std::vector<OpInfo> random_ops();
std::vector<OpInfo> batch_ops();
std::vector<OpInfo> counter_ops();
std::vector<OpInfo> metrics_ops();

}  // namespace gpunn::graph
