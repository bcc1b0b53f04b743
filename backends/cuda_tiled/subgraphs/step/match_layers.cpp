// The layers of a training step: found from the logits backwards, described by their forward ops.
#include "common/bias.hpp"
#include "common/elementwise.hpp"
#include "common/matmul.hpp"
#include "common/normalization.hpp"
#include "common/pooling.hpp"
#include "common/random.hpp"
#include "subgraphs/step/match_search.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace backends;

bool is_layer_op(int32_t op) {
  switch (op) {
    case GPUNN_OP_CONV2D:
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION:
    case GPUNN_OP_MATMUL:
    case GPUNN_OP_MATMUL_BIAS_ACTIVATION:
    case GPUNN_OP_BIAS_ADD:
    case GPUNN_OP_BATCH_NORM:
    case GPUNN_OP_RELU:
    case GPUNN_OP_LEAKY_RELU:
    case GPUNN_OP_SIGMOID:
    case GPUNN_OP_TANH:
    case GPUNN_OP_GELU:
    case GPUNN_OP_SILU:
    case GPUNN_OP_MAX_POOL2D:
    case GPUNN_OP_AVG_POOL2D:
    case GPUNN_OP_DROPOUT:
      return true;
    default:
      return false;
  }
}

bool begins_layer(int32_t op) {
  return op == GPUNN_OP_CONV2D || op == GPUNN_OP_CONV2D_BIAS_ACTIVATION || op == GPUNN_OP_MATMUL ||
         op == GPUNN_OP_MATMUL_BIAS_ACTIVATION;
}

void conv_layer(StepSearch& search, StepLayer& layer, const StepLayerOp& at, const ConvolutionShape& shape, bool relu,
                int32_t bias) {
  require(at.layer == 0 || !search.layers[at.layer - 1].dense, "a convolution behind a dense layer");
  require_plain(shape, "a convolution with strides, dilation or groups");
  ConvShape& conv = layer.conv;
  conv.channels = narrow(shape.group_inputs);
  conv.height = narrow(shape.rows.inputs);
  conv.width = narrow(shape.columns.inputs);
  conv.filters = narrow(shape.group_outputs);
  conv.rows = narrow(shape.rows.taps);
  conv.columns = narrow(shape.columns.taps);
  conv.pad[0] = narrow(shape.rows.pad);
  conv.pad[1] = narrow(shape.columns.pad);
  if (relu) conv.finish.activation = StepActivation::relu;
  layer.w = search.from_outside(search.pattern.input(at.op, 1));
  layer.bias = bias < 0 ? -1 : search.from_outside(bias);
}

void dense_layer(StepSearch& search, StepLayer& layer, const StepLayerOp& at, const Matmul& matmul, int32_t bias) {
  require(!matmul.transpose_a && matmul.transpose_b, "a dense layer whose weights are not [outputs, inputs]");
  require(matmul.k > 0 && matmul.n > 0, "a dense layer without inputs or outputs");
  layer.dense = true;
  layer.matrix.inputs = narrow(matmul.k);
  layer.matrix.outputs = narrow(matmul.n);
  if (matmul.relu) layer.matrix.finish.activation = StepActivation::relu;
  layer.w = search.from_outside(search.pattern.input(at.op, 1));
  layer.bias = bias < 0 ? -1 : search.from_outside(bias);
}

void norm_layer(StepSearch& search, StepLayer& layer, std::size_t at) {
  Pattern& pattern = search.pattern;
  StepFinish& finish = layer.finish();
  require(finish.norm.there == 0 && finish.activation == StepActivation::none && !layer.pooled &&
              finish.dropout.threshold == 0,
          "batch norm elsewhere than between a layer and its activation");
  const BatchNorm norm = batch_norm_of(search.op(at));
  require(!norm.counted || pattern.input(at, 5) == search.count, "batch norm over other rows");
  finish.norm.there = 1;
  finish.norm.epsilon = norm.epsilon;
  finish.norm.momentum = norm.momentum;
  layer.gamma = search.from_outside(pattern.input(at, 1));
  layer.beta = search.from_outside(pattern.input(at, 2));
  layer.running = {search.from_outside(pattern.input(at, 3)), search.from_outside(pattern.input(at, 4))};
  search.match.network.counted = search.match.network.counted || norm.counted;
  require(norm.counted || search.match.network.counted == false, "batch norms of which one counts rows");
  search.leave(pattern.output(at, 3));
  search.leave(pattern.output(at, 4));
}

void pooling_layer(StepLayer& layer, const Pool& pool, bool mean) {
  ConvShape& conv = layer.conv;
  require(!layer.dense && !layer.pooled, "pooling elsewhere than behind a convolution");
  require(conv.finish.dropout.threshold == 0, "pooling behind dropout");
  require(pool.rows.pad == 0 && pool.columns.pad == 0, "padded pooling");
  layer.pooled = true;
  conv.mean = mean;
  conv.window[0] = narrow(pool.rows.window);
  conv.window[1] = narrow(pool.columns.window);
  conv.stride[0] = narrow(pool.rows.stride);
  conv.stride[1] = narrow(pool.columns.stride);
  require(pool.rows.outputs == conv.pooled_height() && pool.columns.outputs == conv.pooled_width(),
          "pooling of another size");
}

void read_layer_op(StepSearch& search, const StepLayerOp& at) {
  Pattern& pattern = search.pattern;
  StepLayer& layer = search.layers[at.layer];
  StepFinish& finish = layer.finish();
  const auto activate = [&](StepActivation activation) {
    require(finish.activation == StepActivation::none, "two activations in a row");
    require(finish.dropout.threshold == 0, "an activation behind dropout");
    // The largest of a window is the same before and behind what rises.
    require(!layer.pooled || (known_by_result(activation) && !layer.conv.mean),
            "an activation behind a mean of windows");
    finish.activation = activation;
  };
  switch (pattern.op(at.op)) {
    case GPUNN_OP_CONV2D:
      return conv_layer(search, layer, at, convolution_of(search.op(at.op)), false, -1);
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION: {
      const ConvolutionBiasActivation found = convolution_bias_activation_of(search.op(at.op));
      return conv_layer(search, layer, at, found.shape, found.relu, pattern.input(at.op, 2));
    }
    case GPUNN_OP_MATMUL:
      return dense_layer(search, layer, at, matmul_of(search.op(at.op)), -1);
    case GPUNN_OP_MATMUL_BIAS_ACTIVATION:
      return dense_layer(search, layer, at, matmul_bias_activation_of(search.op(at.op)), pattern.input(at.op, 2));
    case GPUNN_OP_BIAS_ADD:
      require(layer.bias < 0 && finish.norm.there == 0 && finish.activation == StepActivation::none && !layer.pooled &&
                  finish.dropout.threshold == 0,
              "a bias elsewhere than behind its layer");
      layer.bias = search.from_outside(pattern.input(at.op, 1));
      return;
    case GPUNN_OP_BATCH_NORM:
      return norm_layer(search, layer, at.op);
    case GPUNN_OP_RELU:
      return activate(StepActivation::relu);
    case GPUNN_OP_LEAKY_RELU:
      finish.slope = search.op(at.op).attrs<gpunn_leaky_relu_attrs>().slope;
      require(finish.slope >= 0.0F, "a leaky ReLU of negative slope");
      return activate(StepActivation::leaky_relu);
    case GPUNN_OP_SIGMOID:
      return activate(StepActivation::sigmoid);
    case GPUNN_OP_TANH:
      return activate(StepActivation::tanh);
    case GPUNN_OP_GELU:
      return activate(search.op(at.op).attrs<gpunn_gelu_attrs>().tanh != 0 ? StepActivation::gelu_tanh
                                                                           : StepActivation::gelu);
    case GPUNN_OP_SILU:
      return activate(StepActivation::silu);
    case GPUNN_OP_MAX_POOL2D:
      return pooling_layer(layer, max_pool_of(search.op(at.op)), false);
    case GPUNN_OP_AVG_POOL2D:
      return pooling_layer(layer, avg_pool_of(search.op(at.op)), true);
    default: {
      const Dropout dropout = dropout_of(search.op(at.op));
      require(finish.dropout.threshold == 0, "dropout behind dropout");
      search.use_step(pattern.input(at.op, 1));
      finish.dropout = {
          .seed = dropout.seed, .stream = dropout.stream, .threshold = dropout.threshold, .factor = dropout.factor};
      return;
    }
  }
}

}  // namespace

void require_plain(const ConvolutionShape& shape, const char* otherwise) {
  require(shape.groups == 1 && shape.rows.stride == 1 && shape.columns.stride == 1 && shape.rows.dilation == 1 &&
              shape.columns.dilation == 1,
          otherwise);
}

// From the logits back to what no known layer makes.
void find_layers(StepSearch& search) {
  Pattern& pattern = search.pattern;
  std::vector<std::size_t> ops;
  int32_t value = search.logits;
  std::size_t before = search.loss;
  std::size_t kept = 0;  // the layer that was begun last begins there
  while (true) {
    const std::size_t producer = pattern.producer(value, before);
    if (producer == Pattern::kNone || !is_layer_op(pattern.op(producer)) ||
        !pattern.same(pattern.output(producer), value)) {
      break;
    }
    ops.push_back(producer);
    if (begins_layer(pattern.op(producer))) {
      kept = ops.size();
      search.x = pattern.input(producer, 0);
    }
    value = pattern.input(producer, 0);
    before = producer;
  }
  ops.resize(kept);
  if (ops.empty()) {
    const std::size_t producer = pattern.producer(search.logits, search.loss);
    throw Refusal("no dense layer before the loss" +
                  (producer == Pattern::kNone ? std::string() : ", but " + op_text(search.desc, producer)));
  }
  std::size_t layer = 0;
  for (std::size_t i = ops.size(); i-- > 0;) {
    if (begins_layer(pattern.op(ops[i])) && i + 1 < ops.size()) ++layer;
    search.layer_ops.push_back({pattern.take(ops[i], ""), layer});
  }
  search.layers.resize(layer + 1);
}

void match_layers(StepSearch& search) {
  for (const StepLayerOp& op : search.layer_ops) read_layer_op(search, op);
  require(!search.layers.empty() && search.layers.back().dense, "no dense layer before the loss");
  const StepFinish& last = search.layers.back().finish();
  require(last.activation == StepActivation::none && last.norm.there == 0 && last.dropout.threshold == 0,
          "logits behind an activation, dropout or batch norm");
}

}  // namespace gpunn::cuda_tiled
