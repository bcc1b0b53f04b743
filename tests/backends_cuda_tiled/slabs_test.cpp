// How the statistics that a convolution leaves are put together: groups of slabs, each with some.
#include "normalization/slabs.hpp"

#include <cstddef>
#include <cstdint>

#include "catch.hpp"
#include "half/half_product.hpp"

using gpunn::backends::BatchNorm;
using gpunn::cuda_tiled::kSlabRows;
using gpunn::cuda_tiled::slab_plan;
using gpunn::cuda_tiled::SlabPlan;

TEST_CASE("slabs cover all rows, groups cover all slabs, each with some of them") {
  for (const int64_t rows : {1, 3, 128, 1024}) {
    for (const int64_t size : {2, 49, 3136, 12544}) {
      for (const int64_t channels : {1, 32, 33, 256, 2048, 20000}) {
        const BatchNorm shape{.rows = rows, .channels = channels, .size = size};
        const SlabPlan plan = slab_plan(shape, kSlabRows);
        INFO(rows << " images of " << size << " pixels, " << channels << " channels: " << plan.slabs << " slabs in "
                  << plan.groups << " groups of " << plan.group);
        CHECK(int64_t{plan.slabs} * kSlabRows >= rows * size);
        CHECK((int64_t{plan.slabs} - 1) * kSlabRows < rows * size);
        CHECK(int64_t{plan.groups} * plan.group >= plan.slabs);
        CHECK((int64_t{plan.groups} - 1) * plan.group < plan.slabs);
        CHECK(plan.counters() * 32 >= static_cast<std::size_t>(channels));
        CHECK(plan.workspace_bytes() ==
              static_cast<uint64_t>(plan.slabs + plan.groups) * static_cast<uint64_t>(channels) * 8);
        // Not more than what it describes, in bf16, by far: 8 bytes of each 64 rows.
        CHECK(plan.slab_bytes() <=
              static_cast<uint64_t>(rows * size + kSlabRows) * static_cast<uint64_t>(channels) / 8);
      }
    }
  }
}
