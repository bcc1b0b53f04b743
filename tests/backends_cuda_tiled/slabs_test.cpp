// How the statistics that a convolution leaves are put together: groups of slabs, each with some.
#include "normalization/slabs.hpp"

#include <cstddef>
#include <cstdint>

#include "catch.hpp"
#include "half/half_product.hpp"

namespace {

using gpunn::backends::BatchNorm;
using gpunn::cuda_tiled::equal_slabs;
using gpunn::cuda_tiled::kSlabRows;
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
