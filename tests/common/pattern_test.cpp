#include "common/pattern.hpp"

#include "catch.hpp"

using namespace gpunn;

TEST_CASE("a pattern is of characters, '*' and '?'") {
  CHECK(matches("conv1.*", "conv1.weight"));
  CHECK_FALSE(matches("conv1.*", "conv10.weight"));
  CHECK(matches("*.bias", "conv1.bias"));
  CHECK(matches("c*1*t", "conv1.weight"));
  CHECK_FALSE(matches("c*1*b", "conv1.weight"));
  CHECK(matches("conv?.bias", "conv2.bias"));
  CHECK_FALSE(matches("conv?.bias", "conv.bias"));
  CHECK(matches("*", ""));
  CHECK(matches("a**", "a"));
  CHECK_FALSE(matches("", "a"));
  CHECK_FALSE(matches("a", "ab"));
}
