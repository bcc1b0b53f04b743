#include "compiler/fuse.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "compiler/layout.hpp"

namespace gpunn::compiler {

using graph::Attributes;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Storage;
using graph::Value;
using graph::ValueId;

namespace {

class Fusion {
 public:
  Fusion(Graph& graph, const Provider& provider, ImageLayouts layouts)
      : graph_(graph), provider_(provider), layouts_(layouts) {
    readers_.resize(graph.values().size());
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      for (const ValueId input : graph.nodes()[n].inputs) readers_[index(input)].push_back(n);
      for (const ValueId output : graph.nodes()[n].outputs) {
        // A view of a node's output is read through another id: never fuse such a value away.
        if (graph.root(output) != output) readers_[index(graph.root(output))].push_back(n);
      }
    }
    for (const Value& value : graph.values()) {
      if (value.view_of != kNoValue) readers_[index(value.view_of)].push_back(kView);
    }
  }

  void run() {
    const std::size_t count = graph_.nodes().size();
    removed_.assign(count, false);
    for (std::size_t n = 0; n < count; ++n) {
      if (removed_[n]) continue;
      const int32_t op = graph_.nodes()[n].op;
      if (op == GPUNN_OP_CONV2D || op == GPUNN_OP_MATMUL) fuse_bias_and_activation(n);
      if (op == GPUNN_OP_RELU_BACKWARD) fuse_bias_backward(n);
    }
    std::vector<Node> kept;
    for (std::size_t n = 0; n < count; ++n) {
      if (!removed_[n]) kept.push_back(std::move(graph_.nodes()[n]));
    }
    graph_.nodes() = std::move(kept);
  }

 private:
  static constexpr std::size_t kView = std::numeric_limits<std::size_t>::max();
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  // The only node that reads the value.
  std::optional<std::size_t> only_reader(ValueId id) const {
    const auto& readers = readers_[index(id)];
    if (readers.size() != 1 || readers[0] == kView || graph_.value(id).storage != Storage::arena) return std::nullopt;
    return readers[0];
  }
  // It, if it is of this op and reads the value as its first input.
  std::optional<std::size_t> only_reader(ValueId id, int32_t op) const {
    const std::optional<std::size_t> reader = only_reader(id);
    if (!reader || graph_.nodes()[*reader].op != op || graph_.nodes()[*reader].inputs[0] != id) return std::nullopt;
    return reader;
  }

  int level_of(const Node& node) const {
    const graph::OpSignature signature = graph_.signature(node);
    const int level = provider_(signature);
    if (layouts_ == ImageLayouts::packed || !has_images(signature)) return level;
    const int last = provider_(in_layout(signature, Layout::channels_last));
    return chain_rank(last) < chain_rank(level) ? last : level;
  }

  bool better(const Node& composite, const std::vector<std::size_t>& parts) const {
    const int level = level_of(composite);
    if (level < 0) return false;
    return std::ranges::all_of(parts,
                               [&](std::size_t part) { return level <= chain_rank(level_of(graph_.nodes()[part])); });
  }

  // The composite takes the place of the part at `place`; the others go.
  void replace(const std::vector<std::size_t>& parts, std::size_t place, Node composite) {
    for (const std::size_t part : parts) removed_[part] = true;
    removed_[place] = false;
    graph_.nodes()[place] = std::move(composite);
  }

  void fuse_bias_and_activation(std::size_t first) {
    const Node product = graph_.nodes()[first];
    const auto bias = only_reader(product.outputs[0], GPUNN_OP_BIAS_ADD);
    if (!bias) return;
    if (product.op == GPUNN_OP_CONV2D && fuse_residual(product, first, *bias)) return;
    const auto relu = only_reader(graph_.nodes()[*bias].outputs[0], GPUNN_OP_RELU);
    if (relu && try_product(product, {first, *bias, *relu}, GPUNN_ACTIVATION_RELU)) return;
    try_product(product, {first, *bias}, GPUNN_ACTIVATION_NONE);
  }

  // The sum behind a convolution with bias, as at the end of a residual block, and the ReLU behind the sum. The
  // composite runs where the sum did: only there is the other term known.
  bool fuse_residual(const Node& product, std::size_t first, std::size_t bias) {
    const ValueId biased = graph_.nodes()[bias].outputs[0];
    const std::optional<std::size_t> reader = only_reader(biased);
    if (!reader) return false;
    const std::size_t add = *reader;
    const Node& sum = graph_.nodes()[add];
    if (removed_[add]) return false;  // the convolution of the other term has it
    if (sum.op != GPUNN_OP_ADD || sum.inputs[0] == sum.inputs[1]) return false;
    const ValueId residual = sum.inputs[sum.inputs[0] == biased ? 1 : 0];
    if (graph_.value(residual).type.shape != graph_.value(biased).type.shape) return false;  // one is broadcast
    const auto relu = only_reader(sum.outputs[0], GPUNN_OP_RELU);
    if (relu && try_residual(product, residual, {first, bias, add, *relu}, GPUNN_ACTIVATION_RELU)) return true;
    return try_residual(product, residual, {first, bias, add}, GPUNN_ACTIVATION_NONE);
  }

  bool try_residual(const Node& product, ValueId residual, const std::vector<std::size_t>& parts, int32_t activation) {
    auto attrs = product.attrs.as<gpunn_conv2d_attrs>();
    attrs.activation = activation;
    Node composite{.op = GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION,
                   .name = product.name,
                   .attrs = Attributes::of(attrs),
                   .inputs = {product.inputs[0], product.inputs[1], graph_.nodes()[parts[1]].inputs[1], residual},
                   .outputs = graph_.nodes()[parts.back()].outputs};
    if (!better(composite, parts)) return false;
    replace(parts, parts.back(), std::move(composite));
    return true;
  }

  bool try_product(const Node& product, const std::vector<std::size_t>& parts, int32_t activation) {
    Node composite{.op = 0,
                   .name = product.name,
                   .attrs = {},
                   .inputs = {product.inputs[0], product.inputs[1], graph_.nodes()[parts[1]].inputs[1]},
                   .outputs = graph_.nodes()[parts.back()].outputs};
    if (product.op == GPUNN_OP_CONV2D) {
      auto attrs = product.attrs.as<gpunn_conv2d_attrs>();
      attrs.activation = activation;
      composite.op = GPUNN_OP_CONV2D_BIAS_ACTIVATION;
      composite.attrs = Attributes::of(attrs);
    } else {
      const auto attrs = product.attrs.as<gpunn_matmul_attrs>();
      composite.op = GPUNN_OP_MATMUL_BIAS_ACTIVATION;
      composite.attrs = Attributes::of(gpunn_matmul_bias_activation_attrs{.struct_size = 0,
                                                                          .transpose_a = attrs.transpose_a,
                                                                          .transpose_b = attrs.transpose_b,
                                                                          .activation = activation});
    }
    if (!better(composite, parts)) return false;
    replace(parts, parts.back(), std::move(composite));
    return true;
  }

  void fuse_bias_backward(std::size_t first) {
    const Node relu = graph_.nodes()[first];
    for (const std::size_t reader : readers_[index(relu.outputs[0])]) {
      if (reader == kView || graph_.nodes()[reader].op != GPUNN_OP_BIAS_BACKWARD || removed_[reader]) continue;
      if (graph_.nodes()[reader].inputs[0] != relu.outputs[0]) continue;
      Node composite{.op = GPUNN_OP_BIAS_ACTIVATION_BACKWARD,
                     .name = relu.name,
                     .attrs = Attributes::of(
                         gpunn_bias_activation_backward_attrs{.struct_size = 0, .activation = GPUNN_ACTIVATION_RELU}),
                     .inputs = relu.inputs,
                     .outputs = {relu.outputs[0], graph_.nodes()[reader].outputs[0]}};
      if (better(composite, {first, reader})) replace({first, reader}, first, std::move(composite));
      return;
    }
  }

  Graph& graph_;
  const Provider& provider_;
  ImageLayouts layouts_;
  std::vector<std::vector<std::size_t>> readers_;  // by value
  std::vector<bool> removed_;
};

}  // namespace

void fuse(Graph& graph, const Provider& provider, ImageLayouts layouts) { Fusion(graph, provider, layouts).run(); }

}  // namespace gpunn::compiler
