#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "inference/engine/engine.hpp"

namespace gpunn::inference {

using graph::Graph;
using graph::Node;
using graph::Storage;
using graph::Value;
using graph::ValueId;

namespace {

bool writes(const Graph& g, const Node& node, ValueId root) {
  return std::ranges::any_of(node.outputs, [&](ValueId id) { return g.root(id) == root; });
}

// Whether the source of a copy may lie where the copy goes: it has the same bytes, and nothing else needs either of the
// two for itself.
bool can_lie_there(const Graph& g, std::size_t copy) {
  const Node& node = g.nodes()[copy];
  const ValueId from = node.inputs.front(), to = node.outputs.front();
  const Value& source = g.value(g.root(from));
  const Value& target = g.value(g.root(to));
  if (source.storage != Storage::arena || target.storage != Storage::state || target.constant) return false;
  if (!(g.value(from).type == g.value(to).type) || source.type.bytes() != g.value(to).type.bytes()) return false;
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    if (n == copy) continue;
    const Node& other = g.nodes()[n];
    const bool reads_target = std::ranges::any_of(other.inputs, [&](ValueId id) { return g.root(id) == g.root(to); });
    if (reads_target || writes(g, other, g.root(to)) || (n > copy && writes(g, other, g.root(from)))) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> write_outputs_directly(Graph& g) {
  std::vector<std::string> changed;
  for (std::size_t n = 0; n < g.nodes().size();) {
    const Node& node = g.nodes()[n];
    if (node.op != GPUNN_OP_COPY || !can_lie_there(g, n)) {
      ++n;
      continue;
    }
    const ValueId to = node.outputs.front();
    Value& source = g.value(g.root(node.inputs.front()));
    source.storage = Storage::state;
    source.view_offset = g.root_offset(to);
    source.view_of = g.root(to);
    changed.push_back(source.name);
    g.nodes().erase(std::next(g.nodes().begin(), static_cast<std::ptrdiff_t>(n)));
  }
  return changed;
}

}  // namespace gpunn::inference
