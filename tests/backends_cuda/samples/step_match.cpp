// An overlay on the CPU for tests. It offers the subgraphs that cuda_tiled would fuse on a GPU with an H200's shared
// memory, so that `gpunn plan` shows them without a GPU. It can't run them.
#include <gpunn/rank_subgraph.hpp>
#include <gpunn/subgraph.hpp>

#include <cstring>
#include <memory>

#include "common/subgraphs/batch_norm.hpp"
#include "subgraphs/dense_match.hpp"
#include "subgraphs/pool_match.hpp"
#include "subgraphs/step/step.hpp"

namespace {

using namespace gpunn::plugin;
using namespace gpunn::cuda_tiled;

constexpr StepGpu kGpu{.shared_memory = 227 * 1024, .multiprocessors = 132};

// What a kernel and a subgraph do.
constexpr auto run_nothing = [](Stream& /*stream*/, const auto& /*args*/) {
  throw Failure(GPUNN_UNSUPPORTED, "the sample runs nothing");
};

// Convolutions of half precision are served here, since the base serves them on some processors only and the plan
// converts their tensors on all others.
Support query_half(const OpDesc& desc) { return has_half(desc) ? Support::yes() : Support::no("the base runs it"); }

class TestDevice final : public HostDevice {
 public:
  TestDevice() {
    for (const int32_t op : {GPUNN_OP_CONV2D, GPUNN_OP_CONV2D_BACKWARD_DATA, GPUNN_OP_CONV2D_BACKWARD_FILTER}) {
      add(op, {.query = query_half,
               .create = [](const OpDesc& /*desc*/) { return make_kernel(run_nothing); },
               .half = true,
               .channels_last = true});
    }
  }
  SubgraphSupport query_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
    const gpunn::backends::NormSubgraph norm = gpunn::backends::match_convolution_norm(desc, first, limit);
    if (norm.ops > 0 && has_half(desc.op(first))) {
      return SubgraphSupport::yes(norm.ops, "fused convolution and batch norm");
    }
    const gpunn::backends::NormSubgraph gradient = gpunn::backends::match_gradient_norm(desc, first, limit);
    if (gradient.ops > 0 && has_half(desc.op(first))) {
      return SubgraphSupport::yes(gradient.ops, "fused data gradient and batch norm");
    }
    SubgraphSupport step = query_step(kGpu, world_, desc, first, limit);
    if (step.ops > 0) return step;
    const DenseSubgraph dense = match_dense(desc, first, limit);
    if (dense.ops > 0) return SubgraphSupport::yes(dense.ops, "fused dense gradient");
    const PoolSubgraph run = match_pool(desc, first, limit);
    if (run.ops == 0 || !run.backward) return SubgraphSupport::no(step.reason.empty() ? run.reason : step.reason);
    return SubgraphSupport::yes(run.ops, "fused pooling backward", run.gradient.workspace_bytes);
  }
  void join_ranks(const CommunicatorOptions& options) { world_ = options.world(); }
  void abort_ranks() noexcept {}
  void leave_ranks() noexcept { world_ = 1; }
  std::unique_ptr<Subgraph> create_subgraph(const ProgramDesc& /*desc*/, std::size_t /*first*/, std::size_t /*count*/) {
    return make_subgraph(run_nothing);
  }

 private:
  int world_ = 1;
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
    if (std::strcmp(name, GPUNN_EXTENSION_RANK_SUBGRAPH) == 0) return rank_subgraph_extension<TestDevice>();
    return std::strcmp(name, GPUNN_EXTENSION_SUBGRAPH) == 0 ? subgraph_extension<TestDevice>() : nullptr;
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return export_backend<TestBackend>(major, minor);
}
