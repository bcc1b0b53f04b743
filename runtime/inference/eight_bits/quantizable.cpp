#include "inference/eight_bits/quantizable.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <set>

namespace gpunn::inference {

using graph::Graph;
using graph::Node;
using graph::Storage;
using graph::ValueId;

ProgramReaders::ProgramReaders(const Graph& g) : g_(g) {
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    for (const ValueId input : g.nodes()[n].inputs) readers_[g.root(input)].push_back(n);
    for (const ValueId output : g.nodes()[n].outputs) maker_[output] = n;
  }
}

std::optional<std::size_t> ProgramReaders::only(ValueId id, int32_t op) const {
  const auto found = readers_.find(g_.root(id));
  if (found == readers_.end() || found->second.size() != 1) return std::nullopt;
  const std::size_t reader = found->second.front();
  const Node& node = g_.nodes()[reader];
  if (node.op != op || std::ranges::find(node.inputs, id) == node.inputs.end()) return std::nullopt;
  return reader;
}

std::optional<std::size_t> ProgramReaders::maker(ValueId id, int32_t op) const {
  const auto found = maker_.find(id);
  if (found == maker_.end() || g_.nodes()[found->second].op != op) return std::nullopt;
  return found->second;
}

std::optional<Int8Weight> int8_weight(const Graph& g, const ProgramReaders& readers, ValueId weight) {
  const auto product = readers.maker(weight, GPUNN_OP_MUL);
  if (!product) return std::nullopt;
  const std::vector<ValueId>& factors = g.nodes()[*product].inputs;
  const auto rounded = readers.maker(factors[0], GPUNN_OP_FAKE_QUANTIZE);
  if (!rounded) return std::nullopt;
  const Node& rounding = g.nodes()[*rounded];
  const auto attrs = rounding.attrs.as<gpunn_quantize_attrs>();
  const auto quotient = readers.maker(rounding.inputs[0], GPUNN_OP_DIV);
  if (!quotient || attrs.scale != 1 || attrs.zero_point != kFilterZero) return std::nullopt;
  const std::vector<ValueId>& terms = g.nodes()[*quotient].inputs;
  if (terms[1] != factors[1] || !g.is_constant(terms[0]) || !g.is_constant(terms[1])) return std::nullopt;
  Shape by_output(g.value(terms[0]).type.shape.size(), 1);
  by_output[0] = g.value(terms[0]).type.shape[0];
  if (g.value(terms[1]).type.shape != by_output) return std::nullopt;
  return Int8Weight{.weight = terms[0], .steps = terms[1], .quotients = rounding.inputs[0], .integers = factors[0]};
}

std::map<ValueId, Int8Weight> int8_weights(const Graph& g, const ProgramReaders& readers) {
  std::map<ValueId, Int8Weight> all;
  for (const Node& node : g.nodes()) {
    if (node.op != GPUNN_OP_CONV2D && node.op != GPUNN_OP_MATMUL) continue;
    if (const auto stored = int8_weight(g, readers, node.inputs[1])) all.emplace(node.inputs[1], *stored);
  }
  return all;
}

std::vector<std::size_t> Convolved::nodes() const {
  std::vector<std::size_t> all = {convolution};
  for (const auto& one : {bias, add, relu}) {
    if (one) all.push_back(*one);
  }
  return all;
}

namespace {

bool has_weight(const Graph& g, const ProgramReaders& readers, const Node& node) {
  return g.is_constant(node.inputs[1]) || int8_weight(g, readers, node.inputs[1]).has_value();
}

bool is_quantizable(const Graph& g, const ProgramReaders& readers, const Node& node) {
  if (node.op != GPUNN_OP_CONV2D) return false;
  const bool own_input = g.root(node.inputs[0]) == node.inputs[0] && g.value(node.inputs[0]).storage == Storage::arena;
  return own_input && has_weight(g, readers, node) && g.value(node.outputs[0]).type.dtype == DType::f32;
}

bool is_dense(const Graph& g, const ProgramReaders& readers, const Node& node) {
  if (node.op != GPUNN_OP_MATMUL) return false;
  const auto attrs = node.attrs.as<gpunn_matmul_attrs>();
  const graph::Value &x = g.value(g.root(node.inputs[0])), &y = g.value(node.outputs[0]);
  return attrs.transpose_a == 0 && attrs.transpose_b != 0 && has_weight(g, readers, node) &&
         x.storage == Storage::arena && x.type.dtype == DType::f32 && y.type.dtype == DType::f32 &&
         element_count(x.type.shape) == element_count(g.value(node.inputs[0]).type.shape);
}

}  // namespace

std::vector<Convolved> convolutions_of(const Graph& g) {
  const ProgramReaders readers(g);
  std::vector<Convolved> found;
  std::set<std::size_t> taken;  // sums
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    const Node& node = g.nodes()[n];
    if (!is_quantizable(g, readers, node)) continue;
    Convolved one{.convolution = n, .bias = {}, .add = {}, .relu = {}, .result = node.outputs[0]};
    one.bias = readers.only(one.result, GPUNN_OP_BIAS_ADD);
    if (one.bias) one.result = g.nodes()[*one.bias].outputs[0];
    const auto add = readers.only(one.result, GPUNN_OP_ADD);
    if (add && !taken.contains(*add)) {
      const Node& sum = g.nodes()[*add];
      const ValueId other = sum.inputs[sum.inputs[0] == one.result ? 1 : 0];
      if (g.value(other).type == g.value(one.result).type && g.root(other) == other) {
        taken.insert(*add);
        one.add = add;
        one.residual = other;
        one.result = sum.outputs[0];
      }
    }
    one.relu = readers.only(one.result, GPUNN_OP_RELU);
    if (!one.relu) one.relu = readers.only(one.result, GPUNN_OP_CLAMP);
    if (one.relu && g.nodes()[*one.relu].op == GPUNN_OP_CLAMP) {
      const auto clamp = g.nodes()[*one.relu].attrs.as<gpunn_clamp_attrs>();
      if (clamp.low < 0 || clamp.low > 0) one.relu.reset();
    }
    if (one.relu) one.result = g.nodes()[*one.relu].outputs[0];
    found.push_back(one);
  }
  return found;
}

std::vector<DenseLayer> dense_layers_of(const Graph& g) {
  const ProgramReaders readers(g);
  std::vector<DenseLayer> found;
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    const Node& node = g.nodes()[n];
    if (!is_dense(g, readers, node)) continue;
    DenseLayer layer{.product = n, .bias = {}, .x = g.root(node.inputs[0])};
    layer.bias = readers.only(node.outputs[0], GPUNN_OP_BIAS_ADD);
    if (layer.bias && g.nodes()[*layer.bias].inputs[0] != node.outputs[0]) layer.bias.reset();
    found.push_back(layer);
  }
  return found;
}

int32_t moving_op(const Node& node) {
  switch (node.op) {
    case GPUNN_OP_MAX_POOL2D:
      return GPUNN_OP_QUANTIZED_MAX_POOL2D;
    case GPUNN_OP_CONCAT:
      return GPUNN_OP_QUANTIZED_CONCAT;
    default:
      return 0;
  }
}

bool is_global_mean(const Graph& g, const Node& node) {
  if (node.op != GPUNN_OP_AVG_POOL2D) return false;
  const auto attrs = node.attrs.as<gpunn_pool2d_attrs>();
  const Shape &x = g.value(node.inputs[0]).type.shape, &y = g.value(node.outputs[0]).type.shape;
  return y[2] == 1 && y[3] == 1 && attrs.window[0] == x[2] && attrs.window[1] == x[3] && attrs.pad[0] == 0 &&
         attrs.pad[1] == 0;
}

}  // namespace gpunn::inference
