// Every number of ops.h that a plugin already built relies on. Only additions at the end may change this file: a plugin
// built before must still find each member where it was, and each value must mean what it meant.

#include <gpunn/ops.h>

#include <cstddef>

#include "catch.hpp"

TEST_CASE("layout of gpunn_scale_attrs", "[api]") {
  CHECK(offsetof(gpunn_scale_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_scale_attrs, factor) == 4);
  CHECK(sizeof(gpunn_scale_attrs) == 8);
}

TEST_CASE("layout of gpunn_fill_attrs", "[api]") {
  CHECK(offsetof(gpunn_fill_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_fill_attrs, dtype) == 4);
  CHECK(offsetof(gpunn_fill_attrs, rank) == 8);
  CHECK(offsetof(gpunn_fill_attrs, reserved) == 12);
  CHECK(offsetof(gpunn_fill_attrs, dim) == 16);
  CHECK(offsetof(gpunn_fill_attrs, value) == 80);
  CHECK(sizeof(gpunn_fill_attrs) == 88);
}

TEST_CASE("layout of gpunn_leaky_relu_attrs", "[api]") {
  CHECK(offsetof(gpunn_leaky_relu_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_leaky_relu_attrs, slope) == 4);
  CHECK(sizeof(gpunn_leaky_relu_attrs) == 8);
}

TEST_CASE("layout of gpunn_gelu_attrs", "[api]") {
  CHECK(offsetof(gpunn_gelu_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_gelu_attrs, tanh) == 4);
  CHECK(sizeof(gpunn_gelu_attrs) == 8);
}

TEST_CASE("layout of gpunn_matmul_attrs", "[api]") {
  CHECK(offsetof(gpunn_matmul_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_matmul_attrs, transpose_a) == 4);
  CHECK(offsetof(gpunn_matmul_attrs, transpose_b) == 8);
  CHECK(sizeof(gpunn_matmul_attrs) == 12);
}

TEST_CASE("layout of gpunn_matmul_bias_activation_attrs", "[api]") {
  CHECK(offsetof(gpunn_matmul_bias_activation_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_matmul_bias_activation_attrs, transpose_a) == 4);
  CHECK(offsetof(gpunn_matmul_bias_activation_attrs, transpose_b) == 8);
  CHECK(offsetof(gpunn_matmul_bias_activation_attrs, activation) == 12);
  CHECK(sizeof(gpunn_matmul_bias_activation_attrs) == 16);
}

TEST_CASE("layout of gpunn_bias_activation_backward_attrs", "[api]") {
  CHECK(offsetof(gpunn_bias_activation_backward_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_bias_activation_backward_attrs, activation) == 4);
  CHECK(sizeof(gpunn_bias_activation_backward_attrs) == 8);
}

TEST_CASE("layout of gpunn_conv2d_attrs", "[api]") {
  CHECK(offsetof(gpunn_conv2d_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_conv2d_attrs, activation) == 4);
  CHECK(offsetof(gpunn_conv2d_attrs, stride) == 8);
  CHECK(offsetof(gpunn_conv2d_attrs, pad) == 16);
  CHECK(offsetof(gpunn_conv2d_attrs, dilation) == 24);
  CHECK(offsetof(gpunn_conv2d_attrs, groups) == 32);
  CHECK(offsetof(gpunn_conv2d_attrs, input_size) == 36);
  CHECK(offsetof(gpunn_conv2d_attrs, filter_size) == 44);
  CHECK(offsetof(gpunn_conv2d_attrs, reserved) == 52);
  CHECK(sizeof(gpunn_conv2d_attrs) == 56);
}

TEST_CASE("layout of gpunn_pool2d_attrs", "[api]") {
  CHECK(offsetof(gpunn_pool2d_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_pool2d_attrs, window) == 4);
  CHECK(offsetof(gpunn_pool2d_attrs, stride) == 12);
  CHECK(offsetof(gpunn_pool2d_attrs, pad) == 20);
  CHECK(offsetof(gpunn_pool2d_attrs, reserved) == 28);
  CHECK(sizeof(gpunn_pool2d_attrs) == 32);
}

TEST_CASE("layout of gpunn_classes_attrs", "[api]") {
  CHECK(offsetof(gpunn_classes_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_classes_attrs, classes) == 4);
  CHECK(sizeof(gpunn_classes_attrs) == 8);
}

TEST_CASE("layout of gpunn_rows_attrs", "[api]") {
  CHECK(offsetof(gpunn_rows_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_rows_attrs, reserved) == 4);
  CHECK(offsetof(gpunn_rows_attrs, rows) == 8);
  CHECK(sizeof(gpunn_rows_attrs) == 16);
}

TEST_CASE("layout of gpunn_reduce_attrs", "[api]") {
  CHECK(offsetof(gpunn_reduce_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_reduce_attrs, kind) == 4);
  CHECK(offsetof(gpunn_reduce_attrs, axes) == 8);
  CHECK(offsetof(gpunn_reduce_attrs, keep_dims) == 12);
  CHECK(sizeof(gpunn_reduce_attrs) == 16);
}

TEST_CASE("layout of gpunn_sgd_attrs", "[api]") {
  CHECK(offsetof(gpunn_sgd_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_sgd_attrs, momentum) == 4);
  CHECK(offsetof(gpunn_sgd_attrs, weight_decay) == 8);
  CHECK(offsetof(gpunn_sgd_attrs, nesterov) == 12);
  CHECK(offsetof(gpunn_sgd_attrs, decayed) == 16);
  CHECK(sizeof(gpunn_sgd_attrs) == 24);
}

TEST_CASE("layout of gpunn_adam_attrs", "[api]") {
  CHECK(offsetof(gpunn_adam_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_adam_attrs, beta1) == 4);
  CHECK(offsetof(gpunn_adam_attrs, beta2) == 8);
  CHECK(offsetof(gpunn_adam_attrs, epsilon) == 12);
  CHECK(offsetof(gpunn_adam_attrs, weight_decay) == 16);
  CHECK(offsetof(gpunn_adam_attrs, decoupled) == 20);
  CHECK(offsetof(gpunn_adam_attrs, decayed) == 24);
  CHECK(sizeof(gpunn_adam_attrs) == 32);
}

TEST_CASE("layout of gpunn_rmsprop_attrs", "[api]") {
  CHECK(offsetof(gpunn_rmsprop_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_rmsprop_attrs, alpha) == 4);
  CHECK(offsetof(gpunn_rmsprop_attrs, epsilon) == 8);
  CHECK(offsetof(gpunn_rmsprop_attrs, momentum) == 12);
  CHECK(offsetof(gpunn_rmsprop_attrs, weight_decay) == 16);
  CHECK(offsetof(gpunn_rmsprop_attrs, reserved) == 20);
  CHECK(offsetof(gpunn_rmsprop_attrs, decayed) == 24);
  CHECK(sizeof(gpunn_rmsprop_attrs) == 32);
}

TEST_CASE("layout of gpunn_random_attrs", "[api]") {
  CHECK(offsetof(gpunn_random_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_random_attrs, rank) == 4);
  CHECK(offsetof(gpunn_random_attrs, dim) == 8);
  CHECK(offsetof(gpunn_random_attrs, seed) == 72);
  CHECK(offsetof(gpunn_random_attrs, stream) == 80);
  CHECK(offsetof(gpunn_random_attrs, low) == 88);
  CHECK(offsetof(gpunn_random_attrs, high) == 92);
  CHECK(sizeof(gpunn_random_attrs) == 96);
}

TEST_CASE("layout of gpunn_dropout_attrs", "[api]") {
  CHECK(offsetof(gpunn_dropout_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_dropout_attrs, p) == 4);
  CHECK(offsetof(gpunn_dropout_attrs, seed) == 8);
  CHECK(offsetof(gpunn_dropout_attrs, stream) == 16);
  CHECK(sizeof(gpunn_dropout_attrs) == 24);
}

TEST_CASE("layout of gpunn_sample_attrs", "[api]") {
  CHECK(offsetof(gpunn_sample_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_sample_attrs, shuffle) == 4);
  CHECK(offsetof(gpunn_sample_attrs, rows) == 8);
  CHECK(offsetof(gpunn_sample_attrs, batch) == 16);
  CHECK(offsetof(gpunn_sample_attrs, drop_last) == 20);
  CHECK(offsetof(gpunn_sample_attrs, seed) == 24);
  CHECK(offsetof(gpunn_sample_attrs, stream) == 32);
  CHECK(sizeof(gpunn_sample_attrs) == 40);
}

TEST_CASE("layout of gpunn_advance_attrs", "[api]") {
  CHECK(offsetof(gpunn_advance_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_advance_attrs, reserved) == 4);
  CHECK(offsetof(gpunn_advance_attrs, increment) == 8);
  CHECK(sizeof(gpunn_advance_attrs) == 16);
}

TEST_CASE("values of ops.h", "[api]") {
  CHECK(GPUNN_OP_ADD == 100);
  CHECK(GPUNN_OP_SCALE == 101);
  CHECK(GPUNN_OP_COPY == 102);
  CHECK(GPUNN_OP_FILL == 103);
  CHECK(GPUNN_OP_RELU == 110);
  CHECK(GPUNN_OP_RELU_BACKWARD == 111);
  CHECK(GPUNN_OP_LEAKY_RELU == 112);
  CHECK(GPUNN_OP_LEAKY_RELU_BACKWARD == 113);
  CHECK(GPUNN_OP_SIGMOID == 114);
  CHECK(GPUNN_OP_SIGMOID_BACKWARD == 115);
  CHECK(GPUNN_OP_TANH == 116);
  CHECK(GPUNN_OP_TANH_BACKWARD == 117);
  CHECK(GPUNN_OP_GELU == 118);
  CHECK(GPUNN_OP_GELU_BACKWARD == 119);
  CHECK(GPUNN_OP_SILU == 120);
  CHECK(GPUNN_OP_SILU_BACKWARD == 121);
  CHECK(GPUNN_OP_MATMUL == 200);
  CHECK(GPUNN_OP_BIAS_ADD == 201);
  CHECK(GPUNN_OP_BIAS_BACKWARD == 202);
  CHECK(GPUNN_OP_MATMUL_BIAS_ACTIVATION == 210);
  CHECK(GPUNN_OP_BIAS_ACTIVATION_BACKWARD == 211);
  CHECK(GPUNN_OP_CONV2D == 300);
  CHECK(GPUNN_OP_CONV2D_BACKWARD_DATA == 301);
  CHECK(GPUNN_OP_CONV2D_BACKWARD_FILTER == 302);
  CHECK(GPUNN_OP_CONV2D_BIAS_ACTIVATION == 310);
  CHECK(GPUNN_OP_MAX_POOL2D == 400);
  CHECK(GPUNN_OP_MAX_POOL2D_BACKWARD == 401);
  CHECK(GPUNN_OP_SOFTMAX == 500);
  CHECK(GPUNN_OP_SOFTMAX_BACKWARD == 501);
  CHECK(GPUNN_OP_LOG_SOFTMAX == 502);
  CHECK(GPUNN_OP_LOG_SOFTMAX_BACKWARD == 503);
  CHECK(GPUNN_OP_NLL_LOSS == 550);
  CHECK(GPUNN_OP_NLL_LOSS_BACKWARD == 551);
  CHECK(GPUNN_OP_MSE_LOSS == 552);
  CHECK(GPUNN_OP_MSE_LOSS_BACKWARD == 553);
  CHECK(GPUNN_OP_SOFTMAX_CROSS_ENTROPY == 560);
  CHECK(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD == 561);
  CHECK(GPUNN_OP_REDUCE == 600);
  CHECK(GPUNN_OP_MEAN_ROWS == 601);
  CHECK(GPUNN_OP_MEAN_ROWS_BACKWARD == 602);
  CHECK(GPUNN_OP_SGD_UPDATE == 700);
  CHECK(GPUNN_OP_ADAM_UPDATE == 701);
  CHECK(GPUNN_OP_RMSPROP_UPDATE == 702);
  CHECK(GPUNN_OP_RANDOM_UNIFORM == 800);
  CHECK(GPUNN_OP_RANDOM_NORMAL == 801);
  CHECK(GPUNN_OP_RANDOM_PERMUTATION == 802);
  CHECK(GPUNN_OP_DROPOUT == 810);
  CHECK(GPUNN_OP_SAMPLE_INDICES == 900);
  CHECK(GPUNN_OP_GATHER_ROWS == 901);
  CHECK(GPUNN_OP_GATHER_NORMALIZE == 902);
  CHECK(GPUNN_OP_ADVANCE == 950);
  CHECK(GPUNN_OP_TABLE_LOAD == 951);
  CHECK(GPUNN_OP_TABLE_STORE == 952);
  CHECK(GPUNN_OP_METRICS_ACCUMULATE == 970);
  CHECK(GPUNN_ACTIVATION_NONE == 0);
  CHECK(GPUNN_ACTIVATION_RELU == 1);
  CHECK(GPUNN_REDUCE_SUM == 0);
  CHECK(GPUNN_REDUCE_MEAN == 1);
  CHECK(GPUNN_REDUCE_MAX == 2);
}
