#pragma once

#include <gpunn/subgraph.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "compiler/value_use.hpp"
#include "execution/backend.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// Ops of a step program that a plugin fuses. They stand together.
struct Subgraph {
  compiler::NodeRange nodes;
  int level = 0;  // index into the chain
  uint64_t workspace_bytes = 0;
  uint32_t flags = 0;  // GPUNN_OP_DETERMINISTIC, GPUNN_OP_CAPTURABLE
  std::string name;    // chosen by the plugin, for the user
};

// The answers of the plugins to a step program that they were offered.
struct Subgraphs {
  std::vector<Subgraph> taken;
  // Why ops were not fused, each reason once: "cuda_tiled, at CONV2D 'conv1': ..."
  std::vector<std::string> reasons;
};

// "12 ops from CONV2D 'conv1' to ADVANCE 'counters'"
std::string text_of(const graph::Graph& graph, const compiler::NodeRange& nodes);

std::vector<compiler::NodeRange> ranges_of(const std::vector<Subgraph>& subgraphs);

// A subgraph bound to its plugin.
class FusedSubgraph {
 public:
  FusedSubgraph();
  FusedSubgraph(FusedSubgraph&& other) noexcept;
  FusedSubgraph& operator=(FusedSubgraph&& other) noexcept;
  ~FusedSubgraph();
  // Puts the subgraph on the backend's own stream, or on another of `streams`. `what` names it in an error.
  void enqueue(const gpunn_subgraph_args& args, const std::string& what);
  void enqueue(const gpunn_subgraph_args& args, const std::string& what, const Streams& streams, std::size_t stream);

 private:
  friend class Backend;
  struct State;
  void enqueue_on(gpunn_stream* stream, const gpunn_subgraph_args& args, const std::string& what);
  std::unique_ptr<State> state_;
};

// The arguments of a subgraph, built once and used at each step. Moving keeps the pointers valid.
class SubgraphArguments {
 public:
  // `addresses` by value id, nullptr if a value has no memory. The subgraph is given those that its ops use.
  SubgraphArguments(const graph::Graph& graph, const compiler::NodeRange& nodes, const std::vector<void*>& addresses,
                    void* workspace, uint64_t workspace_bytes);
  const gpunn_subgraph_args& get() const { return args_; }

 private:
  std::deque<gpunn_tensor> tensors_;           // of the values that the ops use; a deque keeps their addresses
  std::vector<const gpunn_tensor*> pointers_;  // by value
  gpunn_subgraph_args args_{};
};

}  // namespace gpunn::execution
