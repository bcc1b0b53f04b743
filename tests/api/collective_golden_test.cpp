// The numbers of collective.h on which compiled plugins rely, as abi_golden_test.cpp has those of abi.h.

#include <gpunn/collective.h>

#include <cstddef>
#include <string>

#include "catch.hpp"

TEST_CASE("layout of gpunn_communicator_options", "[api]") {
  CHECK(offsetof(gpunn_communicator_options, struct_size) == 0);
  CHECK(offsetof(gpunn_communicator_options, rank) == 4);
  CHECK(offsetof(gpunn_communicator_options, world) == 8);
  CHECK(offsetof(gpunn_communicator_options, local_world) == 12);
  CHECK(offsetof(gpunn_communicator_options, exchange) == 16);
  CHECK(offsetof(gpunn_communicator_options, context) == 24);
  CHECK(sizeof(gpunn_communicator_options) == 32);
}

TEST_CASE("layout of gpunn_collective_desc", "[api]") {
  CHECK(offsetof(gpunn_collective_desc, struct_size) == 0);
  CHECK(offsetof(gpunn_collective_desc, kind) == 4);
  CHECK(offsetof(gpunn_collective_desc, dtype) == 8);
  CHECK(offsetof(gpunn_collective_desc, root) == 12);
  CHECK(offsetof(gpunn_collective_desc, count) == 16);
  CHECK(offsetof(gpunn_collective_desc, flags) == 24);
  CHECK(sizeof(gpunn_collective_desc) == 32);
}

TEST_CASE("layout of gpunn_collective_support and of the extension's table", "[api]") {
  CHECK(offsetof(gpunn_collective_support, score) == 4);
  CHECK(offsetof(gpunn_collective_support, flags) == 8);
  CHECK(offsetof(gpunn_collective_support, reason) == 16);
  CHECK(sizeof(gpunn_collective_support) == 272);
  CHECK(offsetof(gpunn_collective_extension, create) == 8);
  CHECK(offsetof(gpunn_collective_extension, query) == 16);
  CHECK(offsetof(gpunn_collective_extension, enqueue) == 24);
  CHECK(offsetof(gpunn_collective_extension, abort) == 32);
  CHECK(offsetof(gpunn_collective_extension, destroy) == 40);
  CHECK(sizeof(gpunn_collective_extension) == 48);
}

TEST_CASE("kinds of collectives keep their numbers", "[api]") {
  CHECK(GPUNN_ALL_REDUCE == 1);
  CHECK(GPUNN_BROADCAST == 2);
  CHECK(GPUNN_ALL_GATHER == 3);
  CHECK(GPUNN_REDUCE_SCATTER == 4);
  CHECK(std::string(GPUNN_EXTENSION_COLLECTIVE) == "gpunn.collective.v1");
}
