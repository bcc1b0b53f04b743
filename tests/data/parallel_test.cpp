#include "common/parallel.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <atomic>
#include <vector>

#include "catch.hpp"

using gpunn::for_row_stretches;

TEST_CASE("stretches cover every row once") {
  std::vector<std::atomic<int>> touched(1000);
  for_row_stretches(1000, 7, [&](int64_t first, int64_t last) {
    CHECK(last - first <= 7);
    for (int64_t row = first; row < last; ++row) ++touched[static_cast<std::size_t>(row)];
  });
  CHECK(std::all_of(touched.begin(), touched.end(), [](const auto& count) { return count == 1; }));
  for_row_stretches(0, 7, [](int64_t, int64_t) { FAIL("there are no rows"); });
}

TEST_CASE("of several exceptions in stretches that of the lowest rows comes out") {
  for (int i = 0; i < 20; ++i) {
    CHECK_THROWS_WITH(for_row_stretches(1000, 10,
                                        [](int64_t first, int64_t) {
                                          if (first >= 250) throw gpunn::Error("at " + std::to_string(first));
                                        }),
                      "at 250");
  }
}
