#include "inference/engine/fold_batch_norm.hpp"

#include <gpunn/ops.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace gpunn::inference {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Storage;
using graph::ValueId;

namespace {

class Folding {
 public:
  explicit Folding(Graph& g) : g_(g) {
    for (std::size_t n = 0; n < g.nodes().size(); ++n) {
      for (const ValueId input : g.nodes()[n].inputs) ++reads_[place(input)];
      for (const ValueId output : g.nodes()[n].outputs) maker_[output] = n;
    }
  }

  std::vector<FoldedNorm> run() {
    std::vector<FoldedNorm> norms;
    std::vector<bool> removed(g_.nodes().size(), false);
    for (Node& node : g_.nodes()) {
      if (node.op != GPUNN_OP_BATCH_NORM_INFERENCE) continue;
      const auto bias_add = only_maker(node.inputs[0], GPUNN_OP_BIAS_ADD);
      const ValueId product = bias_add ? g_.nodes()[*bias_add].inputs[0] : node.inputs[0];
      const std::optional<ValueId> weight = weight_of(product);
      const FoldedNorm norm{.weight = weight.value_or(kNoValue),
                            .bias = bias_add ? g_.nodes()[*bias_add].inputs[1] : kNoValue,
                            .gamma = node.inputs[1],
                            .beta = node.inputs[2],
                            .mean = node.inputs[3],
                            .variance = node.inputs[4],
                            .epsilon = static_cast<double>(node.attrs.as<gpunn_batch_norm_attrs>().epsilon)};
      if (!weight || !is_own(norm.gamma) || !is_own(norm.beta) || (norm.bias != kNoValue && !is_own(norm.bias))) {
        continue;
      }
      node.op = GPUNN_OP_BIAS_ADD;
      node.attrs = {};
      node.inputs = {product, norm.beta};
      if (bias_add) removed[*bias_add] = true;
      norms.push_back(norm);
    }
    std::vector<Node> kept;
    for (std::size_t n = 0; n < removed.size(); ++n) {
      if (!removed[n]) kept.push_back(std::move(g_.nodes()[n]));
    }
    g_.nodes() = std::move(kept);
    return norms;
  }

 private:
  using Place = std::pair<ValueId, int64_t>;
  // Two views of the same bytes are one place.
  Place place(ValueId id) const { return {g_.root(id), g_.root_offset(id)}; }

  bool read_once(ValueId id) const {
    const auto found = reads_.find(place(id));
    return found != reads_.end() && found->second == 1;
  }
  // A parameter that one node alone reads.
  bool is_own(ValueId id) const { return g_.value(id).storage == Storage::parameters && read_once(id); }

  // The node of this op that makes the value, where one node alone reads that.
  std::optional<std::size_t> only_maker(ValueId id, int32_t op) const {
    const auto found = maker_.find(id);
    if (found == maker_.end() || g_.nodes()[found->second].op != op) return std::nullopt;
    if (g_.value(id).storage != Storage::arena || !read_once(id)) return std::nullopt;
    return found->second;
  }

  // Of a convolution or a dense layer: the weight, whose first dimension is the channels of its output.
  std::optional<ValueId> weight_of(ValueId product) const {
    auto maker = only_maker(product, GPUNN_OP_CONV2D);
    if (!maker) {
      maker = only_maker(product, GPUNN_OP_MATMUL);
      if (!maker || g_.nodes()[*maker].attrs.as<gpunn_matmul_attrs>().transpose_b == 0) return std::nullopt;
    }
    const ValueId weight = g_.nodes()[*maker].inputs[1];
    if (!is_own(weight)) return std::nullopt;
    return weight;
  }

  Graph& g_;
  std::map<Place, int> reads_;
  std::map<ValueId, std::size_t> maker_;
};

}  // namespace

std::vector<FoldedNorm> fold_batch_norms(Graph& g) { return Folding(g).run(); }

void fold_weights(const Graph& g, std::span<const FoldedNorm> norms, std::span<float> parameters,
                  std::span<const float> buffers) {
  const auto place = [&](ValueId id) { return static_cast<std::size_t>(g.root_offset(id)) / sizeof(float); };
  for (const FoldedNorm& norm : norms) {
    const TensorType& type = g.value(norm.weight).type;
    const auto channels = static_cast<std::size_t>(type.shape[0]);
    const std::size_t row = static_cast<std::size_t>(type.elements()) / channels;
    for (std::size_t c = 0; c < channels; ++c) {
      const double variance = buffers[place(norm.variance) + c], mean = buffers[place(norm.mean) + c];
      const double factor = parameters[place(norm.gamma) + c] / std::sqrt(variance + norm.epsilon);
      for (float& w : parameters.subspan(place(norm.weight) + c * row, row)) w = static_cast<float>(factor * w);
      const double bias = norm.bias == kNoValue ? 0 : parameters[place(norm.bias) + c];
      float& beta = parameters[place(norm.beta) + c];
      beta = static_cast<float>(beta + factor * (bias - mean));
    }
  }
}

}  // namespace gpunn::inference
