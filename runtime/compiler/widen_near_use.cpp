#include "compiler/widen_near_use.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace gpunn::compiler {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Storage;
using graph::Value;
using graph::ValueId;

namespace {

// Nodes between two readers that share a conversion, as the two gradients of a convolution do.
constexpr std::size_t kNear = 8;
// A kernel more is not worth less memory than this.
constexpr uint64_t kLeastBytes = uint64_t{1} << 20;

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph), writes_(graph.values().size(), 0), views_(graph.values().size()) {
    for (const Node& node : graph.nodes()) {
      for (const ValueId output : node.outputs) ++writes_[index(graph.root(output))];
    }
    for (const Value& value : graph.values()) {
      if (value.view_of != kNoValue) views_[index(value.view_of)] = true;
    }
  }

  void run() {
    const std::vector<Node> nodes = std::move(graph_.nodes());
    graph_.nodes().clear();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      Node node = nodes[n];
      for (ValueId& input : node.inputs) {
        const auto found = conversions_.find(input);
        if (found != conversions_.end()) input = near(found->second, n);
      }
      if (may_repeat(node)) conversions_[node.outputs[0]] = {.node = node, .last_use = n};
      graph_.nodes().push_back(std::move(node));
    }
  }

 private:
  struct Conversion {
    Node node;
    std::size_t last_use = 0;
  };

  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  bool may_repeat(const Node& node) const {
    if (node.op != GPUNN_OP_COPY) return false;
    const ValueId from = node.inputs[0], to = node.outputs[0];
    const Value &source = graph_.value(from), &copy = graph_.value(to);
    return is_half(source.type.dtype) && copy.type.dtype == DType::f32 && copy.type.bytes() >= kLeastBytes &&
           graph_.value(graph_.root(from)).storage == Storage::arena && writes_[index(graph_.root(from))] == 1 &&
           copy.storage == Storage::arena && copy.view_of == kNoValue && !views_[index(to)] && writes_[index(to)] == 1;
  }

  ValueId near(Conversion& conversion, std::size_t reader) {
    if (reader - conversion.last_use > kNear) {
      const Value copy = graph_.value(conversion.node.outputs[0]);
      conversion.node.outputs[0] = graph_.add_value(copy.name, copy.type, Storage::arena);
      graph_.nodes().push_back(conversion.node);
    }
    conversion.last_use = reader;
    return conversion.node.outputs[0];
  }

  Graph& graph_;
  std::vector<int> writes_;  // by root
  std::vector<bool> views_;  // by value, whether there are views of it
  std::map<ValueId, Conversion> conversions_;
};

}  // namespace

void widen_near_use(Graph& graph) { Widening(graph).run(); }

}  // namespace gpunn::compiler
