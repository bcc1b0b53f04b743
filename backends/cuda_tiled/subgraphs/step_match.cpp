// The core is found from the loss backwards: the layers in front of it, then for each of them its gradients, each op by
// the values that it reads. What else is fused is tried from all of it to none of it.
#include "step_match.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>

#include "common/augmentation.hpp"
#include "common/batch.hpp"
#include "common/bias.hpp"
#include "common/convolution.hpp"
#include "common/counter.hpp"
#include "common/elementwise.hpp"
#include "common/loss.hpp"
#include "common/matmul.hpp"
#include "common/metrics.hpp"
#include "common/normalization.hpp"
#include "common/optimizer.hpp"
#include "common/pooling.hpp"
#include "common/random.hpp"
#include "pattern.hpp"
#include "step_match_ranks.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace backends;
using plugin::ProgramDesc;

// What is fused besides the core.
struct Surroundings {
  bool batch = true;
  bool update = true;
  bool counters = true;
  bool advance = true;
};

// A layer with its values. `ops` are those of its forward part.
struct Layer {
  bool dense = false;
  bool pooled = false;
  ConvShape conv;  // or
  DenseShape matrix;
  int32_t w = -1, bias = -1;
  std::array<int32_t, 2> running{-1, -1};  // of batch norm
  int32_t gamma = -1, beta = -1;
  bool bias_done = false;  // its gradient has been found

  StepFinish& finish() { return dense ? matrix.finish : conv.finish; }
};

struct LayerOp {
  std::size_t op;
  std::size_t layer;
};

int32_t narrow(int64_t value) {
  require(value >= 0 && value <= std::numeric_limits<int32_t>::max(), "too large a shape");
  return static_cast<int32_t>(value);
}

bool is_loss(int32_t op) {
  switch (op) {
    case GPUNN_OP_SOFTMAX_CROSS_ENTROPY:
    case GPUNN_OP_SOFT_CROSS_ENTROPY:
    case GPUNN_OP_MSE_LOSS:
    case GPUNN_OP_BCE_LOGITS_LOSS:
    case GPUNN_OP_HUBER_LOSS:
    case GPUNN_OP_HINGE_LOSS:
      return true;
    default:
      return false;
  }
}

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

bool same_dropout(const Dropout& a, const Dropout& b) {
  return a.seed == b.seed && a.stream == b.stream && a.threshold == b.threshold && a.n == b.n;
}

class Matcher {
 public:
  Matcher(const ProgramDesc& desc, std::size_t first, std::size_t limit, int world, Surroundings with)
      : desc_(desc), pattern_(desc, first, limit), world_(world), with_(with) {
    for (auto& pair : match_.values.running) pair = {-1, -1};
  }

  // Throws Refusal.
  void core() {
    find_loss();
    find_layers();
    batch();
    for (const LayerOp& op : layer_ops_) shape(op);
    require(!layers_.empty() && layers_.back().dense, "no dense layer before the loss");
    const StepFinish& last = layers_.back().finish();
    require(last.activation == StepActivation::none && last.norm.there == 0 && last.dropout.threshold == 0,
            "logits behind an activation, dropout or batch norm");
    loss();
    for (std::size_t i = layer_ops_.size(); i-- > 0;) backward(layer_ops_[i], i);
    require_beginning();
    lay_out();
  }

  StepMatch run() {
    update();
    counters();
    return whole();
  }

 private:
  const plugin::OpDesc op(std::size_t i) const { return desc_.op(i); }

  int32_t from_outside(int32_t id) const {
    require(desc_.comes_in(id, pattern_.begin()), "an input that the step makes");
    return id;
  }
  // The counter of the step, one and the same for all.
  void use_step(int32_t id) {
    int32_t& step = match_.values.step;
    require(step < 0 || step == id, "several counters");
    step = id;
  }
  void leave(int32_t id) { left_.push_back(id); }

  void find_loss() {
    for (std::size_t i = pattern_.begin(); i < pattern_.end(); ++i) {
      if (is_loss(pattern_.op(i)) && loss_ == Pattern::kNone) loss_ = i;
    }
    require(loss_ != Pattern::kNone, "no loss that is known");
    logits_ = pattern_.input(loss_, 0);
  }

  // From the logits back to what no known layer makes.
  void find_layers() {
    std::vector<std::size_t> ops;
    int32_t value = logits_;
    std::size_t before = loss_;
    std::size_t kept = 0;  // the layer that was begun last begins there
    while (true) {
      const std::size_t producer = pattern_.producer(value, before);
      if (producer == Pattern::kNone || !is_layer_op(pattern_.op(producer)) ||
          !pattern_.same(pattern_.output(producer), value)) {
        break;
      }
      ops.push_back(producer);
      if (begins_layer(pattern_.op(producer))) {
        kept = ops.size();
        x_ = pattern_.input(producer, 0);
      }
      value = pattern_.input(producer, 0);
      before = producer;
    }
    ops.resize(kept);
    if (ops.empty()) {
      const std::size_t producer = pattern_.producer(logits_, loss_);
      throw Refusal("no dense layer before the loss" +
                    (producer == Pattern::kNone ? std::string() : ", but " + op_text(desc_, producer)));
    }
    std::size_t layer = 0;
    for (std::size_t i = ops.size(); i-- > 0;) {
      if (begins_layer(pattern_.op(ops[i])) && i + 1 < ops.size()) ++layer;
      layer_ops_.push_back({pattern_.take(ops[i], ""), layer});
    }
    layers_.resize(layer + 1);
  }

  void batch() {
    const gpunn_tensor& x = desc_.tensor(x_);
    StepNetwork& network = match_.network;
    require(x.rank >= 2 && x.dtype == GPUNN_F32, "samples that are no rows of numbers");
    const int64_t row = x.dim[0] > 0 ? plugin::element_count(x) / x.dim[0] : 0;
    require(row > 0, "samples without elements");
    const bool image = x.rank == 4;
    network.channels = narrow(image ? x.dim[1] : 1);
    network.height = narrow(image ? x.dim[2] : row);
    network.width = narrow(image ? x.dim[3] : 1);
    const std::size_t mean = pattern_.find({GPUNN_OP_MEAN_ROWS}, {pattern_.output(loss_), -1});
    require(mean != Pattern::kNone, "no mean of the losses");
    count_ = pattern_.input(mean, 1);
    if (with_.batch) return drawn_batch();
    network.ready = true;
    network.rows = narrow(x.dim[0]);
    network.sample.batch = network.rows;
    network.sample.rows = x.dim[0];
    network.data_type = GPUNN_F32;
    match_.values.x = x_;
    match_.values.count = count_;
  }

  // Samples drawn by the step's counter, normalised and perhaps shifted.
  void drawn_batch() {
    StepNetwork& network = match_.network;
    StepValues& values = match_.values;
    int32_t x = x_;
    int64_t shifted_rows = 0;
    int64_t shifted_columns = 0;
    const std::size_t shift = pattern_.producer(x, layer_ops_[0].op);
    if (shift != Pattern::kNone && pattern_.op(shift) == GPUNN_OP_RANDOM_SHIFT) {
      pattern_.take(shift, "");
      const Shift found = shift_of(op(shift));
      network.shift = op(shift).attrs<gpunn_random_shift_attrs>();
      network.shifted = true;
      use_step(pattern_.input(shift, 1));
      values.border = from_outside(pattern_.input(shift, 2));
      require(found.batch.images == desc_.tensor(x).dim[0], "a shift of another batch");
      shifted_rows = found.batch.rows;
      shifted_columns = found.batch.columns;
      x = pattern_.input(shift, 0);
    }
    const std::size_t gather = pattern_.producer(x, layer_ops_[0].op);
    require(gather != Pattern::kNone && pattern_.op(gather) == GPUNN_OP_GATHER_NORMALIZE,
            "no samples are gathered and normalised");
    pattern_.take(gather, "");
    index_ = pattern_.input(gather, 1);
    std::size_t sample = pattern_.producer(index_, gather);
    int32_t drawn = index_;
    if (sample != Pattern::kNone && pattern_.op(sample) == GPUNN_OP_COPY) {
      drawn = pattern_.input(sample, 0);
      sample = pattern_.producer(drawn, pattern_.take(sample, ""));
    }
    require(sample != Pattern::kNone && pattern_.op(sample) == GPUNN_OP_SAMPLE_INDICES, "no batch is drawn");
    pattern_.take(sample, "");
    network.sample = sample_of(op(sample)).attrs;
    network.rows = network.sample.batch;
    use_step(pattern_.input(sample, 0));
    if (drawn != index_) {
      rows_of_batch(drawn, pattern_.output(sample));
    } else {
      require(pattern_.output(sample, 1) == count_, "a mean over other rows");
    }

    const Gather samples = gather_normalize_of(op(gather));
    network.data_rows = samples.rows;
    network.data_type = samples.from;
    network.channels = narrow(samples.channels);
    if (network.shifted) {
      network.height = narrow(shifted_rows);
      network.width = narrow(shifted_columns);
    } else if (desc_.tensor(x).rank != 4) {
      network.height = narrow(samples.row_size / samples.channels);
      network.width = 1;
    }
    values.data = from_outside(pattern_.input(gather, 0));
    values.scale = from_outside(pattern_.input(gather, 2));
    values.shift = from_outside(pattern_.input(gather, 3));
    const std::size_t label = pattern_.find({GPUNN_OP_GATHER_ROWS}, {-1, index_});
    if (label == Pattern::kNone) return;
    const Gather labels = gather_rows_of(op(label));
    if (labels.to != GPUNN_I32 || labels.row_size != 1) return;
    pattern_.take(label, "");
    network.label_rows = labels.rows;
    network.label_type = labels.from;
    values.labels = from_outside(pattern_.input(label, 0));
    label_ = pattern_.output(label);
  }

  // Of the batch that is drawn this rank has some rows, as many in each step.
  void rows_of_batch(int32_t rows, int32_t batch) {
    StepNetwork& network = match_.network;
    const gpunn_program_value& part = desc_.value(rows);
    const gpunn_program_value& all = desc_.value(batch);
    require(part.root == all.root && part.tensor->dtype == all.tensor->dtype, "a batch that is copied otherwise");
    network.first_row = narrow((part.offset - all.offset) / 4);
    network.rows = narrow(plugin::element_count(desc_.tensor(index_)));
    require(network.sample.drop_last != 0 || network.sample.rows % network.sample.batch == 0,
            "rows of a batch that may be partial");
    require(constant(count_, loss_) == static_cast<double>(network.rows), "a mean over other rows");
  }

  // The number that a FILL before that op makes.
  double constant(int32_t id, std::size_t before) {
    const std::size_t fill = pattern_.producer(id, before);
    require(fill != Pattern::kNone && pattern_.op(fill) == GPUNN_OP_FILL, "a factor or count that is no constant");
    pattern_.take(fill, "");
    return op(fill).attrs<gpunn_fill_attrs>().value;
  }

  // A label that an op of the step reads.
  void use_label(int32_t id) {
    if (with_.batch) return require(label_ == id, "labels of other samples");
    require(label_ < 0 || label_ == id, "labels of two kinds");
    label_ = id;
    match_.values.labels = id;
    match_.network.label_type = GPUNN_I32;
    match_.network.label_rows = desc_.tensor(id).dim[0];
  }

  // Targets of the losses, [batch, classes].
  void use_targets(int32_t id) {
    StepNetwork& network = match_.network;
    const int64_t classes = layers_.back().matrix.outputs;
    require(plugin::element_count(desc_.tensor(id)) == classes * network.rows, "targets of another size");
    if (!with_.batch) {
      network.targets = StepTargets::of_row;
      match_.values.targets = id;
      return;
    }
    const std::size_t table = pattern_.producer(id, pattern_.end());
    require(table != Pattern::kNone && pattern_.op(table) == GPUNN_OP_GATHER_ROWS && label_ >= 0 &&
                pattern_.input(table, 1) == label_,
            "targets that come from no table of the labels");
    const Gather rows = gather_rows_of(op(table));
    require(rows.to == GPUNN_F32 && rows.row_size == classes, "targets of another size");
    pattern_.take(table, "");
    network.targets = StepTargets::of_label;
    network.target_rows = rows.rows;
    match_.values.targets = from_outside(pattern_.input(table, 0));
  }

  void shape(const LayerOp& at) {
    Layer& layer = layers_[at.layer];
    StepFinish& finish = layer.finish();
    const auto activate = [&](StepActivation activation) {
      require(finish.activation == StepActivation::none, "two activations in a row");
      require(finish.dropout.threshold == 0, "an activation behind dropout");
      // The largest of a window is the same before and behind what rises.
      require(!layer.pooled || (known_by_result(activation) && !layer.conv.mean),
              "an activation behind a mean of windows");
      finish.activation = activation;
    };
    switch (pattern_.op(at.op)) {
      case GPUNN_OP_CONV2D:
        return conv_layer(layer, at, convolution_of(op(at.op)), false, -1);
      case GPUNN_OP_CONV2D_BIAS_ACTIVATION: {
        const ConvolutionBiasActivation found = convolution_bias_activation_of(op(at.op));
        return conv_layer(layer, at, found.shape, found.relu, pattern_.input(at.op, 2));
      }
      case GPUNN_OP_MATMUL:
        return dense_layer(layer, at, matmul_of(op(at.op)), -1);
      case GPUNN_OP_MATMUL_BIAS_ACTIVATION:
        return dense_layer(layer, at, matmul_bias_activation_of(op(at.op)), pattern_.input(at.op, 2));
      case GPUNN_OP_BIAS_ADD:
        require(layer.bias < 0 && finish.norm.there == 0 && finish.activation == StepActivation::none &&
                    !layer.pooled && finish.dropout.threshold == 0,
                "a bias elsewhere than behind its layer");
        layer.bias = from_outside(pattern_.input(at.op, 1));
        return;
      case GPUNN_OP_BATCH_NORM:
        return batch_norm(layer, at.op);
      case GPUNN_OP_RELU:
        return activate(StepActivation::relu);
      case GPUNN_OP_LEAKY_RELU:
        finish.slope = leaky_relu_of(op(at.op)).slope;
        require(finish.slope >= 0.0F, "a leaky ReLU of negative slope");
        return activate(StepActivation::leaky_relu);
      case GPUNN_OP_SIGMOID:
        return activate(StepActivation::sigmoid);
      case GPUNN_OP_TANH:
        return activate(StepActivation::tanh);
      case GPUNN_OP_GELU:
        return activate(gelu_of(op(at.op)).tanh ? StepActivation::gelu_tanh : StepActivation::gelu);
      case GPUNN_OP_SILU:
        return activate(StepActivation::silu);
      case GPUNN_OP_MAX_POOL2D:
        return pooling(layer, max_pool_of(op(at.op)), false);
      case GPUNN_OP_AVG_POOL2D:
        return pooling(layer, avg_pool_of(op(at.op)), true);
      default: {
        const Dropout dropout = dropout_of(op(at.op));
        require(finish.dropout.threshold == 0, "dropout behind dropout");
        use_step(pattern_.input(at.op, 1));
        finish.dropout = {
            .seed = dropout.seed, .stream = dropout.stream, .threshold = dropout.threshold, .factor = dropout.factor};
        return;
      }
    }
  }

  void conv_layer(Layer& layer, const LayerOp& at, const ConvolutionShape& shape, bool relu, int32_t bias) {
    require(at.layer == 0 || !layers_[at.layer - 1].dense, "a convolution behind a dense layer");
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
    layer.w = from_outside(pattern_.input(at.op, 1));
    layer.bias = bias < 0 ? -1 : from_outside(bias);
  }

  static void require_plain(const ConvolutionShape& shape, const char* otherwise) {
    require(shape.groups == 1 && shape.rows.stride == 1 && shape.columns.stride == 1 && shape.rows.dilation == 1 &&
                shape.columns.dilation == 1,
            otherwise);
  }

  void dense_layer(Layer& layer, const LayerOp& at, const Matmul& matmul, int32_t bias) {
    require(!matmul.transpose_a && matmul.transpose_b, "a dense layer whose weights are not [outputs, inputs]");
    require(matmul.k > 0 && matmul.n > 0, "a dense layer without inputs or outputs");
    layer.dense = true;
    layer.matrix.inputs = narrow(matmul.k);
    layer.matrix.outputs = narrow(matmul.n);
    if (matmul.relu) layer.matrix.finish.activation = StepActivation::relu;
    layer.w = from_outside(pattern_.input(at.op, 1));
    layer.bias = bias < 0 ? -1 : from_outside(bias);
  }

  void batch_norm(Layer& layer, std::size_t at) {
    StepFinish& finish = layer.finish();
    require(finish.norm.there == 0 && finish.activation == StepActivation::none && !layer.pooled &&
                finish.dropout.threshold == 0,
            "batch norm elsewhere than between a layer and its activation");
    const BatchNorm norm = batch_norm_of(op(at));
    require(!norm.counted || pattern_.input(at, 5) == count_, "batch norm over other rows");
    finish.norm.there = 1;
    finish.norm.epsilon = norm.epsilon;
    finish.norm.momentum = norm.momentum;
    layer.gamma = from_outside(pattern_.input(at, 1));
    layer.beta = from_outside(pattern_.input(at, 2));
    layer.running = {from_outside(pattern_.input(at, 3)), from_outside(pattern_.input(at, 4))};
    match_.network.counted = match_.network.counted || norm.counted;
    require(norm.counted || match_.network.counted == false, "batch norms of which one counts rows");
    leave(pattern_.output(at, 3));
    leave(pattern_.output(at, 4));
  }

  void pooling(Layer& layer, const Pool& pool, bool mean) {
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

  void loss() {
    StepNetwork& network = match_.network;
    const std::size_t loss = pattern_.take(loss_, "");
    losses_ = pattern_.output(loss);
    const int32_t second = pattern_.input(loss, 1);
    int32_t backward_op = 0;
    int32_t kept = -1;  // what the backward reads behind dloss
    const auto of = [&](StepLoss kind, int32_t backward, bool log_probability) {
      network.loss = kind;
      backward_op = backward;
      kept = log_probability ? pattern_.output(loss, 1) : logits_;
    };
    switch (pattern_.op(loss)) {
      case GPUNN_OP_SOFTMAX_CROSS_ENTROPY:
        of(StepLoss::cross_entropy, GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, true);
        break;
      case GPUNN_OP_SOFT_CROSS_ENTROPY:
        of(StepLoss::soft_cross_entropy, GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, true);
        break;
      case GPUNN_OP_MSE_LOSS:
        of(StepLoss::squares, GPUNN_OP_MSE_LOSS_BACKWARD, false);
        break;
      case GPUNN_OP_BCE_LOGITS_LOSS:
        of(StepLoss::binary_cross_entropy, GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, false);
        break;
      case GPUNN_OP_HUBER_LOSS:
        of(StepLoss::huber, GPUNN_OP_HUBER_LOSS_BACKWARD, false);
        network.loss_a = huber_of(op(loss)).delta;
        break;
      default:
        of(StepLoss::hinge, GPUNN_OP_HINGE_LOSS_BACKWARD, false);
        network.loss_a = hinge_of(op(loss)).margin;
        network.loss_power = hinge_of(op(loss)).power;
    }
    if (network.loss == StepLoss::cross_entropy || network.loss == StepLoss::hinge) {
      use_label(second);
    } else {
      use_targets(second);
    }
    const std::size_t mean = pattern_.take(GPUNN_OP_MEAN_ROWS, {losses_, count_}, "no mean loss");
    mean_ = pattern_.output(mean);
    const std::size_t backward = pattern_.take(backward_op, {-1, kept, second}, "no gradient of the loss");
    const std::size_t mean_backward = pattern_.producer(pattern_.input(backward, 0), backward);
    require(mean_backward != Pattern::kNone && pattern_.op(mean_backward) == GPUNN_OP_MEAN_ROWS_BACKWARD &&
                pattern_.input(mean_backward, 1) == count_,
            "no gradient of the mean");
    pattern_.take(mean_backward, "");
    network.loss_gradient = loss_gradient(pattern_.input(mean_backward, 0), mean_backward);
    d_ = pattern_.output(backward);
  }

  // Of a rank, its share of the rows is a factor.
  float loss_gradient(int32_t id, std::size_t before) {
    const std::size_t product = pattern_.producer(id, before);
    if (product == Pattern::kNone || pattern_.op(product) != GPUNN_OP_MUL) {
      return static_cast<float>(constant(id, before));
    }
    pattern_.take(product, "");
    const auto first = static_cast<float>(constant(pattern_.input(product, 0), product));
    return first * static_cast<float>(constant(pattern_.input(product, 1), product));
  }

  // An op that reads (a, b) as a product of these transposes.
  std::size_t take_matmul(int32_t a, int32_t b, bool transpose_a, const char* otherwise) {
    for (std::size_t i = pattern_.begin(); i < pattern_.end(); ++i) {
      if (pattern_.taken(i) || pattern_.op(i) != GPUNN_OP_MATMUL) continue;
      if (!pattern_.same(pattern_.input(i, 0), a) || !pattern_.same(pattern_.input(i, 1), b)) continue;
      const Matmul matmul = matmul_of(op(i));
      if (matmul.transpose_a == transpose_a && !matmul.transpose_b) return pattern_.take(i, otherwise);
    }
    throw Refusal(otherwise);
  }

  void note_gradient(int32_t parameter, int32_t gradient) { gradients_.push_back({parameter, gradient}); }

  // The gradient of a ReLU whose result is y, perhaps with that of the bias in front of it.
  void relu_backward(Layer& layer, int32_t y) {
    const std::size_t both = pattern_.find({GPUNN_OP_BIAS_ACTIVATION_BACKWARD}, {d_, y});
    if (both == Pattern::kNone) {
      d_ = pattern_.output(pattern_.take(GPUNN_OP_RELU_BACKWARD, {d_, y}, "no gradient of an activation"));
      return;
    }
    pattern_.take(both, "");
    require(bias_activation_backward_of(op(both)).relu, "the gradient of another activation");
    d_ = pattern_.output(both);
    note_gradient(layer.bias, pattern_.output(both, 1));
    layer.bias_done = true;
  }

  void bias_backward(Layer& layer) {
    if (layer.bias < 0 || layer.bias_done) return;
    std::size_t found = pattern_.find({GPUNN_OP_BIAS_BACKWARD}, {d_});
    if (found == Pattern::kNone) {
      found = pattern_.take(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, {d_, -1}, "no gradient of a bias");
      require(!bias_activation_backward_of(op(found)).relu, "the gradient of another activation");
      d_ = pattern_.output(found);
      note_gradient(layer.bias, pattern_.output(found, 1));
    } else {
      note_gradient(layer.bias, pattern_.output(pattern_.take(found, "")));
    }
    layer.bias_done = true;
  }

  // The gradient of one of a layer's ops, `d_` being that of its result.
  void backward(const LayerOp& at, std::size_t index) {
    Layer& layer = layers_[at.layer];
    const int32_t x = pattern_.input(at.op, 0);
    const int32_t y = pattern_.output(at.op);
    const auto map = [&](int32_t backward, int32_t of) {
      d_ = pattern_.output(pattern_.take(backward, {d_, of}, "no gradient of an activation"));
    };
    switch (pattern_.op(at.op)) {
      case GPUNN_OP_RELU:
        return relu_backward(layer, y);
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
        return bias_backward(layer);
      case GPUNN_OP_DROPOUT: {
        const std::size_t found =
            pattern_.take(GPUNN_OP_DROPOUT, {d_, pattern_.input(at.op, 1)}, "no gradient of dropout");
        require(same_dropout(dropout_of(op(at.op)), dropout_of(op(found))), "the gradient of another dropout");
        d_ = pattern_.output(found);
        return;
      }
      case GPUNN_OP_BATCH_NORM: {
        const std::size_t found = pattern_.take(
            GPUNN_OP_BATCH_NORM_BACKWARD, {d_, x, layer.gamma, pattern_.output(at.op, 1), pattern_.output(at.op, 2)},
            "no gradient of batch norm");
        const bool counted = batch_norm_backward_of(op(found)).counted;
        require(counted == match_.network.counted && (!counted || pattern_.input(found, 5) == count_),
                "the gradient of another batch norm");
        d_ = pattern_.output(found);
        note_gradient(layer.gamma, pattern_.output(found, 1));
        note_gradient(layer.beta, pattern_.output(found, 2));
        return;
      }
      case GPUNN_OP_MAX_POOL2D:
        return pool_backward(layer, pattern_.take(GPUNN_OP_MAX_POOL2D_BACKWARD, {d_, x, y}, "no gradient of pooling"),
                             false);
      case GPUNN_OP_AVG_POOL2D:
        return pool_backward(layer, pattern_.take(GPUNN_OP_AVG_POOL2D_BACKWARD, {d_}, "no gradient of pooling"), true);
      default:
        break;
    }
    // A layer's own op, perhaps with its ReLU.
    const bool with_relu =
        (pattern_.op(at.op) == GPUNN_OP_CONV2D_BIAS_ACTIVATION && convolution_bias_activation_of(op(at.op)).relu) ||
        (pattern_.op(at.op) == GPUNN_OP_MATMUL_BIAS_ACTIVATION && matmul_bias_activation_of(op(at.op)).relu);
    if (with_relu) relu_backward(layer, y);
    bias_backward(layer);
    if (layer.dense) {
      note_gradient(layer.w, pattern_.output(take_matmul(d_, x, true, "no gradient of a dense layer")));
      if (index > 0) d_ = pattern_.output(take_matmul(d_, layer.w, false, "no gradient behind a dense layer"));
      return;
    }
    const std::size_t filter =
        pattern_.take(GPUNN_OP_CONV2D_BACKWARD_FILTER, {d_, x}, "no gradient of a convolution's filter");
    require_like(convolution_backward_filter_of(op(filter)), layer.conv);
    note_gradient(layer.w, pattern_.output(filter));
    if (index == 0) return;
    const std::size_t data =
        pattern_.take(GPUNN_OP_CONV2D_BACKWARD_DATA, {d_, layer.w}, "no gradient of a convolution's input");
    require_like(convolution_backward_data_of(op(data)), layer.conv);
    d_ = pattern_.output(data);
  }

  void pool_backward(const Layer& layer, std::size_t found, bool mean) {
    const Pool pool = mean ? avg_pool_backward_of(op(found)) : max_pool_backward_of(op(found));
    require(pool.rows.window == layer.conv.window[0] && pool.columns.window == layer.conv.window[1] &&
                pool.rows.stride == layer.conv.stride[0] && pool.columns.stride == layer.conv.stride[1] &&
                pool.rows.pad == 0 && pool.columns.pad == 0,
            "the gradient of another pooling");
    d_ = pattern_.output(found);
  }

  static void require_like(const ConvolutionShape& shape, const ConvShape& conv) {
    require_plain(shape, "the gradient of another convolution");
    require(shape.rows.pad == conv.pad[0] && shape.columns.pad == conv.pad[1], "the gradient of another convolution");
  }

  // No gradient flows further: what made x is no layer.
  void require_beginning() const {
    const Layer& first = layers_.front();
    const std::size_t more = first.dense ? pattern_.find({GPUNN_OP_MATMUL}, {d_, first.w})
                                         : pattern_.find({GPUNN_OP_CONV2D_BACKWARD_DATA}, {d_, first.w});
    if (more == Pattern::kNone) return;
    const std::size_t in_front = pattern_.producer(x_, layer_ops_[0].op);
    throw Refusal(in_front == Pattern::kNone ? "layers in front of what is offered"
                                             : "a layer that is not known: " + op_text(desc_, in_front));
  }

  // Where all parameters and gradients are: two flat arrays of one layout.
  void lay_out() {
    require(!gradients_.empty(), "nothing to train");
    const gpunn_program_value& w0 = desc_.value(gradients_[0].parameter);
    const gpunn_program_value& g0 = desc_.value(gradients_[0].gradient);
    for (const auto& [parameter, gradient] : gradients_) {
      const gpunn_program_value& w = desc_.value(parameter);
      const gpunn_program_value& g = desc_.value(gradient);
      require(w.root == w0.root && g.root == g0.root && w.offset == g.offset && w.offset % 4 == 0 &&
                  g.storage == GPUNN_STORAGE_GRADIENTS &&
                  plugin::element_count(*w.tensor) == plugin::element_count(*g.tensor),
              "gradients that lie elsewhere than the parameters");
    }
    match_.values.parameters = {gradients_[0].parameter, w0.offset};
    match_.values.gradients = {gradients_[0].gradient, g0.offset};
    const auto place = [&](int32_t id) { return id < 0 ? -1 : desc_.value(id).offset / 4; };
    for (Layer& layer : layers_) {
      StepFinish& finish = layer.finish();
      (layer.dense ? layer.matrix.weight : layer.conv.weight) = place(layer.w);
      (layer.dense ? layer.matrix.bias : layer.conv.bias) = place(layer.bias);
      finish.norm.gamma = place(layer.gamma);
      finish.norm.beta = place(layer.beta);
    }
  }

  bool is_gradient(int32_t id) const { return desc_.value(id).root == desc_.value(match_.values.gradients.id).root; }
  bool is_parameter(int32_t id) const { return desc_.value(id).root == desc_.value(match_.values.parameters.id).root; }

  // Bounds of the gradients, optimizers and what follows them.
  void update() {
    StepNetwork& network = match_.network;
    network.flat = true;
    for (const auto& [parameter, gradient] : gradients_) leave(gradient);
    if (!with_.update) return;
    const std::size_t summed = world_ > 1 ? sums_over_ranks() : pattern_.begin();
    std::vector<std::size_t> optimizers;
    for (std::size_t i = pattern_.begin(); i < pattern_.end(); ++i) {
      if (pattern_.taken(i)) continue;
      const auto inputs = desc_.inputs(i);
      const bool gradient = std::any_of(inputs.begin(), inputs.end(), [&](int32_t id) { return is_gradient(id); });
      const bool parameter = std::any_of(inputs.begin(), inputs.end(), [&](int32_t id) { return is_parameter(id); });
      if (!gradient && !parameter) continue;
      require(i >= summed, "gradients that are used before the ranks have added them");
      flat_op(i, optimizers);
    }
    require(!optimizers.empty(), "no optimizer");
    require_apart(true);
    require_apart(false);
    if (network.flat_ops.size() == 1) plain_optimizer(optimizers[0]);
    if (network.before_norm >= 0) {
      const std::size_t history = pattern_.find({GPUNN_OP_TABLE_STORE}, {-1, match_.values.step, norm_});
      if (history != Pattern::kNone) {
        pattern_.take(history, "");
        match_.values.norm_history = pattern_.input(history, 0);
        network.norm_history = table_store_of(op(history)).length;
        leave(pattern_.output(history));
      }
      if (pattern_.needed(norm_)) {
        match_.values.norm = norm_;
        leave(norm_);
      }
    }
  }

  // The ops that add all gradients over the ranks, in place. Returns where the last one is.
  std::size_t sums_over_ranks() {
    std::vector<int32_t> gradients;
    for (const auto& [parameter, gradient] : gradients_) gradients.push_back(gradient);
    const GradientSums sums = take_gradient_sums(
        pattern_, world_, [&](int32_t id) { return is_gradient(id); }, gradients);
    for (const int32_t value : sums.values) leave(value);
    match_.network.world = world_;
    return sums.last;
  }

  int32_t loss_over_ranks() {
    const LossSum loss = take_loss_sum(pattern_, world_, mean_);
    match_.network.loss_weight = static_cast<float>(constant(loss.share, loss.product));
    return loss.sum;
  }

  void advance_passes() {
    const std::size_t advance = take_pass_advance(pattern_, match_.values.step);
    if (advance == Pattern::kNone) return;
    match_.values.pass = pattern_.input(advance, 0);
    match_.network.pass_advance = advance_of(op(advance));
    leave(pattern_.output(advance));
  }

  // At most one optimizer, and at most one average, for an element.
  void require_apart(bool averages) const {
    const auto& ops = match_.network.flat_ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (std::size_t j = i + 1; j < ops.size(); ++j) {
        const auto of_kind = [&](FlatKind kind) {
          return kind >= FlatKind::sgd && (kind == FlatKind::average) == averages;
        };
        require(!of_kind(ops[i].kind) || !of_kind(ops[j].kind) || ops[i].to <= ops[j].from || ops[j].to <= ops[i].from,
                "two optimizers of one parameter");
      }
    }
  }

  FlatOp range_of(int32_t id) const {
    FlatOp flat;
    flat.from = narrow(desc_.value(id).offset / 4);
    flat.to = narrow(flat.from + plugin::element_count(desc_.tensor(id)));
    return flat;
  }

  void flat_op(std::size_t i, std::vector<std::size_t>& optimizers) {
    StepNetwork& network = match_.network;
    require(network.flat_ops.size() < kMostFlatOps, "too many ops on the gradients");
    FlatOp flat = range_of(pattern_.input(i, 0));
    std::array<int32_t, 2> states{-1, -1};
    const auto in_place = [&](int32_t id) {
      require(pattern_.same(pattern_.output(i), id), "gradients bounded elsewhere than in place");
      leave(pattern_.output(i));
    };
    const auto optimizer = [&](FlatKind kind, int64_t decayed, float decay, std::initializer_list<std::size_t> at) {
      flat.kind = kind;
      flat.decayed = narrow(flat.from + decayed);
      flat.decay = decay;
      const int32_t g = pattern_.input(i, 1);
      require(is_parameter(pattern_.input(i, 0)) && is_gradient(g) &&
                  desc_.value(g).offset == desc_.value(pattern_.input(i, 0)).offset,
              "an optimizer of other gradients");
      flat.rate = rate_of(pattern_.input(i, 2));
      std::size_t state = 0;
      for (const std::size_t input : at) states[state++] = pattern_.input(i, input);
      for (const int32_t output : desc_.outputs(i)) leave(output);
      optimizers.push_back(i);
    };
    switch (pattern_.op(i)) {
      case GPUNN_OP_NORM:
        require(network.before_norm < 0 && optimizers.empty(), "several norms of gradients");
        for (const auto& [parameter, gradient] : gradients_) {
          const FlatOp part = range_of(gradient);
          require(part.from >= flat.from && part.to <= flat.to, "a norm of some gradients");
        }
        network.before_norm = static_cast<int>(network.flat_ops.size());
        norm_ = pattern_.output(i);
        network.flat_size = std::max<int64_t>(network.flat_size, flat.to);
        pattern_.take(i, "");
        return;
      case GPUNN_OP_CLIP_NORM: {
        require(network.before_norm >= 0 && pattern_.input(i, 1) == norm_, "another norm of gradients");
        const gpunn_clip_norm_attrs attrs = clip_norm_of(op(i)).attrs;
        flat.kind = FlatKind::clip_norm;
        flat.a = attrs.max_norm;
        flat.c = attrs.epsilon;
        flat.option = attrs.rescale;
        in_place(pattern_.input(i, 0));
        break;
      }
      case GPUNN_OP_L1_GRADIENT: {
        const L1Gradient l1 = l1_gradient_of(op(i));
        flat.kind = FlatKind::l1;
        flat.a = l1.weight;
        flat.decayed = narrow(flat.from + l1.decayed);
        require(is_parameter(pattern_.input(i, 1)) &&
                    desc_.value(pattern_.input(i, 1)).offset == desc_.value(pattern_.input(i, 0)).offset,
                "an L1 penalty of other parameters");
        in_place(pattern_.input(i, 0));
        break;
      }
      case GPUNN_OP_CLAMP: {
        const Clamp clamp = clamp_of(op(i));
        flat.kind = FlatKind::clamp;
        flat.a = clamp.low;
        flat.b = clamp.high;
        in_place(pattern_.input(i, 0));
        break;
      }
      case GPUNN_OP_SGD_UPDATE: {
        const gpunn_sgd_attrs attrs = sgd_of(op(i)).attrs;
        flat.a = attrs.momentum;
        flat.option = attrs.nesterov;
        if (attrs.momentum != 0.0F) {
          optimizer(FlatKind::sgd, attrs.decayed, attrs.weight_decay, {3});
        } else {
          optimizer(FlatKind::sgd, attrs.decayed, attrs.weight_decay, {});
        }
        break;
      }
      case GPUNN_OP_ADAM_UPDATE: {
        const gpunn_adam_attrs attrs = adam_of(op(i)).attrs;
        require(match_.values.step < 0 || pattern_.input(i, 3) == match_.values.step,
                "an optimizer that counts otherwise");
        use_step(pattern_.input(i, 3));
        for (const FlatOp& other : network.flat_ops) {
          require(other.kind != FlatKind::adam || (other.a == attrs.beta1 && other.b == attrs.beta2),
                  "Adams of several betas");
        }
        network.adam = attrs;
        network.optimizer = StepOptimizer::adam;
        flat.a = attrs.beta1;
        flat.b = attrs.beta2;
        flat.c = attrs.epsilon;
        flat.option = attrs.decoupled;
        optimizer(FlatKind::adam, attrs.decayed, attrs.weight_decay, {4, 5});
        break;
      }
      case GPUNN_OP_RMSPROP_UPDATE: {
        const gpunn_rmsprop_attrs attrs = rmsprop_of(op(i)).attrs;
        flat.a = attrs.alpha;
        flat.b = attrs.momentum;
        flat.c = attrs.epsilon;
        if (attrs.momentum != 0.0F) {
          optimizer(FlatKind::rmsprop, attrs.decayed, attrs.weight_decay, {3, 4});
        } else {
          optimizer(FlatKind::rmsprop, attrs.decayed, attrs.weight_decay, {3});
        }
        break;
      }
      case GPUNN_OP_ADAGRAD_UPDATE: {
        const gpunn_adagrad_attrs attrs = adagrad_of(op(i)).attrs;
        flat.c = attrs.epsilon;
        optimizer(FlatKind::adagrad, attrs.decayed, attrs.weight_decay, {3});
        break;
      }
      case GPUNN_OP_LION_UPDATE: {
        const gpunn_lion_attrs attrs = lion_of(op(i)).attrs;
        flat.a = attrs.beta1;
        flat.b = attrs.beta2;
        optimizer(FlatKind::lion, attrs.decayed, attrs.weight_decay, {3});
        break;
      }
      case GPUNN_OP_AXPBY: {
        require(!optimizers.empty(), "an average before the optimizer");
        const Axpby axpby = axpby_of(op(i));
        const bool second = is_parameter(pattern_.input(i, 1));
        const int32_t average = pattern_.input(i, second ? 0 : 1);
        require(!is_parameter(average) && !is_gradient(average) && pattern_.same(pattern_.output(i), average),
                "a sum that is no average of the parameters");
        flat = range_of(pattern_.input(i, second ? 1 : 0));
        flat.kind = FlatKind::average;
        flat.a = second ? axpby.alpha : axpby.beta;
        flat.b = second ? axpby.beta : axpby.alpha;
        states[0] = average;
        leave(pattern_.output(i));
        break;
      }
      default:
        throw Refusal(op_text(desc_, i) + " between the gradients and the optimizer");
    }
    for (std::size_t s = 0; s < states.size(); ++s) {
      // An op on views begins its states where its views begin.
      match_.values.flat_states[network.flat_ops.size()][s] = {states[s], int64_t{flat.from} * 4};
    }
    network.flat_ops.push_back(flat);
    network.flat_size = std::max<int64_t>(network.flat_size, flat.to);
    pattern_.take(i, "");
  }

  // A learning rate, and by how much it is scaled.
  float rate_of(int32_t id) {
    std::size_t made = pattern_.producer(id, pattern_.end());
    float factor = 1.0F;
    if (made != Pattern::kNone && pattern_.op(made) == GPUNN_OP_SCALE) {
      factor = scale_of(op(made)).factor;
      pattern_.take(made, "");
      made = pattern_.producer(pattern_.input(made, 0), made);
    }
    require(made != Pattern::kNone && pattern_.op(made) == GPUNN_OP_TABLE_LOAD && op(made).input(0).dtype == GPUNN_F32,
            "a learning rate that comes from no table");
    if (rate_ != Pattern::kNone) {
      require(made == rate_, "several learning rates");
      return factor;
    }
    rate_ = pattern_.take(made, "");
    use_step(pattern_.input(made, 1));
    match_.network.rates = table_load_of(op(made)).length;
    match_.values.rate_table = from_outside(pattern_.input(made, 0));
    return factor;
  }

  // A single SGD or Adam, which the plain kernels know.
  void plain_optimizer(std::size_t at) {
    StepNetwork& network = match_.network;
    const FlatOp& flat = network.flat_ops[0];
    if (network.before_norm >= 0 || flat.rate != 1.0F) return;
    if (flat.kind == FlatKind::sgd) {
      network.optimizer = StepOptimizer::sgd;
      network.sgd = sgd_of(op(at)).attrs;
      network.sgd.decayed = flat.decayed;
    } else if (flat.kind == FlatKind::adam) {
      network.adam.decayed = flat.decayed;
    } else {
      return;
    }
    match_.values.state1 = match_.values.flat_states[0][0];
    match_.values.state2 = match_.values.flat_states[0][1];
    network.flat = false;
  }

  void counters() {
    StepNetwork& network = match_.network;
    StepValues& values = match_.values;
    if (with_.counters) {
      const std::size_t metrics = pattern_.find({GPUNN_OP_METRICS_ACCUMULATE}, {losses_, count_, -1});
      if (metrics != Pattern::kNone) {
        const auto inputs = desc_.inputs(metrics);
        const Metrics found = metrics_of(op(metrics));
        if (found.classes > 0) {
          require(
              inputs.size() == 5 && pattern_.same(inputs[3], logits_) && found.classes == layers_.back().matrix.outputs,
              "metrics of other classes");
          use_label(inputs[4]);
          network.ranks = true;
        }
        pattern_.take(metrics, "");
        values.totals = inputs[2];
        network.metrics = true;
        leave(pattern_.output(metrics));
      }
      const int32_t loss = network.world > 1 ? loss_over_ranks() : mean_;
      const std::size_t history = pattern_.find({GPUNN_OP_TABLE_STORE}, {-1, values.step, loss});
      require(network.world == 1 || history != Pattern::kNone, "a loss of all ranks that no table keeps");
      if (history != Pattern::kNone && values.step >= 0) {
        pattern_.take(history, "");
        values.history = pattern_.input(history, 0);
        network.history = table_store_of(op(history)).length;
        leave(pattern_.output(history));
      }
    }
    if (network.world > 1) advance_passes();
    network.advances = false;
    if (values.step < 0) return;
    const std::size_t advance = pattern_.find({GPUNN_OP_ADVANCE}, {values.step});
    if (advance == Pattern::kNone) return;
    network.advance = advance_of(op(advance));
    if (!with_.advance) return;
    pattern_.take(advance, "");
    // Whoever reads the counter reads it before it advances.
    for (std::size_t i = advance + 1; i < pattern_.end(); ++i) {
      const auto inputs = desc_.inputs(i);
      require(!pattern_.taken(i) || std::find(inputs.begin(), inputs.end(), values.step) == inputs.end(),
              "a counter that advances too early");
    }
    network.advances = true;
    leave(pattern_.output(advance));
  }

  StepMatch whole() {
    StepValues& values = match_.values;
    // The step knows the number; whoever else reads it has it made.
    for (std::size_t i = pattern_.begin(); i < pattern_.end(); ++i) {
      if (pattern_.taken(i) && pattern_.op(i) == GPUNN_OP_FILL && pattern_.needed(pattern_.output(i))) {
        pattern_.release(i);
      }
    }
    for (std::size_t i = pattern_.begin(); i < pattern_.end(); ++i) {
      if (!pattern_.taken(i)) continue;
      for (const int32_t id : desc_.outputs(i)) {
        if (std::find(left_.begin(), left_.end(), id) != left_.end() || !pattern_.needed(id)) continue;
        if (pattern_.same(id, logits_)) {
          values.logits = id;
        } else if (id == losses_) {
          values.row_losses = id;
        } else if (id == mean_) {
          values.mean_loss = id;
        } else {
          const std::size_t reader = pattern_.outer_reader(id);
          throw Refusal((reader == Pattern::kNone ? std::string("something outside") : op_text(desc_, reader)) +
                        " reads what " + op_text(desc_, i) + " makes within the step");
        }
      }
    }
    match_.network.told = values.logits >= 0 || values.row_losses >= 0 || values.mean_loss >= 0;
    if (match_.network.world > 1) require_no_other_exchange(pattern_);
    match_.ops = pattern_.chosen();
    const plugin::Gathered gathered = plugin::gather_ops(desc_, match_.ops);
    if (gathered.between != plugin::Gathered::kNowhere) {
      throw Refusal(op_text(desc_, gathered.between) + " has to run within the step");
    }
    std::size_t norm = 0;
    for (const bool dense : {false, true}) {
      for (const Layer& layer : layers_) {
        if (layer.dense == dense && layer.gamma >= 0) values.running[norm++] = layer.running;
      }
    }
    for (const Layer& layer : layers_) {
      if (layer.dense) {
        match_.network.dense.push_back(layer.matrix);
      } else {
        match_.network.convs.push_back(layer.conv);
      }
    }
    require(match_.network.convs.size() <= kMostStepConvs && match_.network.dense.size() <= kMostStepDense,
            "too many layers");
    return match_;
  }

  struct Gradient {
    int32_t parameter;
    int32_t gradient;
  };

  const ProgramDesc& desc_;
  Pattern pattern_;
  const int world_;  // ranks whose sums the step may make
  Surroundings with_;
  StepMatch match_;
  std::vector<LayerOp> layer_ops_;  // forward
  std::vector<Layer> layers_;
  std::vector<Gradient> gradients_;
  std::vector<int32_t> left_;  // values that the step writes for others
  std::size_t loss_ = Pattern::kNone;
  std::size_t rate_ = Pattern::kNone;
  int32_t index_ = -1, count_ = -1, label_ = -1, x_ = -1;
  int32_t logits_ = -1, losses_ = -1, mean_ = -1, norm_ = -1;
  int32_t d_ = -1;  // the gradient as far as backward() has come
};

// All that is fused besides the core, from the most to the least.
constexpr Surroundings kSurroundings[] = {
    {true, true, true, true},    {true, true, true, false},   {true, false, true, true},  {true, false, true, false},
    {true, false, false, false}, {false, true, true, true},   {false, true, true, false}, {false, false, true, true},
    {false, false, true, false}, {false, false, false, false}};

}  // namespace

StepMatch match_step(const ProgramDesc& desc, std::size_t first, std::size_t limit, int world) {
  StepMatch none;
  if (limit == 0 || first >= desc.ops()) return none;
  for (const Surroundings& with : kSurroundings) {
    Matcher matcher(desc, first, limit, world, with);
    try {
      matcher.core();
    } catch (const Refusal& refusal) {
      if (none.reason.empty() || !with.batch) none.reason = refusal.what();
      if (with.batch) continue;
      break;  // no batch is the least
    }
    try {
      StepMatch match = matcher.run();
      if (match.ops.front() == first) return match;
      none.reason.clear();
      return none;
    } catch (const Refusal& refusal) {
      none.reason = refusal.what();
    }
  }
  // Of a part of the program there is nothing to say.
  if (first != 0 || limit < desc.ops()) none.reason.clear();
  return none;
}

}  // namespace gpunn::cuda_tiled
