// An overlay on the CPU for tests. It offers the subgraphs that cuda_tiled would fuse on a GPU with an H200's shared
// memory, so that `gpunn plan` shows them without a GPU. It can't run them.
#include "subgraphs/step_match.hpp"

#include <gpunn/subgraph.hpp>

#include <cstring>
#include <memory>
#include <utility>

#include "common/subgraphs/batch_norm.hpp"
#include "common/subgraphs/pooling.hpp"
#include "pooling/pooling_gradient.hpp"
#include "subgraphs/dense_match.hpp"
#include "subgraphs/step_plan.hpp"

namespace {

using namespace gpunn::plugin;
using namespace gpunn::cuda_tiled;

constexpr int kSharedLimit = 227 * 1024 - kStepStaticBytes;

SubgraphSupport query_pool(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  const gpunn::backends::PoolSubgraph run = gpunn::backends::match_pool(desc, first, limit);
  if (run.ops == 0 || !run.backward) return SubgraphSupport::no(run.reason);
  try {
    const PoolingGradient plan = pooling_gradient_of(run.pool, desc.tensor(run.y).dim[1], run.mean, run.db >= 0);
    return SubgraphSupport::yes(run.ops, "fused pooling backward", plan.workspace_bytes);
  } catch (const Refusal& refusal) {
    return SubgraphSupport::no(refusal.what());
  }
}

class TestDevice final : public HostDevice {
 public:
  SubgraphSupport query_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
    const gpunn::backends::NormSubgraph norm = gpunn::backends::match_convolution_norm(desc, first, limit);
    if (norm.ops > 0 && has_half(desc.op(first))) {
      return SubgraphSupport::yes(norm.ops, "fused convolution and batch norm");
    }
    StepMatch match = match_step(desc, first, limit);
    if (match.ops.empty()) {
      const DenseSubgraph dense = match_dense(desc, first, limit);
      if (dense.ops > 0) return SubgraphSupport::yes(dense.ops, "fused dense gradient");
      SubgraphSupport pooling = query_pool(desc, first, limit);
      if (pooling.ops == 0 && !match.reason.empty()) pooling.reason = match.reason;
      return pooling;
    }
    const StepPlanned planned = make_step_plan(match.network, {.shared = kSharedLimit, .multiprocessors = 132});
    if (!planned.plan) return SubgraphSupport::no(planned.refusal);
    return SubgraphSupport::yes(std::move(match.ops), "fused training step", planned.plan->workspace_bytes);
  }
  std::unique_ptr<Subgraph> create_subgraph(const ProgramDesc& /*desc*/, std::size_t /*first*/, std::size_t /*count*/) {
    return make_subgraph([](Stream& /*stream*/, const SubgraphArgs& /*args*/) {
      throw Failure(GPUNN_UNSUPPORTED, "the sample runs nothing");
    });
  }
};

class TestBackend final : public Backend {
 public:
  const char* name() const override { return "step_match"; }
  const char* version() const override { return "1"; }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options& /*options*/) override {
    return std::make_unique<TestDevice>();
  }
  const void* extension(const char* name) override {
    return std::strcmp(name, GPUNN_EXTENSION_SUBGRAPH) == 0 ? subgraph_extension<TestDevice>() : nullptr;
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return export_backend<TestBackend>(major, minor);
}
