/*
 * The op catalogue: a stable id for each op. Their attribute structs are in op_attrs.h.
 *
 * "a, b -> y" lists inputs and outputs in order; [..] is a shape, 0-d a scalar in device memory. Unless said
 * otherwise tensors are f32 and all shapes are packed row-major. "in place" means the output is the very memory of
 * the input of that name. Other outputs never overlap an input, except where an op says "may alias".
 *
 * What changes from step to step (learning rate, step number, random counter) is an input, never an attribute, so
 * that a captured graph can be replayed.
 *
 * What is read from device memory may be anything. A label outside [0, C) makes its row's loss NaN and its gradient 0
 * and counts as no correct answer; an index outside [0, n) gathers zeros. Neither may be used as an address.
 *
 * Ids only grow.
 */
#ifndef GPUNN_OPS_H
#define GPUNN_OPS_H

#include "op_attrs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpunn_op {
  /* --- Element-wise --- */
  GPUNN_OP_ADD = 100,           /* a, b -> y = a + b. y may alias a or b. */
  GPUNN_OP_SCALE = 101,         /* x -> y = factor * x. y may alias x. gpunn_scale_attrs */
  GPUNN_OP_COPY = 102,          /* x -> y = x, any strides, between any two of f32, i32, i64, u8 (C conversions). */
  GPUNN_OP_FILL = 103,          /* -> y = value. gpunn_fill_attrs */
  GPUNN_OP_AXPBY = 104,         /* a, b -> y = alpha * a + beta * b. y may alias a or b. gpunn_axpby_attrs */
  GPUNN_OP_CLAMP = 105,         /* x -> y = min(max(x, low), high), NaN stays NaN. y may alias x. gpunn_clamp_attrs */
  GPUNN_OP_RELU = 110,          /* x -> y = max(x, 0), NaN stays NaN. y may alias x. */
  GPUNN_OP_RELU_BACKWARD = 111, /* dy, y -> dx = y > 0 ? dy : 0. dx may alias dy. */
  /* What follows maps an infinity as its formula does: GELU and SILU of -inf are NaN. y may alias x, dx may alias dy.
   */
  GPUNN_OP_LEAKY_RELU = 112,          /* x -> y = x > 0 ? x : slope * x. gpunn_leaky_relu_attrs */
  GPUNN_OP_LEAKY_RELU_BACKWARD = 113, /* dy, x -> dx = x > 0 ? dy : slope * dy. gpunn_leaky_relu_attrs */
  GPUNN_OP_SIGMOID = 114,             /* x -> y = 1 / (1 + exp(-x)) */
  GPUNN_OP_SIGMOID_BACKWARD = 115,    /* dy, y -> dx = dy * y * (1 - y) */
  GPUNN_OP_TANH = 116,                /* x -> y = tanh(x) */
  GPUNN_OP_TANH_BACKWARD = 117,       /* dy, y -> dx = dy * (1 - y^2) */
  GPUNN_OP_GELU = 118,                /* x -> y, as gpunn_gelu_attrs says */
  GPUNN_OP_GELU_BACKWARD = 119,       /* dy, x -> dx. gpunn_gelu_attrs */
  GPUNN_OP_SILU = 120,                /* x -> y = x * sigmoid(x) */
  GPUNN_OP_SILU_BACKWARD = 121,       /* dy, x -> dx = dy * s * (1 + x * (1 - s)), s = sigmoid(x) */

  /* --- Linear --- */
  /* a, b -> y = op(a) op(b), op being the transpose or nothing: [M,K] [K,N] -> [M,N]. gpunn_matmul_attrs */
  GPUNN_OP_MATMUL = 200,
  GPUNN_OP_BIAS_ADD = 201,      /* x[N,C,...], b[C] -> y = x + b by channel. y may alias x. */
  GPUNN_OP_BIAS_BACKWARD = 202, /* dy[N,C,...] -> db[C], the sum of dy by channel. */
  /* Composite of MATMUL, BIAS_ADD and the activation. a, b, bias[N] -> y. gpunn_matmul_bias_activation_attrs */
  GPUNN_OP_MATMUL_BIAS_ACTIVATION = 210,
  /* Composite of the activation's backward and BIAS_BACKWARD: dy[N,C,...], y -> dx, db[C]. dx may alias dy.
   * gpunn_bias_activation_backward_attrs */
  GPUNN_OP_BIAS_ACTIVATION_BACKWARD = 211,

  /* --- Convolution: cross-correlation, x[N,C,H,W], w[K,C/groups,R,S], y[N,K,P,Q]. gpunn_conv2d_attrs --- */
  GPUNN_OP_CONV2D = 300,                 /* x, w -> y */
  GPUNN_OP_CONV2D_BACKWARD_DATA = 301,   /* dy, w -> dx. The attributes carry H and W. */
  GPUNN_OP_CONV2D_BACKWARD_FILTER = 302, /* dy, x -> dw. The attributes carry R and S. */
  /* Composite of CONV2D, BIAS_ADD and the activation. x, w, bias[K] -> y. gpunn_conv2d_attrs */
  GPUNN_OP_CONV2D_BIAS_ACTIVATION = 310,

  /* --- Pooling. gpunn_pool2d_attrs. Padding never wins a maximum; every window holds at least one element. --- */
  GPUNN_OP_MAX_POOL2D = 400, /* x[N,C,H,W] -> y[N,C,P,Q]. A NaN in the window wins. */
  /* dy, x, y -> dx. Of several equal maxima the first in row-major order gets the gradient. */
  GPUNN_OP_MAX_POOL2D_BACKWARD = 401,
  /* x[N,C,H,W] -> y[N,C,P,Q], the mean of each window: over the elements of x in it, or, where count_padding is set,
   * over the whole window, padding being 0. */
  GPUNN_OP_AVG_POOL2D = 402,
  GPUNN_OP_AVG_POOL2D_BACKWARD = 403, /* dy -> dx. The attributes carry H and W. */

  /* --- Up-sampling: x[N,C,H,W], y[N,C,H*f0,W*f1]. gpunn_upsample2d_attrs --- */
  GPUNN_OP_UPSAMPLE2D = 410,          /* x -> y */
  GPUNN_OP_UPSAMPLE2D_BACKWARD = 411, /* dy -> dx */

  /* --- Softmax over the last dimension of x[N,C] --- */
  GPUNN_OP_SOFTMAX = 500,              /* x -> y */
  GPUNN_OP_SOFTMAX_BACKWARD = 501,     /* dy, y -> dx = y * (dy - sum(dy * y)) */
  GPUNN_OP_LOG_SOFTMAX = 502,          /* x -> y */
  GPUNN_OP_LOG_SOFTMAX_BACKWARD = 503, /* dy, y -> dx = dy - exp(y) * sum(dy) */

  /* --- Normalisation: y = (x - mean) * inv_dev * gamma + beta, with inv_dev = 1 / sqrt(variance + epsilon) --- */
  /* x[N,C,...], gamma[C], beta[C], running_mean[C], running_var[C] (, count i32 0-d) -> y, mean[C], inv_dev[C],
   * running_mean, running_var (both in place). Mean and variance by channel over the first count rows, all without
   * count; running = (1 - momentum) * running + momentum * batch, with the unbiased variance (the biased one where it
   * is of one element); where count is 0 nothing runs on and y, mean and inv_dev are 0. Rows past count are normalised
   * like the others. gpunn_batch_norm_attrs */
  GPUNN_OP_BATCH_NORM = 520,
  /* dy, x, gamma[C], mean[C], inv_dev[C] (, count i32 0-d) -> dx, dgamma[C], dbeta[C]. What dy holds past the first
   * count rows is not read, and dx is 0 there. */
  GPUNN_OP_BATCH_NORM_BACKWARD = 521,
  /* x[N,C,...], gamma[C], beta[C], mean[C], var[C] -> y. y may alias x. gpunn_batch_norm_attrs */
  GPUNN_OP_BATCH_NORM_INFERENCE = 522,
  /* x[N,D], gamma[D], beta[D] -> y, mean[N], inv_dev[N]: each row by itself. gpunn_layer_norm_attrs */
  GPUNN_OP_LAYER_NORM = 523,
  /* dy, x, gamma[D], mean[N], inv_dev[N] -> dx, dgamma[D], dbeta[D] */
  GPUNN_OP_LAYER_NORM_BACKWARD = 524,
  /* x[N,C,...] -> y, each value by its neighbours in other channels. gpunn_local_response_norm_attrs */
  GPUNN_OP_LOCAL_RESPONSE_NORM = 525,
  GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD = 526, /* dy, x -> dx. gpunn_local_response_norm_attrs */

  /* --- Losses, one number a row --- */
  GPUNN_OP_NLL_LOSS = 550,          /* logp[N,C], label i32[N] -> loss[N] = -logp[i, label[i]] */
  GPUNN_OP_NLL_LOSS_BACKWARD = 551, /* dloss[N], label i32[N] -> dlogp[N,C]. gpunn_classes_attrs */
  GPUNN_OP_MSE_LOSS = 552,          /* x[N,...], target[N,...] -> loss[N], the mean of the row's squared differences */
  GPUNN_OP_MSE_LOSS_BACKWARD = 553, /* dloss[N], x, target -> dx */
  /* x[N,...], target[N,...] -> loss[N], the mean over the row of max(x, 0) - x * target + log(1 + exp(-|x|)): binary
   * cross-entropy of sigmoid(x). */
  GPUNN_OP_BCE_LOGITS_LOSS = 554,
  GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD = 555, /* dloss[N], x, target -> dx, towards x alone */
  /* x[N,C], label i32[N] -> loss[N] = sum over j != label of max(0, margin - x[label] + x[j])^power, over C.
   * gpunn_hinge_attrs */
  GPUNN_OP_HINGE_LOSS = 556,
  GPUNN_OP_HINGE_LOSS_BACKWARD = 557, /* dloss[N], x, label i32[N] -> dx; 0 where a margin is met exactly */
  /* x[N,...], target[N,...] -> loss[N], the mean over the row, with d = x - target, of d^2 / 2 where |d| <= delta, else
   * of delta * (|d| - delta / 2). gpunn_huber_attrs */
  GPUNN_OP_HUBER_LOSS = 558,
  GPUNN_OP_HUBER_LOSS_BACKWARD = 559, /* dloss[N], x, target -> dx, towards x alone. gpunn_huber_attrs */
  /* Composite of LOG_SOFTMAX and NLL_LOSS: x[N,C], label i32[N] -> loss[N], logp[N,C]. */
  GPUNN_OP_SOFTMAX_CROSS_ENTROPY = 560,
  /* Composite of their backwards: dloss[N], logp[N,C], label i32[N] -> dx = dloss * (exp(logp) - onehot(label)). */
  GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD = 561,
  /* x[N,C], target[N,C] -> loss[N] = -sum(target * logp), logp[N,C] = log_softmax(x). A target need not sum to 1; where
   * it is 0 nothing is added, whatever logp is. */
  GPUNN_OP_SOFT_CROSS_ENTROPY = 562,
  /* dloss[N], logp[N,C], target[N,C] -> dx = dloss * (exp(logp) * sum(target) - target) */
  GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD = 563,

  /* --- Reductions --- */
  GPUNN_OP_REDUCE = 600, /* x -> y over the axes of a mask. gpunn_reduce_attrs */
  /* x[N], count i32 0-d -> y 0-d, the mean of the first count rows; 0 where count is 0. */
  GPUNN_OP_MEAN_ROWS = 601,
  /* dy 0-d, count i32 0-d -> dx[N] = i < count ? dy / count : 0. gpunn_rows_attrs */
  GPUNN_OP_MEAN_ROWS_BACKWARD = 602,
  GPUNN_OP_NORM = 610, /* x -> y 0-d = sqrt(sum(x^2)). Infinite or NaN where an element is, or where the sum is. */

  /* --- Shapes --- */
  GPUNN_OP_PAD = 620,    /* x -> y, x in the midst of zeros. gpunn_pad_attrs */
  GPUNN_OP_SLICE = 621,  /* x -> y, a box of x. gpunn_slice_attrs */
  GPUNN_OP_CONCAT = 622, /* two or more of one shape but for an axis -> y, one behind the other. gpunn_concat_attrs */
  GPUNN_OP_TRANSPOSE = 623, /* x -> y; dimension i of y is dimension permutation[i] of x. gpunn_transpose_attrs */

  /* --- Optimizers over flat vectors; w and every state are in place. The first `decayed` elements decay. --- */
  /* w[n], g[n], lr 0-d (, velocity[n]) -> w (, velocity). gpunn_sgd_attrs */
  GPUNN_OP_SGD_UPDATE = 700,
  /* w[n], g[n], lr 0-d, step i64 0-d, m[n], v[n] -> w, m, v. step counts from 0. gpunn_adam_attrs */
  GPUNN_OP_ADAM_UPDATE = 701,
  /* w[n], g[n], lr 0-d, square[n] (, velocity[n]) -> w, square (, velocity). gpunn_rmsprop_attrs */
  GPUNN_OP_RMSPROP_UPDATE = 702,
  /* w[n], g[n], lr 0-d, sum[n] -> w, sum. gpunn_adagrad_attrs */
  GPUNN_OP_ADAGRAD_UPDATE = 703,
  /* w[n], g[n], lr 0-d, m[n] -> w, m. gpunn_lion_attrs */
  GPUNN_OP_LION_UPDATE = 704,
  /* w[n], g[n], lr 0-d, velocity[n], offset i64[P+1] -> w, velocity. Part p is of the elements from offset[p] to
   * offset[p+1]; offset rises from 0 to n, and what it says outside [0, n] counts as 0 or n. gpunn_lars_attrs */
  GPUNN_OP_LARS_UPDATE = 705,
  /* x[n], norm 0-d -> y = x * min(1, max_norm / (norm + epsilon)), without the min where rescale is set. A norm that is
   * not finite leaves x as it is. y may alias x. gpunn_clip_norm_attrs */
  GPUNN_OP_CLIP_NORM = 720,
  /* g[n], w[n] -> g in place, its first `decayed` elements plus weight * sign(w), sign(0) being 0. gpunn_l1_attrs */
  GPUNN_OP_L1_GRADIENT = 721,

  /* --- Random numbers: Philox4x32-10 as random.h lays it out. `counter` is an i64 0-d tensor. --- */
  GPUNN_OP_RANDOM_UNIFORM = 800,     /* counter -> y = low + u * (high - low). gpunn_random_attrs */
  GPUNN_OP_RANDOM_NORMAL = 801,      /* counter -> y of mean low and standard deviation high. gpunn_random_attrs */
  GPUNN_OP_RANDOM_PERMUTATION = 802, /* counter -> y i32[n], a permutation of 0..n-1. gpunn_random_attrs */
  /* x, counter -> y = keep ? x * 1/(1-p) : 0. Its own backward, with dy for x. y may alias x. gpunn_dropout_attrs */
  GPUNN_OP_DROPOUT = 810,

  /* --- Batches --- */
  /* step i64 0-d -> index i32[B], count i32 0-d. gpunn_sample_attrs */
  GPUNN_OP_SAMPLE_INDICES = 900,
  /* data[n,...] (u8, i32, i64 or f32), index i32[B] -> y[B,...] of data's type, or i32 from u8 and i64 data. Rows of a
   * negative index are 0. */
  GPUNN_OP_GATHER_ROWS = 901,
  /* data[n,C,...] (u8 or f32), index i32[B], scale[C], shift[C] -> y[B,C,...] = x * scale[c] + shift[c]. Rows of a
   * negative index are 0. */
  GPUNN_OP_GATHER_NORMALIZE = 902,

  /* --- Augmentation of a batch x[N,C,H,W] by numbers of its own for each image. Image i of the batch at `counter`
   * draws w[0..3] = philox(seed, stream, counter * N + i), and u[k] = unit(w[k]) of random.h. `border[C]` is what lies
   * outside an image. Nothing flows back. --- */
  /* x, counter i64 0-d, border[C] -> y, shifted by whole pixels and mirrored. gpunn_random_shift_attrs */
  GPUNN_OP_RANDOM_SHIFT = 910,
  /* x, counter i64 0-d, border[C] -> y, rotated, scaled and moved. gpunn_random_affine_attrs */
  GPUNN_OP_RANDOM_AFFINE = 911,
  /* x, counter i64 0-d, scale[C], shift[C] -> y: brightness, contrast and saturation. gpunn_random_color_attrs */
  GPUNN_OP_RANDOM_COLOR = 912,
  /* x, counter i64 0-d, border[C] -> y with a rectangle of border. y may alias x. gpunn_random_erase_attrs */
  GPUNN_OP_RANDOM_ERASE = 913,
  /* x[N,...], share 0-d, count i32 0-d -> y[i] = share * x[i] + (1 - share) * x[count - 1 - i] for i < count, x[i] from
   * there on. */
  GPUNN_OP_MIX_ROWS = 914,

  /* --- Counters and tables --- */
  GPUNN_OP_ADVANCE = 950,    /* counter i64 0-d -> counter in place, plus increment. gpunn_advance_attrs */
  GPUNN_OP_TABLE_LOAD = 951, /* table[T], step i64 0-d -> y 0-d = table[min(step, T-1)] */
  /* table[T], step i64 0-d, value 0-d -> table in place, table[step mod T] = value */
  GPUNN_OP_TABLE_STORE = 952,

  /* --- Metrics --- */
  /* loss[N], count i32 0-d, totals f64[4] (, x[N,C], label i32[N]) -> totals in place, increased over the first count
   * rows by { sum of loss, rows whose label has rank 0, rows whose label has rank under 5, count }. The rank of a label
   * is the number of classes with a larger x, or an equal one and a smaller index; with a NaN in the row it is C. */
  GPUNN_OP_METRICS_ACCUMULATE = 970
} gpunn_op;

#ifdef __cplusplus
}
#endif

#endif
