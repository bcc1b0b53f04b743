#pragma once

#include <gpunn/subgraph.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "graph/graph.hpp"
#include "graph/value_use.hpp"

namespace gpunn::execution {

// Ops of a program that a plugin runs as one; they stand together.
struct Subgraph {
  graph::NodeRange nodes;
  int level = 0;  // index into the chain
  uint64_t workspace_bytes = 0;
  uint32_t flags = 0;  // GPUNN_OP_DETERMINISTIC, GPUNN_OP_CAPTURABLE
  std::string name;    // of the plugin's choice, for the user
};

// What became of a program that was offered.
struct Subgraphs {
  std::vector<Subgraph> taken;
  std::vector<std::string> reasons;  // why ops were not fused, each once: "cuda_tiled, at CONV2D 'conv1': ..."
};

// "12 ops from CONV2D 'conv1' to ADVANCE 'counters'"
std::string text_of(const graph::Graph& graph, const graph::NodeRange& nodes);

std::vector<graph::NodeRange> ranges_of(const std::vector<Subgraph>& subgraphs);

// A subgraph bound to its plugin.
class FusedSubgraph {
 public:
  FusedSubgraph();
  FusedSubgraph(FusedSubgraph&& other) noexcept;
  FusedSubgraph& operator=(FusedSubgraph&& other) noexcept;
  ~FusedSubgraph();
  // Puts the run on the backend's stream, or on one of its lanes. `what` names it in an error.
  void enqueue(const gpunn_subgraph_args& args, const std::string& what);
  void enqueue(const gpunn_subgraph_args& args, const std::string& what, const Lanes& lanes, std::size_t lane);

 private:
  friend class Backend;
  struct State;
  void enqueue_on(gpunn_stream* stream, const gpunn_subgraph_args& args, const std::string& what);
  std::unique_ptr<State> state_;
};

// The arguments of one enqueue of a subgraph, built once and used at each step. Moving keeps the pointers valid.
class SubgraphArguments {
 public:
  // `addresses` by value id, nullptr where a value has no memory. Of them those that the run uses are given.
  SubgraphArguments(const graph::Graph& graph, const graph::NodeRange& nodes, const std::vector<void*>& addresses,
                    void* workspace, uint64_t workspace_bytes);
  const gpunn_subgraph_args& get() const { return args_; }

 private:
  std::deque<gpunn_tensor> tensors_;           // of the values that are used; stay where they are
  std::vector<const gpunn_tensor*> pointers_;  // by value
  gpunn_subgraph_args args_{};
};

}  // namespace gpunn::execution
