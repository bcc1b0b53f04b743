#include "subgraphs/step/match_search.hpp"

namespace gpunn::cuda_tiled {

using backends::require;

int32_t StepSearch::from_outside(int32_t id) const {
  require(desc.comes_in(id, pattern.begin()), "an input that the step makes");
  return id;
}

void StepSearch::use_step(int32_t id) {
  int32_t& step = match.values.step;
  require(step < 0 || step == id, "several counters");
  step = id;
}

double StepSearch::constant(int32_t id, std::size_t before) {
  const std::size_t fill = pattern.producer(id, before);
  require(fill != Pattern::kNone && pattern.op(fill) == GPUNN_OP_FILL, "a factor or count that is no constant");
  pattern.take(fill, "");
  return op(fill).attrs<gpunn_fill_attrs>().value;
}

}  // namespace gpunn::cuda_tiled
