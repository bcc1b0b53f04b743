#include "subgraphs/convolution_apart.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cuda_common/autotune_subgraph.hpp"
#include "cuda_common/stream.hpp"
#include "cuda_common/workspace.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;

HalfConvolution alone(HalfConvolution convolution) {
  convolution.statistics = convolution.gradient = false;
  return convolution;
}

int32_t result_of(const ProgramDesc& desc, const ConvolutionSubgraph& subgraph) {
  return desc.outputs(subgraph.first)[0];
}

// What the convolution and then the batch norm have of the workspace; the convolution's result lies behind it if only
// this subgraph needs it.
uint64_t shared_workspace(const ConvolutionSubgraph& subgraph) {
  const HalfConvolution convolution = alone(subgraph.convolution);
  return cuda::workspace_aligned(
      std::max(half_kernels_workspace(convolution, half_kernels(convolution)), subgraph.norm_bytes));
}

class ConvolutionApart final : public Subgraph {
 public:
  ConvolutionApart(TiledDevice& device, const ProgramDesc& desc, const ConvolutionSubgraph& subgraph,
                   std::unique_ptr<Subgraph> norm)
      : convolution_(alone(subgraph.convolution)),
        kernel_(choose_half_kernel(device, desc.op(subgraph.first), convolution_)),
        inputs_{desc.inputs(subgraph.first)[0], desc.inputs(subgraph.first)[1]},
        result_(result_of(desc, subgraph)),
        placed_(desc.tensor(result_)),
        placed_at_(shared_workspace(subgraph)),
        norm_(std::move(norm)),
        values_(desc.values()) {}

  void enqueue(Stream& stream, const SubgraphArgs& args) override {
    gpunn_subgraph_args raw = args.raw();
    if (!args.has(result_)) {
      std::copy_n(raw.values, raw.n_values, values_.begin());
      placed_.data = args.workspace<uint8_t>() + placed_at_;
      values_[static_cast<std::size_t>(result_)] = &placed_;
      raw.values = values_.data();
    }
    const SubgraphArgs with_result(raw);
    run_half_kernel(convolution_, kernel_,
                    {.inputs = {args.data<void>(inputs_[0]), args.data<void>(inputs_[1])},
                     .output = with_result.data<void>(result_),
                     .workspace = args.workspace<void>()},
                    cuda::native(stream));
    norm_->enqueue(stream, with_result);
  }

 private:
  HalfConvolution convolution_;
  int kernel_;
  std::array<int32_t, 2> inputs_;
  int32_t result_;
  gpunn_tensor placed_;  // the result, if it has no memory of its own
  uint64_t placed_at_;
  std::unique_ptr<Subgraph> norm_;
  std::vector<const gpunn_tensor*> values_;
};

}  // namespace

uint64_t apart_workspace(const ProgramDesc& desc, const ConvolutionSubgraph& subgraph) {
  const int32_t result = result_of(desc, subgraph);
  const bool has_memory = desc.needed_after(result, subgraph.first + subgraph.count);
  return shared_workspace(subgraph) + (has_memory ? 0 : cuda::bytes_of(desc.tensor(result)));
}

std::unique_ptr<Subgraph> choose_way(TiledDevice& device, const ProgramDesc& desc, const ConvolutionSubgraph& subgraph,
                                     const std::function<std::unique_ptr<Subgraph>(int kernel)>& fused,
                                     const std::function<std::unique_ptr<Subgraph>()>& norm) {
  cuda::SubgraphTask task{.key = half_key_of(subgraph.convolution) + ", " + std::to_string(subgraph.count) + " ops",
                          .workspace_bytes = subgraph.workspace_bytes,
                          .candidates = {}};
  for (const int kernel : half_kernels(subgraph.convolution)) {
    task.candidates.push_back({half_kernel_name(kernel), [&fused, kernel] { return fused(kernel); }});
  }
  task.candidates.push_back(
      {"apart", [&] { return std::make_unique<ConvolutionApart>(device, desc, subgraph, norm()); }});
  return cuda::choose_subgraph(device, desc, subgraph.first, subgraph.count, task);
}

}  // namespace gpunn::cuda_tiled
