#include "inference/quantizers.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace gpunn::inference {

using graph::Attributes;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::OpSignature;
using graph::Storage;
using graph::ValueId;

namespace {

// A convolution with what is computed between its sums and the tensor that it gives.
struct Convolved {
  std::size_t convolution = 0;
  std::optional<std::size_t> bias, add, relu;  // relu: RELU, or a CLAMP from 0 on
  ValueId residual = kNoValue;
  ValueId result = kNoValue;

  std::vector<std::size_t> nodes() const {
    std::vector<std::size_t> all = {convolution};
    for (const auto& one : {bias, add, relu}) {
      if (one) all.push_back(*one);
    }
    return all;
  }
};

class ProgramReaders {
 public:
  explicit ProgramReaders(const Graph& g) : g_(g) {
    for (std::size_t n = 0; n < g.nodes().size(); ++n) {
      for (const ValueId input : g.nodes()[n].inputs) readers_[g.root(input)].push_back(n);
      for (const ValueId output : g.nodes()[n].outputs) maker_[output] = n;
    }
  }

  // The only node that reads the value, if it is of this op.
  std::optional<std::size_t> only(ValueId id, int32_t op) const {
    const auto found = readers_.find(g_.root(id));
    if (found == readers_.end() || found->second.size() != 1) return std::nullopt;
    const std::size_t reader = found->second.front();
    const Node& node = g_.nodes()[reader];
    if (node.op != op || std::ranges::find(node.inputs, id) == node.inputs.end()) return std::nullopt;
    return reader;
  }
  std::optional<std::size_t> maker(ValueId id, int32_t op) const {
    const auto found = maker_.find(id);
    if (found == maker_.end() || g_.nodes()[found->second].op != op) return std::nullopt;
    return found->second;
  }

 private:
  const Graph& g_;
  std::map<ValueId, std::vector<std::size_t>> readers_;  // by root
  std::map<ValueId, std::size_t> maker_;
};

bool is_quantizable(const Graph& g, const Node& node) {
  if (node.op != GPUNN_OP_CONV2D) return false;
  const bool own_input = g.root(node.inputs[0]) == node.inputs[0] && g.value(node.inputs[0]).storage == Storage::arena;
  return own_input && g.is_constant(node.inputs[1]) && g.value(node.outputs[0]).type.dtype == DType::f32;
}

// Each convolution that can be stored in eight bits. A sum belongs to the first of the convolutions that it adds.
std::vector<Convolved> convolutions_of(const Graph& g) {
  const ProgramReaders readers(g);
  std::vector<Convolved> found;
  std::set<std::size_t> taken;  // sums
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    const Node& node = g.nodes()[n];
    if (!is_quantizable(g, node)) continue;
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

Attributes attrs_of(const Quantizer& quantizer) {
  return Attributes::of(
      gpunn_quantize_attrs{.struct_size = 0, .scale = quantizer.scale, .zero_point = quantizer.zero_point});
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
  EightBits(Graph& g, const execution::Backend& backend) : g_(g), readers_(g) {
    for (const Convolved& one : convolutions_of(g)) plan(one, backend);
  }

  std::vector<std::string> run() {
    if (planned_.empty()) return {};
    std::vector<std::string> names;
    std::vector<Node> nodes = std::move(g_.nodes());
    g_.nodes().clear();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (const auto made = planned_.find(n); made != planned_.end()) {
        append(made->second, nodes[n]);
        names.push_back(nodes[made->second.convolved.convolution].name);
      } else if (used_.contains(n)) {  // a FAKE_QUANTIZE of which a convolution needs the stored numbers
        const ValueId stored = g_.add1(GPUNN_OP_QUANTIZE, nodes[n].name, nodes[n].attrs, {nodes[n].inputs[0]});
        give(nodes[n], stored);
      } else if (!removed_.contains(n)) {
        g_.nodes().push_back(std::move(nodes[n]));
      }
    }
    return names;
  }

 private:
  struct Planned {
    Convolved convolved;
    Attributes attrs;
    std::string name;
    ValueId x = kNoValue, weight = kNoValue, bias = kNoValue, residual = kNoValue;  // x, residual: of FAKE_QUANTIZE
  };

  void plan(const Convolved& one, const execution::Backend& backend) {
    const Node& convolution = g_.nodes()[one.convolution];
    const auto from = readers_.maker(convolution.inputs[0], GPUNN_OP_FAKE_QUANTIZE);
    const auto to = readers_.only(one.result, GPUNN_OP_FAKE_QUANTIZE);
    if (!from || !to || !one.bias || !is_below_limit(g_, one, quantizer_of(g_.nodes()[*to]))) return;
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
        .bias = g_.nodes()[*one.bias].inputs[1],
        .residual = one.residual};
    const auto stored = [&](ValueId id) { return TensorType{DType::u8, g_.value(id).type.shape}; };
    const TensorType channels = g_.value(made.bias).type;
    OpSignature signature{.op = GPUNN_OP_QUANTIZED_CONV2D,
                          .attrs = made.attrs,
                          .inputs = {stored(made.x), stored(made.weight), channels, channels},
                          .outputs = {stored(one.result)}};
    if (residual) signature.inputs.push_back(stored(made.residual));
    if (backend.place(signature).level < 0) return;
    for (const std::size_t n : one.nodes()) removed_.insert(n);
    used_.insert(*from);
    if (residual) used_.insert(*residual);
    planned_.emplace(*to, std::move(made));
  }

  void append(const Planned& made, const Node& fake) {
    const std::vector<ValueId> filter = g_.add(GPUNN_OP_QUANTIZE_FILTER, made.name + ".filter", {}, {made.weight});
    std::vector<ValueId> inputs = {stored_.at(made.x), filter[0], filter[1], made.bias};
    if (made.residual != kNoValue) inputs.push_back(stored_.at(made.residual));
    give(fake, g_.add1(GPUNN_OP_QUANTIZED_CONV2D, made.name, made.attrs, std::move(inputs)));
  }

  // What reads the result of a FAKE_QUANTIZE as numbers gets them of what is stored.
  void give(const Node& fake, ValueId stored) {
    stored_[fake.outputs[0]] = stored;
    g_.add_into(GPUNN_OP_DEQUANTIZE, fake.name, attrs_of(quantizer_of(fake)), {stored}, fake.outputs);
  }

  Graph& g_;
  ProgramReaders readers_;
  std::map<std::size_t, Planned> planned_;  // by the FAKE_QUANTIZE behind it
  std::set<std::size_t> removed_, used_;    // nodes
  std::map<ValueId, ValueId> stored_;       // by the result of a FAKE_QUANTIZE
};

}  // namespace

std::vector<QuantizedTensor> tensors_to_quantize(const Graph& g) {
  std::set<ValueId> wanted;
  for (const Convolved& one : convolutions_of(g)) {
    wanted.insert(g.nodes()[one.convolution].inputs[0]);
    wanted.insert(one.result);
    if (one.residual != kNoValue) wanted.insert(one.residual);
  }
  std::vector<QuantizedTensor> tensors;
  for (const Node& node : g.nodes()) {
    for (const ValueId output : node.outputs) {
      if (wanted.contains(output)) tensors.push_back({output, node.name, node.op == GPUNN_OP_GATHER_NORMALIZE});
    }
  }
  return tensors;
}

void insert_quantizers(Graph& g, std::span<const QuantizedTensor> tensors, std::span<const Quantizer> quantizers) {
  std::map<ValueId, std::size_t> index;
  for (std::size_t i = 0; i < tensors.size(); ++i) index[tensors[i].value] = i;
  std::map<ValueId, ValueId> replaced;
  std::vector<Node> nodes = std::move(g.nodes());
  g.nodes().clear();
  for (Node& node : nodes) {
    for (ValueId& input : node.inputs) {
      if (const auto found = replaced.find(input); found != replaced.end()) input = found->second;
    }
    const std::vector<ValueId> outputs = node.outputs;
    g.nodes().push_back(std::move(node));
    for (const ValueId output : outputs) {
      const auto found = index.find(output);
      if (found == index.end()) continue;
      const ValueId rounded = g.add1(GPUNN_OP_FAKE_QUANTIZE, tensors[found->second].name + ".quantize",
                                     attrs_of(quantizers[found->second]), {output});
      replaced[output] = rounded;
      for (ValueId view = 0; view < static_cast<ValueId>(g.values().size()); ++view) {
        if (g.value(view).view_of == output) g.value(view).view_of = rounded;
      }
    }
  }
}

std::vector<std::string> use_eight_bits(Graph& g, const execution::Backend& backend) {
  return EightBits(g, backend).run();
}

}  // namespace gpunn::inference
