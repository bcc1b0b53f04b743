#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/memory_plan.hpp"
#include "execution/backend.hpp"
#include "execution/subgraph.hpp"
#include "execution/variables.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// A program bound to a backend: each node has its kernel, or is part of a fused subgraph, and each tensor its address.
// Running it allocates nothing, copies nothing and waits for nothing.
class Executable {
 public:
  // Values outside the arena are bound to `variables` by name, and created (zeroed) there where absent. `arena` must
  // hold plan.arena_bytes and outlive the executable. `subgraphs` are those that the plan was made with, in order.
  // Throws Error where nobody in the chain serves an op, with each plugin's reason.
  Executable(Backend& backend, Variables& variables, const graph::Graph& graph, const compiler::MemoryPlan& plan,
             void* arena, const std::vector<Subgraph>& subgraphs = {});
  ~Executable();
  Executable(Executable&&) noexcept;

  // Runs the program so many times, one after another: enqueues every node, or launches a captured graph, of one run or
  // of several, where all nodes are capturable and the backend captures.
  void run(int64_t times = 1);
  // Enqueues every node one by one and calls `after` behind each, with the stream synchronised. Throws Error where
  // there are subgraphs: what lies within one has no memory.
  void run_observed(const std::function<void(const graph::Node&)>& after);
  // Enqueues one node and waits for it; not where there are subgraphs either.
  void run_node(std::size_t index);
  // Enqueues every node, or fused subgraph, one by one and calls `after` with its index behind each, without
  // waiting for anything.
  void run_marked(const std::function<void(std::size_t)>& after);
  // The address of a value, for reading it between nodes; nullptr within a subgraph.
  void* address(graph::ValueId id) const;
  bool captured() const;
  // How many runs a launch of the larger graph does; 1 where there is none.
  int64_t runs_per_launch() const;
  // Why run() enqueues every node instead of launching a captured graph; empty before the second run, and where it
  // does launch one.
  std::string eager_reason() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Places every node: level and workspace by node. Throws as Executable does.
std::vector<Placement> place_nodes(const Backend& backend, const graph::Graph& graph);

}  // namespace gpunn::execution
