#pragma once

#include <cstddef>
#include <vector>

#include "conformance/tolerances.hpp"

namespace gpunn::conformance {

// How large the rounding errors of an op may grow: for each element of an output a number to be multiplied with the
// unit roundoff of its type. Each function is the error analysis of one kind of op.
using ErrorScale = std::vector<double> (*)(const Evaluation& evaluation, std::size_t output);

std::vector<double> exact_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> one_rounding_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> function_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> few_roundings_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> axpby_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> norm_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> affine_scale(const Evaluation& evaluation, std::size_t output);
// Of an op that sums products of its first two inputs: the sums of their absolute values, without bias or activation.
std::vector<double> products_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> sum_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> first_input_sum_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> squares_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> sigmoid_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> tanh_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> silu_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> silu_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> gelu_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> gelu_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> softmax_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> softmax_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> log_softmax_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> log_softmax_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> cross_entropy_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> cross_entropy_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> soft_cross_entropy_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> soft_cross_entropy_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> batch_norm_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> batch_norm_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> batch_norm_inference_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> bce_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> bce_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> hinge_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> hinge_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> layer_norm_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> layer_norm_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> local_response_norm_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> local_response_norm_backward_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> sgd_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> adam_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> rmsprop_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> adagrad_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> lion_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> lars_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> uniform_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> normal_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> affine_image_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> color_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> mix_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> metrics_scale(const Evaluation& evaluation, std::size_t output);

// Rounding errors of a sum of `terms` numbers, in units of the sum of their absolute values: they add up as a random
// walk, since the signs of roundings are as good as independent. 2 sqrt(n) is more than twice what a plain loop over n
// positive terms reaches among 10^5 sums; blocked and pairwise sums stay far below.
double accumulation(double terms);

}  // namespace gpunn::conformance
