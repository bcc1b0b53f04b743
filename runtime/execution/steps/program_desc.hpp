#pragma once

#include <gpunn/subgraph.h>

#include <vector>

#include "execution/backend.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// A step program in the form that crosses the ABI. The graph must outlive it unchanged.
class ProgramDescription {
 public:
  ProgramDescription(const graph::Graph& graph, const BackendOptions& options);
  ProgramDescription(const ProgramDescription&) = delete;
  ProgramDescription& operator=(const ProgramDescription&) = delete;
  const gpunn_program_desc* get() const { return &desc_; }

 private:
  void describe_values(const graph::Graph& graph);
  void describe_ops(const graph::Graph& graph);

  std::vector<gpunn_tensor> tensors_;  // by value
  std::vector<gpunn_program_value> values_;
  std::vector<const gpunn_program_value*> value_pointers_;
  std::vector<std::vector<const gpunn_tensor*>> operands_;  // inputs, then outputs, by op
  std::vector<gpunn_op_desc> op_descs_;
  std::vector<gpunn_program_op> ops_;
  std::vector<const gpunn_program_op*> op_pointers_;
  gpunn_program_desc desc_{};
};

}  // namespace gpunn::execution
