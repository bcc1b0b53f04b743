#include "cli/reports/arena_map.hpp"

#include <sstream>

#include "catch.hpp"
#include "cli/terminal/terminal.hpp"

using namespace gpunn;
using namespace gpunn::cli;

namespace {

PlannedTensor tensor(const std::string& name, uint64_t offset, int64_t floats, int64_t first, int64_t last) {
  return {name, {DType::f32, {floats}}, "arena", offset, static_cast<uint64_t>(floats) * 4, first, last};
}

}  // namespace

TEST_CASE("the arena is drawn over the ops of the step") {
  PlanReport report;
  report.ops.resize(8);
  report.arena_bytes = 24 * 1024;
  report.tensors = {tensor("late", 0, 3072, 4, 7), tensor("early", 0, 6144, 0, 3), tensor("side", 12288, 3072, 6, 7)};
  report.tensors.push_back({"weights", {DType::f32, {10}}, "parameters", 0, 40, 0, 7});
  const std::string map = arena_map(report, 80);
  INFO(map);
  CHECK_THAT(map, Contains("  A         0  24576  0-3  f32[6144]  early") && Contains("late") && Contains("side"));
  CHECK_THAT(map, !Contains("weights"));
  CHECK_THAT(map, Contains("         0 B  AAAABBBB\n"));
  CHECK_THAT(map, Contains("    12.0 KiB  AAAA..CC\n"));
}

TEST_CASE("a long step with many tensors keeps to the width") {
  PlanReport report;
  report.ops.resize(1000);
  report.arena_bytes = 4 * 200 * 64;
  for (int i = 0; i < 200; ++i) {
    report.tensors.push_back(tensor("t" + std::to_string(i), static_cast<uint64_t>(i) * 256, 64, i, i + 700));
  }
  const std::string map = arena_map(report, 60);
  std::istringstream drawing(map.substr(map.find("ops from left")));
  std::string line;
  std::getline(drawing, line);
  int rows = 0;
  while (std::getline(drawing, line)) {
    CHECK(display_width(line) <= 60);
    ++rows;
  }
  CHECK(rows == 24);
}

TEST_CASE("an empty arena") { CHECK(arena_map({}, 80) == "the arena is empty\n"); }
