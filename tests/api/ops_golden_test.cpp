// Every number of ops.h and op_attrs.h that a plugin already built relies on. Only additions at the end may change this
// file: a plugin built before must still find each member where it was, and each value must mean what it meant.

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

TEST_CASE("layout of gpunn_expand_attrs", "[api]") {
  CHECK(offsetof(gpunn_expand_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_expand_attrs, rank) == 4);
  CHECK(offsetof(gpunn_expand_attrs, dim) == 8);
  CHECK(sizeof(gpunn_expand_attrs) == 72);
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
  CHECK(offsetof(gpunn_pool2d_attrs, count_padding) == 28);
  CHECK(offsetof(gpunn_pool2d_attrs, input_size) == 32);
  CHECK(sizeof(gpunn_pool2d_attrs) == 40);
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

TEST_CASE("layout of gpunn_axpby_attrs", "[api]") {
  CHECK(offsetof(gpunn_axpby_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_axpby_attrs, alpha) == 4);
  CHECK(offsetof(gpunn_axpby_attrs, beta) == 8);
  CHECK(sizeof(gpunn_axpby_attrs) == 12);
}

TEST_CASE("layout of gpunn_clamp_attrs", "[api]") {
  CHECK(offsetof(gpunn_clamp_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_clamp_attrs, low) == 4);
  CHECK(offsetof(gpunn_clamp_attrs, high) == 8);
  CHECK(sizeof(gpunn_clamp_attrs) == 12);
}

TEST_CASE("layout of gpunn_upsample2d_attrs", "[api]") {
  CHECK(offsetof(gpunn_upsample2d_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_upsample2d_attrs, factor) == 4);
  CHECK(offsetof(gpunn_upsample2d_attrs, mode) == 12);
  CHECK(sizeof(gpunn_upsample2d_attrs) == 16);
}

TEST_CASE("layout of gpunn_batch_norm_attrs", "[api]") {
  CHECK(offsetof(gpunn_batch_norm_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_batch_norm_attrs, epsilon) == 4);
  CHECK(offsetof(gpunn_batch_norm_attrs, momentum) == 8);
  CHECK(sizeof(gpunn_batch_norm_attrs) == 12);
}

TEST_CASE("layout of gpunn_layer_norm_attrs", "[api]") {
  CHECK(offsetof(gpunn_layer_norm_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_layer_norm_attrs, epsilon) == 4);
  CHECK(sizeof(gpunn_layer_norm_attrs) == 8);
}

TEST_CASE("layout of gpunn_local_response_norm_attrs", "[api]") {
  CHECK(offsetof(gpunn_local_response_norm_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_local_response_norm_attrs, size) == 4);
  CHECK(offsetof(gpunn_local_response_norm_attrs, alpha) == 8);
  CHECK(offsetof(gpunn_local_response_norm_attrs, beta) == 12);
  CHECK(offsetof(gpunn_local_response_norm_attrs, k) == 16);
  CHECK(sizeof(gpunn_local_response_norm_attrs) == 20);
}

TEST_CASE("layout of gpunn_hinge_attrs", "[api]") {
  CHECK(offsetof(gpunn_hinge_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_hinge_attrs, margin) == 4);
  CHECK(offsetof(gpunn_hinge_attrs, power) == 8);
  CHECK(sizeof(gpunn_hinge_attrs) == 12);
}

TEST_CASE("layout of gpunn_huber_attrs", "[api]") {
  CHECK(offsetof(gpunn_huber_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_huber_attrs, delta) == 4);
  CHECK(sizeof(gpunn_huber_attrs) == 8);
}

TEST_CASE("layout of gpunn_pad_attrs", "[api]") {
  CHECK(offsetof(gpunn_pad_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_pad_attrs, rank) == 4);
  CHECK(offsetof(gpunn_pad_attrs, before) == 8);
  CHECK(offsetof(gpunn_pad_attrs, after) == 72);
  CHECK(sizeof(gpunn_pad_attrs) == 136);
}

TEST_CASE("layout of gpunn_slice_attrs", "[api]") {
  CHECK(offsetof(gpunn_slice_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_slice_attrs, rank) == 4);
  CHECK(offsetof(gpunn_slice_attrs, start) == 8);
  CHECK(offsetof(gpunn_slice_attrs, size) == 72);
  CHECK(sizeof(gpunn_slice_attrs) == 136);
}

TEST_CASE("layout of gpunn_concat_attrs", "[api]") {
  CHECK(offsetof(gpunn_concat_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_concat_attrs, axis) == 4);
  CHECK(sizeof(gpunn_concat_attrs) == 8);
}

TEST_CASE("layout of gpunn_transpose_attrs", "[api]") {
  CHECK(offsetof(gpunn_transpose_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_transpose_attrs, rank) == 4);
  CHECK(offsetof(gpunn_transpose_attrs, permutation) == 8);
  CHECK(sizeof(gpunn_transpose_attrs) == 40);
}

TEST_CASE("layout of gpunn_adagrad_attrs", "[api]") {
  CHECK(offsetof(gpunn_adagrad_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_adagrad_attrs, epsilon) == 4);
  CHECK(offsetof(gpunn_adagrad_attrs, weight_decay) == 8);
  CHECK(offsetof(gpunn_adagrad_attrs, reserved) == 12);
  CHECK(offsetof(gpunn_adagrad_attrs, decayed) == 16);
  CHECK(sizeof(gpunn_adagrad_attrs) == 24);
}

TEST_CASE("layout of gpunn_lion_attrs", "[api]") {
  CHECK(offsetof(gpunn_lion_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_lion_attrs, beta1) == 4);
  CHECK(offsetof(gpunn_lion_attrs, beta2) == 8);
  CHECK(offsetof(gpunn_lion_attrs, weight_decay) == 12);
  CHECK(offsetof(gpunn_lion_attrs, decayed) == 16);
  CHECK(sizeof(gpunn_lion_attrs) == 24);
}

TEST_CASE("layout of gpunn_lars_attrs", "[api]") {
  CHECK(offsetof(gpunn_lars_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_lars_attrs, momentum) == 4);
  CHECK(offsetof(gpunn_lars_attrs, weight_decay) == 8);
  CHECK(offsetof(gpunn_lars_attrs, trust) == 12);
  CHECK(offsetof(gpunn_lars_attrs, epsilon) == 16);
  CHECK(offsetof(gpunn_lars_attrs, reserved) == 20);
  CHECK(offsetof(gpunn_lars_attrs, decayed) == 24);
  CHECK(sizeof(gpunn_lars_attrs) == 32);
}

TEST_CASE("layout of gpunn_clip_norm_attrs", "[api]") {
  CHECK(offsetof(gpunn_clip_norm_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_clip_norm_attrs, max_norm) == 4);
  CHECK(offsetof(gpunn_clip_norm_attrs, epsilon) == 8);
  CHECK(offsetof(gpunn_clip_norm_attrs, rescale) == 12);
  CHECK(sizeof(gpunn_clip_norm_attrs) == 16);
}

TEST_CASE("layout of gpunn_l1_attrs", "[api]") {
  CHECK(offsetof(gpunn_l1_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_l1_attrs, weight) == 4);
  CHECK(offsetof(gpunn_l1_attrs, decayed) == 8);
  CHECK(sizeof(gpunn_l1_attrs) == 16);
}

TEST_CASE("layout of gpunn_random_shift_attrs", "[api]") {
  CHECK(offsetof(gpunn_random_shift_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_random_shift_attrs, reach) == 4);
  CHECK(offsetof(gpunn_random_shift_attrs, flip) == 12);
  CHECK(offsetof(gpunn_random_shift_attrs, seed) == 16);
  CHECK(offsetof(gpunn_random_shift_attrs, stream) == 24);
  CHECK(sizeof(gpunn_random_shift_attrs) == 32);
}

TEST_CASE("layout of gpunn_random_affine_attrs", "[api]") {
  CHECK(offsetof(gpunn_random_affine_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_random_affine_attrs, rotate) == 4);
  CHECK(offsetof(gpunn_random_affine_attrs, translate) == 8);
  CHECK(offsetof(gpunn_random_affine_attrs, scale_low) == 16);
  CHECK(offsetof(gpunn_random_affine_attrs, scale_high) == 20);
  CHECK(offsetof(gpunn_random_affine_attrs, seed) == 24);
  CHECK(offsetof(gpunn_random_affine_attrs, stream) == 32);
  CHECK(sizeof(gpunn_random_affine_attrs) == 40);
}

TEST_CASE("layout of gpunn_random_color_attrs", "[api]") {
  CHECK(offsetof(gpunn_random_color_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_random_color_attrs, brightness) == 4);
  CHECK(offsetof(gpunn_random_color_attrs, contrast) == 8);
  CHECK(offsetof(gpunn_random_color_attrs, saturation) == 12);
  CHECK(offsetof(gpunn_random_color_attrs, white) == 16);
  CHECK(offsetof(gpunn_random_color_attrs, seed) == 24);
  CHECK(offsetof(gpunn_random_color_attrs, stream) == 32);
  CHECK(sizeof(gpunn_random_color_attrs) == 40);
}

TEST_CASE("layout of gpunn_random_erase_attrs", "[api]") {
  CHECK(offsetof(gpunn_random_erase_attrs, struct_size) == 0);
  CHECK(offsetof(gpunn_random_erase_attrs, size) == 4);
  CHECK(offsetof(gpunn_random_erase_attrs, p) == 12);
  CHECK(offsetof(gpunn_random_erase_attrs, seed) == 16);
  CHECK(offsetof(gpunn_random_erase_attrs, stream) == 24);
  CHECK(sizeof(gpunn_random_erase_attrs) == 32);
}

TEST_CASE("values of ops.h", "[api]") {
  CHECK(GPUNN_OP_ADD == 100);
  CHECK(GPUNN_OP_SUB == 130);
  CHECK(GPUNN_OP_MUL == 131);
  CHECK(GPUNN_OP_DIV == 132);
  CHECK(GPUNN_OP_MAXIMUM == 133);
  CHECK(GPUNN_OP_MINIMUM == 134);
  CHECK(GPUNN_OP_POW == 135);
  CHECK(GPUNN_OP_EQUAL == 136);
  CHECK(GPUNN_OP_LESS == 137);
  CHECK(GPUNN_OP_LESS_EQUAL == 138);
  CHECK(GPUNN_OP_SELECT == 139);
  CHECK(GPUNN_OP_EXP == 140);
  CHECK(GPUNN_OP_LOG == 141);
  CHECK(GPUNN_OP_SQRT == 142);
  CHECK(GPUNN_OP_RSQRT == 143);
  CHECK(GPUNN_OP_ERF == 144);
  CHECK(GPUNN_OP_EXPAND == 145);
  CHECK(GPUNN_OP_BATCH_MATMUL == 203);
  CHECK(GPUNN_OP_SCATTER_ADD == 903);
  CHECK(GPUNN_OP_SCALE == 101);
  CHECK(GPUNN_OP_COPY == 102);
  CHECK(GPUNN_OP_FILL == 103);
  CHECK(GPUNN_OP_AXPBY == 104);
  CHECK(GPUNN_OP_CLAMP == 105);
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
  CHECK(GPUNN_OP_AVG_POOL2D == 402);
  CHECK(GPUNN_OP_AVG_POOL2D_BACKWARD == 403);
  CHECK(GPUNN_OP_UPSAMPLE2D == 410);
  CHECK(GPUNN_OP_UPSAMPLE2D_BACKWARD == 411);
  CHECK(GPUNN_OP_SOFTMAX == 500);
  CHECK(GPUNN_OP_SOFTMAX_BACKWARD == 501);
  CHECK(GPUNN_OP_LOG_SOFTMAX == 502);
  CHECK(GPUNN_OP_LOG_SOFTMAX_BACKWARD == 503);
  CHECK(GPUNN_OP_BATCH_NORM == 520);
  CHECK(GPUNN_OP_BATCH_NORM_BACKWARD == 521);
  CHECK(GPUNN_OP_BATCH_NORM_INFERENCE == 522);
  CHECK(GPUNN_OP_LAYER_NORM == 523);
  CHECK(GPUNN_OP_LAYER_NORM_BACKWARD == 524);
  CHECK(GPUNN_OP_LOCAL_RESPONSE_NORM == 525);
  CHECK(GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD == 526);
  CHECK(GPUNN_OP_NLL_LOSS == 550);
  CHECK(GPUNN_OP_NLL_LOSS_BACKWARD == 551);
  CHECK(GPUNN_OP_MSE_LOSS == 552);
  CHECK(GPUNN_OP_MSE_LOSS_BACKWARD == 553);
  CHECK(GPUNN_OP_BCE_LOGITS_LOSS == 554);
  CHECK(GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD == 555);
  CHECK(GPUNN_OP_HINGE_LOSS == 556);
  CHECK(GPUNN_OP_HINGE_LOSS_BACKWARD == 557);
  CHECK(GPUNN_OP_HUBER_LOSS == 558);
  CHECK(GPUNN_OP_HUBER_LOSS_BACKWARD == 559);
  CHECK(GPUNN_OP_SOFTMAX_CROSS_ENTROPY == 560);
  CHECK(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD == 561);
  CHECK(GPUNN_OP_SOFT_CROSS_ENTROPY == 562);
  CHECK(GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD == 563);
  CHECK(GPUNN_OP_REDUCE == 600);
  CHECK(GPUNN_OP_MEAN_ROWS == 601);
  CHECK(GPUNN_OP_MEAN_ROWS_BACKWARD == 602);
  CHECK(GPUNN_OP_NORM == 610);
  CHECK(GPUNN_OP_PAD == 620);
  CHECK(GPUNN_OP_SLICE == 621);
  CHECK(GPUNN_OP_CONCAT == 622);
  CHECK(GPUNN_OP_TRANSPOSE == 623);
  CHECK(GPUNN_OP_SGD_UPDATE == 700);
  CHECK(GPUNN_OP_ADAM_UPDATE == 701);
  CHECK(GPUNN_OP_RMSPROP_UPDATE == 702);
  CHECK(GPUNN_OP_ADAGRAD_UPDATE == 703);
  CHECK(GPUNN_OP_LION_UPDATE == 704);
  CHECK(GPUNN_OP_LARS_UPDATE == 705);
  CHECK(GPUNN_OP_CLIP_NORM == 720);
  CHECK(GPUNN_OP_L1_GRADIENT == 721);
  CHECK(GPUNN_OP_RANDOM_UNIFORM == 800);
  CHECK(GPUNN_OP_RANDOM_NORMAL == 801);
  CHECK(GPUNN_OP_RANDOM_PERMUTATION == 802);
  CHECK(GPUNN_OP_DROPOUT == 810);
  CHECK(GPUNN_OP_SAMPLE_INDICES == 900);
  CHECK(GPUNN_OP_GATHER_ROWS == 901);
  CHECK(GPUNN_OP_GATHER_NORMALIZE == 902);
  CHECK(GPUNN_OP_RANDOM_SHIFT == 910);
  CHECK(GPUNN_OP_RANDOM_AFFINE == 911);
  CHECK(GPUNN_OP_RANDOM_COLOR == 912);
  CHECK(GPUNN_OP_RANDOM_ERASE == 913);
  CHECK(GPUNN_OP_MIX_ROWS == 914);
  CHECK(GPUNN_OP_ADVANCE == 950);
  CHECK(GPUNN_OP_TABLE_LOAD == 951);
  CHECK(GPUNN_OP_TABLE_STORE == 952);
  CHECK(GPUNN_OP_METRICS_ACCUMULATE == 970);
  CHECK(GPUNN_ACTIVATION_NONE == 0);
  CHECK(GPUNN_ACTIVATION_RELU == 1);
  CHECK(GPUNN_UPSAMPLE_NEAREST == 0);
  CHECK(GPUNN_UPSAMPLE_BILINEAR == 1);
  CHECK(GPUNN_REDUCE_SUM == 0);
  CHECK(GPUNN_REDUCE_MEAN == 1);
  CHECK(GPUNN_REDUCE_MAX == 2);
}
