// The numbers of rank_subgraph.h on which compiled plugins rely, as abi_golden_test.cpp has those of abi.h.

#include <gpunn/rank_subgraph.h>

#include <cstddef>
#include <string>

#include "catch.hpp"

TEST_CASE("layout of gpunn_rank_subgraph_extension", "[api]") {
  CHECK(offsetof(gpunn_rank_subgraph_extension, struct_size) == 0);
  CHECK(offsetof(gpunn_rank_subgraph_extension, join) == 8);
  CHECK(offsetof(gpunn_rank_subgraph_extension, abort) == 16);
  CHECK(offsetof(gpunn_rank_subgraph_extension, leave) == 24);
  CHECK(sizeof(gpunn_rank_subgraph_extension) == 32);
  CHECK(std::string(GPUNN_EXTENSION_RANK_SUBGRAPH) == "gpunn.rank_subgraph.v1");
}
