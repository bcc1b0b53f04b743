// A step whose rows are divided among ranks, or into parts whose sums have a fixed order.
#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <vector>

#include "distributed/team.hpp"
#include "graph/graph.hpp"
#include "program/batch_ops.hpp"
#include "program/sampling.hpp"

namespace gpunn::training {

// Which of the processes that train together this is.
struct Ranks {
  int rank = 0, world = 1;
};

// Whether each rank updates a part of the parameters and keeps the optimizer's states of no more.
bool shards_optimizer(const Experiment& experiment, Ranks ranks);

// The rows of a step in `parts` numbered parts, each of which passes through the model by itself. A rank has
// consecutive ones.
struct Division {
  int64_t rows = 0;  // of a step, on all ranks
  int64_t parts = 1;
  distributed::Share mine{0, 1};
  bool divided = false;   // false: one rank takes the batch as it is, in training.accumulate passes
  bool in_order = false;  // gradients are added part by part: the same bits on any number of ranks
  int world = 1;

  distributed::Share rows_of(int64_t part) const { return {rows * part / parts, rows * (part + 1) / parts}; }
  // Of the tensors of a part, all parts alike: a part may have a row less.
  int64_t part_rows() const { return (rows + parts - 1) / parts; }
  bool even() const { return rows % parts == 0; }
  // The rows of a step that this rank needs.
  distributed::Share my_rows() const { return {rows_of(mine.begin).begin, rows_of(mine.end - 1).end}; }
  // The same with what tensors of part_rows() reach beyond.
  int64_t my_width() const { return rows_of(mine.end - 1).begin + part_rows() - my_rows().begin; }
};

Division division_of(const Experiment& experiment, Ranks ranks, const Sampling& sampling);
// Throws Error(usage) where there are more ranks or parts than rows or parts to share out.
void require_divisible(const Experiment& experiment, Ranks ranks);

// What a step picked, of all parts of this rank.
struct PickedRows {
  graph::ValueId samples = graph::kNoValue;  // of which `index` picks
  graph::ValueId index = graph::kNoValue;    // i32[rows]
  std::vector<graph::ValueId> fields;  // SplitType::fields: of these rows, or of the split, of which `index` picks
  bool fields_are_picked = false;
  graph::ValueId count = graph::kNoValue;  // i32 0-d: rows that count
  int64_t first = 0;                       // the row of the step that `index` begins with
  graph::ValueId all = graph::kNoValue;    // i32 0-d: rows of the step that count, on all ranks
};
PickedRows add_picked_rows(graph::Graph& g, const SplitType& split, StepCounters counters, const Sampling& sampling,
                           const Division& division);

struct PartBatch {
  Batch batch;
  graph::ValueId count = graph::kNoValue;   // that the model is given; kNoValue: all rows count
  graph::ValueId weight = graph::kNoValue;  // f32 0-d: the part's share of the rows that count
};
// `varies`: the last batch of an epoch may have fewer rows.
PartBatch add_part_batch(graph::Graph& g, const SplitType& split, const PickedRows& picked, const Division& division,
                         int64_t part, bool varies);

// The sum over the parts of all ranks of values[L, n] or, of one rank, of L values of equal types.
graph::ValueId add_sum_of_parts(graph::Graph& g, const std::string& name, const std::vector<graph::ValueId>& values,
                                const Division& division);

}  // namespace gpunn::training
