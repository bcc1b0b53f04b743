#include "subgraphs/dense_match.hpp"

#include <gpunn/ops.h>

#include "common/bias.hpp"
#include "common/requirements.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;
using backends::Refusal;

// Throws Refusal.
DenseSubgraph find_run(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  if (limit < 2 || desc.op(first).op() != GPUNN_OP_MATMUL) return {};
  const OpDesc mask = desc.op(first + 1);
  if (mask.op() != GPUNN_OP_BIAS_ACTIVATION_BACKWARD) return {};
  const auto factors = desc.inputs(first);
  const int32_t product = desc.outputs(first)[0];
  const int32_t y = desc.inputs(first + 1)[1];
  const auto outputs = desc.outputs(first + 1);
  const std::size_t end = first + 2;
  const bool inside = desc.inputs(first + 1)[0] == product && y != product && desc.value(product).root == product &&
                      (outputs[0] == product || !desc.needed_after(product, end));
  if (!inside || !desc.needed_after(outputs[0], end) || !desc.needed_after(outputs[1], end)) return {};
  if (!backends::bias_activation_backward_of(mask).relu || mask.input(0).rank != 2) return {};
  return {.ops = 2, .inputs = {factors[0], factors[1], y}, .outputs = {outputs[0], outputs[1]}};
}

}  // namespace

DenseSubgraph match_dense(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  try {
    return find_run(desc, first, limit);
  } catch (const Refusal&) {
    return {};
  }
}

}  // namespace gpunn::cuda_tiled
