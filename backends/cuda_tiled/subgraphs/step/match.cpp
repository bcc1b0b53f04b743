// What is fused besides the core is tried from all of it to none of it.
#include "subgraphs/step/match.hpp"

#include <algorithm>
#include <string>

#include "common/requirements.hpp"
#include "subgraphs/pattern.hpp"
#include "subgraphs/step/match_ranks.hpp"
#include "subgraphs/step/match_search.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::Refusal;
using backends::require;
using plugin::ProgramDesc;

void match_core(StepSearch& search) {
  find_loss(search);
  find_layers(search);
  match_batch(search);
  match_layers(search);
  match_loss(search);
  match_gradients(search);
}

// The ops that are taken as a whole: what they leave for others, and whether they can run at one place.
StepMatch whole(StepSearch& search) {
  const ProgramDesc& desc = search.desc;
  Pattern& pattern = search.pattern;
  StepNetwork& network = search.match.network;
  StepValues& values = search.match.values;
  // The step knows the number; whoever else reads it has it made.
  for (std::size_t i = pattern.begin(); i < pattern.end(); ++i) {
    if (pattern.taken(i) && pattern.op(i) == GPUNN_OP_FILL && pattern.needed(pattern.output(i))) {
      pattern.release(i);
    }
  }
  for (std::size_t i = pattern.begin(); i < pattern.end(); ++i) {
    if (!pattern.taken(i)) continue;
    for (const int32_t id : desc.outputs(i)) {
      if (std::find(search.left.begin(), search.left.end(), id) != search.left.end() || !pattern.needed(id)) continue;
      if (pattern.same(id, search.logits)) {
        values.logits = id;
      } else if (id == search.losses) {
        values.row_losses = id;
      } else if (id == search.mean) {
        values.mean_loss = id;
      } else {
        const std::size_t reader = pattern.outer_reader(id);
        throw Refusal((reader == Pattern::kNone ? std::string("something outside") : op_text(desc, reader)) +
                      " reads what " + op_text(desc, i) + " makes within the step");
      }
    }
  }
  network.told = values.logits >= 0 || values.row_losses >= 0 || values.mean_loss >= 0;
  if (network.world > 1) require_no_other_exchange(pattern);
  search.match.ops = pattern.chosen();
  const plugin::Gathered gathered = plugin::gather_ops(desc, search.match.ops);
  if (gathered.between != plugin::Gathered::kNowhere) {
    throw Refusal(op_text(desc, gathered.between) + " has to run within the step");
  }
  std::size_t norm = 0;
  for (const bool dense : {false, true}) {
    for (const StepLayer& layer : search.layers) {
      if (layer.dense == dense && layer.gamma >= 0) values.running[norm++] = layer.running;
    }
  }
  for (const StepLayer& layer : search.layers) {
    if (layer.dense) {
      network.dense.push_back(layer.matrix);
    } else {
      network.convs.push_back(layer.conv);
    }
  }
  require(network.convs.size() <= kMostStepConvs && network.dense.size() <= kMostStepDense, "too many layers");
  return search.match;
}

// All that is fused besides the core, from the most to the least.
constexpr Surroundings kSurroundings[] = {
    {true, true, true, true},    {true, true, true, false},   {true, false, true, true},  {true, false, true, false},
    {true, false, false, false}, {false, true, true, true},   {false, true, true, false}, {false, false, true, true},
    {false, false, true, false}, {false, false, false, false}};

}  // namespace

StepMatch match_step(const ProgramDesc& desc, std::size_t first, std::size_t limit, int world) {
  StepMatch none;
  if (limit == 0 || first >= desc.ops()) return none;
  for (const Surroundings& with : kSurroundings) {
    StepSearch search(desc, first, limit, world, with);
    try {
      match_core(search);
    } catch (const Refusal& refusal) {
      if (none.reason.empty() || !with.batch) none.reason = refusal.what();
      if (with.batch) continue;
      break;  // no batch is the least
    }
    try {
      match_update(search);
      match_counters(search);
      StepMatch match = whole(search);
      if (match.ops.front() == first) return match;
      none.reason.clear();
      return none;
    } catch (const Refusal& refusal) {
      none.reason = refusal.what();
    }
  }
  // Of a part of the program there is nothing to say.
  if (first != 0 || limit < desc.ops()) none.reason.clear();
  return none;
}

}  // namespace gpunn::cuda_tiled
