#include "pooling/pooling_gradient.hpp"

#include <algorithm>
#include <limits>

#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::Pool;
using backends::require;

constexpr int64_t kMostShares = 256;
constexpr int64_t kRounds = 2;  // of a share at least

bool halves(const backends::PoolAxis& axis) { return axis.window == 2 && axis.stride == 2 && axis.pad == 0; }

}  // namespace

PoolingGradient pooling_gradient_of(const Pool& pool, int64_t channels, bool mean, bool bias) {
  constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMostSharedBytes = 48 * 1024;
  constexpr int64_t kElementsAtOnce = 2048;
  require(channels > 0 && pool.planes > 0, "there are no images");
  require(pool.planes <= kMostElements && pool.input_size() <= kMostElements &&
              pool.planes * pool.input_size() <= kMostElements,
          "the tensor has more than 2^31 elements");
  require(!mean || pool.output_size() > 1, "means of whole images have a kernel of their own");
  // Without a sum by channel, all planes are as of one.
  PoolingGradient plan{.pool = pool, .channels = bias ? channels : 1, .mean = mean, .bias = bias};
  const int64_t images = pool.planes / plan.channels;
  if (halves(pool.rows) && halves(pool.columns) && pool.columns.inputs % 2 == 0) {
    plan.width = pool.columns.inputs % 4 == 0 ? 4 : 2;
    const int64_t patches = images * plan.patches();
    const int64_t least = int64_t{kPoolingThreads} * kPoolingSteps * (bias ? kRounds : 1);
    plan.of_share = cuda::divide_up(cuda::divide_up(patches, least), bias ? kMostShares : patches) * least;
    plan.shares = cuda::divide_up(patches, plan.of_share);
  } else {
    require(bias || mean || !halves(pool.rows) || !halves(pool.columns), "an odd width: two kernels are as fast");
    const int64_t bytes_of_image = pool.output_size() * static_cast<int64_t>(2 * sizeof(float));
    require(bytes_of_image <= kMostSharedBytes, "shared memory does not hold an image's windows");
    plan.images = std::clamp<int64_t>(kElementsAtOnce / pool.input_size(), 1, kMostSharedBytes / bytes_of_image);
    plan.images = std::min(plan.images, images);
    plan.of_share = cuda::divide_up(cuda::divide_up(images, plan.images), bias ? kMostShares : images) * plan.images;
    plan.shares = cuda::divide_up(images, plan.of_share);
    plan.shared_bytes = static_cast<unsigned>(bytes_of_image * plan.images);
  }
  if (bias && plan.shares > 1) plan.workspace_bytes = static_cast<uint64_t>(channels * plan.shares) * sizeof(float);
  return plan;
}

}  // namespace gpunn::cuda_tiled
