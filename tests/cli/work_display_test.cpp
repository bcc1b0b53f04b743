#include "cli/terminal/work_display.hpp"

#include "catch.hpp"
#include "cli/terminal/terminal.hpp"

using namespace gpunn;
using namespace gpunn::cli;

namespace {

WorkReport kernels(double seconds, uint64_t done = 41) {
  return {.id = 7,
          .what = "preparing kernels",
          .detail = "CONV2D 'conv1'",
          .unit = WorkUnit::items,
          .done = done,
          .total = 124,
          .seconds = seconds};
}

}  // namespace

TEST_CASE("a line of long work tells what it is, how far and how long") {
  CHECK(work_line(kernels(10), 100, false) ==
        "preparing kernels [#########.....................]  33%  41/124  0:20 left  CONV2D 'conv1'");
  WorkReport download{.id = 1,
                      .what = "downloading x.gz",
                      .detail = {},
                      .unit = WorkUnit::bytes,
                      .done = 3 << 20,
                      .total = 12 << 20,
                      .seconds = 2};
  CHECK(work_line(download, 100, false) ==
        "downloading x.gz [#######.......................]  25%  3.0 MiB/12.0 MiB  0:06 left");
  download.total = 0;
  CHECK(work_line(download, 100, false) == "downloading x.gz  3.0 MiB  0:02");
}

TEST_CASE("a line of long work fits, whatever the width and what is in it") {
  const bool utf8 = GENERATE(false, true);
  WorkReport work = kernels(10);
  work.what = "decoding the images of \x1b[31mphotos";
  work.detail = "größere Bilder";
  for (std::size_t width = 1; width <= 130; ++width) {
    const std::string line = work_line(work, width, utf8);
    INFO(width << ": " << line);
    CHECK(display_width(line) <= width);
    CHECK(line.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a log gets lines of what takes long, and of nothing else") {
  WorkLog log;
  CHECK_FALSE(log.next({}));
  CHECK_FALSE(log.next({kernels(4.9)}));
  CHECK_FALSE(log.next({}));
  CHECK(log.next({kernels(5.1)}) == "preparing kernels: 41 of 124, CONV2D 'conv1', 0:10 left");
  CHECK_FALSE(log.next({kernels(15)}));
  CHECK(log.next({kernels(15.2, 100)}) == "preparing kernels: 100 of 124, CONV2D 'conv1', 0:04 left");
  WorkReport other = kernels(1);
  other.id = 8;
  CHECK(log.next({other}) == "preparing kernels: done");
  CHECK_FALSE(log.next({other}));
}
