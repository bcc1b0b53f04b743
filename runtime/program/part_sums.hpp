// The values that a divided step adds up over its parts: gradients, and the running statistics of batch norm.
#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"
#include "program/division.hpp"
#include "program/gradient_buckets.hpp"
#include "program/layout.hpp"

namespace gpunn::training {

// How gradients are added up over the ranks.
struct RankSumOptions {
  Ranks ranks;
  std::vector<distributed::Share> buckets;  // gradient_buckets()
  Wire wire = Wire::f32;
  bool shard = false;  // each rank gets its part of each bucket, shard_of(), and not all of it
};

class PartGradients {
 public:
  // `gradients` is the flat array of the sum.
  PartGradients(graph::Graph& g, const ParameterLayout& layout, const Division& division, graph::ValueId gradients,
                RankSumOptions options);
  // The flat array that the gradients of a part of this rank, counted from 0, are written to.
  graph::ValueId begin_part(int64_t part);
  // When they are written.
  void end_part(int64_t part);
  // Number of parts of all ranks.
  void add_sum();

 private:
  // The same answer on all ranks, even if one has a single part.
  bool keeps_parts() const { return division_.in_order && division_.world > 1 && division_.parts > division_.world; }

  graph::Graph& g_;
  const ParameterLayout& layout_;
  const Division& division_;
  const graph::ValueId gradients_;
  const RankSumOptions options_;
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
