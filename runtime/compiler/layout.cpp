#include "compiler/layout.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/cheapest_layouts.hpp"

namespace gpunn::compiler {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::OpSignature;
using graph::Value;
using graph::ValueId;

namespace {

class LayoutChoice {
 public:
  explicit LayoutChoice(Graph& graph) : graph_(graph) { find_fixed(); }

  void run(const Offers& offers) {
    const std::vector<Layout> layouts = cheapest_layouts(graph_, offers, fixed_);
    const std::vector<Node> nodes = std::move(graph_.nodes());
    graph_.nodes().clear();
    for (std::size_t n = 0; n < nodes.size(); ++n) append(nodes[n], layouts[n]);
    drop_unread_copies();
  }

 private:
  TensorType& type_of(ValueId id) { return graph_.value(id).type; }

  // The values that stay packed.
  void find_fixed() {
    fixed_.resize(graph_.values().size(), false);
    const auto fix = [&](ValueId id) { fixed_[static_cast<std::size_t>(id)] = true; };
    for (ValueId id = 0; id < static_cast<ValueId>(fixed_.size()); ++id) {
      const Value& value = graph_.value(id);
      if (value.storage != graph::Storage::arena || value.view_of != kNoValue) fix(id);
      if (value.view_of != kNoValue) fix(value.view_of);
    }
    std::set<ValueId> written;
    for (const Node& node : graph_.nodes()) {
      for (const ValueId output : node.outputs) {
        if (!written.insert(output).second || std::ranges::count(node.inputs, output) != 0) fix(output);
      }
    }
  }

  bool may_change(ValueId id) const { return !fixed_[static_cast<std::size_t>(id)]; }

  void append(Node node, Layout layout) {
    if (node.op == GPUNN_OP_COPY) return append_copy(std::move(node));
    for (ValueId& input : node.inputs) input = converted(input, layout);
    std::vector<std::pair<ValueId, ValueId>> copies;
    for (ValueId& output : node.outputs) {
      if (!has_layouts(type_of(output)) || type_of(output).layout == layout) continue;
      if (may_change(output)) {
        type_of(output).layout = layout;
      } else {
        const ValueId made = add_like(output, layout);
        copies.emplace_back(std::exchange(output, made), made);
      }
    }
    const std::string name = node.name;
    graph_.nodes().push_back(std::move(node));
    for (const auto& [to, from] : copies) graph_.add_into(GPUNN_OP_COPY, name, {}, {from}, {to});
  }

  // A copy takes tensors of any layout; what it writes keeps that of what it reads.
  void append_copy(Node node) {
    const ValueId from = node.inputs[0];
    const ValueId to = node.outputs[0];
    if (may_change(to) && type_of(to).shape == type_of(from).shape) {
      type_of(to).layout = type_of(from).layout;
      copied_[to] = {from, graph_.nodes().size()};
    }
    graph_.nodes().push_back(std::move(node));
  }

  ValueId add_like(ValueId id, Layout layout) {
    const std::string suffix = layout == Layout::packed ? ".packed" : ".channels_last";
    const ValueId made = graph_.add_value(graph_.value(id).name + suffix,
                                          {type_of(id).dtype, type_of(id).shape, layout}, graph::Storage::arena);
    fixed_.resize(graph_.values().size(), false);
    return made;
  }

  // Whether no op from `node` on, of those appended, writes the value's memory.
  bool unchanged_since(std::size_t node, ValueId id) const {
    const ValueId root = graph_.root(id);
    return std::none_of(
        graph_.nodes().begin() + static_cast<std::ptrdiff_t>(node), graph_.nodes().end(), [&](const Node& later) {
          return std::ranges::any_of(later.outputs, [&](ValueId output) { return graph_.root(output) == root; });
        });
  }

  // The value in that layout: itself, or a copy that another op needed, or a new one.
  ValueId converted(ValueId id, Layout layout) {
    if (!has_layouts(type_of(id)) || type_of(id).layout == layout) return id;
    const auto found = converted_.find({id, layout});
    if (found != converted_.end() && unchanged_since(found->second.node, id)) return found->second.value;
    // What is itself a copy is made anew of its original, in the other layout.
    const auto copy = copied_.find(id);
    const bool again = copy != copied_.end() && unchanged_since(copy->second.node, copy->second.value);
    const ValueId from = again ? copy->second.value : id;
    const ValueId made = add_like(id, layout);
    graph_.add_into(GPUNN_OP_COPY, graph_.value(made).name, {}, {from}, {made});
    converted_[{id, layout}] = {made, graph_.nodes().size()};
    return made;
  }

  // Copies whose readers read another layout of them now.
  void drop_unread_copies() {
    std::set<ValueId> read;
    for (const Node& node : graph_.nodes()) read.insert(node.inputs.begin(), node.inputs.end());
    std::erase_if(graph_.nodes(), [&](const Node& node) {
      const ValueId output = node.outputs.empty() ? kNoValue : node.outputs[0];
      return node.op == GPUNN_OP_COPY && copied_.contains(output) && converted_.contains({output, other(output)}) &&
             !read.contains(output);
    });
  }

  Layout other(ValueId id) { return type_of(id).layout == Layout::packed ? Layout::channels_last : Layout::packed; }

  // A value, and how many nodes there were when it had its content.
  struct Dated {
    ValueId value = kNoValue;
    std::size_t node = 0;
  };

  Graph& graph_;
  std::vector<bool> fixed_;                                // by value
  std::map<ValueId, Dated> copied_;                        // by a copy: what it was made of
  std::map<std::pair<ValueId, Layout>, Dated> converted_;  // by a value and the layout wanted
};

}  // namespace

bool has_images(const OpSignature& signature) {
  return std::ranges::any_of(signature.inputs, has_layouts) || std::ranges::any_of(signature.outputs, has_layouts);
}

OpSignature in_layout(OpSignature signature, Layout layout) {
  for (auto* types : {&signature.inputs, &signature.outputs}) {
    for (TensorType& type : *types) {
      if (has_layouts(type)) type.layout = layout;
    }
  }
  return signature;
}

void choose_layouts(Graph& graph, const Offers& offers) { LayoutChoice(graph).run(offers); }

}  // namespace gpunn::compiler
