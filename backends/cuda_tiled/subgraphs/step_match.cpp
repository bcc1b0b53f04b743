// Each role of a step is looked up by the values that it reads, beginning at the batch; so an op that was fused, moved
// or added makes a role missing or leaves an op without a role, and nothing is fused.
#include "step_match.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <vector>

#include "common/batch.hpp"
#include "common/bias.hpp"
#include "common/convolution.hpp"
#include "common/counter.hpp"
#include "common/loss.hpp"
#include "common/matmul.hpp"
#include "common/metrics.hpp"
#include "common/optimizer.hpp"
#include "common/pooling.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace backends;
using plugin::ProgramDesc;

// A layer with its values.
struct Layer {
  bool dense = false;
  ConvShape conv;  // or
  DenseShape matrix;
  int32_t x = -1, w = -1, bias = -1, y = -1;
  int32_t pooled = -1;  // of a convolution; -1: there is no pooling
};

int32_t narrow(int64_t value) {
  require(value >= 0 && value <= std::numeric_limits<int32_t>::max(), "too large a shape");
  return static_cast<int32_t>(value);
}

class Matcher {
 public:
  Matcher(const ProgramDesc& desc, std::size_t first, std::size_t limit)
      : desc_(desc), first_(first), limit_(std::min(limit, desc.ops() - first)), taken_(limit_, false) {}

  // Throws Refusal.
  StepMatch run() {
    batch();
    forward();
    loss();
    backward();
    optimizer();
    counters();
    return whole();
  }

 private:
  // One memory and one number of elements: a view that flattens is the value itself.
  bool same(int32_t a, int32_t b) const {
    if (a == b) return true;
    const gpunn_program_value& left = desc_.value(a);
    const gpunn_program_value& right = desc_.value(b);
    return left.root == right.root && left.offset == right.offset && left.tensor->dtype == right.tensor->dtype &&
           plugin::element_count(*left.tensor) == plugin::element_count(*right.tensor);
  }

  // The first op without a role that is one of `ops` and reads `values`, -1 being any. limit_: none.
  std::size_t find(std::initializer_list<int32_t> ops, std::initializer_list<int32_t> values) const {
    for (std::size_t i = 0; i < limit_; ++i) {
      const auto inputs = desc_.inputs(first_ + i);
      const int32_t op = desc_.op(first_ + i).op();
      if (taken_[i] || std::find(ops.begin(), ops.end(), op) == ops.end() || inputs.size() < values.size()) continue;
      const bool reads = std::equal(values.begin(), values.end(), inputs.begin(),
                                    [&](int32_t value, int32_t input) { return value < 0 || same(value, input); });
      if (reads) return i;
    }
    return limit_;
  }

  // Gives it its role.
  std::size_t take(std::size_t i, const char* otherwise) {
    require(i < limit_, otherwise);
    taken_[i] = true;
    return first_ + i;
  }
  std::size_t take(int32_t op, std::initializer_list<int32_t> values, const char* otherwise) {
    return take(find({op}, values), otherwise);
  }

  int32_t from_outside(int32_t id) const {
    require(desc_.comes_in(id, first_), "an input that the step makes");
    return id;
  }

  void batch() {
    const std::size_t sample = take(0, "no batch");
    match_.network.sample = sample_of(desc_.op(sample)).attrs;
    match_.values.step = desc_.inputs(sample)[0];
    index_ = desc_.outputs(sample)[0];
    count_ = desc_.outputs(sample)[1];

    const std::size_t gather = take(GPUNN_OP_GATHER_NORMALIZE, {-1, index_}, "no samples are gathered and normalised");
    const Gather samples = gather_normalize_of(desc_.op(gather));
    StepNetwork& network = match_.network;
    network.data_rows = samples.rows;
    network.data_type = samples.from;
    network.channels = narrow(samples.channels);
    const gpunn_tensor& x = desc_.op(gather).output(0);
    require(samples.row_size > 0, "samples without elements");
    network.height = narrow(x.rank == 4 ? x.dim[2] : samples.row_size / samples.channels);
    network.width = narrow(x.rank == 4 ? x.dim[3] : 1);
    match_.values.data = from_outside(desc_.inputs(gather)[0]);
    match_.values.scale = from_outside(desc_.inputs(gather)[2]);
    match_.values.shift = from_outside(desc_.inputs(gather)[3]);
    x_ = desc_.outputs(gather)[0];

    const std::size_t label = take(GPUNN_OP_GATHER_ROWS, {-1, index_}, "no labels are gathered");
    const Gather labels = gather_rows_of(desc_.op(label));
    require(labels.to == GPUNN_I32 && labels.row_size == 1, "labels that are no class numbers");
    network.label_rows = labels.rows;
    network.label_type = labels.from;
    match_.values.labels = from_outside(desc_.inputs(label)[0]);
    label_ = desc_.outputs(label)[0];
  }

  void forward() {
    int32_t x = x_;
    while (true) {
      const std::size_t next =
          find({GPUNN_OP_CONV2D_BIAS_ACTIVATION, GPUNN_OP_MATMUL_BIAS_ACTIVATION, GPUNN_OP_MAX_POOL2D}, {x});
      if (next == limit_) break;
      const std::size_t op = take(next, "");
      const int32_t y = desc_.outputs(op)[0];
      switch (desc_.op(op).op()) {
        case GPUNN_OP_CONV2D_BIAS_ACTIVATION:
          require(layers_.empty() || !layers_.back().dense, "a convolution behind a dense layer");
          layers_.push_back(conv_layer(op));
          break;
        case GPUNN_OP_MATMUL_BIAS_ACTIVATION:
          layers_.push_back(dense_layer(op));
          break;
        default:
          require(!layers_.empty() && !layers_.back().dense && layers_.back().pooled < 0,
                  "pooling elsewhere than behind a convolution");
          add_pooling(layers_.back(), op);
      }
      x = y;
    }
    require(!layers_.empty() && layers_.back().dense, "no dense layer before the loss");
    logits_ = x;
  }

  Layer conv_layer(std::size_t op) const {
    const ConvolutionBiasActivation found = convolution_bias_activation_of(desc_.op(op));
    const ConvolutionShape& shape = found.shape;
    require(shape.groups == 1 && shape.rows.stride == 1 && shape.columns.stride == 1 && shape.rows.dilation == 1 &&
                shape.columns.dilation == 1,
            "a convolution with strides, dilation or groups");
    Layer layer;
    ConvShape& conv = layer.conv;
    conv.channels = narrow(shape.group_inputs);
    conv.height = narrow(shape.rows.inputs);
    conv.width = narrow(shape.columns.inputs);
    conv.filters = narrow(shape.group_outputs);
    conv.rows = narrow(shape.rows.taps);
    conv.columns = narrow(shape.columns.taps);
    conv.pad[0] = narrow(shape.rows.pad);
    conv.pad[1] = narrow(shape.columns.pad);
    conv.relu = found.relu;
    set_values(layer, op);
    return layer;
  }

  Layer dense_layer(std::size_t op) const {
    const Matmul matmul = matmul_bias_activation_of(desc_.op(op));
    require(!matmul.transpose_a && matmul.transpose_b, "a dense layer whose weights are not [outputs, inputs]");
    Layer layer;
    layer.dense = true;
    layer.matrix.inputs = narrow(matmul.k);
    layer.matrix.outputs = narrow(matmul.n);
    layer.matrix.relu = matmul.relu;
    require(matmul.k > 0 && matmul.n > 0, "a dense layer without inputs or outputs");
    set_values(layer, op);
    return layer;
  }

  void set_values(Layer& layer, std::size_t op) const {
    const auto inputs = desc_.inputs(op);
    layer.x = inputs[0];
    layer.w = from_outside(inputs[1]);
    layer.bias = from_outside(inputs[2]);
    layer.y = desc_.outputs(op)[0];
  }

  void add_pooling(Layer& layer, std::size_t op) const {
    const Pool pool = max_pool_of(desc_.op(op));
    require(pool.rows.pad == 0 && pool.columns.pad == 0, "padded pooling");
    layer.conv.window[0] = narrow(pool.rows.window);
    layer.conv.window[1] = narrow(pool.columns.window);
    layer.conv.stride[0] = narrow(pool.rows.stride);
    layer.conv.stride[1] = narrow(pool.columns.stride);
    layer.pooled = desc_.outputs(op)[0];
    require(pool.rows.outputs == layer.conv.pooled_height() && pool.columns.outputs == layer.conv.pooled_width(),
            "pooling of another size");
  }

  void loss() {
    const std::size_t entropy = take(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, {logits_, label_}, "another loss");
    losses_ = desc_.outputs(entropy)[0];
    const int32_t log_probability = desc_.outputs(entropy)[1];
    const std::size_t mean = take(GPUNN_OP_MEAN_ROWS, {losses_, count_}, "no mean loss");
    mean_ = desc_.outputs(mean)[0];
    // Of several FILLs the one that the mean's backward reads.
    const std::size_t mean_backward = take(GPUNN_OP_MEAN_ROWS_BACKWARD, {-1, count_}, "no gradient of the mean");
    const int32_t gradient = desc_.inputs(mean_backward)[0];
    std::size_t fill = limit_;
    for (std::size_t i = 0; i < limit_; ++i) {
      if (desc_.op(first_ + i).op() == GPUNN_OP_FILL && desc_.outputs(first_ + i)[0] == gradient) fill = i;
    }
    fill = take(fill, "a gradient of the loss that is no constant");
    match_.network.loss_gradient = static_cast<float>(desc_.op(fill).attrs<gpunn_fill_attrs>().value);
    const int32_t dloss = desc_.outputs(mean_backward)[0];
    const std::size_t backward =
        take(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, {dloss, log_probability, label_}, "no gradient of the loss");
    d_ = desc_.outputs(backward)[0];
  }

  // The bias's gradient, and d_ behind the activation.
  int32_t bias_backward(const Layer& layer, bool relu) {
    if (!relu && find({GPUNN_OP_BIAS_BACKWARD}, {d_}) < limit_) {
      return desc_.outputs(take(GPUNN_OP_BIAS_BACKWARD, {d_}, ""))[0];
    }
    const std::size_t op = take(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, {d_, layer.y}, "no gradient of an activation");
    require(bias_activation_backward_of(desc_.op(op)).relu == relu, "the gradient of another activation");
    d_ = desc_.outputs(op)[0];
    return desc_.outputs(op)[1];
  }

  // An op that reads (a, b) as a product of these transposes.
  std::size_t take_matmul(int32_t a, int32_t b, bool transpose_a, const char* otherwise) {
    for (std::size_t i = 0; i < limit_; ++i) {
      if (taken_[i] || desc_.op(first_ + i).op() != GPUNN_OP_MATMUL) continue;
      const auto inputs = desc_.inputs(first_ + i);
      if (!same(inputs[0], a) || !same(inputs[1], b)) continue;
      const Matmul matmul = matmul_of(desc_.op(first_ + i));
      if (matmul.transpose_a == transpose_a && !matmul.transpose_b) return take(i, otherwise);
    }
    throw Refusal(otherwise);
  }

  void backward() {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      if (layer.dense) {
        const int32_t db = bias_backward(layer, layer.matrix.relu);
        note_gradient(layer.bias, db);
        note_gradient(layer.w, desc_.outputs(take_matmul(d_, layer.x, true, "no gradient of a dense layer"))[0]);
        if (i > 0) d_ = desc_.outputs(take_matmul(d_, layer.w, false, "no gradient behind a dense layer"))[0];
        continue;
      }
      if (layer.pooled >= 0) {
        const std::size_t pool =
            take(GPUNN_OP_MAX_POOL2D_BACKWARD, {d_, layer.y, layer.pooled}, "no gradient of pooling");
        const Pool found = max_pool_backward_of(desc_.op(pool));
        require(found.rows.window == layer.conv.window[0] && found.columns.window == layer.conv.window[1] &&
                    found.rows.stride == layer.conv.stride[0] && found.columns.stride == layer.conv.stride[1],
                "the gradient of another pooling");
        d_ = desc_.outputs(pool)[0];
      }
      note_gradient(layer.bias, bias_backward(layer, layer.conv.relu));
      const std::size_t filter =
          take(GPUNN_OP_CONV2D_BACKWARD_FILTER, {d_, layer.x}, "no gradient of a convolution's filter");
      require_like(convolution_backward_filter_of(desc_.op(filter)), layer.conv);
      note_gradient(layer.w, desc_.outputs(filter)[0]);
      if (i == 0) continue;
      const std::size_t data =
          take(GPUNN_OP_CONV2D_BACKWARD_DATA, {d_, layer.w}, "no gradient of a convolution's input");
      require_like(convolution_backward_data_of(desc_.op(data)), layer.conv);
      d_ = desc_.outputs(data)[0];
    }
  }

  static void require_like(const ConvolutionShape& shape, const ConvShape& conv) {
    require(shape.groups == 1 && shape.rows.stride == 1 && shape.columns.stride == 1 && shape.rows.dilation == 1 &&
                shape.columns.dilation == 1 && shape.rows.pad == conv.pad[0] && shape.columns.pad == conv.pad[1],
            "the gradient of another convolution");
  }

  void note_gradient(int32_t parameter, int32_t gradient) { gradients_.push_back({parameter, gradient}); }

  void optimizer() {
    const std::size_t found = find({GPUNN_OP_SGD_UPDATE, GPUNN_OP_ADAM_UPDATE}, {});
    const std::size_t op = take(found, "another optimizer, or something between it and the gradients");
    const auto inputs = desc_.inputs(op);
    StepNetwork& network = match_.network;
    StepValues& values = match_.values;
    values.parameters = inputs[0];
    if (desc_.op(op).op() == GPUNN_OP_SGD_UPDATE) {
      network.optimizer = StepOptimizer::sgd;
      network.sgd = sgd_of(desc_.op(op)).attrs;
      if (network.sgd.momentum != 0.0F) values.state1 = inputs[3];
    } else {
      network.optimizer = StepOptimizer::adam;
      network.adam = adam_of(desc_.op(op)).attrs;
      require(inputs[3] == values.step, "an optimizer that counts otherwise");
      values.state1 = inputs[4];
      values.state2 = inputs[5];
    }
    // Each gradient lies in the flat array where its parameter lies among the parameters.
    const gpunn_program_value& flat = desc_.value(values.parameters);
    const gpunn_program_value& flat_gradient = desc_.value(inputs[1]);
    for (const auto& [parameter, gradient] : gradients_) {
      const gpunn_program_value& w = desc_.value(parameter);
      const gpunn_program_value& g = desc_.value(gradient);
      const int64_t from = w.offset - flat.offset;
      const int64_t bytes = plugin::element_count(*w.tensor) * 4;
      require(w.root == flat.root && g.root == flat_gradient.root && from == g.offset - flat_gradient.offset &&
                  from >= 0 && from % 4 == 0 && from + bytes <= plugin::element_count(*flat.tensor) * 4 &&
                  plugin::element_count(*g.tensor) * 4 == bytes,
              "a parameter outside the optimizer's array");
      for (const auto& [other, ignored] : gradients_) {
        require(other == parameter || desc_.value(other).offset >= w.offset + bytes ||
                    desc_.value(other).offset + plugin::element_count(*desc_.value(other).tensor) * 4 <= w.offset,
                "a parameter of two layers");
      }
    }
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j)
        require(gradients_[i].parameter != gradients_[j].parameter, "a parameter of two layers");
    }
    for (Layer& layer : layers_) {
      (layer.dense ? layer.matrix.weight : layer.conv.weight) = (desc_.value(layer.w).offset - flat.offset) / 4;
      (layer.dense ? layer.matrix.bias : layer.conv.bias) = (desc_.value(layer.bias).offset - flat.offset) / 4;
    }
    const std::size_t rate = take(GPUNN_OP_TABLE_LOAD, {-1, values.step}, "a learning rate that comes from no table");
    require(desc_.outputs(rate)[0] == inputs[2] && desc_.op(rate).input(0).dtype == GPUNN_F32,
            "a learning rate that comes from no table");
    network.rates = table_load_of(desc_.op(rate)).length;
    values.rate_table = from_outside(desc_.inputs(rate)[0]);
  }

  void counters() {
    const std::size_t metrics = find({GPUNN_OP_METRICS_ACCUMULATE}, {losses_, count_, -1, logits_, label_});
    if (metrics < limit_) {
      const std::size_t op = take(metrics, "");
      require(metrics_of(desc_.op(op)).classes == layers_.back().matrix.outputs, "metrics of other classes");
      match_.values.totals = desc_.inputs(op)[2];
      match_.network.metrics = true;
    }
    const std::size_t history = find({GPUNN_OP_TABLE_STORE}, {-1, match_.values.step, mean_});
    if (history < limit_) {
      const std::size_t op = take(history, "");
      match_.values.history = desc_.inputs(op)[0];
      match_.network.history = table_store_of(desc_.op(op)).length;
    }
    const std::size_t advance = take(GPUNN_OP_ADVANCE, {match_.values.step}, "no counter advances");
    match_.network.advance = advance_of(desc_.op(advance));
    // Whoever reads the counter reads it before it advances.
    for (std::size_t i = advance - first_ + 1; i < limit_; ++i) {
      const auto inputs = desc_.inputs(first_ + i);
      require(!taken_[i] || std::find(inputs.begin(), inputs.end(), match_.values.step) == inputs.end(),
              "a counter that advances too early");
    }
  }

  StepMatch whole() {
    std::size_t ops = limit_;
    while (ops > 0 && !taken_[ops - 1]) --ops;
    const auto stranger = std::find(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(ops), false);
    if (stranger != taken_.begin() + static_cast<std::ptrdiff_t>(ops)) {
      throw Refusal("op " + std::to_string(first_ + static_cast<std::size_t>(stranger - taken_.begin())) +
                    " is no part of a step that can be fused");
    }
    const StepValues& values = match_.values;
    for (std::size_t i = 0; i < ops; ++i) {
      for (const int32_t id : desc_.outputs(first_ + i)) {
        const bool left = id == values.step || id == values.parameters || id == values.state1 || id == values.state2 ||
                          id == values.totals || id == values.history;
        require(left || !desc_.needed_after(id, first_ + ops), "what the step makes on its way is needed after it");
      }
    }
    for (const Layer& layer : layers_) {
      if (layer.dense) {
        match_.network.dense.push_back(layer.matrix);
      } else {
        match_.network.convs.push_back(layer.conv);
      }
    }
    match_.ops = ops;
    return match_;
  }

  struct Gradient {
    int32_t parameter;
    int32_t gradient;
  };

  const ProgramDesc& desc_;
  std::size_t first_;
  std::size_t limit_;
  std::vector<bool> taken_;  // by op from first_: it has a role
  StepMatch match_;
  std::vector<Layer> layers_;
  std::vector<Gradient> gradients_;
  int32_t index_ = -1, count_ = -1, label_ = -1, x_ = -1;
  int32_t logits_ = -1, losses_ = -1, mean_ = -1;
  int32_t d_ = -1;  // the gradient as far as backward() has come
};

}  // namespace

StepMatch match_step(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  StepMatch none;
  if (limit == 0 || first >= desc.ops() || desc.op(first).op() != GPUNN_OP_SAMPLE_INDICES) return none;
  try {
    return Matcher(desc, first, limit).run();
  } catch (const Refusal& refusal) {
    none.reason = refusal.what();
    return none;
  }
}

}  // namespace gpunn::cuda_tiled
