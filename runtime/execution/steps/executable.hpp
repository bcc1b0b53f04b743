#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/memory_plan.hpp"
#include "execution/backend.hpp"
#include "execution/steps/compiler.hpp"
#include "execution/steps/subgraph.hpp"
#include "execution/steps/variables.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// A step program bound to a backend: each node has its kernel or belongs to a fused subgraph, and each tensor has its
// address. A run allocates nothing, copies nothing and waits for nothing.
class Executable {
 public:
  // Values outside the arena are bound to `variables` by name, and created there (zeroed) if absent. `arena` must hold
  // plan.arena_bytes and outlive the executable. `subgraphs` are those that the plan was made with, in order. Throws
  // Error with each plugin's reason if no plugin of the chain serves an op.
  Executable(Backend& backend, Variables& variables, const graph::Graph& graph, const compiler::MemoryPlan& plan,
             void* arena, const std::vector<Subgraph>& subgraphs = {});
  // The same with the plugins and kernels that the program was placed on: no plugin is asked again.
  Executable(Backend& backend, Variables& variables, const CompiledProgram& program, void* arena);
  ~Executable();
  Executable(Executable&&) noexcept;

  // Runs the step program `times` times in order. If all nodes are capturable and the backend captures, it launches a
  // captured graph of a single run or of several. Otherwise it enqueues every node.
  void run(int64_t times = 1);
  // Enqueues the nodes one by one, synchronises the stream behind each and calls `after`. Throws Error if there are
  // fused subgraphs, whose inner values have no memory.
  void run_observed(const std::function<void(const graph::Node&)>& after);
  // Enqueues one node and waits for it. Throws Error if there are fused subgraphs.
  void run_node(std::size_t index);
  // Enqueues the nodes and fused subgraphs one by one and calls `after` with the index behind each. It never waits.
  void run_marked(const std::function<void(std::size_t)>& after);
  // The address of a value, for reading it between nodes; nullptr for a value inside a fused subgraph.
  void* address(graph::ValueId id) const;
  bool captured() const;
  // How many runs the larger captured graph does in a launch; 1 without such a graph.
  int64_t runs_per_launch() const;
  // Why run() enqueues every node instead of launching a captured graph. Empty before the second run, and if it does
  // launch one.
  std::string eager_reason() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Places every node: level and workspace by node. Throws as Executable does.
std::vector<Placement> place_nodes(const Backend& backend, const graph::Graph& graph);

}  // namespace gpunn::execution
