#include "common/topological_order.hpp"

#include <catch.hpp>

using gpunn::topological_order;
using Order = std::vector<std::size_t>;

TEST_CASE("nodes come after their inputs, and the first of several first") {
  CHECK(topological_order({}).empty());
  CHECK(topological_order({{}, {}, {}}) == Order{0, 1, 2});
  CHECK(topological_order({{2}, {}, {1}}) == Order{1, 2, 0});
  CHECK(topological_order({{3}, {}, {1, 1}, {}}) == Order{1, 2, 3, 0});
}

TEST_CASE("nodes on a cycle and behind one are left out of the order") {
  CHECK(topological_order({{}, {2}, {1}, {2}}) == Order{0});
  CHECK(topological_order({{0}}).empty());
}
