#include "cli/terminal/progress.hpp"

#include "catch.hpp"

using namespace gpunn::cli;

namespace {

gpunn::StepReport report() {
  gpunn::StepReport result;
  result.epoch = 3;
  result.epochs = 10;
  result.step = 234;
  result.steps = 468;
  result.loss = 0.04321;
  result.scores = gpunn::Scores({{{"accuracy", "accuracy", true, true}, 0.98614}});
  result.learning_rate = 0.01;
  result.samples_per_second = 53'214;
  result.seconds_left = 125;
  return result;
}

}  // namespace

TEST_CASE("the progress line tells everything where there is room") {
  const std::string line = progress_line(report(), 120, false);
  CHECK(line ==
        "epoch  3/10 [###############...............]  50%  loss 0.0432  acc 98.61 %  lr 0.01  53.2k samples/s  2:05 "
        "left");
  CHECK(progress_line(report(), 500, false) == line);
}

TEST_CASE("the progress line fits, whatever the width") {
  const bool utf8 = GENERATE(false, true);
  for (std::size_t width = 1; width <= 130; ++width) {
    const std::string line = progress_line(report(), width, utf8);
    INFO(width << ": " << line);
    CHECK(display_width(line) <= width);
    if (width >= 18) CHECK_THAT(line, Contains("50%"));
    if (width >= 40) CHECK_THAT(line, Contains("loss 0.0432"));
  }
}

TEST_CASE("block characters only where they can be shown") {
  const auto only_ascii = [](const std::string& text) {
    for (const char c : text) {
      if (static_cast<unsigned char>(c) > 0x7E) return false;
    }
    return true;
  };
  CHECK(only_ascii(progress_line(report(), 100, false)));
  CHECK_FALSE(only_ascii(progress_line(report(), 100, true)));
}

TEST_CASE("numbers out of range draw no bar beyond its end") {
  gpunn::StepReport odd = report();
  odd.step = 1000;
  CHECK_THAT(progress_line(odd, 80, true), Contains("100%"));
  CHECK(display_width(progress_line(odd, 80, true)) <= 80);
  odd.steps = 0;
  odd.seconds_left = -1;
  CHECK_THAT(progress_line(odd, 120, false), Contains("  0%") && Contains("? left"));
}
