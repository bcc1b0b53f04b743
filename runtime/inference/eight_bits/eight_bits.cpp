#include <gpunn/ops.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "graph/expressions.hpp"
#include "inference/eight_bits/quantizable.hpp"
#include "inference/eight_bits/quantizers.hpp"

namespace gpunn::inference {

using graph::Attributes;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::OpSignature;
using graph::ValueId;

namespace {

// The op of one convolution in eight bits, between quantised tensors.
Attributes quantized_attrs(const Graph& g, const Convolved& one, const Quantizer& x, const Quantizer& residual,
                           const Quantizer& y) {
  const auto conv = g.nodes()[one.convolution].attrs.as<gpunn_conv2d_attrs>();
  gpunn_quantized_conv2d_attrs attrs{};
  attrs.activation = one.relu ? GPUNN_ACTIVATION_RELU : GPUNN_ACTIVATION_NONE;
  std::copy_n(conv.stride, 2, attrs.stride);
  std::copy_n(conv.pad, 2, attrs.pad);
  std::copy_n(conv.dilation, 2, attrs.dilation);
  attrs.groups = conv.groups;
  attrs.x_scale = x.scale;
  attrs.x_zero_point = x.zero_point;
  attrs.residual_scale = residual.scale;
  attrs.residual_zero_point = residual.zero_point;
  attrs.y_scale = y.scale;
  attrs.y_zero_point = y.zero_point;
  return Attributes::of(attrs);
}

Quantizer quantizer_of(const Node& fake) {
  const auto attrs = fake.attrs.as<gpunn_quantize_attrs>();
  return {attrs.scale, attrs.zero_point};
}

// Whether no number that is stored so is above the limit that the convolution's activation has, so that RELU does.
bool is_below_limit(const Graph& g, const Convolved& one, const Quantizer& y) {
  if (!one.relu || g.nodes()[*one.relu].op == GPUNN_OP_RELU) return true;
  constexpr double kLargestStored = 255, kRounding = 1e-6;
  const double high = g.nodes()[*one.relu].attrs.as<gpunn_clamp_attrs>().high;
  return (kLargestStored - y.zero_point) * y.scale <= high * (1 + kRounding);
}

// Writes the program anew, with what is in eight bits in place of what it stands for.
class EightBits {
 public:
  EightBits(Graph& g, const execution::Backend& backend, FloatWeights float_weights)
      : g_(g), backend_(backend), float_weights_(float_weights), readers_(g), int8_weights_(int8_weights(g, readers_)) {
    for (const Convolved& one : convolutions_of(g)) plan(one);
    for (const DenseLayer& layer : dense_layers_of(g)) plan(layer);
    for (std::size_t n = 0; n < g.nodes().size(); ++n) {
      plan_moving(n);
      plan_mean(n);
    }
  }

  std::vector<EightBitOp> run() {
    if (planned_.empty() && dense_.empty()) return {};
    std::vector<EightBitOp> ops;
    std::vector<Node> nodes = std::move(g_.nodes());
    g_.nodes().clear();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (const auto made = planned_.find(n); made != planned_.end()) {
        append(made->second, nodes[n]);
        ops.push_back({made->second.name, GPUNN_OP_QUANTIZED_CONV2D});
      } else if (const auto layer = dense_.find(n); layer != dense_.end()) {
        append(layer->second, nodes[n]);
        ops.push_back({layer->second.name, GPUNN_OP_QUANTIZED_LINEAR});
      } else if (const auto moved = moved_.find(n); moved != moved_.end()) {
        append(moved->second, nodes[n]);
        ops.push_back({moved->second.name, moved->second.op});
      } else if (used_.contains(n)) {  // a FAKE_QUANTIZE of which another op needs the stored numbers
        const ValueId stored = g_.add1(GPUNN_OP_QUANTIZE, nodes[n].name, nodes[n].attrs, {nodes[n].inputs[0]});
        give(nodes[n], stored);
      } else if (!removed_.contains(n)) {
        g_.nodes().push_back(std::move(nodes[n]));
      }
    }
    return ops;
  }

 private:
  struct Planned {
    Convolved convolved;
    Attributes attrs;
    std::string name;
    ValueId x = kNoValue, weight = kNoValue, bias = kNoValue, residual = kNoValue;  // x, residual: of FAKE_QUANTIZE
  };

  struct PlannedDense {
    DenseLayer layer;
    std::string name;
    ValueId rows = kNoValue, weight = kNoValue, bias = kNoValue;
    Attributes attrs;
  };
  struct PlannedMove {
    std::string name;
    int32_t op = 0;
    Attributes attrs;
    std::vector<ValueId> inputs;  // of FAKE_QUANTIZE
  };

  struct StoredWeight {
    ValueId integers, steps;
  };

  bool is_storable(ValueId weight) const {
    return float_weights_ == FloatWeights::rounded || int8_weights_.contains(weight);
  }

  StoredWeight stored_weight(const std::string& name, ValueId weight) {
    const auto found = int8_weights_.find(weight);
    if (found == int8_weights_.end()) {
      const std::vector<ValueId> filter = g_.add(GPUNN_OP_QUANTIZE_FILTER, name, {}, {weight});
      return {filter[0], filter[1]};
    }
    const gpunn_quantize_attrs whole{.struct_size = 0, .scale = 1, .zero_point = kFilterZero};
    const Int8Weight& stored = found->second;
    const ValueId integers = g_.add1(GPUNN_OP_QUANTIZE, name, Attributes::of(whole), {stored.quotients});
    return {integers, g_.add_view(name, stored.steps, {DType::f32, {g_.value(weight).type.shape[0]}})};
  }

  bool serves(const OpSignature& signature) const { return backend_.place(signature).level >= 0; }
  TensorType stored_type(ValueId id) const { return {DType::u8, g_.value(id).type.shape}; }

  void plan(const Convolved& one) {
    const Node& convolution = g_.nodes()[one.convolution];
    const auto from = readers_.maker(convolution.inputs[0], GPUNN_OP_FAKE_QUANTIZE);
    const auto to = readers_.only(one.result, GPUNN_OP_FAKE_QUANTIZE);
    if (!is_storable(convolution.inputs[1])) return;
    if (!from || !to || !is_below_limit(g_, one, quantizer_of(g_.nodes()[*to]))) return;
    std::optional<std::size_t> residual;
    if (one.add) {
      residual = readers_.maker(one.residual, GPUNN_OP_FAKE_QUANTIZE);
      if (!residual) return;
    }
    const Quantizer none;
    Planned made{
        .convolved = one,
        .attrs = quantized_attrs(g_, one, quantizer_of(g_.nodes()[*from]),
                                 residual ? quantizer_of(g_.nodes()[*residual]) : none, quantizer_of(g_.nodes()[*to])),
        .name = convolution.name,
        .x = convolution.inputs[0],
        .weight = convolution.inputs[1],
        .bias = one.bias ? g_.nodes()[*one.bias].inputs[1] : kNoValue,
        .residual = one.residual};
    const TensorType channels{DType::f32, {g_.value(made.weight).type.shape[0]}};
    OpSignature signature{.op = GPUNN_OP_QUANTIZED_CONV2D,
                          .attrs = made.attrs,
                          .inputs = {stored_type(made.x), stored_type(made.weight), channels, channels},
                          .outputs = {stored_type(one.result)}};
    if (residual) signature.inputs.push_back(stored_type(made.residual));
    if (!serves(signature)) return;
    for (const std::size_t n : one.nodes()) removed_.insert(n);
    used_.insert(*from);
    if (residual) used_.insert(*residual);
    planned_.emplace(*to, std::move(made));
  }

  // A dense layer gives numbers of f32: what it gives need not be stored.
  void plan(const DenseLayer& layer) {
    const Node& product = g_.nodes()[layer.product];
    const auto from = readers_.maker(layer.x, GPUNN_OP_FAKE_QUANTIZE);
    if (!from || !is_storable(product.inputs[1])) return;
    PlannedDense made{.layer = layer,
                      .name = product.name,
                      .rows = product.inputs[0],
                      .weight = product.inputs[1],
                      .bias = layer.bias ? g_.nodes()[*layer.bias].inputs[1] : kNoValue,
                      .attrs = g_.nodes()[*from].attrs};
    const TensorType units{DType::f32, {g_.value(made.weight).type.shape[0]}};
    OpSignature signature{.op = GPUNN_OP_QUANTIZED_LINEAR,
                          .attrs = made.attrs,
                          .inputs = {stored_type(made.rows), stored_type(made.weight), units},
                          .outputs = {g_.value(product.outputs[0]).type}};
    if (layer.bias) signature.inputs.push_back(units);
    if (!serves(signature)) return;
    used_.insert(*from);
    if (layer.bias) removed_.insert(layer.product);
    dense_.emplace(layer.bias.value_or(layer.product), std::move(made));
  }

  // Of an op that moves numbers or chooses among them: where all that it reads is stored already, by one quantizer,
  // which is also that of its result.
  void plan_moving(std::size_t n) {
    const Node& node = g_.nodes()[n];
    const int32_t op = moving_op(node);
    if (op == 0) return;
    const auto to = readers_.only(node.outputs[0], GPUNN_OP_FAKE_QUANTIZE);
    if (!to) return;
    const Attributes& stored_by = g_.nodes()[*to].attrs;
    OpSignature signature{.op = op, .attrs = node.attrs, .inputs = {}, .outputs = {stored_type(node.outputs[0])}};
    for (const ValueId input : node.inputs) {
      const auto from = readers_.maker(input, GPUNN_OP_FAKE_QUANTIZE);
      if (!from || g_.nodes()[*from].attrs != stored_by || !is_stored(*from)) return;
      signature.inputs.push_back(stored_type(input));
    }
    if (!serves(signature)) return;
    removed_.insert(n);
    moved_.emplace(*to, PlannedMove{.name = node.name, .op = op, .attrs = node.attrs, .inputs = node.inputs});
  }

  // Of a mean of whole images, between a stored tensor and another.
  void plan_mean(std::size_t n) {
    const Node& node = g_.nodes()[n];
    if (!is_global_mean(g_, node)) return;
    const auto from = readers_.maker(node.inputs[0], GPUNN_OP_FAKE_QUANTIZE);
    const auto to = readers_.only(node.outputs[0], GPUNN_OP_FAKE_QUANTIZE);
    if (!from || !to || !is_stored(*from)) return;
    const Quantizer x = quantizer_of(g_.nodes()[*from]), y = quantizer_of(g_.nodes()[*to]);
    const Attributes attrs = Attributes::of(gpunn_requantize_attrs{.struct_size = 0,
                                                                   .x_scale = x.scale,
                                                                   .x_zero_point = x.zero_point,
                                                                   .y_scale = y.scale,
                                                                   .y_zero_point = y.zero_point});
    if (!serves({.op = GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D,
                 .attrs = attrs,
                 .inputs = {stored_type(node.inputs[0])},
                 .outputs = {stored_type(node.outputs[0])}})) {
      return;
    }
    removed_.insert(n);
    moved_.emplace(
        *to, PlannedMove{
                 .name = node.name, .op = GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D, .attrs = attrs, .inputs = node.inputs});
  }

  bool is_stored(std::size_t fake) const {
    return planned_.contains(fake) || moved_.contains(fake) || used_.contains(fake);
  }

  void append(const PlannedDense& made, const Node& last) {
    const StoredWeight filter = stored_weight(made.name + ".filter", made.weight);
    ValueId rows = stored_.at(made.layer.x);
    if (made.rows != made.layer.x) {
      rows = g_.add_view(made.name + ".rows", rows, {DType::u8, g_.value(made.rows).type.shape});
    }
    std::vector<ValueId> inputs = {rows, filter.integers, filter.steps};
    if (made.bias != kNoValue) inputs.push_back(made.bias);
    g_.add_into(GPUNN_OP_QUANTIZED_LINEAR, made.name, made.attrs, std::move(inputs), last.outputs);
  }

  void append(const PlannedMove& made, const Node& fake) {
    std::vector<ValueId> inputs;
    for (const ValueId input : made.inputs) inputs.push_back(stored_.at(input));
    give(fake, g_.add1(made.op, made.name, made.attrs, std::move(inputs)));
  }

  void append(const Planned& made, const Node& fake) {
    const StoredWeight filter = stored_weight(made.name + ".filter", made.weight);
    const ValueId bias = made.bias != kNoValue
                             ? made.bias
                             : graph::Expressions(g_, made.name).constant(0, {g_.value(made.weight).type.shape[0]});
    std::vector<ValueId> inputs = {stored_.at(made.x), filter.integers, filter.steps, bias};
    if (made.residual != kNoValue) inputs.push_back(stored_.at(made.residual));
    give(fake, g_.add1(GPUNN_OP_QUANTIZED_CONV2D, made.name, made.attrs, std::move(inputs)));
  }

  // What reads the result of a FAKE_QUANTIZE as numbers gets them of what is stored.
  void give(const Node& fake, ValueId stored) {
    stored_[fake.outputs[0]] = stored;
    g_.add_into(GPUNN_OP_DEQUANTIZE, fake.name, fake.attrs, {stored}, fake.outputs);
  }

  Graph& g_;
  const execution::Backend& backend_;
  FloatWeights float_weights_;
  ProgramReaders readers_;
  std::map<ValueId, Int8Weight> int8_weights_;
  std::map<std::size_t, Planned> planned_;     // by the FAKE_QUANTIZE behind it
  std::map<std::size_t, PlannedMove> moved_;   // likewise
  std::map<std::size_t, PlannedDense> dense_;  // by its last node
  std::set<std::size_t> removed_, used_;       // nodes
  std::map<ValueId, ValueId> stored_;          // by the result of a FAKE_QUANTIZE
};

}  // namespace

std::vector<EightBitOp> use_eight_bits(Graph& g, const execution::Backend& backend, FloatWeights float_weights) {
  return EightBits(g, backend, float_weights).run();
}

}  // namespace gpunn::inference
