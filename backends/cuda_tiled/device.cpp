#include "device.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "cuda_common/check.hpp"
#include "kernels.hpp"
#include "plugin_version.hpp"
#include "subgraphs/batch_norm.hpp"
#include "subgraphs/dense_gradient.hpp"
#include "subgraphs/gradient_norm.hpp"
#include "subgraphs/pooling.hpp"
#include "subgraphs/step/step.hpp"

namespace gpunn::cuda_tiled {

TiledDevice::TiledDevice(const gpunn_device_options& options)
    : TunedDevice(options, "cuda_tiled", {backends::kPluginVersion}) {
#define GPUNN_FAMILY(name) add_##name##_kernels(*this);
#include "families.inc"
#undef GPUNN_FAMILY
}

void TiledDevice::join_ranks(const plugin::CommunicatorOptions& options) {
  try {
    peers_ = std::make_unique<cuda::PeerGroup>(*this, options);
  } catch (const plugin::Failure& failure) {
    log(GPUNN_LOG_INFO, std::string("sums over ranks stay outside of fused steps: ") + failure.what());
    throw;
  }
}

void TiledDevice::abort_ranks() noexcept {
  if (peers_ != nullptr) peers_->abort();
}

void TiledDevice::leave_ranks() noexcept { peers_.reset(); }

namespace {

// How many ops from `first` on are without half precision and channels-last images, which but one of the subgraphs'
// kernels lack.
std::size_t plain_ops(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit) {
  const std::size_t end = std::min(limit, desc.ops() - first);
  std::size_t count = 0;
  const auto is_plain = [](const plugin::OpDesc& op) {
    return !plugin::has_half(op) && !plugin::has_channels_last(op);
  };
  while (count < end && is_plain(desc.op(first + count))) ++count;
  return count;
}

}  // namespace

plugin::SubgraphSupport TiledDevice::query_subgraph(const plugin::ProgramDesc& desc, std::size_t first,
                                                    std::size_t limit) {
  cuda::check(cudaSetDevice(index()), "choosing the device");
  const std::size_t plain = plain_ops(desc, first, limit);
  if (plain == 0) {
    plugin::SubgraphSupport gradient = query_gradient_norm(desc, first, limit);
    return gradient.ops > 0 ? gradient : query_norm(desc, first, limit);
  }
  plugin::SubgraphSupport step = query_step(peers_.get(), desc, first, plain);
  if (step.ops > 0) return step;
  std::string reason = step.reason;
  for (const auto fuse_subgraph : {query_norm, query_pool}) {
    plugin::SubgraphSupport run = fuse_subgraph(desc, first, plain);
    if (run.ops > 0) return run;
    if (reason.empty()) reason = run.reason;
  }
  plugin::SubgraphSupport dense = query_dense(*this, desc, first, plain);
  if (dense.ops == 0 && !reason.empty()) dense.reason = reason;
  return dense;
}

std::unique_ptr<plugin::Subgraph> TiledDevice::create_subgraph(const plugin::ProgramDesc& desc, std::size_t first,
                                                               std::size_t count) {
  cuda::check(cudaSetDevice(index()), "choosing the device");
  if (plain_ops(desc, first, count) < count) {
    const bool gradient = query_gradient_norm(desc, first, count).ops == count;
    return (gradient ? create_gradient_norm : create_norm)(*this, desc, first, count);
  }
  if (query_step(peers_.get(), desc, first, count).ops == count) return create_step(peers_.get(), desc, first, count);
  if (query_norm(desc, first, count).ops == count) return create_norm(*this, desc, first, count);
  if (query_pool(desc, first, count).ops == count) return create_pool(desc, first, count);
  return create_dense(*this, desc, first, count);
}

}  // namespace gpunn::cuda_tiled
