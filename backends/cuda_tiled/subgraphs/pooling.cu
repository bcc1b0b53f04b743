#include <cstddef>
#include <memory>

#include "conv/convolution.hpp"
#include "conv/direct/direct_pooling.hpp"
#include "counters.hpp"
#include "cuda_common/stream.hpp"
#include "subgraphs/pool_match.hpp"
#include "subgraphs/pooling.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;

// What is fused, with what a pooled convolution needs.
struct Found {
  PoolSubgraph run;
  DirectPooling direct;
};

Found find(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  Found found{.run = match_pool(desc, first, limit), .direct = {}};
  if (found.run.ops == 0 || found.run.backward) return found;
  try {
    found.direct = direct_pooling_of(bias_activation_problem(desc.op(first)), found.run.pool);
  } catch (const backends::Refusal& refusal) {
    found.run.ops = 0;
    found.run.reason = refusal.what();
  }
  return found;
}

void run_forward(const Found& found, cudaStream_t stream, const SubgraphArgs& args) {
  const PoolSubgraph& run = found.run;
  run_direct_pooling(found.direct, args.data<float>(run.x), args.data<float>(run.w), args.data<float>(run.bias),
                     run.y < 0 ? nullptr : args.data<float>(run.y), args.data<float>(run.pooled), stream);
}

void run_backward(const PoolSubgraph& run, unsigned* counters, cudaStream_t stream, const SubgraphArgs& args) {
  run_pooling_gradient(run.gradient,
                       {.dpooled = args.data<float>(run.dpooled),
                        .y = args.data<float>(run.y),
                        .dx = args.data<float>(run.dx),
                        .db = run.db < 0 ? nullptr : args.data<float>(run.db),
                        .sums = args.workspace<float>(),
                        .counters = counters},
                       stream);
}

}  // namespace

SubgraphSupport query_pool(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  const Found found = find(desc, first, limit);
  const PoolSubgraph& run = found.run;
  if (run.ops == 0) return SubgraphSupport::no(run.reason);
  return SubgraphSupport::yes(run.ops, run.backward ? "fused pooling backward" : "fused convolution and pooling",
                              run.backward ? run.gradient.workspace_bytes : 0);
}

std::unique_ptr<Subgraph> create_pool(const ProgramDesc& desc, std::size_t first, std::size_t count) {
  Found found = find(desc, first, count);
  if (found.run.ops != count) throw Failure(GPUNN_INVALID_ARGUMENT, "not a pooling that was fused");
  if (!found.run.backward) {
    return make_subgraph(
        [found](Stream& stream, const SubgraphArgs& args) { run_forward(found, cuda::native(stream), args); });
  }
  const bool counts = found.run.gradient.workspace_bytes > 0;
  const auto counters = counts ? std::make_shared<const Counters>(found.run.gradient.channels) : nullptr;
  return make_subgraph([run = found.run, counters](Stream& stream, const SubgraphArgs& args) {
    run_backward(run, counters ? counters->data() : nullptr, cuda::native(stream), args);
  });
}

}  // namespace gpunn::cuda_tiled
