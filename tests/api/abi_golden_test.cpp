// Every number of abi.h that a plugin already built relies on. Only additions at the end may change this file: a plugin
// built before must still find each member where it was, and each value must mean what it meant.

#include <gpunn/abi.h>

#include <cstddef>

#include "catch.hpp"

TEST_CASE("layout of gpunn_error", "[api]") {
  CHECK(offsetof(gpunn_error, struct_size) == 0);
  CHECK(offsetof(gpunn_error, status) == 4);
  CHECK(offsetof(gpunn_error, message) == 8);
  CHECK(sizeof(gpunn_error) == 1024);
}

TEST_CASE("layout of gpunn_tensor", "[api]") {
  CHECK(offsetof(gpunn_tensor, struct_size) == 0);
  CHECK(offsetof(gpunn_tensor, dtype) == 4);
  CHECK(offsetof(gpunn_tensor, rank) == 8);
  CHECK(offsetof(gpunn_tensor, reserved) == 12);
  CHECK(offsetof(gpunn_tensor, data) == 16);
  CHECK(offsetof(gpunn_tensor, dim) == 24);
  CHECK(offsetof(gpunn_tensor, stride) == 88);
  CHECK(sizeof(gpunn_tensor) == 152);
}

TEST_CASE("layout of gpunn_device_options", "[api]") {
  CHECK(offsetof(gpunn_device_options, struct_size) == 0);
  CHECK(offsetof(gpunn_device_options, index) == 4);
  CHECK(offsetof(gpunn_device_options, host_threads) == 8);
  CHECK(offsetof(gpunn_device_options, reserved) == 12);
  CHECK(offsetof(gpunn_device_options, log) == 16);
  CHECK(offsetof(gpunn_device_options, log_context) == 24);
  CHECK(sizeof(gpunn_device_options) == 32);
}

TEST_CASE("layout of gpunn_device_info", "[api]") {
  CHECK(offsetof(gpunn_device_info, struct_size) == 0);
  CHECK(offsetof(gpunn_device_info, compute_units) == 4);
  CHECK(offsetof(gpunn_device_info, name) == 8);
  CHECK(offsetof(gpunn_device_info, driver) == 136);
  CHECK(offsetof(gpunn_device_info, memory_domain) == 200);
  CHECK(offsetof(gpunn_device_info, total_bytes) == 296);
  CHECK(offsetof(gpunn_device_info, free_bytes) == 304);
  CHECK(offsetof(gpunn_device_info, alignment) == 312);
  CHECK(offsetof(gpunn_device_info, tensor_alignment) == 320);
  CHECK(sizeof(gpunn_device_info) == 328);
}

TEST_CASE("layout of gpunn_op_desc", "[api]") {
  CHECK(offsetof(gpunn_op_desc, struct_size) == 0);
  CHECK(offsetof(gpunn_op_desc, op) == 4);
  CHECK(offsetof(gpunn_op_desc, attrs) == 8);
  CHECK(offsetof(gpunn_op_desc, n_inputs) == 16);
  CHECK(offsetof(gpunn_op_desc, n_outputs) == 20);
  CHECK(offsetof(gpunn_op_desc, inputs) == 24);
  CHECK(offsetof(gpunn_op_desc, outputs) == 32);
  CHECK(offsetof(gpunn_op_desc, precision) == 40);
  CHECK(offsetof(gpunn_op_desc, flags) == 44);
  CHECK(offsetof(gpunn_op_desc, kernel) == 48);
  CHECK(offsetof(gpunn_op_desc, constant_inputs) == 56);
  CHECK(sizeof(gpunn_op_desc) == 64);
}

TEST_CASE("layout of gpunn_op_support", "[api]") {
  CHECK(offsetof(gpunn_op_support, struct_size) == 0);
  CHECK(offsetof(gpunn_op_support, score) == 4);
  CHECK(offsetof(gpunn_op_support, workspace_bytes) == 8);
  CHECK(offsetof(gpunn_op_support, flags) == 16);
  CHECK(offsetof(gpunn_op_support, reserved) == 20);
  CHECK(offsetof(gpunn_op_support, reason) == 24);
  CHECK(offsetof(gpunn_op_support, kernels) == 280);
  CHECK(sizeof(gpunn_op_support) == 1024);
}

TEST_CASE("layout of gpunn_op_args", "[api]") {
  CHECK(offsetof(gpunn_op_args, struct_size) == 0);
  CHECK(offsetof(gpunn_op_args, n_inputs) == 4);
  CHECK(offsetof(gpunn_op_args, n_outputs) == 8);
  CHECK(offsetof(gpunn_op_args, reserved) == 12);
  CHECK(offsetof(gpunn_op_args, inputs) == 16);
  CHECK(offsetof(gpunn_op_args, outputs) == 24);
  CHECK(offsetof(gpunn_op_args, workspace) == 32);
  CHECK(offsetof(gpunn_op_args, workspace_bytes) == 40);
  CHECK(sizeof(gpunn_op_args) == 48);
}

TEST_CASE("layout of gpunn_plugin", "[api]") {
  CHECK(offsetof(gpunn_plugin, struct_size) == 0);
  CHECK(offsetof(gpunn_plugin, abi_major) == 4);
  CHECK(offsetof(gpunn_plugin, abi_minor) == 6);
  CHECK(offsetof(gpunn_plugin, name) == 8);
  CHECK(offsetof(gpunn_plugin, version) == 16);
  CHECK(offsetof(gpunn_plugin, build) == 24);
  CHECK(offsetof(gpunn_plugin, base) == 32);
  CHECK(offsetof(gpunn_plugin, priority) == 40);
  CHECK(offsetof(gpunn_plugin, reserved) == 44);
  CHECK(offsetof(gpunn_plugin, probe) == 48);
  CHECK(offsetof(gpunn_plugin, device_open) == 56);
  CHECK(offsetof(gpunn_plugin, device_close) == 64);
  CHECK(offsetof(gpunn_plugin, device_info) == 72);
  CHECK(offsetof(gpunn_plugin, memory_alloc) == 80);
  CHECK(offsetof(gpunn_plugin, memory_free) == 88);
  CHECK(offsetof(gpunn_plugin, copy) == 96);
  CHECK(offsetof(gpunn_plugin, fill) == 104);
  CHECK(offsetof(gpunn_plugin, stream_create) == 112);
  CHECK(offsetof(gpunn_plugin, stream_wrap) == 120);
  CHECK(offsetof(gpunn_plugin, stream_native) == 128);
  CHECK(offsetof(gpunn_plugin, stream_sync) == 136);
  CHECK(offsetof(gpunn_plugin, stream_destroy) == 144);
  CHECK(offsetof(gpunn_plugin, event_create) == 152);
  CHECK(offsetof(gpunn_plugin, event_record) == 160);
  CHECK(offsetof(gpunn_plugin, event_wait) == 168);
  CHECK(offsetof(gpunn_plugin, event_sync) == 176);
  CHECK(offsetof(gpunn_plugin, event_elapsed) == 184);
  CHECK(offsetof(gpunn_plugin, event_destroy) == 192);
  CHECK(offsetof(gpunn_plugin, op_query) == 200);
  CHECK(offsetof(gpunn_plugin, op_create) == 208);
  CHECK(offsetof(gpunn_plugin, op_enqueue) == 216);
  CHECK(offsetof(gpunn_plugin, op_free) == 224);
  CHECK(offsetof(gpunn_plugin, shutdown) == 232);
  CHECK(offsetof(gpunn_plugin, capture_begin) == 240);
  CHECK(offsetof(gpunn_plugin, capture_end) == 248);
  CHECK(offsetof(gpunn_plugin, graph_launch) == 256);
  CHECK(offsetof(gpunn_plugin, graph_free) == 264);
  CHECK(offsetof(gpunn_plugin, extension) == 272);
  CHECK(sizeof(gpunn_plugin) == 280);
}

TEST_CASE("values of abi.h", "[api]") {
  CHECK(GPUNN_ABI_MAJOR == 1);
  CHECK(GPUNN_ABI_MINOR == 1);
  CHECK(GPUNN_OK == 0);
  CHECK(GPUNN_INVALID_ARGUMENT == 1);
  CHECK(GPUNN_UNSUPPORTED == 2);
  CHECK(GPUNN_OUT_OF_MEMORY == 3);
  CHECK(GPUNN_NO_DEVICE == 4);
  CHECK(GPUNN_DEVICE_LOST == 5);
  CHECK(GPUNN_INTERNAL == 6);
  CHECK(GPUNN_F32 == 0);
  CHECK(GPUNN_BF16 == 1);
  CHECK(GPUNN_F16 == 2);
  CHECK(GPUNN_F64 == 3);
  CHECK(GPUNN_I32 == 4);
  CHECK(GPUNN_I64 == 5);
  CHECK(GPUNN_U8 == 6);
  CHECK(GPUNN_MAX_RANK == 8);
  CHECK(GPUNN_LOG_DEBUG == 0);
  CHECK(GPUNN_LOG_INFO == 1);
  CHECK(GPUNN_LOG_WARNING == 2);
  CHECK(GPUNN_MEMORY_DEVICE == 0);
  CHECK(GPUNN_MEMORY_PINNED == 1);
  CHECK(GPUNN_HOST_TO_DEVICE == 0);
  CHECK(GPUNN_DEVICE_TO_HOST == 1);
  CHECK(GPUNN_DEVICE_TO_DEVICE == 2);
  CHECK(GPUNN_PRECISION_FP32 == 0);
  CHECK(GPUNN_PRECISION_TF32 == 1);
  CHECK(GPUNN_PRECISION_BF16 == 2);
  CHECK(GPUNN_OP_REQUIRE_DETERMINISTIC == 1);
  CHECK(GPUNN_OP_DETERMINISTIC == 1);
  CHECK(GPUNN_OP_CAPTURABLE == 2);
}
