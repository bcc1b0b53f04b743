// The op families of the CPU backend, a file each.
#pragma once

#include <gpunn/plugin.hpp>

namespace gpunn::cpu {

void add_arithmetic_kernels(plugin::Device& device);
void add_elementwise_kernels(plugin::Device& device);
void add_activation_kernels(plugin::Device& device);
void add_bias_kernels(plugin::Device& device);
void add_matmul_kernels(plugin::Device& device);
void add_convolution_kernels(plugin::Device& device);
void add_pooling_kernels(plugin::Device& device);
void add_upsampling_kernels(plugin::Device& device);
void add_shape_kernels(plugin::Device& device);
void add_softmax_kernels(plugin::Device& device);
void add_normalization_kernels(plugin::Device& device);
void add_layer_norm_kernels(plugin::Device& device);
void add_local_response_norm_kernels(plugin::Device& device);
void add_loss_kernels(plugin::Device& device);
void add_pointwise_loss_kernels(plugin::Device& device);
void add_hinge_loss_kernels(plugin::Device& device);
void add_reduction_kernels(plugin::Device& device);
void add_optimizer_kernels(plugin::Device& device);
void add_regularization_kernels(plugin::Device& device);
void add_random_kernels(plugin::Device& device);
void add_batch_kernels(plugin::Device& device);
void add_augmentation_kernels(plugin::Device& device);
void add_counter_kernels(plugin::Device& device);
void add_metrics_kernels(plugin::Device& device);

}  // namespace gpunn::cpu
