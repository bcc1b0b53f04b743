#include "inference/eight_bits/quantizers.hpp"

#include <gpunn/ops.h>

#include <map>
#include <set>
#include <utility>

#include "inference/eight_bits/quantizable.hpp"

namespace gpunn::inference {

using graph::Attributes;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

Attributes attrs_of(const Quantizer& quantizer) {
  return Attributes::of(
      gpunn_quantize_attrs{.struct_size = 0, .scale = quantizer.scale, .zero_point = quantizer.zero_point});
}

// Which tensors are stored by the quantizer of another, for the ops between them to run on stored numbers: what a
// maximum gives by that of what it reads, and what is joined by that of the whole.
class SharedRanges {
 public:
  SharedRanges(const Graph& g, const std::set<ValueId>& wanted) {
    for (const Node& node : g.nodes()) {
      if (moving_op(node) == 0 || !wanted.contains(node.outputs[0])) continue;
      for (const ValueId input : node.inputs) {
        if (!wanted.contains(input)) continue;
        const ValueId from = of(input), to = of(node.outputs[0]);
        if (from == to) continue;
        if (node.op == GPUNN_OP_CONCAT) {
          other_[from] = to;
        } else {
          other_[to] = from;
        }
      }
    }
  }

  ValueId of(ValueId id) const {
    for (auto found = other_.find(id); found != other_.end(); found = other_.find(id)) id = found->second;
    return id;
  }

 private:
  std::map<ValueId, ValueId> other_;
};

}  // namespace

std::vector<QuantizedTensor> tensors_to_quantize(const Graph& g) {
  std::set<ValueId> wanted;
  for (const Convolved& one : convolutions_of(g)) {
    wanted.insert(g.nodes()[one.convolution].inputs[0]);
    wanted.insert(one.result);
    if (one.residual != kNoValue) wanted.insert(one.residual);
  }
  for (const DenseLayer& layer : dense_layers_of(g)) wanted.insert(layer.x);
  // Between two ops that move numbers, so that the first of them is in eight bits too.
  const ProgramReaders readers(g);
  for (std::size_t n = g.nodes().size(); n-- > 0;) {
    const Node& node = g.nodes()[n];
    if (moving_op(node) == 0 || !wanted.contains(node.outputs[0])) continue;
    for (const ValueId input : node.inputs) {
      if (readers.maker(input, GPUNN_OP_MAX_POOL2D) || readers.maker(input, GPUNN_OP_CONCAT)) wanted.insert(input);
    }
  }
  const SharedRanges shared(g, wanted);
  std::vector<QuantizedTensor> tensors;
  std::map<ValueId, std::size_t> index;
  for (const Node& node : g.nodes()) {
    for (const ValueId output : node.outputs) {
      if (!wanted.contains(output)) continue;
      index[output] = tensors.size();
      tensors.push_back({.value = output, .name = node.name, .input = node.op == GPUNN_OP_GATHER_NORMALIZE});
    }
  }
  for (QuantizedTensor& tensor : tensors) tensor.range = index.at(shared.of(tensor.value));
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

}  // namespace gpunn::inference
