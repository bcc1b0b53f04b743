// Every number of program.h that a plugin already built relies on, as abi_golden_test.cpp has those of abi.h.

#include <gpunn/program.h>

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

TEST_CASE("layout of gpunn_program_claim", "[api]") {
  CHECK(offsetof(gpunn_program_claim, struct_size) == 0);
  CHECK(offsetof(gpunn_program_claim, n_ops) == 4);
  CHECK(offsetof(gpunn_program_claim, workspace_bytes) == 8);
  CHECK(offsetof(gpunn_program_claim, flags) == 16);
  CHECK(offsetof(gpunn_program_claim, reserved) == 20);
  CHECK(offsetof(gpunn_program_claim, name) == 24);
  CHECK(offsetof(gpunn_program_claim, reason) == 88);
  CHECK(sizeof(gpunn_program_claim) == 344);
}

TEST_CASE("layout of gpunn_program_args", "[api]") {
  CHECK(offsetof(gpunn_program_args, struct_size) == 0);
  CHECK(offsetof(gpunn_program_args, n_values) == 4);
  CHECK(offsetof(gpunn_program_args, values) == 8);
  CHECK(offsetof(gpunn_program_args, workspace) == 16);
  CHECK(offsetof(gpunn_program_args, workspace_bytes) == 24);
  CHECK(sizeof(gpunn_program_args) == 32);
}

TEST_CASE("layout of gpunn_program_extension", "[api]") {
  CHECK(offsetof(gpunn_program_extension, struct_size) == 0);
  CHECK(offsetof(gpunn_program_extension, reserved) == 4);
  CHECK(offsetof(gpunn_program_extension, query) == 8);
  CHECK(offsetof(gpunn_program_extension, create) == 16);
  CHECK(offsetof(gpunn_program_extension, enqueue) == 24);
  CHECK(offsetof(gpunn_program_extension, destroy) == 32);
  CHECK(sizeof(gpunn_program_extension) == 40);
}

TEST_CASE("values of the program extension", "[api]") {
  CHECK(std::string(GPUNN_EXTENSION_PROGRAM) == "gpunn.program.v1");
  CHECK(GPUNN_STORAGE_ARENA == 0);
  CHECK(GPUNN_STORAGE_PARAMETERS == 1);
  CHECK(GPUNN_STORAGE_GRADIENTS == 2);
  CHECK(GPUNN_STORAGE_OPTIMIZER == 3);
  CHECK(GPUNN_STORAGE_STATE == 4);
  CHECK(GPUNN_STORAGE_DATA == 5);
}
