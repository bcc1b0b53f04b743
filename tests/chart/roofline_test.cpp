#include "chart/roofline.hpp"

#include <limits>

#include "catch.hpp"

using gpunn::chart::Roofline;
using gpunn::chart::svg;

namespace {

// A device of 100 GB/s and 10 TFLOP/s: the roof bends at 100 operations a byte.
Roofline two_points() {
  Roofline roofline;
  roofline.title = "Roofline";
  roofline.subtitle = "measured";
  roofline.ceilings = {{"fp32", 100e9, 10e12}};
  roofline.points = {
      {"matmul <big>", "mine", 8e12, 8e9, 1}, {"copy", "mine", 1e9, 8e9, 0.1}, {"copy", "theirs", 1e9, 8e9, 0.2}};
  return roofline;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a roofline has its roof, its points and their names", "[chart]") {
  const std::string picture = svg(two_points());
  CHECK_THAT(picture, Contains("arithmetic intensity") && Contains("TFLOP/s"));
  CHECK_THAT(picture, Contains("matmul &lt;big&gt;") && !Contains("<big>"));
  CHECK_THAT(picture, Contains("fp32: 10 TFLOP/s, 100 GB/s"));
  // Three points and the two colours of the legend; one list entry for what has one name.
  CHECK(occurrences(picture, "<circle") == 5);
  CHECK(occurrences(picture, ">2  copy<") == 1);
  CHECK(occurrences(picture, ">1  matmul") == 1);
  // The slope, the bend and the level part of one ceiling.
  const std::size_t path = picture.find("<path");
  REQUIRE(path != std::string::npos);
  CHECK(occurrences(picture.substr(path, picture.find("/>", path) - path), "L") == 2);
}

TEST_CASE("what can't be drawn on logarithmic axes is left out", "[chart]") {
  Roofline roofline = two_points();
  roofline.points.push_back({"nothing", "mine", 0, 8, 1});
  roofline.points.push_back({"never run", "mine", 8, 8, 0});
  const std::string picture = svg(roofline);
  CHECK_THAT(picture, !Contains("nothing") && !Contains("never run"));
  roofline.points.clear();
  CHECK_THAT(svg(roofline), Contains("no data"));
  Roofline bare = two_points();
  bare.ceilings = {{"unknown", 0, 0}, {"memory", 100e9, 0}, {"numbers", 0, 10e12}};
  CHECK_THAT(svg(bare), !Contains("nan") && !Contains("inf"));
}
