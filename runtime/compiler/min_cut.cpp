#include "compiler/min_cut.hpp"

#include <algorithm>

namespace gpunn::compiler {

namespace {

// Each edge is followed by the one back; the flow through an edge is the room of the one back.
class Network {
 public:
  explicit Network(std::size_t nodes) : edges_of_(nodes) {}

  void connect(std::size_t from, std::size_t to, MinCut::Cost room) {
    if (room == 0) return;
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, room});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  // Lets as much flow from one node to another as there is room for.
  void fill(std::size_t from, std::size_t to) {
    while (number_levels(from)[to] >= 0) {
      next_edge_.assign(edges_of_.size(), 0);
      while (push(from, to, MinCut::kNever) > 0) {
      }
    }
  }

  // By node: how many edges with room lead to it from `from`; -1: there is no such way.
  const std::vector<int>& number_levels(std::size_t from) {
    level_.assign(edges_of_.size(), -1);
    level_[from] = 0;
    std::vector<std::size_t> reached{from};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::size_t e : edges_of_[reached[i]]) {
        if (edges_[e].room == 0 || level_[edges_[e].to] >= 0) continue;
        level_[edges_[e].to] = level_[reached[i]] + 1;
        reached.push_back(edges_[e].to);
      }
    }
    return level_;
  }

 private:
  struct Edge {
    std::size_t to = 0;
    MinCut::Cost room = 0;
  };

  // Lets at most that much flow along one way whose levels rise; returns how much it was.
  MinCut::Cost push(std::size_t from, std::size_t to, MinCut::Cost most) {  // NOLINT(misc-no-recursion)
    if (from == to) return most;
    for (std::size_t& next = next_edge_[from]; next < edges_of_[from].size(); ++next) {
      const std::size_t e = edges_of_[from][next];
      if (edges_[e].room == 0 || level_[edges_[e].to] != level_[from] + 1) continue;
      const MinCut::Cost pushed = push(edges_[e].to, to, std::min(most, edges_[e].room));
      if (pushed == 0) continue;
      edges_[e].room -= pushed;
      edges_[e ^ 1U].room += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<Edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_;  // by node
  std::vector<int> level_;                          // by node
  std::vector<std::size_t> next_edge_;              // by node: those before it have led nowhere
};

}  // namespace

MinCut::Item MinCut::add(Cost set, Cost clear) {
  items_.push_back({set, clear});
  return items_.size() - 1;
}

void MinCut::add_difference(Item one, Item other, Cost cost) { differences_.push_back({one, other, cost}); }

std::vector<bool> MinCut::solve() const {
  const std::size_t source = items_.size();  // on the side of what is set
  const std::size_t sink = source + 1;
  Network network(sink + 1);
  for (Item item = 0; item < items_.size(); ++item) {
    network.connect(source, item, items_[item].clear);
    network.connect(item, sink, items_[item].set);
  }
  for (const Difference& difference : differences_) network.connect(difference.one, difference.other, difference.cost);
  network.fill(source, sink);
  const std::vector<int>& level = network.number_levels(source);
  std::vector<bool> result(items_.size());
  for (Item item = 0; item < items_.size(); ++item) result[item] = level[item] >= 0;
  return result;
}

}  // namespace gpunn::compiler
