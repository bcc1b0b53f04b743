#include "feed/batch_loader.hpp"

#include <gpunn/error.hpp>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "catch.hpp"

using gpunn::training::BatchLoader;

TEST_CASE("a loader fills what has a free buffer, and no more") {
  std::vector<int64_t> buffers(3, -1);
  std::atomic<int> fills{0};
  BatchLoader loader(3, [&](int64_t item, std::size_t buffer) {
    buffers[buffer] = item;
    ++fills;
  });
  loader.start(7, 12);
  loader.wait_for(9);
  CHECK(loader.filled(8));
  CHECK_FALSE(loader.filled(10));
  CHECK(fills == 3);
  CHECK(buffers == std::vector<int64_t>{9, 7, 8});
  CHECK_THROWS_WITH(loader.wait_for(10), Contains("may not fill"));
  loader.release();
  loader.wait_for(10);
  CHECK(buffers == std::vector<int64_t>{9, 10, 8});
  loader.release();
  loader.release();
  loader.wait_for(11);
  CHECK_THROWS_WITH(loader.wait_for(12), Contains("may not fill"));  // the end
  loader.start(0, 2);
  loader.wait_for(1);
  CHECK(buffers == std::vector<int64_t>{0, 1, 11});
}

TEST_CASE("what goes wrong in the loader reaches who waits for it, again and again") {
  BatchLoader loader(2, [](int64_t item, std::size_t) {
    if (item == 1) throw std::runtime_error("row 17 can't be read");
  });
  loader.start(0, 100);
  loader.wait_for(0);
  CHECK_THROWS_WITH(loader.wait_for(1), "row 17 can't be read");
  CHECK(loader.filled(0));
  CHECK_THROWS_WITH(loader.filled(1), "row 17 can't be read");
  loader.start(2, 4);
  CHECK_NOTHROW(loader.wait_for(3));
}

TEST_CASE("a loader can be left and started anew while it is busy") {
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> buffers(2, -1);
    BatchLoader loader(2, [&](int64_t item, std::size_t buffer) { buffers[buffer] = item; });
    loader.start(0, 1000);
    loader.start(500, 1000);
    if (i % 2 == 0) continue;
    loader.wait_for(501);
    CHECK(buffers == std::vector<int64_t>{500, 501});
  }
}
