// An overlay on the CPU for tests. It offers the subgraphs that cuda_tiled would fuse on a GPU with an H200's shared
// memory, so that `gpunn plan` shows them without a GPU. It can't run them.
#include "subgraphs/step_match.hpp"

#include <gpunn/subgraph.hpp>

#include <cstring>
#include <memory>
#include <utility>

#include "common/subgraphs/batch_norm.hpp"
#include "subgraphs/dense_match.hpp"
#include "subgraphs/pool_match.hpp"
#include "subgraphs/step_plan.hpp"

namespace {

using namespace gpunn::plugin;
using namespace gpunn::cuda_tiled;

constexpr int kSharedLimit = 227 * 1024 - kStepStaticBytes;

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
      const PoolSubgraph run = match_pool(desc, first, limit);
      if (run.ops == 0 || !run.backward) return SubgraphSupport::no(match.reason.empty() ? run.reason : match.reason);
      return SubgraphSupport::yes(run.ops, "fused pooling backward", run.gradient.workspace_bytes);
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
