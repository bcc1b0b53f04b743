/*
 * The op catalogue: a stable id and an attribute struct for each op.
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
 * Ids only grow. Attribute structs are append-only and begin with their size.
 */
#ifndef GPUNN_OPS_H
#define GPUNN_OPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpunn_op {
  /* --- Element-wise --- */
  GPUNN_OP_ADD = 100,           /* a, b -> y = a + b. y may alias a or b. */
  GPUNN_OP_SCALE = 101,         /* x -> y = factor * x. y may alias x. gpunn_scale_attrs */
  GPUNN_OP_COPY = 102,          /* x -> y = x, any strides, between any two of f32, i32, i64, u8 (C conversions). */
  GPUNN_OP_FILL = 103,          /* -> y = value. gpunn_fill_attrs */
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

  /* --- Softmax over the last dimension of x[N,C] --- */
  GPUNN_OP_SOFTMAX = 500,              /* x -> y */
  GPUNN_OP_SOFTMAX_BACKWARD = 501,     /* dy, y -> dx = y * (dy - sum(dy * y)) */
  GPUNN_OP_LOG_SOFTMAX = 502,          /* x -> y */
  GPUNN_OP_LOG_SOFTMAX_BACKWARD = 503, /* dy, y -> dx = dy - exp(y) * sum(dy) */

  /* --- Losses, one number a row --- */
  GPUNN_OP_NLL_LOSS = 550,          /* logp[N,C], label i32[N] -> loss[N] = -logp[i, label[i]] */
  GPUNN_OP_NLL_LOSS_BACKWARD = 551, /* dloss[N], label i32[N] -> dlogp[N,C]. gpunn_classes_attrs */
  GPUNN_OP_MSE_LOSS = 552,          /* x[N,...], target[N,...] -> loss[N], the mean of the row's squared differences */
  GPUNN_OP_MSE_LOSS_BACKWARD = 553, /* dloss[N], x, target -> dx */
  /* Composite of LOG_SOFTMAX and NLL_LOSS: x[N,C], label i32[N] -> loss[N], logp[N,C]. */
  GPUNN_OP_SOFTMAX_CROSS_ENTROPY = 560,
  /* Composite of their backwards: dloss[N], logp[N,C], label i32[N] -> dx = dloss * (exp(logp) - onehot(label)). */
  GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD = 561,

  /* --- Reductions --- */
  GPUNN_OP_REDUCE = 600, /* x -> y over the axes of a mask. gpunn_reduce_attrs */
  /* x[N], count i32 0-d -> y 0-d, the mean of the first count rows; 0 where count is 0. */
  GPUNN_OP_MEAN_ROWS = 601,
  /* dy 0-d, count i32 0-d -> dx[N] = i < count ? dy / count : 0. gpunn_rows_attrs */
  GPUNN_OP_MEAN_ROWS_BACKWARD = 602,

  /* --- Optimizers over flat vectors; w and every state are in place. The first `decayed` elements decay. --- */
  /* w[n], g[n], lr 0-d (, velocity[n]) -> w (, velocity). gpunn_sgd_attrs */
  GPUNN_OP_SGD_UPDATE = 700,
  /* w[n], g[n], lr 0-d, step i64 0-d, m[n], v[n] -> w, m, v. step counts from 0. gpunn_adam_attrs */
  GPUNN_OP_ADAM_UPDATE = 701,
  /* w[n], g[n], lr 0-d, square[n] (, velocity[n]) -> w, square (, velocity). gpunn_rmsprop_attrs */
  GPUNN_OP_RMSPROP_UPDATE = 702,

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

/* Values of an activation. */
typedef enum gpunn_activation { GPUNN_ACTIVATION_NONE = 0, GPUNN_ACTIVATION_RELU = 1 } gpunn_activation;

/* Values of gpunn_reduce_attrs.kind. */
typedef enum gpunn_reduction { GPUNN_REDUCE_SUM = 0, GPUNN_REDUCE_MEAN = 1, GPUNN_REDUCE_MAX = 2 } gpunn_reduction;

typedef struct gpunn_scale_attrs {
  uint32_t struct_size;
  float factor;
} gpunn_scale_attrs;

typedef struct gpunn_fill_attrs {
  uint32_t struct_size;
  int32_t dtype;
  int32_t rank;
  int32_t reserved;
  int64_t dim[8];
  double value;
} gpunn_fill_attrs;

typedef struct gpunn_leaky_relu_attrs {
  uint32_t struct_size;
  float slope;
} gpunn_leaky_relu_attrs;

/* y = x * P, with P = (1 + erf(x / sqrt 2)) / 2, the normal distribution's function, or, where tanh is set,
 * P = (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2. (Hendrycks and Gimpel, 2016.) */
typedef struct gpunn_gelu_attrs {
  uint32_t struct_size;
  int32_t tanh;
} gpunn_gelu_attrs;

typedef struct gpunn_matmul_attrs {
  uint32_t struct_size;
  int32_t transpose_a; /* a is [K,M] */
  int32_t transpose_b; /* b is [N,K] */
} gpunn_matmul_attrs;

typedef struct gpunn_matmul_bias_activation_attrs {
  uint32_t struct_size;
  int32_t transpose_a;
  int32_t transpose_b;
  int32_t activation;
} gpunn_matmul_bias_activation_attrs;

typedef struct gpunn_bias_activation_backward_attrs {
  uint32_t struct_size;
  int32_t activation;
} gpunn_bias_activation_backward_attrs;

typedef struct gpunn_conv2d_attrs {
  uint32_t struct_size;
  int32_t activation; /* of CONV2D_BIAS_ACTIVATION alone */
  int32_t stride[2];  /* rows, columns */
  int32_t pad[2];     /* zeros on both sides */
  int32_t dilation[2];
  int32_t groups;
  int32_t input_size[2];  /* H, W: needed by BACKWARD_DATA, since several may give one P, Q; else 0 */
  int32_t filter_size[2]; /* R, S: needed by BACKWARD_FILTER, likewise; else 0 */
  int32_t reserved;
} gpunn_conv2d_attrs;

typedef struct gpunn_pool2d_attrs {
  uint32_t struct_size;
  int32_t window[2];
  int32_t stride[2];
  int32_t pad[2]; /* at most half the window */
  int32_t reserved;
} gpunn_pool2d_attrs;

typedef struct gpunn_classes_attrs {
  uint32_t struct_size;
  int32_t classes; /* C of the output */
} gpunn_classes_attrs;

typedef struct gpunn_rows_attrs {
  uint32_t struct_size;
  int32_t reserved;
  int64_t rows; /* N of the output */
} gpunn_rows_attrs;

typedef struct gpunn_reduce_attrs {
  uint32_t struct_size;
  int32_t kind;
  uint32_t axes; /* bit i: dimension i is reduced */
  int32_t keep_dims;
} gpunn_reduce_attrs;

/* g' = g + weight_decay * w; velocity = momentum * velocity + g'; w -= lr * (nesterov ? g' + momentum * velocity :
 * velocity). No velocity where momentum is 0. (Sutskever et al., 2013, in the form common today.) */
typedef struct gpunn_sgd_attrs {
  uint32_t struct_size;
  float momentum;
  float weight_decay;
  int32_t nesterov;
  int64_t decayed;
} gpunn_sgd_attrs;

/* Adam (Kingma and Ba, 2015); with decoupled set, AdamW (Loshchilov and Hutter, 2019): w *= 1 - lr * weight_decay
 * first, otherwise g' = g + weight_decay * w. t = step + 1; w -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) +
 * epsilon). */
typedef struct gpunn_adam_attrs {
  uint32_t struct_size;
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;
  int32_t decoupled;
  int64_t decayed;
} gpunn_adam_attrs;

/* g' = g + weight_decay * w; square = alpha * square + (1 - alpha) * g'^2; u = g' / (sqrt(square) + epsilon); with
 * momentum: velocity = momentum * velocity + u; w -= lr * velocity; else w -= lr * u. (Tieleman and Hinton, 2012.) */
typedef struct gpunn_rmsprop_attrs {
  uint32_t struct_size;
  float alpha;
  float epsilon;
  float momentum;
  float weight_decay;
  int32_t reserved;
  int64_t decayed;
} gpunn_rmsprop_attrs;

typedef struct gpunn_random_attrs {
  uint32_t struct_size;
  int32_t rank;
  int64_t dim[8]; /* of the output */
  uint64_t seed;
  uint64_t stream;
  float low;
  float high;
} gpunn_random_attrs;

typedef struct gpunn_dropout_attrs {
  uint32_t struct_size;
  float p; /* the share that is dropped, 0 <= p < 1 */
  uint64_t seed;
  uint64_t stream;
} gpunn_dropout_attrs;

/* Steps per epoch s = rows / batch, rounded down where drop_last is set, else up. Step t is batch k = t mod s of epoch
 * t / s; entry i is row k * batch + i of that epoch's permutation (of the rows in order without shuffle), or -1 past
 * the last. count is the number of entries that are not -1. */
typedef struct gpunn_sample_attrs {
  uint32_t struct_size;
  int32_t shuffle;
  int64_t rows;
  int32_t batch;
  int32_t drop_last;
  uint64_t seed;
  uint64_t stream;
} gpunn_sample_attrs;

typedef struct gpunn_advance_attrs {
  uint32_t struct_size;
  int32_t reserved;
  int64_t increment;
} gpunn_advance_attrs;

#ifdef __cplusplus
}
#endif

#endif
