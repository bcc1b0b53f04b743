#include "subgraphs/pool_match.hpp"

#include <gpunn/ops.h>

#include <algorithm>

#include "common/bias.hpp"
#include "common/elementwise.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;
using backends::Refusal;

class PoolMatcher {
 public:
  PoolMatcher(const ProgramDesc& desc, std::size_t first, std::size_t limit)
      : desc_(desc), first_(first), limit_(std::min(limit, desc.ops() - first)) {}

  // Throws Refusal.
  PoolSubgraph run() const {
    if (is(0, GPUNN_OP_CONV2D_BIAS_ACTIVATION) && is(1, GPUNN_OP_MAX_POOL2D)) return forward();
    const bool mean = is(0, GPUNN_OP_AVG_POOL2D_BACKWARD);
    if (!mean && !is(0, GPUNN_OP_MAX_POOL2D_BACKWARD)) return {};
    if (is(1, GPUNN_OP_RELU_BACKWARD)) return backward(mean, false);
    if (is(1, GPUNN_OP_BIAS_ACTIVATION_BACKWARD)) return backward(mean, true);
    return {};
  }

 private:
  bool is(std::size_t i, int32_t op) const { return i < limit_ && desc_.op(first_ + i).op() == op; }
  int32_t input(std::size_t op, std::size_t i) const { return desc_.inputs(first_ + op)[i]; }
  int32_t output(std::size_t op, std::size_t i) const { return desc_.outputs(first_ + op)[i]; }
  bool needed(int32_t id) const { return desc_.needed_after(id, first_ + 2); }

  PoolSubgraph forward() const {
    PoolSubgraph run;
    const int32_t y = output(0, 0);
    run.pooled = output(1, 0);
    if (input(1, 0) != y || desc_.value(y).root != y || !needed(run.pooled)) return {};
    run.convolution = backends::convolution_bias_activation_of(desc_.op(first_));
    run.pool = backends::max_pool_of(desc_.op(first_ + 1));
    backends::require(desc_.precision() == GPUNN_PRECISION_FP32, "tensor cores may be faster");
    // From there on Winograd's are the faster convolutions.
    constexpr int64_t kChannelsOfWinograd = 16;
    backends::require(run.convolution.shape.group_inputs < kChannelsOfWinograd, "a convolution of many channels");
    run.x = input(0, 0);
    run.w = input(0, 1);
    run.bias = input(0, 2);
    if (needed(y)) run.y = y;
    run.ops = 2;
    return run;
  }

  PoolSubgraph backward(bool mean, bool bias) const {
    PoolSubgraph run;
    run.backward = true;
    run.dpooled = input(0, 0);
    const int32_t through = output(0, 0);
    run.y = input(1, 1);
    run.dx = output(1, 0);
    if (bias) run.db = output(1, 1);
    if (input(1, 0) != through || run.y == through || desc_.value(through).root != through || needed(through))
      return {};
    if (!mean && input(0, 1) != run.y) return {};
    if (!needed(run.dx) || (bias && !needed(run.db))) return {};
    const OpDesc pooling = desc_.op(first_);
    const OpDesc activation = desc_.op(first_ + 1);
    const backends::Pool pool =
        mean ? backends::avg_pool_backward_of(pooling) : backends::max_pool_backward_of(pooling);
    if (bias) {
      backends::require(backends::bias_activation_backward_of(activation).relu, "there is no ReLU");
    } else {
      backends::map_size(activation);
    }
    run.gradient = pooling_gradient_of(pool, desc_.tensor(run.y).dim[1], mean, bias);
    run.ops = 2;
    return run;
  }

  const ProgramDesc& desc_;
  std::size_t first_;
  std::size_t limit_;
};

}  // namespace

PoolSubgraph match_pool(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  try {
    return PoolMatcher(desc, first, limit).run();
  } catch (const Refusal& refusal) {
    PoolSubgraph none;
    none.reason = refusal.what();
    return none;
  }
}

}  // namespace gpunn::cuda_tiled
