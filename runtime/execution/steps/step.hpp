#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "compiler/memory_plan.hpp"
#include "execution/steps/program_desc.hpp"
#include "execution/steps/subgraph.hpp"
#include "execution/steps/tensor_table.hpp"
#include "execution/streams/stream_plan.hpp"

namespace gpunn::execution {

// The addresses of a step program's values, and its scratch memory.
struct BoundMemory {
  std::vector<void*> addresses;  // by value; nullptr: it has no memory
  const compiler::MemoryPlan& plan;
  void* arena;
};

// The description and the inner values that all fused subgraphs of a step program share.
struct SubgraphContext {
  const ProgramDescription& description;
  std::vector<bool> internal;  // by value: compiler::internal_values of all subgraphs
};

// An op or a fused subgraph, bound to its plugin and its arguments: it is enqueued with a single call.
class Step {
 public:
  Step(Backend& backend, const graph::Graph& graph, std::size_t node, const Placement& placement,
       const BoundMemory& memory);
  Step(Backend& backend, const graph::Graph& graph, const Subgraph& subgraph, const SubgraphContext& program,
       const BoundMemory& memory);

  void enqueue();
  void enqueue(const Streams& streams, std::size_t stream);
  const std::string& what() const { return what_; }
  const compiler::NodeRange& nodes() const { return nodes_; }
  int level() const { return level_; }
  uint32_t flags() const { return flags_; }
  // Whether all ranks run it at the same time, and in one order.
  bool collective() const {
    const auto* const op = std::get_if<OpWork>(&work_);
    return op != nullptr && op->kernel.collective();
  }
  bool fused() const { return std::holds_alternative<SubgraphWork>(work_); }
  // The bytes that it reads and writes. The caller sets `where`.
  MemoryAccess access(const graph::Graph& graph, const std::vector<void*>& addresses) const;

 private:
  struct OpWork {
    Kernel kernel;
    OpArguments arguments;
  };
  struct SubgraphWork {
    FusedSubgraph subgraph;
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
