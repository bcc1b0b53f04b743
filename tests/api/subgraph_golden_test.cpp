// The numbers of subgraph.h on which compiled plugins rely, as abi_golden_test.cpp has those of abi.h.

#include <gpunn/subgraph.h>

#include <cstddef>
#include <string>

#include "catch.hpp"

TEST_CASE("layout of gpunn_program_value", "[api]") {
  CHECK(offsetof(gpunn_program_value, struct_size) == 0);
  CHECK(offsetof(gpunn_program_value, storage) == 4);
  CHECK(offsetof(gpunn_program_value, tensor) == 8);
  CHECK(offsetof(gpunn_program_value, offset) == 16);
  CHECK(offsetof(gpunn_program_value, root) == 24);
  CHECK(offsetof(gpunn_program_value, first_write) == 28);
  CHECK(offsetof(gpunn_program_value, last_read) == 32);
  CHECK(offsetof(gpunn_program_value, reserved) == 36);
  CHECK(sizeof(gpunn_program_value) == 40);
}

TEST_CASE("layout of gpunn_program_op", "[api]") {
  CHECK(offsetof(gpunn_program_op, struct_size) == 0);
  CHECK(offsetof(gpunn_program_op, reserved) == 4);
  CHECK(offsetof(gpunn_program_op, desc) == 8);
  CHECK(offsetof(gpunn_program_op, inputs) == 16);
  CHECK(offsetof(gpunn_program_op, outputs) == 24);
  CHECK(sizeof(gpunn_program_op) == 32);
}

TEST_CASE("layout of gpunn_program_desc", "[api]") {
  CHECK(offsetof(gpunn_program_desc, struct_size) == 0);
  CHECK(offsetof(gpunn_program_desc, n_ops) == 4);
  CHECK(offsetof(gpunn_program_desc, n_values) == 8);
  CHECK(offsetof(gpunn_program_desc, precision) == 12);
  CHECK(offsetof(gpunn_program_desc, flags) == 16);
  CHECK(offsetof(gpunn_program_desc, reserved) == 20);
  CHECK(offsetof(gpunn_program_desc, ops) == 24);
  CHECK(offsetof(gpunn_program_desc, values) == 32);
  CHECK(sizeof(gpunn_program_desc) == 40);
}

TEST_CASE("layout of gpunn_subgraph_support", "[api]") {
  CHECK(offsetof(gpunn_subgraph_support, struct_size) == 0);
  CHECK(offsetof(gpunn_subgraph_support, n_ops) == 4);
  CHECK(offsetof(gpunn_subgraph_support, workspace_bytes) == 8);
  CHECK(offsetof(gpunn_subgraph_support, flags) == 16);
  CHECK(offsetof(gpunn_subgraph_support, reserved) == 20);
  CHECK(offsetof(gpunn_subgraph_support, ops) == 24);
  CHECK(offsetof(gpunn_subgraph_support, name) == 32);
  CHECK(offsetof(gpunn_subgraph_support, reason) == 96);
  CHECK(offsetof(gpunn_subgraph_support, saved_seconds) == 352);
  CHECK(sizeof(gpunn_subgraph_support) == 360);
}

TEST_CASE("layout of gpunn_subgraph_args", "[api]") {
  CHECK(offsetof(gpunn_subgraph_args, struct_size) == 0);
  CHECK(offsetof(gpunn_subgraph_args, n_values) == 4);
  CHECK(offsetof(gpunn_subgraph_args, values) == 8);
  CHECK(offsetof(gpunn_subgraph_args, workspace) == 16);
  CHECK(offsetof(gpunn_subgraph_args, workspace_bytes) == 24);
  CHECK(sizeof(gpunn_subgraph_args) == 32);
}

TEST_CASE("layout of gpunn_subgraph_extension", "[api]") {
  CHECK(offsetof(gpunn_subgraph_extension, struct_size) == 0);
  CHECK(offsetof(gpunn_subgraph_extension, reserved) == 4);
  CHECK(offsetof(gpunn_subgraph_extension, query) == 8);
  CHECK(offsetof(gpunn_subgraph_extension, create) == 16);
  CHECK(offsetof(gpunn_subgraph_extension, enqueue) == 24);
  CHECK(offsetof(gpunn_subgraph_extension, destroy) == 32);
  CHECK(sizeof(gpunn_subgraph_extension) == 40);
}

TEST_CASE("values of the program extension", "[api]") {
  CHECK(std::string(GPUNN_EXTENSION_SUBGRAPH) == "gpunn.subgraph.v1");
  CHECK(GPUNN_STORAGE_ARENA == 0);
  CHECK(GPUNN_STORAGE_PARAMETERS == 1);
  CHECK(GPUNN_STORAGE_GRADIENTS == 2);
  CHECK(GPUNN_STORAGE_OPTIMIZER == 3);
  CHECK(GPUNN_STORAGE_STATE == 4);
  CHECK(GPUNN_STORAGE_DATA == 5);
}
