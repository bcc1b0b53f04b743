// The counters of a training step: metrics, histories, and the number of the step.
#include <algorithm>

#include "common/counter.hpp"
#include "common/metrics.hpp"
#include "subgraphs/step/match_ranks.hpp"
#include "subgraphs/step/match_search.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace backends;

int32_t loss_over_ranks(StepSearch& search) {
  const LossSum loss = take_loss_sum(search.pattern, search.world, search.mean);
  search.match.network.loss_weight = static_cast<float>(search.constant(loss.share, loss.product));
  return loss.sum;
}

void advance_passes(StepSearch& search) {
  Pattern& pattern = search.pattern;
  const std::size_t advance = take_pass_advance(pattern, search.match.values.step);
  if (advance == Pattern::kNone) return;
  search.match.values.pass = pattern.input(advance, 0);
  search.match.network.pass_advance = advance_of(search.op(advance));
  search.leave(pattern.output(advance));
}

}  // namespace

void match_counters(StepSearch& search) {
  Pattern& pattern = search.pattern;
  StepNetwork& network = search.match.network;
  StepValues& values = search.match.values;
  if (search.with.counters) {
    const std::size_t metrics = pattern.find({GPUNN_OP_METRICS_ACCUMULATE}, {search.losses, search.count, -1});
    if (metrics != Pattern::kNone) {
      const auto inputs = search.desc.inputs(metrics);
      const Metrics found = metrics_of(search.op(metrics));
      if (found.classes > 0) {
        require(inputs.size() == 5 && pattern.same(inputs[3], search.logits) &&
                    found.classes == search.layers.back().matrix.outputs,
                "metrics of other classes");
        use_label(search, inputs[4]);
        network.ranks = true;
      }
      pattern.take(metrics, "");
      values.totals = inputs[2];
      network.metrics = true;
      search.leave(pattern.output(metrics));
    }
    const int32_t loss = network.world > 1 ? loss_over_ranks(search) : search.mean;
    const std::size_t history = pattern.find({GPUNN_OP_TABLE_STORE}, {-1, values.step, loss});
    require(network.world == 1 || history != Pattern::kNone, "a loss of all ranks that no table keeps");
    if (history != Pattern::kNone && values.step >= 0) {
      pattern.take(history, "");
      values.history = pattern.input(history, 0);
      network.history = table_store_of(search.op(history)).length;
      search.leave(pattern.output(history));
    }
  }
  if (network.world > 1) advance_passes(search);
  network.advances = false;
  if (values.step < 0) return;
  const std::size_t advance = pattern.find({GPUNN_OP_ADVANCE}, {values.step});
  if (advance == Pattern::kNone) return;
  network.advance = advance_of(search.op(advance));
  if (!search.with.advance) return;
  pattern.take(advance, "");
  // Whoever reads the counter reads it before it advances.
  for (std::size_t i = advance + 1; i < pattern.end(); ++i) {
    const auto inputs = search.desc.inputs(i);
    require(!pattern.taken(i) || std::find(inputs.begin(), inputs.end(), values.step) == inputs.end(),
            "a counter that advances too early");
  }
  network.advances = true;
  search.leave(pattern.output(advance));
}

}  // namespace gpunn::cuda_tiled
