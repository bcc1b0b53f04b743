// What a divided step adds up over its parts: gradients, and the running statistics of batch norm.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"
#include "training/division.hpp"
#include "training/layout.hpp"

namespace gpunn::training {

class PartGradients {
 public:
  // `gradients` is the flat array of the sum, which is formed over the ranks by buckets of gradient_buckets().
  PartGradients(graph::Graph& g, const ParameterLayout& layout, const Division& division, graph::ValueId gradients,
                int64_t bucket_elements);
  // The flat array that the gradients of a part of this rank, counted from 0, are written to.
  graph::ValueId begin_part(int64_t part);
  // When they are written.
  void end_part(int64_t part);
  // Of the parts of all ranks.
  void add_sum();

 private:
  // The same answer on all ranks, also where one has a single part.
  bool keeps_parts() const { return division_.in_order && division_.world > 1 && division_.parts > division_.world; }

  graph::Graph& g_;
  const ParameterLayout& layout_;
  const Division& division_;
  const graph::ValueId gradients_;
  const int64_t bucket_elements_;
  graph::ValueId parts_ = graph::kNoValue;  // of one part, or where they are kept [parts of this rank, elements]
};

// Each part begins with the statistics of the step before; their mean takes its place.
class PartBuffers {
 public:
  // `buffers` is the flat array of the statistics; kNoValue: the model has none.
  PartBuffers(graph::Graph& g, const ParameterLayout& layout, const Division& division, graph::ValueId buffers);
  // The buffers of the next part, for the model to update in place.
  std::vector<graph::ValueId> add_part();
  void add_mean();

 private:
  graph::Graph& g_;
  const ParameterLayout& layout_;
  const Division& division_;
  const graph::ValueId buffers_;
  std::vector<graph::ValueId> parts_;
};

}  // namespace gpunn::training
