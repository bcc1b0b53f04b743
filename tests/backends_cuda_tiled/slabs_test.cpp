// How the statistics that a convolution leaves are put together: groups of slabs, each with some.
#include "normalization/slabs.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "catch.hpp"
#include "conv/half/half_patch_plan.hpp"
#include "convolution_shapes.hpp"
#include "half/half_product.hpp"

namespace {

using gpunn::backends::BatchNorm;
using gpunn::cuda_tiled::ConvolutionPass;
using gpunn::cuda_tiled::equal_slabs;
using gpunn::cuda_tiled::HalfSlabs;
using gpunn::cuda_tiled::kSlabRows;
using gpunn::cuda_tiled::patch_slabs;
using gpunn::cuda_tiled::plan_patches;
using gpunn::cuda_tiled::slab_plan;
using gpunn::cuda_tiled::SlabPlan;
using gpunn::cuda_tiled::SlabRows;

// Each has some rows, and all together have all.
bool all_with_rows(const SlabRows& rows, int slabs, int64_t all) {
  bool some = rows.before(0) == 0;
  for (int slab = 0; slab < slabs; ++slab) some = some && rows.before(slab) < rows.before(slab + 1);
  return some && rows.before(slabs) == all;
}

}  // namespace

TEST_CASE("slabs of equal rows cover all rows, groups cover all slabs, each with some of them") {
  for (const int64_t images : {1, 3, 128, 1024}) {
    for (const int64_t size : {2, 49, 3136, 12544}) {
      const int64_t rows = images * size;
      const auto slabs = static_cast<int>((rows + kSlabRows - 1) / kSlabRows);
      INFO(images << " images of " << size << " pixels: " << slabs << " slabs");
      CHECK(all_with_rows(equal_slabs(rows, kSlabRows), slabs, rows));
      for (const int64_t channels : {1, 32, 33, 256, 2048, 20000}) {
        const BatchNorm shape{.rows = images, .channels = channels, .size = size};
        const SlabPlan plan = slab_plan(shape, slabs, equal_slabs(rows, kSlabRows));
        INFO(channels << " channels: " << plan.groups << " groups of " << plan.group);
        CHECK(int64_t{plan.groups} * plan.group >= plan.slabs);
        CHECK((int64_t{plan.groups} - 1) * plan.group < plan.slabs);
        CHECK(plan.counters() * 32 >= static_cast<std::size_t>(channels));
        CHECK(plan.workspace_bytes() ==
              static_cast<uint64_t>(plan.slabs + plan.groups) * static_cast<uint64_t>(channels) * 8);
        // Not more than what it describes, in bf16, by far: 8 bytes of each 64 rows.
        CHECK(plan.slab_bytes() <= static_cast<uint64_t>(rows + kSlabRows) * static_cast<uint64_t>(channels) / 8);
      }
    }
  }
}

TEST_CASE("slabs of the patches of a convolution cover all of its pixels, each with some") {
  constexpr int kMultiprocessors = 132, kSharedMemory = 232448;  // of an H100
  using Image = std::array<int64_t, 2>;
  for (const Image& image : {Image{3, 3}, {7, 7}, {9, 40}, {56, 56}, {112, 112}}) {
    for (const int64_t batch : {1, 2, 128}) {
      for (const int64_t pad : {0, 1}) {
        for (const ConvolutionPass pass : {ConvolutionPass::forward, ConvolutionPass::backward_data}) {
          const gpunn::cuda_tiled::HalfConvolution problem{
              .pass = pass,
              .shape = shape_of({batch, 64, image[0], image[1]}, 64, {3, 3}, {1, 1}, {pad, pad}, {1, 1}, 1)};
          const bool forward = pass == ConvolutionPass::forward;
          const auto pixels_of = [&](const auto& axis) { return forward ? axis.outputs : axis.inputs; };
          const HalfSlabs slabs = patch_slabs(plan_patches(problem, kMultiprocessors, kSharedMemory));
          INFO(batch << " images of " << image[0] << "x" << image[1] << ", pad " << pad << ", forward " << forward
                     << ": " << slabs.count << " slabs");
          CHECK(all_with_rows(slabs.rows, slabs.count,
                              batch * pixels_of(problem.shape.rows) * pixels_of(problem.shape.columns)));
        }
      }
    }
  }
}
