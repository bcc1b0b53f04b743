#include "conformance/tolerances.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <cmath>
#include <limits>

#include "conformance/error_scales.hpp"
#include "graph/op_info.hpp"

namespace gpunn::conformance {

namespace {

struct Row {
  int32_t op;
  int output;  // -1: every output
  ErrorScale scale;
  std::string_view reason;
  bool multiplies = false;  // products of this op may be rounded to the precision that the user allows
};

constexpr int kEvery = -1;

// The table. An element passes if |found - reference| <= unit roundoff of its type * scale. Integer types have no
// roundoff: they are compared exactly, whatever the row.
constexpr Row kTable[] = {
    {GPUNN_OP_ADD, kEvery, one_rounding_scale, "one addition, rounded once"},
    {GPUNN_OP_SUB, kEvery, one_rounding_scale, "one subtraction, rounded once"},
    {GPUNN_OP_MUL, kEvery, one_rounding_scale, "one product, rounded once"},
    {GPUNN_OP_DIV, kEvery, few_roundings_scale, "a reciprocal and a product at worst"},
    {GPUNN_OP_MAXIMUM, kEvery, exact_scale, "chooses, computes nothing"},
    {GPUNN_OP_MINIMUM, kEvery, exact_scale, "chooses, computes nothing"},
    {GPUNN_OP_POW, kEvery, function_scale, "a function of the library, off by four units in the last place at most"},
    {GPUNN_OP_EQUAL, kEvery, exact_scale, "0 or 1"},
    {GPUNN_OP_LESS, kEvery, exact_scale, "0 or 1"},
    {GPUNN_OP_LESS_EQUAL, kEvery, exact_scale, "0 or 1"},
    {GPUNN_OP_SELECT, kEvery, exact_scale, "chooses, computes nothing"},
    {GPUNN_OP_EXPAND, kEvery, exact_scale, "a copy"},
    {GPUNN_OP_EXP, kEvery, function_scale, "a function of the library, off by four units in the last place at most"},
    {GPUNN_OP_LOG, kEvery, function_scale, "a function of the library, off by four units in the last place at most"},
    {GPUNN_OP_SQRT, kEvery, few_roundings_scale, "a root, or an inverse root and a product"},
    {GPUNN_OP_RSQRT, kEvery, few_roundings_scale, "a root and a quotient"},
    {GPUNN_OP_ERF, kEvery, function_scale, "a function of the library, off by four units in the last place at most"},
    {GPUNN_OP_SCALE, kEvery, one_rounding_scale, "one product, rounded once"},
    {GPUNN_OP_AXPBY, kEvery, axpby_scale, "two products and an addition, fused or not"},
    {GPUNN_OP_CLAMP, kEvery, exact_scale, "chooses, computes nothing"},
    {GPUNN_OP_COPY, kEvery, exact_scale, "a conversion is defined to the bit"},
    {GPUNN_OP_FILL, kEvery, exact_scale, "a constant"},
    {GPUNN_OP_RELU, kEvery, exact_scale, "chooses, computes nothing"},
    {GPUNN_OP_RELU_BACKWARD, kEvery, exact_scale, "chooses, computes nothing"},
    {GPUNN_OP_LEAKY_RELU, kEvery, one_rounding_scale, "one product, rounded once"},
    {GPUNN_OP_LEAKY_RELU_BACKWARD, kEvery, one_rounding_scale, "one product, rounded once"},
    {GPUNN_OP_SIGMOID, kEvery, sigmoid_scale, "an exp, a sum and a quotient"},
    {GPUNN_OP_SIGMOID_BACKWARD, kEvery, few_roundings_scale, "a difference and two products"},
    {GPUNN_OP_TANH, kEvery, sigmoid_scale, "a tanh, to the relative error of its result"},
    {GPUNN_OP_TANH_BACKWARD, kEvery, tanh_backward_scale, "the rounding of y^2, a difference and a product"},
    {GPUNN_OP_GELU, kEvery, gelu_scale, "(1 + erf) / 2, whose terms may cancel, and a product"},
    {GPUNN_OP_GELU_BACKWARD, kEvery, gelu_backward_scale, "(1 + erf) / 2, whose terms may cancel, and a sum"},
    {GPUNN_OP_SILU, kEvery, silu_scale, "an exp, a sum, a quotient and a product"},
    {GPUNN_OP_SILU_BACKWARD, kEvery, silu_backward_scale, "1 + x (1 - s), whose terms may cancel"},

    {GPUNN_OP_MATMUL, kEvery, sum_scale, "a sum of K products in any order", true},
    {GPUNN_OP_BATCH_MATMUL, kEvery, sum_scale, "a sum of K products in any order", true},
    {GPUNN_OP_BIAS_ADD, kEvery, one_rounding_scale, "one addition, rounded once"},
    {GPUNN_OP_BIAS_BACKWARD, kEvery, sum_scale, "a sum over images and pixels in any order"},
    {GPUNN_OP_MATMUL_BIAS_ACTIVATION, kEvery, sum_scale, "a sum of K products and the bias; ReLU adds no error", true},
    {GPUNN_OP_BIAS_ACTIVATION_BACKWARD, 0, exact_scale, "dx is chosen, not computed"},
    {GPUNN_OP_BIAS_ACTIVATION_BACKWARD, 1, first_input_sum_scale, "a sum over images and pixels in any order"},

    {GPUNN_OP_CONV2D, kEvery, sum_scale, "a sum of C/groups R S products in any order", true},
    {GPUNN_OP_CONV2D_BACKWARD_DATA, kEvery, sum_scale, "a sum of at most K/groups R S products in any order", true},
    {GPUNN_OP_CONV2D_BACKWARD_FILTER, kEvery, sum_scale, "a sum of at most N P Q products in any order", true},
    {GPUNN_OP_CONV2D_BIAS_ACTIVATION, kEvery, sum_scale, "the products and the bias; ReLU adds no error", true},

    {GPUNN_OP_MAX_POOL2D, kEvery, exact_scale, "chooses, computes nothing"},
    {GPUNN_OP_MAX_POOL2D_BACKWARD, kEvery, first_input_sum_scale, "a sum over the windows that an element wins"},
    {GPUNN_OP_AVG_POOL2D, kEvery, sum_scale, "a sum over the window in any order and a quotient"},
    {GPUNN_OP_AVG_POOL2D_BACKWARD, kEvery, sum_scale, "a sum of quotients over the windows that hold an element"},

    {GPUNN_OP_UPSAMPLE2D, kEvery, sum_scale, "a mean of at most four elements; one alone is exact"},
    {GPUNN_OP_UPSAMPLE2D_BACKWARD, kEvery, sum_scale, "a sum over the elements made of one, in any order"},

    {GPUNN_OP_PAD, kEvery, exact_scale, "a copy"},
    {GPUNN_OP_SLICE, kEvery, exact_scale, "a copy"},
    {GPUNN_OP_CONCAT, kEvery, exact_scale, "a copy"},
    {GPUNN_OP_TRANSPOSE, kEvery, exact_scale, "a copy"},

    {GPUNN_OP_SOFTMAX, kEvery, softmax_scale, "the rounding of x - max is magnified by exp, then a sum and a quotient"},
    {GPUNN_OP_SOFTMAX_BACKWARD, kEvery, softmax_backward_scale, "a sum of C products, a difference and a product"},
    {GPUNN_OP_LOG_SOFTMAX, kEvery, log_softmax_scale, "the roundings of x - max, of the sum inside log and of log"},
    {GPUNN_OP_LOG_SOFTMAX_BACKWARD, kEvery, log_softmax_backward_scale, "a sum of C terms, an exp and a difference"},

    {GPUNN_OP_BATCH_NORM, kEvery, batch_norm_scale,
     "the mean is a sum, the variance a sum of squares of differences from it; then a root, products and a sum"},
    {GPUNN_OP_BATCH_NORM_BACKWARD, kEvery, batch_norm_backward_scale, "two sums, of dy and of its products with x"},
    {GPUNN_OP_BATCH_NORM_INFERENCE, kEvery, batch_norm_inference_scale, "a root, products and a sum, in any order"},
    {GPUNN_OP_LAYER_NORM, kEvery, layer_norm_scale, "as BATCH_NORM, by row"},
    {GPUNN_OP_LAYER_NORM_BACKWARD, kEvery, layer_norm_backward_scale, "two sums by row, and two by column"},
    {GPUNN_OP_LOCAL_RESPONSE_NORM, kEvery, local_response_norm_scale, "a sum of squares, a power and a product"},
    {GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, kEvery, local_response_norm_backward_scale,
     "sums of squares, two powers, a sum"},

    {GPUNN_OP_NLL_LOSS, kEvery, exact_scale, "a change of sign"},
    {GPUNN_OP_NLL_LOSS_BACKWARD, kEvery, exact_scale, "a change of sign"},
    {GPUNN_OP_MSE_LOSS, kEvery, squares_scale, "a sum of squares and a quotient"},
    {GPUNN_OP_MSE_LOSS_BACKWARD, kEvery, few_roundings_scale, "a difference, two products and a quotient"},
    {GPUNN_OP_SOFTMAX_CROSS_ENTROPY, kEvery, cross_entropy_scale, "as LOG_SOFTMAX"},
    {GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, kEvery, cross_entropy_backward_scale, "an exp, a difference, a product"},
    {GPUNN_OP_SOFT_CROSS_ENTROPY, kEvery, soft_cross_entropy_scale, "as LOG_SOFTMAX, then a sum of C products"},
    {GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, kEvery, soft_cross_entropy_backward_scale,
     "a sum of C terms, an exp, a product and a difference"},

    {GPUNN_OP_BCE_LOGITS_LOSS, kEvery, bce_scale,
     "a sum of terms of a product, an exp and a logarithm, and a quotient"},
    {GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, kEvery, bce_backward_scale, "an exp, a quotient, a difference, two products"},
    {GPUNN_OP_HUBER_LOSS, kEvery, squares_scale, "a sum of squares or distances, and a quotient"},
    {GPUNN_OP_HUBER_LOSS_BACKWARD, kEvery, few_roundings_scale, "a difference, a product and a quotient"},
    {GPUNN_OP_HINGE_LOSS, kEvery, hinge_scale, "differences from the label's score, and their sum in any order"},
    {GPUNN_OP_HINGE_LOSS_BACKWARD, kEvery, hinge_backward_scale, "differences, and for the label their sum"},

    {GPUNN_OP_REDUCE, kEvery, sum_scale, "a sum in any order; a maximum is exact"},
    {GPUNN_OP_MEAN_ROWS, kEvery, sum_scale, "a sum in any order and a quotient"},
    {GPUNN_OP_MEAN_ROWS_BACKWARD, kEvery, few_roundings_scale, "one quotient"},

    {GPUNN_OP_NORM, kEvery, norm_scale, "half the error of a sum of squares in any order, and a root"},

    {GPUNN_OP_CLIP_NORM, kEvery, few_roundings_scale, "a sum, a quotient and a product"},
    {GPUNN_OP_L1_GRADIENT, kEvery, one_rounding_scale, "one addition, rounded once"},

    {GPUNN_OP_SGD_UPDATE, kEvery, sgd_scale, "a sum of at most four products"},
    {GPUNN_OP_ADAM_UPDATE, kEvery, adam_scale,
     "moments of two products, two quotients and a root; the powers of beta must be formed in more than f32"},
    {GPUNN_OP_RMSPROP_UPDATE, kEvery, rmsprop_scale, "a moment of two products, a root and a quotient"},
    {GPUNN_OP_ADAGRAD_UPDATE, kEvery, adagrad_scale, "a sum, a root and a quotient"},
    {GPUNN_OP_LION_UPDATE, kEvery, lion_scale, "a sum of two products, whose sign is open where they cancel"},
    {GPUNN_OP_LARS_UPDATE, kEvery, lars_scale, "two sums of a part's squares in any order, then three products"},

    {GPUNN_OP_RANDOM_UNIFORM, kEvery, uniform_scale, "equal bits, then a product and an addition"},
    {GPUNN_OP_RANDOM_NORMAL, kEvery, normal_scale, "equal bits, then the rounding of the angle 2 pi u2 < 6.3 in f32"},
    {GPUNN_OP_RANDOM_PERMUTATION, kEvery, exact_scale, "equal bits"},
    {GPUNN_OP_DROPOUT, kEvery, few_roundings_scale, "the same elements, then 1 / (1 - p) and a product"},

    {GPUNN_OP_SAMPLE_INDICES, kEvery, exact_scale, "integers"},
    {GPUNN_OP_GATHER_ROWS, kEvery, exact_scale, "a copy"},
    {GPUNN_OP_SCATTER_ADD, kEvery, sum_scale, "a sum of at most B terms in any order"},
    {GPUNN_OP_GATHER_NORMALIZE, kEvery, affine_scale, "a product and an addition, fused or not"},

    {GPUNN_OP_RANDOM_SHIFT, kEvery, exact_scale, "equal bits choose; values are only moved"},
    {GPUNN_OP_RANDOM_AFFINE, kEvery, affine_image_scale,
     "a place within H + W, computed in f32 at worst, and from pixel to pixel values change by twice the largest"},
    {GPUNN_OP_RANDOM_COLOR, kEvery, color_scale, "colours up to white, computed in f32 at worst, and normalised again"},
    {GPUNN_OP_RANDOM_ERASE, kEvery, exact_scale, "equal bits choose; values are only moved"},
    {GPUNN_OP_MIX_ROWS, kEvery, mix_scale, "a difference, two products and a sum"},

    {GPUNN_OP_ADVANCE, kEvery, exact_scale, "integers"},
    {GPUNN_OP_TABLE_LOAD, kEvery, exact_scale, "a copy"},
    {GPUNN_OP_TABLE_STORE, kEvery, exact_scale, "a copy"},

    {GPUNN_OP_METRICS_ACCUMULATE, kEvery, metrics_scale, "a sum in f64, since the totals are; counts are exact"},
};

// Two factors, each rounded or cut off to the precision, are off by at most 2 units of roundoff each, and the sums stay
// f32. (Rounding to nearest stays below half of that; tensor cores that read f32 as it is cut off.)
void add_products(const Evaluation& evaluation, std::size_t output, std::vector<double>& bound) {
  const double unit = product_roundoff(evaluation.precision);
  const std::vector<double> sum = products_scale(evaluation, output);
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i] += (4 * unit + 4 * unit * unit) * sum[i];
}

}  // namespace

double unit_roundoff(DType type) {
  switch (type) {
    case DType::f32:
      return std::ldexp(1.0, -24);
    case DType::bf16:
      return std::ldexp(1.0, -8);
    case DType::f16:
      return std::ldexp(1.0, -11);
    case DType::f64:
      return std::ldexp(1.0, -53);
    case DType::i32:
    case DType::i64:
    case DType::u8:
      return 0;
  }
  return 0;
}

double product_roundoff(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return unit_roundoff(DType::f32);
    case Precision::tf32:
      return std::ldexp(1.0, -11);  // 10 bits behind the point
    case Precision::bf16:
      return unit_roundoff(DType::bf16);
  }
  return 0;
}

Tolerance tolerance_of(const Evaluation& evaluation, std::size_t output) {
  const int32_t op = evaluation.signature.op;
  for (const Row& row : kTable) {
    if (row.op != op || (row.output != kEvery && row.output != static_cast<int>(output))) continue;
    const DType type = evaluation.reference.at(output).type.dtype;
    const double roundoff = unit_roundoff(type);
    // Numbers below the smallest normal one may be flushed to zero, as GPUs and vectorised code do.
    const double smallest = type == DType::f32 && row.scale != exact_scale ? std::numeric_limits<float>::min() : 0;
    Tolerance tolerance{row.scale(evaluation, output), row.reason};
    for (double& bound : tolerance.bound) bound = roundoff * bound + (bound > 0 ? smallest : 0);
    if (row.multiplies && evaluation.precision != Precision::fp32) add_products(evaluation, output, tolerance.bound);
    return tolerance;
  }
  throw Error("there is no tolerance for output " + std::to_string(output) + " of " +
              std::string(graph::op_info(op).name) + "; add a row to runtime/conformance/tolerances.cpp");
}

}  // namespace gpunn::conformance
