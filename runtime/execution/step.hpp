#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "compiler/memory_plan.hpp"
#include "execution/lane_plan.hpp"
#include "execution/program_desc.hpp"
#include "execution/subgraph.hpp"
#include "execution/tensor_table.hpp"

namespace gpunn::execution {

// Where the values of a program are, and its scratch memory.
struct BoundMemory {
  std::vector<void*> addresses;  // by value; nullptr: it has no memory
  const compiler::MemoryPlan& plan;
  void* arena;
};

// What all subgraphs of a program are bound with.
struct SubgraphContext {
  const ProgramDescription& description;
  std::vector<bool> internal;  // by value: compiler::internal_values of all subgraphs
};

// What is enqueued as one, an op or a run of ops that a plugin fused, with its arguments.
class Step {
 public:
  Step(Backend& backend, const graph::Graph& graph, std::size_t node, const Placement& placement,
       const BoundMemory& memory);
  Step(Backend& backend, const graph::Graph& graph, const Subgraph& subgraph, const SubgraphContext& program,
       const BoundMemory& memory);

  void enqueue();
  void enqueue(const Lanes& lanes, std::size_t lane);
  const std::string& what() const { return what_; }
  const compiler::NodeRange& nodes() const { return nodes_; }
  int level() const { return level_; }
  uint32_t flags() const { return flags_; }
  bool fused() const { return std::holds_alternative<SubgraphWork>(work_); }
  // The bytes that it touches. Whether it is movable is left to the caller.
  MemoryAccess access(const graph::Graph& graph, const std::vector<void*>& addresses) const;

 private:
  struct OpWork {
    Kernel kernel;
    OpArguments arguments;
  };
  struct SubgraphWork {
    FusedSubgraph run;
    SubgraphArguments arguments;
  };

  compiler::NodeRange nodes_;
  int level_;
  uint32_t flags_;
  std::string what_;
  MemoryRange workspace_;
  std::variant<OpWork, SubgraphWork> work_;
};

}  // namespace gpunn::execution
