#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "inference/engine/engine.hpp"
#include "ops/op.hpp"

namespace gpunn::inference {

using graph::Graph;
using graph::Node;
using graph::Storage;
using graph::ValueId;

namespace {

class ConstantFolding {
 public:
  explicit ConstantFolding(Graph& g) : g_(g) {
    for (const Node& node : g.nodes()) {
      for (const ValueId output : node.outputs) ++writes_[g.root(output)];
    }
  }

  Graph run() {
    std::vector<Node> folded, kept;
    for (Node& node : g_.nodes()) {
      if (!is_foldable(node)) {
        kept.push_back(std::move(node));
        continue;
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        names_[node.outputs[i]] = fmt::format("{}#{}", text_of(node), i);
        constants_.insert(node.outputs[i]);
      }
      folded.push_back(std::move(node));
    }
    // What only other folded ops read needs no memory later.
    std::set<ValueId> read;
    for (const Node& node : kept) {
      for (const ValueId input : node.inputs) read.insert(g_.root(input));
    }
    std::erase_if(constants_, [&](ValueId id) { return !read.contains(id); });
    g_.nodes() = std::move(kept);
    for (std::size_t v = 0; v < g_.values().size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      const ValueId root = g_.root(id);
      if (constants_.contains(root)) g_.value(id).storage = Storage::state;
      if (const auto name = names_.find(id); name != names_.end()) {
        g_.value(id).name = name->second + " " + type_text(g_.value(id).type);
      }
    }
    Graph making = g_;  // in which they are not constant yet
    making.nodes() = std::move(folded);
    for (const ValueId id : constants_) g_.value(id).constant = true;
    return making;
  }

 private:
  static std::string type_text(const TensorType& type) {
    return to_string(type) + (type.layout == Layout::channels_last ? " channels_last" : "");
  }

  bool is_foldable(const Node& node) const {
    if (node.inputs.empty()) return false;
    const auto is_constant = [&](ValueId id) { return g_.is_constant(id) || constants_.contains(g_.root(id)); };
    const auto is_own = [&](ValueId id) {
      return g_.root(id) == id && g_.value(id).storage == Storage::arena && writes_.at(id) == 1;
    };
    return std::ranges::all_of(node.inputs, is_constant) && std::ranges::all_of(node.outputs, is_own);
  }

  // What the op computes, and of what.
  std::string text_of(const Node& node) const {
    std::string text = std::string(ops::op_info(node.op).name) + "{";
    const auto* bytes = static_cast<const unsigned char*>(node.attrs.data());
    for (std::size_t i = 0; i < node.attrs.size(); ++i) text += fmt::format("{:02x}", bytes[i]);
    text += "}(";
    for (const ValueId input : node.inputs) {
      const ValueId root = g_.root(input);
      const auto name = names_.find(root);
      text += fmt::format("{}+{} {},", name != names_.end() ? name->second : g_.value(root).name, g_.root_offset(input),
                          type_text(g_.value(input).type));
    }
    return text + ")";
  }

  Graph& g_;
  std::map<ValueId, int> writes_;         // of roots
  std::map<ValueId, std::string> names_;  // of folded values
  std::set<ValueId> constants_;
};

}  // namespace

Graph fold_constants(Graph& g) { return ConstantFolding(g).run(); }

std::vector<std::string> remove_dead_ops(Graph& g) {
  std::set<ValueId> needed;  // roots
  std::vector<bool> live(g.nodes().size(), false);
  for (std::size_t n = g.nodes().size(); n-- > 0;) {
    const Node& node = g.nodes()[n];
    live[n] = std::ranges::any_of(node.outputs, [&](ValueId id) {
      return g.value(g.root(id)).storage != Storage::arena || needed.contains(g.root(id));
    });
    if (!live[n]) continue;
    for (const ValueId input : node.inputs) needed.insert(g.root(input));
  }
  std::vector<std::string> removed;
  std::vector<Node> kept;
  for (std::size_t n = 0; n < live.size(); ++n) {
    Node& node = g.nodes()[n];
    if (live[n]) {
      kept.push_back(std::move(node));
    } else {
      removed.push_back(std::move(node.name));
    }
  }
  g.nodes() = std::move(kept);
  return removed;
}

}  // namespace gpunn::inference
