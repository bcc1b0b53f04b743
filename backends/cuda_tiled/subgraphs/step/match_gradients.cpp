// The gradients of a training step: each op by the values that it reads, from the last layer to the first.
#include "common/bias.hpp"
#include "common/matmul.hpp"
#include "common/normalization.hpp"
#include "common/pooling.hpp"
#include "common/random.hpp"
#include "subgraphs/step/match_search.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace backends;

bool same_dropout(const Dropout& a, const Dropout& b) {
  return a.seed == b.seed && a.stream == b.stream && a.threshold == b.threshold && a.n == b.n;
}

// An op that reads (a, b) as a product of these transposes.
std::size_t take_matmul(StepSearch& search, int32_t a, int32_t b, bool transpose_a, const char* otherwise) {
  Pattern& pattern = search.pattern;
  for (std::size_t i = pattern.begin(); i < pattern.end(); ++i) {
    if (pattern.taken(i) || pattern.op(i) != GPUNN_OP_MATMUL) continue;
    if (!pattern.same(pattern.input(i, 0), a) || !pattern.same(pattern.input(i, 1), b)) continue;
    const Matmul matmul = matmul_of(search.op(i));
    if (matmul.transpose_a == transpose_a && !matmul.transpose_b) return pattern.take(i, otherwise);
  }
  throw Refusal(otherwise);
}

void note_gradient(StepSearch& search, int32_t parameter, int32_t gradient) {
  search.gradients.push_back({parameter, gradient});
}

// The gradient of a ReLU whose result is y, perhaps with that of the bias in front of it.
void relu_backward(StepSearch& search, StepLayer& layer, int32_t y) {
  Pattern& pattern = search.pattern;
  const std::size_t both = pattern.find({GPUNN_OP_BIAS_ACTIVATION_BACKWARD}, {search.d, y});
  if (both == Pattern::kNone) {
    search.d = pattern.output(pattern.take(GPUNN_OP_RELU_BACKWARD, {search.d, y}, "no gradient of an activation"));
    return;
  }
  pattern.take(both, "");
  require(bias_activation_backward_of(search.op(both)).relu, "the gradient of another activation");
  search.d = pattern.output(both);
  note_gradient(search, layer.bias, pattern.output(both, 1));
  layer.bias_done = true;
}

void bias_backward(StepSearch& search, StepLayer& layer) {
  Pattern& pattern = search.pattern;
  if (layer.bias < 0 || layer.bias_done) return;
  std::size_t found = pattern.find({GPUNN_OP_BIAS_BACKWARD}, {search.d});
  if (found == Pattern::kNone) {
    found = pattern.take(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, {search.d, -1}, "no gradient of a bias");
    require(!bias_activation_backward_of(search.op(found)).relu, "the gradient of another activation");
    search.d = pattern.output(found);
    note_gradient(search, layer.bias, pattern.output(found, 1));
  } else {
    note_gradient(search, layer.bias, pattern.output(pattern.take(found, "")));
  }
  layer.bias_done = true;
}

void require_like(const ConvolutionShape& shape, const ConvShape& conv) {
  require_plain(shape, "the gradient of another convolution");
  require(shape.rows.pad == conv.pad[0] && shape.columns.pad == conv.pad[1], "the gradient of another convolution");
}

void pool_backward(StepSearch& search, const StepLayer& layer, std::size_t found, bool mean) {
  const Pool pool = mean ? avg_pool_backward_of(search.op(found)) : max_pool_backward_of(search.op(found));
  require(pool.rows.window == layer.conv.window[0] && pool.columns.window == layer.conv.window[1] &&
              pool.rows.stride == layer.conv.stride[0] && pool.columns.stride == layer.conv.stride[1] &&
              pool.rows.pad == 0 && pool.columns.pad == 0,
          "the gradient of another pooling");
  search.d = search.pattern.output(found);
}

// The gradient of one of a layer's ops, `search.d` being that of its result.
void backward_of(StepSearch& search, const StepLayerOp& at, std::size_t index) {
  Pattern& pattern = search.pattern;
  StepLayer& layer = search.layers[at.layer];
  const int32_t x = pattern.input(at.op, 0);
  const int32_t y = pattern.output(at.op);
  const auto map = [&](int32_t backward, int32_t of) {
    search.d = pattern.output(pattern.take(backward, {search.d, of}, "no gradient of an activation"));
  };
  switch (pattern.op(at.op)) {
    case GPUNN_OP_RELU:
      return relu_backward(search, layer, y);
    case GPUNN_OP_LEAKY_RELU:
      return map(GPUNN_OP_LEAKY_RELU_BACKWARD, x);
    case GPUNN_OP_SIGMOID:
      return map(GPUNN_OP_SIGMOID_BACKWARD, y);
    case GPUNN_OP_TANH:
      return map(GPUNN_OP_TANH_BACKWARD, y);
    case GPUNN_OP_GELU:
      return map(GPUNN_OP_GELU_BACKWARD, x);
    case GPUNN_OP_SILU:
      return map(GPUNN_OP_SILU_BACKWARD, x);
    case GPUNN_OP_BIAS_ADD:
      return bias_backward(search, layer);
    case GPUNN_OP_DROPOUT: {
      const std::size_t found =
          pattern.take(GPUNN_OP_DROPOUT, {search.d, pattern.input(at.op, 1)}, "no gradient of dropout");
      require(same_dropout(dropout_of(search.op(at.op)), dropout_of(search.op(found))),
              "the gradient of another dropout");
      search.d = pattern.output(found);
      return;
    }
    case GPUNN_OP_BATCH_NORM: {
      const std::size_t found = pattern.take(
          GPUNN_OP_BATCH_NORM_BACKWARD, {search.d, x, layer.gamma, pattern.output(at.op, 1), pattern.output(at.op, 2)},
          "no gradient of batch norm");
      const bool counted = batch_norm_backward_of(search.op(found)).counted;
      require(counted == search.match.network.counted && (!counted || pattern.input(found, 5) == search.count),
              "the gradient of another batch norm");
      search.d = pattern.output(found);
      note_gradient(search, layer.gamma, pattern.output(found, 1));
      note_gradient(search, layer.beta, pattern.output(found, 2));
      return;
    }
    case GPUNN_OP_MAX_POOL2D:
      return pool_backward(
          search, layer, pattern.take(GPUNN_OP_MAX_POOL2D_BACKWARD, {search.d, x, y}, "no gradient of pooling"), false);
    case GPUNN_OP_AVG_POOL2D:
      return pool_backward(search, layer,
                           pattern.take(GPUNN_OP_AVG_POOL2D_BACKWARD, {search.d}, "no gradient of pooling"), true);
    default:
      break;
  }
  // A layer's own op, perhaps with its ReLU.
  const bool with_relu =
      (pattern.op(at.op) == GPUNN_OP_CONV2D_BIAS_ACTIVATION && convolution_bias_activation_of(search.op(at.op)).relu) ||
      (pattern.op(at.op) == GPUNN_OP_MATMUL_BIAS_ACTIVATION && matmul_bias_activation_of(search.op(at.op)).relu);
  if (with_relu) relu_backward(search, layer, y);
  bias_backward(search, layer);
  if (layer.dense) {
    note_gradient(search, layer.w,
                  pattern.output(take_matmul(search, search.d, x, true, "no gradient of a dense layer")));
    if (index > 0)
      search.d = pattern.output(take_matmul(search, search.d, layer.w, false, "no gradient behind a dense layer"));
    return;
  }
  const std::size_t filter =
      pattern.take(GPUNN_OP_CONV2D_BACKWARD_FILTER, {search.d, x}, "no gradient of a convolution's filter");
  require_like(convolution_backward_filter_of(search.op(filter)), layer.conv);
  note_gradient(search, layer.w, pattern.output(filter));
  if (index == 0) return;
  const std::size_t data =
      pattern.take(GPUNN_OP_CONV2D_BACKWARD_DATA, {search.d, layer.w}, "no gradient of a convolution's input");
  require_like(convolution_backward_data_of(search.op(data)), layer.conv);
  search.d = pattern.output(data);
}

// No gradient flows further: what made x is no layer.
void require_beginning(const StepSearch& search) {
  const Pattern& pattern = search.pattern;
  const StepLayer& first = search.layers.front();
  const std::size_t more = first.dense ? pattern.find({GPUNN_OP_MATMUL}, {search.d, first.w})
                                       : pattern.find({GPUNN_OP_CONV2D_BACKWARD_DATA}, {search.d, first.w});
  if (more == Pattern::kNone) return;
  const std::size_t in_front = pattern.producer(search.x, search.layer_ops[0].op);
  throw Refusal(in_front == Pattern::kNone ? "layers in front of what is offered"
                                           : "a layer that is not known: " + op_text(search.desc, in_front));
}

// Where all parameters and gradients are: two flat arrays of one layout.
void place_parameters(StepSearch& search) {
  require(!search.gradients.empty(), "nothing to train");
  const gpunn_program_value& w0 = search.desc.value(search.gradients[0].parameter);
  const gpunn_program_value& g0 = search.desc.value(search.gradients[0].gradient);
  for (const auto& [parameter, gradient] : search.gradients) {
    const gpunn_program_value& w = search.desc.value(parameter);
    const gpunn_program_value& g = search.desc.value(gradient);
    require(w.root == w0.root && g.root == g0.root && w.offset == g.offset && w.offset % 4 == 0 &&
                g.storage == GPUNN_STORAGE_GRADIENTS &&
                plugin::element_count(*w.tensor) == plugin::element_count(*g.tensor),
            "gradients that lie elsewhere than the parameters");
  }
  search.match.values.parameters = {search.gradients[0].parameter, w0.offset};
  search.match.values.gradients = {search.gradients[0].gradient, g0.offset};
  const auto place = [&](int32_t id) { return id < 0 ? -1 : search.desc.value(id).offset / 4; };
  for (StepLayer& layer : search.layers) {
    StepFinish& finish = layer.finish();
    (layer.dense ? layer.matrix.weight : layer.conv.weight) = place(layer.w);
    (layer.dense ? layer.matrix.bias : layer.conv.bias) = place(layer.bias);
    finish.norm.gamma = place(layer.gamma);
    finish.norm.beta = place(layer.beta);
  }
}

}  // namespace

void match_gradients(StepSearch& search) {
  for (std::size_t i = search.layer_ops.size(); i-- > 0;) backward_of(search, search.layer_ops[i], i);
  require_beginning(search);
  place_parameters(search);
}

}  // namespace gpunn::cuda_tiled
