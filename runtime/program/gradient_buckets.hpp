#pragma once

#include <cstdint>
#include <vector>

#include "distributed/team.hpp"
#include "graph/graph.hpp"
#include "program/division.hpp"
#include "program/layout.hpp"

namespace gpunn::training {

// The flat gradients in ranges that are added up over the ranks one by one, so that the sum of one range runs while the
// gradients of the next are computed. Whole neighbouring parameters, of `elements` or more where there are as many, but
// fewer of the first layers, whose sum nothing runs beside. Their ends are moved to multiples of layout.multiple. In
// the order in which the gradients are done: last layers first.
int64_t bucket_elements(const Experiment& experiment);
std::vector<distributed::Share> gradient_buckets(const ParameterLayout& layout, int64_t elements);

// The part of a bucket that a rank updates, and keeps the optimizer's states of, where these are shared out.
distributed::Share shard_of(const distributed::Share& bucket, Ranks ranks);

// The layout of an update of these parts alone: its ranges have them, and its states lie one behind another.
ParameterLayout sharded(const ParameterLayout& layout, const std::vector<distributed::Share>& buckets, Ranks ranks);

// parameters = those that each rank has updated, on all of them.
void add_gather(graph::Graph& g, const std::vector<distributed::Share>& buckets, Ranks ranks,
                graph::ValueId parameters);

// Moves each node from `first` on behind the last one before it that reads or writes the same memory: sums over the
// ranks begin in the midst of a step that has others in it.
void move_behind_inputs(graph::Graph& g, std::size_t first);

}  // namespace gpunn::training
