#include <gpunn/ops.h>
#include <gpunn/ops.hpp>

#include <algorithm>
#include <cctype>
#include <map>

#include "graph/op_attributes.hpp"
#include "ops/op.hpp"

namespace gpunn::eager {

namespace {

// By id. Made when it is first asked for, which may be before main().
const std::map<int32_t, std::string_view>& summaries() {
  static const std::map<int32_t, std::string_view> lines{
      {GPUNN_OP_ADD, "y = a + b, with broadcasting"},
      {GPUNN_OP_SUB, "y = a - b, with broadcasting"},
      {GPUNN_OP_MUL, "y = a * b, with broadcasting"},
      {GPUNN_OP_DIV, "y = a / b, with broadcasting"},
      {GPUNN_OP_MAXIMUM, "the larger of a and b, NaN where either is, with broadcasting"},
      {GPUNN_OP_MINIMUM, "the smaller of a and b, NaN where either is, with broadcasting"},
      {GPUNN_OP_POW, "y = a^b, with broadcasting"},
      {GPUNN_OP_EQUAL, "1 where a = b, else 0, with broadcasting"},
      {GPUNN_OP_LESS, "1 where a < b, else 0, with broadcasting"},
      {GPUNN_OP_LESS_EQUAL, "1 where a <= b, else 0, with broadcasting"},
      {GPUNN_OP_SELECT, "a where the condition is not 0, else b, with broadcasting"},
      {GPUNN_OP_EXPAND, "x broadcast to a shape"},
      {GPUNN_OP_EXP, "e^x"},
      {GPUNN_OP_LOG, "the natural logarithm of x"},
      {GPUNN_OP_SQRT, "the square root of x"},
      {GPUNN_OP_RSQRT, "1 / sqrt(x)"},
      {GPUNN_OP_ERF, "the error function of x"},
      {GPUNN_OP_SCALE, "y = factor * x"},
      {GPUNN_OP_COPY, "y = x, converted to the dtype of y"},
      {GPUNN_OP_FILL, "a tensor whose elements all have one value"},
      {GPUNN_OP_AXPBY, "y = alpha * a + beta * b"},
      {GPUNN_OP_CLAMP, "y = min(max(x, low), high)"},
      {GPUNN_OP_RELU, "y = max(x, 0)"},
      {GPUNN_OP_RELU_BACKWARD, "the gradient of relu, of its result y"},
      {GPUNN_OP_LEAKY_RELU, "y = x where x > 0, else slope * x"},
      {GPUNN_OP_LEAKY_RELU_BACKWARD, "the gradient of leaky_relu, of its input x"},
      {GPUNN_OP_SIGMOID, "y = 1 / (1 + exp(-x))"},
      {GPUNN_OP_SIGMOID_BACKWARD, "the gradient of sigmoid, of its result y"},
      {GPUNN_OP_TANH, "the hyperbolic tangent of x"},
      {GPUNN_OP_TANH_BACKWARD, "the gradient of tanh, of its result y"},
      {GPUNN_OP_GELU, "x times the normal distribution's function"},
      {GPUNN_OP_GELU_BACKWARD, "the gradient of gelu, of its input x"},
      {GPUNN_OP_SILU, "y = x * sigmoid(x)"},
      {GPUNN_OP_SILU_BACKWARD, "the gradient of silu, of its input x"},
      {GPUNN_OP_MATMUL, "the matrix product of a[M,K] and b[K,N], or of their transposes"},
      {GPUNN_OP_BATCH_MATMUL, "a matrix product for each entry of a[B,M,K] and b[B,K,N]"},
      {GPUNN_OP_BIAS_ADD, "y = x + b, by channel"},
      {GPUNN_OP_BIAS_BACKWARD, "the sum of dy by channel"},
      {GPUNN_OP_MATMUL_BIAS_ACTIVATION, "matrix product, bias and activation in one"},
      {GPUNN_OP_BIAS_ACTIVATION_BACKWARD, "the gradients of a bias and the activation behind it"},
      {GPUNN_OP_CONV2D, "convolution (cross-correlation) of images x[N,C,H,W] with filters w[K,C/groups,R,S]"},
      {GPUNN_OP_CONV2D_BACKWARD_DATA, "the gradient of conv2d for its images"},
      {GPUNN_OP_CONV2D_BACKWARD_FILTER, "the gradient of conv2d for its filters"},
      {GPUNN_OP_CONV2D_BIAS_ACTIVATION, "convolution, bias and activation in one"},
      {GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION, "convolution, bias, a sum with another tensor, and activation in one"},
      {GPUNN_OP_MAX_POOL2D, "the largest element of each window"},
      {GPUNN_OP_MAX_POOL2D_BACKWARD, "the gradient of max_pool2d"},
      {GPUNN_OP_AVG_POOL2D, "the mean of each window"},
      {GPUNN_OP_AVG_POOL2D_BACKWARD, "the gradient of avg_pool2d"},
      {GPUNN_OP_UPSAMPLE2D, "images of several times as many rows and columns"},
      {GPUNN_OP_UPSAMPLE2D_BACKWARD, "the gradient of upsample2d"},
      {GPUNN_OP_REFLECT_PAD2D, "images with borders that mirror them"},
      {GPUNN_OP_REFLECT_PAD2D_BACKWARD, "the gradient of reflect_pad2d"},
      {GPUNN_OP_SOFTMAX, "softmax over the last dimension"},
      {GPUNN_OP_SOFTMAX_BACKWARD, "the gradient of softmax, of its result y"},
      {GPUNN_OP_LOG_SOFTMAX, "the logarithm of softmax over the last dimension"},
      {GPUNN_OP_LOG_SOFTMAX_BACKWARD, "the gradient of log_softmax, of its result y"},
      {GPUNN_OP_ATTENTION,
       "softmax(scale * q k') v by sample and head, and the logarithm of each softmax's denominator"},
      {GPUNN_OP_ATTENTION_BACKWARD, "the gradients of attention, of its results y and lse"},
      {GPUNN_OP_BATCH_NORM, "batch normalisation by the batch's statistics; the running ones change in place"},
      {GPUNN_OP_BATCH_NORM_BACKWARD, "the gradients of batch_norm"},
      {GPUNN_OP_BATCH_NORM_INFERENCE, "batch normalisation by given statistics"},
      {GPUNN_OP_LAYER_NORM, "normalisation of each row"},
      {GPUNN_OP_LAYER_NORM_BACKWARD, "the gradients of layer_norm"},
      {GPUNN_OP_INSTANCE_NORM, "normalisation of each channel of each row"},
      {GPUNN_OP_INSTANCE_NORM_BACKWARD, "the gradients of instance_norm"},
      {GPUNN_OP_LOCAL_RESPONSE_NORM, "normalisation of each element by its neighbours in other channels"},
      {GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, "the gradient of local_response_norm"},
      {GPUNN_OP_NLL_LOSS, "loss[i] = -logp[i, label[i]]"},
      {GPUNN_OP_NLL_LOSS_BACKWARD, "the gradient of nll_loss"},
      {GPUNN_OP_MSE_LOSS, "the mean squared difference of each row"},
      {GPUNN_OP_MSE_LOSS_BACKWARD, "the gradient of mse_loss"},
      {GPUNN_OP_BCE_LOGITS_LOSS, "the binary cross-entropy of sigmoid(x), as a mean over each row"},
      {GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, "the gradient of bce_logits_loss for x"},
      {GPUNN_OP_HINGE_LOSS, "the multi-class hinge loss of each row"},
      {GPUNN_OP_HINGE_LOSS_BACKWARD, "the gradient of hinge_loss"},
      {GPUNN_OP_HUBER_LOSS, "the Huber loss, as a mean over each row"},
      {GPUNN_OP_HUBER_LOSS_BACKWARD, "the gradient of huber_loss for x"},
      {GPUNN_OP_SOFTMAX_CROSS_ENTROPY,
       "the cross-entropy of softmax(x) with labels, and the logarithm of that softmax"},
      {GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, "the gradient of softmax_cross_entropy"},
      {GPUNN_OP_SOFT_CROSS_ENTROPY, "the cross-entropy of softmax(x) with target distributions"},
      {GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, "the gradient of soft_cross_entropy for x"},
      {GPUNN_OP_CROSS_ENTROPY, "the cross-entropy of softmax(x) with the label of each position, its weight, and lse"},
      {GPUNN_OP_CROSS_ENTROPY_BACKWARD, "the gradient of cross_entropy, from lse"},
      {GPUNN_OP_REDUCE, "the sum, mean or maximum over dimensions"},
      {GPUNN_OP_MEAN_ROWS, "the mean of the first count elements"},
      {GPUNN_OP_MEAN_ROWS_BACKWARD, "the gradient of mean_rows"},
      {GPUNN_OP_NORM, "y = sqrt(sum(x^2))"},
      {GPUNN_OP_PAD, "x padded with zeros"},
      {GPUNN_OP_SLICE, "a box of x"},
      {GPUNN_OP_CONCAT, "tensors concatenated along a dimension"},
      {GPUNN_OP_TRANSPOSE, "x with its dimensions permuted"},
      {GPUNN_OP_SGD_UPDATE, "a step of stochastic gradient descent; w and velocity change in place"},
      {GPUNN_OP_ADAM_UPDATE, "a step of Adam or AdamW; w, m and v change in place"},
      {GPUNN_OP_RMSPROP_UPDATE, "a step of RMSprop; w, square and velocity change in place"},
      {GPUNN_OP_ADAGRAD_UPDATE, "a step of Adagrad; w and sum change in place"},
      {GPUNN_OP_LION_UPDATE, "a step of Lion; w and m change in place"},
      {GPUNN_OP_LARS_UPDATE, "a step of LARS; w and velocity change in place"},
      {GPUNN_OP_LBFGS_UPDATE, "a step of L-BFGS; w and the states change in place"},
      {GPUNN_OP_CLIP_NORM, "x scaled down where its norm exceeds max_norm"},
      {GPUNN_OP_L1_GRADIENT, "adds weight * sign(w) to the gradient g in place"},
      {GPUNN_OP_RANDOM_UNIFORM, "uniform random numbers of a counter"},
      {GPUNN_OP_RANDOM_NORMAL, "normal random numbers of a counter"},
      {GPUNN_OP_RANDOM_PERMUTATION, "a permutation of 0 to n - 1, of a counter"},
      {GPUNN_OP_DROPOUT, "elements become 0 with probability p, the others grow by 1 / (1 - p)"},
      {GPUNN_OP_SAMPLE_INDICES, "the rows of the batch of a step"},
      {GPUNN_OP_GATHER_ROWS, "rows of data by their indices"},
      {GPUNN_OP_SCATTER_ADD, "sums of rows of x by the index of their result"},
      {GPUNN_OP_GATHER_NORMALIZE, "rows of data by their indices, scaled and shifted by channel"},
      {GPUNN_OP_RANDOM_SHIFT, "images shifted by whole pixels and mirrored"},
      {GPUNN_OP_RANDOM_AFFINE, "images rotated, scaled and moved"},
      {GPUNN_OP_RANDOM_COLOR, "images with other brightness, contrast and saturation"},
      {GPUNN_OP_RANDOM_ERASE, "images with a rectangle of border"},
      {GPUNN_OP_MIX_ROWS, "rows mixed with those of the reversed batch"},
      {GPUNN_OP_RANDOM_SHIFT_LABELS, "label maps shifted and mirrored as random_shift does with images"},
      {GPUNN_OP_RANDOM_AFFINE_LABELS, "label maps rotated, scaled and moved as random_affine does with images"},
      {GPUNN_OP_RANDOM_ZOOM, "a random window of each image, enlarged to its size"},
      {GPUNN_OP_RANDOM_ZOOM_LABELS, "the window of random_zoom, of label maps"},
      {GPUNN_OP_ADVANCE, "adds increment to a counter in place"},
      {GPUNN_OP_TABLE_LOAD, "the entry of a table for a step"},
      {GPUNN_OP_TABLE_STORE, "writes an entry of a table in place"},
      {GPUNN_OP_QUANTIZE, "x stored in eight bits: round(x / scale) + zero_point"},
      {GPUNN_OP_DEQUANTIZE, "what eight bits stand for: (x - zero_point) * scale"},
      {GPUNN_OP_FAKE_QUANTIZE, "x rounded to what eight bits can stand for"},
      {GPUNN_OP_QUANTIZE_FILTER, "filters in eight bits, with a scale each"},
      {GPUNN_OP_QUANTIZED_CONV2D,
       "convolution of images and filters in eight bits, with bias, residual and activation"},
      {GPUNN_OP_QUANTIZED_MAX_POOL2D, "largest number of each window, in eight bits"},
      {GPUNN_OP_QUANTIZED_CONCAT, "tensors in eight bits of one scale, one behind the other"},
      {GPUNN_OP_QUANTIZED_LINEAR, "x times w transposed, both in eight bits, plus bias, as numbers of f32"},
      {GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D, "mean of each plane, in eight bits"},
      {GPUNN_OP_METRICS_ACCUMULATE, "adds a batch's loss, ranks and count to totals in place"},
      {GPUNN_OP_CONFUSION_ACCUMULATE, "adds a batch's labels and predicted classes to a confusion matrix in place"},
      {GPUNN_OP_ARGMAX, "the index of the largest of C at each position"},
      {GPUNN_OP_ALL_REDUCE, "the sum of the parts of all ranks; of a single rank, that of the rows of x"},
      {GPUNN_OP_REDUCE_SCATTER, "this rank's share of that sum; of a single rank, all of it"},
      {GPUNN_OP_ALL_GATHER, "the parts of all ranks; of a single rank, x"},
      {GPUNN_OP_GRID_POINTS, "the middles of a map's pixels in the image"},
      {GPUNN_OP_ASSIGN_POINTS, "which box each point learns, as FCOS does"},
      {GPUNN_OP_ASSIGN_ANCHORS, "which box each anchor learns, as SSD does"},
      {GPUNN_OP_FOCAL_LOSS, "the focal loss of sigmoid(x)"},
      {GPUNN_OP_FOCAL_LOSS_BACKWARD, "the gradient of focal_loss"},
      {GPUNN_OP_GIOU_LOSS, "1 minus the generalised overlap of two boxes"},
      {GPUNN_OP_GIOU_LOSS_BACKWARD, "the gradient of giou_loss for a"},
      {GPUNN_OP_TOP_MASK, "1 for the largest elements of each row, 0 for the others"},
      {GPUNN_OP_NON_MAXIMUM_SUPPRESSION, "the best ones of boxes that overlap"},
  };
  return lines;
}

TensorInfo tensor_info(const ops::Pattern& pattern) {
  TensorInfo info{.name = std::string(pattern.name), .shape = {}, .dtypes = {}};
  for (const std::string_view size : pattern.sizes) info.shape += (info.shape.empty() ? "" : ", ") + std::string(size);
  if (pattern.rest) info.shape += info.shape.empty() ? "..." : ", ...";
  if (pattern.computed) info.shape = "?";
  for (const int32_t dtype : pattern.dtypes) info.dtypes.push_back(static_cast<DType>(dtype));
  info.floating = pattern.floating;
  info.optional = pattern.optional;
  info.repeated = pattern.repeated;
  info.in_place = pattern.in_place;
  info.may_alias = pattern.may_alias;
  return info;
}

OpDescription description_of(const ops::OpInfo& op) {
  OpDescription result{.id = op.id,
                       .name = std::string(op.name),
                       .signature = std::string(op.row->text),
                       .summary = {},
                       .inputs = {},
                       .outputs = {},
                       .attributes = {}};
  std::ranges::transform(result.name, result.name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (const auto found = summaries().find(op.id); found != summaries().end()) result.summary = found->second;
  for (const ops::Pattern& pattern : op.row->signature.inputs) result.inputs.push_back(tensor_info(pattern));
  for (const ops::Pattern& pattern : op.row->signature.outputs) result.outputs.push_back(tensor_info(pattern));
  for (const graph::AttributeField* field : graph::attribute_fields(op.id)) result.attributes.push_back(field->info);
  // A composite that is no gradient itself is differentiated through its parts.
  const bool by_parts = op.composite && !op.name.ends_with("_BACKWARD");
  result.differentiable = op.gradient != nullptr || by_parts;
  return result;
}

}  // namespace

const std::vector<OpDescription>& catalogue() {
  static const std::vector<OpDescription> result = [] {
    std::vector<OpDescription> list;
    for (const ops::OpInfo* op : ops::all_ops()) list.push_back(description_of(*op));
    return list;
  }();
  return result;
}

}  // namespace gpunn::eager
