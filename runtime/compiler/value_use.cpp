#include "compiler/value_use.hpp"

#include <algorithm>
#include <map>

namespace gpunn::compiler {

using graph::Storage;

namespace {

// Bytes of a root that no value begins or ends within.
struct Piece {
  int32_t first_write = -1;
  int32_t last_read = -1;
  bool read_first = false;  // before a node writes it
};

class Roots {
 public:
  explicit Roots(const Graph& graph) : graph_(graph), pieces_(graph.values().size()) {
    for (std::size_t v = 0; v < graph.values().size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      auto& pieces = of_root(id);
      pieces.emplace(graph.root_offset(id), Piece{});
      pieces.emplace(end_of(id), Piece{});
    }
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      for (const ValueId input : graph.nodes()[n].inputs) read(input, static_cast<int32_t>(n));
      for (const ValueId output : graph.nodes()[n].outputs) write(output, static_cast<int32_t>(n));
    }
  }

  ValueUse use_of(ValueId id, int32_t nodes) {
    const Storage storage = graph_.value(graph_.root(id)).storage;
    const ValueUse kept{.first_write = -1, .last_read = nodes};
    if (storage != Storage::arena && storage != Storage::gradients) return kept;
    ValueUse use;
    bool carried = false;
    for_each(id, [&](const Piece& piece) {
      const bool written = piece.first_write >= 0;
      carried = carried || (written && piece.read_first);
      if (written && (use.first_write < 0 || piece.first_write < use.first_write)) use.first_write = piece.first_write;
      use.last_read = std::max(use.last_read, piece.last_read);
    });
    return carried ? kept : use;
  }

 private:
  std::map<int64_t, Piece>& of_root(ValueId id) { return pieces_[static_cast<std::size_t>(graph_.root(id))]; }
  int64_t end_of(ValueId id) const {
    return graph_.root_offset(id) + static_cast<int64_t>(graph_.value(id).type.bytes());
  }
  template <class F>
  void for_each(ValueId id, F action) {
    auto& pieces = of_root(id);
    const auto end = pieces.lower_bound(end_of(id));
    for (auto piece = pieces.lower_bound(graph_.root_offset(id)); piece != end; ++piece) action(piece->second);
  }
  void read(ValueId id, int32_t node) {
    for_each(id, [node](Piece& piece) {
      piece.read_first = piece.read_first || piece.first_write < 0;
      piece.last_read = node;
    });
  }
  void write(ValueId id, int32_t node) {
    for_each(id, [node](Piece& piece) {
      if (piece.first_write < 0) piece.first_write = node;
    });
  }

  const Graph& graph_;
  std::vector<std::map<int64_t, Piece>> pieces_;  // by root, then by their first byte
};

}  // namespace

std::vector<ValueUse> value_uses(const Graph& graph) {
  Roots roots(graph);
  std::vector<ValueUse> uses;
  uses.reserve(graph.values().size());
  for (std::size_t v = 0; v < graph.values().size(); ++v) {
    uses.push_back(roots.use_of(static_cast<ValueId>(v), static_cast<int32_t>(graph.nodes().size())));
  }
  return uses;
}

std::vector<bool> internal_values(const Graph& graph, const std::vector<NodeRange>& runs) {
  constexpr std::size_t kUntouched = static_cast<std::size_t>(-1), kOutside = static_cast<std::size_t>(-2);
  std::vector<std::size_t> run_of_node(graph.nodes().size(), kOutside);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (std::size_t n = runs[r].first; n < runs[r].end(); ++n) run_of_node.at(n) = r;
  }
  std::vector<std::size_t> run_of_root(graph.values().size(), kUntouched);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const auto touch = [&](ValueId id) {
      std::size_t& run = run_of_root[static_cast<std::size_t>(graph.root(id))];
      run = run == kUntouched || run == run_of_node[n] ? run_of_node[n] : kOutside;
    };
    std::ranges::for_each(graph.nodes()[n].inputs, touch);
    std::ranges::for_each(graph.nodes()[n].outputs, touch);
  }
  std::vector<bool> internal(graph.values().size(), false);
  for (std::size_t v = 0; v < internal.size(); ++v) {
    const ValueId root = graph.root(static_cast<ValueId>(v));
    internal[v] =
        graph.value(root).storage == Storage::arena && run_of_root[static_cast<std::size_t>(root)] < runs.size();
  }
  return internal;
}

}  // namespace gpunn::compiler
