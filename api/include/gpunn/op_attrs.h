/*
 * The attribute structs of the ops in ops.h, and the values of their fields. They are append-only and begin with their
 * size.
 */
#ifndef GPUNN_OP_ATTRS_H
#define GPUNN_OP_ATTRS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values of an activation. */
typedef enum gpunn_activation { GPUNN_ACTIVATION_NONE = 0, GPUNN_ACTIVATION_RELU = 1 } gpunn_activation;

/* Values of gpunn_upsample2d_attrs.mode. */
typedef enum gpunn_upsampling { GPUNN_UPSAMPLE_NEAREST = 0, GPUNN_UPSAMPLE_BILINEAR = 1 } gpunn_upsampling;

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

typedef struct gpunn_expand_attrs {
  uint32_t struct_size;
  int32_t rank;
  int64_t dim[8];
} gpunn_expand_attrs;

typedef struct gpunn_axpby_attrs {
  uint32_t struct_size;
  float alpha;
  float beta;
} gpunn_axpby_attrs;

typedef struct gpunn_clamp_attrs {
  uint32_t struct_size;
  float low;
  float high; /* not below low */
} gpunn_clamp_attrs;

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
  int32_t pad[2];        /* at most half the window */
  int32_t count_padding; /* of AVG_POOL2D and its backward alone */
  int32_t input_size[2]; /* H, W: needed by AVG_POOL2D_BACKWARD, since several may give one P, Q; else 0 */
} gpunn_pool2d_attrs;

/* NEAREST: y[h] = x[h / f]. BILINEAR: y[h] is x at (h + 0.5) / f - 0.5, held within 0 and H - 1, between its two
 * neighbours in proportion; so for columns. (The half-pixel convention, align_corners = false elsewhere.) */
typedef struct gpunn_upsample2d_attrs {
  uint32_t struct_size;
  int32_t factor[2]; /* rows, columns; at least 1 */
  int32_t mode;
} gpunn_upsample2d_attrs;

/* Rows and columns that are added; fewer than the image has. */
typedef struct gpunn_reflect_pad2d_attrs {
  uint32_t struct_size;
  int32_t before[2]; /* at the top, on the left */
  int32_t after[2];  /* at the bottom, on the right */
} gpunn_reflect_pad2d_attrs;

typedef struct gpunn_attention_attrs {
  uint32_t struct_size;
  float scale; /* of the scores; 1 / sqrt(D) in Vaswani et al. */
} gpunn_attention_attrs;

/* Ioffe and Szegedy, 2015. */
typedef struct gpunn_batch_norm_attrs {
  uint32_t struct_size;
  float epsilon;
  float momentum; /* the new batch's share of the running statistics; not of BATCH_NORM_INFERENCE */
} gpunn_batch_norm_attrs;

/* Ba, Kiros and Hinton, 2016. */
typedef struct gpunn_layer_norm_attrs {
  uint32_t struct_size;
  float epsilon;
} gpunn_layer_norm_attrs;

/* y[c] = x[c] * (k + alpha / size * sum(x[j]^2))^-beta, j from c - size / 2 to c + (size - 1) / 2 within the channels.
 * (Krizhevsky et al., 2012, with alpha divided by the size as is common today.) */
typedef struct gpunn_local_response_norm_attrs {
  uint32_t struct_size;
  int32_t size; /* channels, at least 1 */
  float alpha;
  float beta;
  float k;
} gpunn_local_response_norm_attrs;

/* Of classes. (Crammer and Singer, 2001; Weston and Watkins, 1999, whose sum over the classes it is.) */
typedef struct gpunn_hinge_attrs {
  uint32_t struct_size;
  float margin;
  int32_t power; /* 1 or 2 */
} gpunn_hinge_attrs;

/* Huber, 1964. */
typedef struct gpunn_huber_attrs {
  uint32_t struct_size;
  float delta; /* above 0 */
} gpunn_huber_attrs;

/* Zeros in front of and behind dimension i. */
typedef struct gpunn_pad_attrs {
  uint32_t struct_size;
  int32_t rank;
  int64_t before[8];
  int64_t after[8];
} gpunn_pad_attrs;

/* The elements from start[i] to start[i] + size[i] of dimension i. */
typedef struct gpunn_slice_attrs {
  uint32_t struct_size;
  int32_t rank;
  int64_t start[8];
  int64_t size[8];
} gpunn_slice_attrs;

typedef struct gpunn_concat_attrs {
  uint32_t struct_size;
  int32_t axis;
} gpunn_concat_attrs;

typedef struct gpunn_transpose_attrs {
  uint32_t struct_size;
  int32_t rank;
  int32_t permutation[8];
} gpunn_transpose_attrs;

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

/* g' = g + weight_decay * w; sum += g'^2; w -= lr * g' / (sqrt(sum) + epsilon). (Duchi et al., 2011.) */
typedef struct gpunn_adagrad_attrs {
  uint32_t struct_size;
  float epsilon;
  float weight_decay;
  int32_t reserved;
  int64_t decayed;
} gpunn_adagrad_attrs;

/* w *= 1 - lr * weight_decay; w -= lr * sign(beta1 * m + (1 - beta1) * g); m = beta2 * m + (1 - beta2) * g, sign(0)
 * being 0. (Chen et al., 2023.) */
typedef struct gpunn_lion_attrs {
  uint32_t struct_size;
  float beta1;
  float beta2;
  float weight_decay;
  int64_t decayed;
} gpunn_lion_attrs;

/* A part's rate is lr * trust * |w| / (|g| + weight_decay * |w| + epsilon), or lr where |w| or |g| is 0 and in parts
 * that begin at `decayed` or later; d is the weight decay before `decayed` and 0 after. velocity = momentum * velocity
 * + rate * (g + d * w); w -= velocity. (You et al., 2017.) */
typedef struct gpunn_lars_attrs {
  uint32_t struct_size;
  float momentum;
  float weight_decay;
  float trust;
  float epsilon;
  int32_t reserved;
  int64_t decayed;
} gpunn_lars_attrs;

/* L-BFGS without a line search (Liu and Nocedal, 1989): torch.optim.LBFGS with max_iter=1. g' = g + weight_decay * w.
 * With y = g' - last_gradient and s = last_step: where s y > 1e-10 the pair (s, y) follows the others, of which the
 * oldest goes. d is -H g' by the two-loop recursion, from s y / y y of the newest pair, or 1; a pair with s y <= 0
 * counts for nothing. rate = lr, in the first step times min(1, 1 / |g'|), |g'| being the sum of absolute values.
 * last_step = rate * d where g' d <= -1e-9, else 0; w += last_step; last_gradient = g'. Where |g'| is not below 3e38
 * half of the last step is taken back: last_step /= 2; w -= last_step, and nothing else changes. */
typedef struct gpunn_lbfgs_attrs {
  uint32_t struct_size;
  float weight_decay;
  int64_t decayed;
} gpunn_lbfgs_attrs;

typedef struct gpunn_clip_norm_attrs {
  uint32_t struct_size;
  float max_norm;
  float epsilon;
  int32_t rescale;
} gpunn_clip_norm_attrs;

typedef struct gpunn_l1_attrs {
  uint32_t struct_size;
  float weight;
  int64_t decayed;
} gpunn_l1_attrs;

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

/* Rows move by floor(u[0] * (2 * reach[0] + 1)) - reach[0], columns by the same of u[1] and reach[1]: y[h,w] =
 * x[h + rows, w' + columns], where w' = W - 1 - w if u[2] < flip, else w. With a reach of p this is a crop out of an
 * image padded by p. */
typedef struct gpunn_random_shift_attrs {
  uint32_t struct_size;
  int32_t reach[2]; /* rows, columns; pixels */
  float flip;       /* the share of images that are mirrored left to right */
  uint64_t seed;
  uint64_t stream;
} gpunn_random_shift_attrs;

/* angle = (2 u[0] - 1) * rotate degrees; factor = scale_low + u[1] * (scale_high - scale_low); moved by
 * (2 u[2] - 1) * translate[0] * H rows and (2 u[3] - 1) * translate[1] * W columns. The image turns counter-clockwise
 * and grows by the factor about its centre ((H-1)/2, (W-1)/2), then moves. Each pixel of y is x at the place it came
 * from, bilinear, border lying outside. */
typedef struct gpunn_random_affine_attrs {
  uint32_t struct_size;
  float rotate;
  float translate[2];
  float scale_low;
  float scale_high;
  uint64_t seed;
  uint64_t stream;
} gpunn_random_affine_attrs;

/* On the colours v = (x - shift) / scale, as GATHER_NORMALIZE left them: from 0 to `white`. With f(k, reach) =
 * 1 + (2 u[k] - 1) * reach: v *= f(0, brightness); then v = m + f(1, contrast) * (v - m), m being the image's mean
 * grey; then v = g + f(2, saturation) * (v - g), g being the pixel's grey; each held within 0 and white. Grey is 0.299
 * R + 0.587 G + 0.114 B with three channels, else the mean of the channels. What has a reach of 0 is left out. */
typedef struct gpunn_random_color_attrs {
  uint32_t struct_size;
  float brightness; /* reaches, from 0 to 1 */
  float contrast;
  float saturation;
  float white;
  uint64_t seed;
  uint64_t stream;
} gpunn_random_color_attrs;

/* Where u[2] < p: the rectangle of rows [r - size[0] / 2, r - size[0] / 2 + size[0]) and likewise columns, r =
 * floor(u[0] * H) and c = floor(u[1] * W), as much of it as lies in the image. (DeVries and Taylor, 2017.) */
typedef struct gpunn_random_erase_attrs {
  uint32_t struct_size;
  int32_t size[2];
  float p;
  uint64_t seed;
  uint64_t stream;
} gpunn_random_erase_attrs;

typedef struct gpunn_advance_attrs {
  uint32_t struct_size;
  int32_t reserved;
  int64_t increment;
} gpunn_advance_attrs;

typedef struct gpunn_grid_points_attrs {
  uint32_t struct_size;
  int32_t rows;
  int32_t columns;
  float stride; /* above 0 */
} gpunn_grid_points_attrs;

typedef struct gpunn_assign_points_attrs {
  uint32_t struct_size;
  float radius; /* strides, above 0 */
  float reach;  /* strides, above 0 */
  float least_stride;
  float most_stride;
} gpunn_assign_points_attrs;

/* 0 < negative <= positive <= 1 */
typedef struct gpunn_assign_anchors_attrs {
  uint32_t struct_size;
  float positive;
  float negative;
} gpunn_assign_anchors_attrs;

typedef struct gpunn_focal_attrs {
  uint32_t struct_size;
  float alpha; /* between 0 and 1 */
  float gamma; /* at least 0 */
} gpunn_focal_attrs;

typedef struct gpunn_suppression_attrs {
  uint32_t struct_size;
  float overlap;     /* between 0 and 1 */
  float least_score; /* at least 0 */
  int32_t most;      /* boxes that are kept, at least 1 */
  int32_t by_class;
} gpunn_suppression_attrs;

/* Of `parts` numbered parts, rank r of N has those from r * parts / N (rounded down) to (r + 1) * parts / N. With one
 * rank, all of them. */
typedef struct gpunn_all_reduce_attrs {
  uint32_t struct_size;
  int32_t parts; /* 1 or more, on all ranks */
} gpunn_all_reduce_attrs;

/* Of a tensor in eight bits: x = (q - zero_point) * scale. scale > 0, zero_point in [0, 255]. */
typedef struct gpunn_quantize_attrs {
  uint32_t struct_size;
  float scale;
  int32_t zero_point;
} gpunn_quantize_attrs;

/* Begins as gpunn_conv2d_attrs does. */
typedef struct gpunn_quantized_conv2d_attrs {
  uint32_t struct_size;
  int32_t activation;
  int32_t stride[2];
  int32_t pad[2];
  int32_t dilation[2];
  int32_t groups;
  float x_scale;
  int32_t x_zero_point; /* also what padding is */
  float residual_scale; /* of the residual, where there is one */
  int32_t residual_zero_point;
  float y_scale;
  int32_t y_zero_point;
} gpunn_quantized_conv2d_attrs;

/* y is stored in eight bits, as x is, but by another scale and zero point. */
typedef struct gpunn_requantize_attrs {
  uint32_t struct_size;
  float x_scale;
  int32_t x_zero_point;
  float y_scale;
  int32_t y_zero_point;
} gpunn_requantize_attrs;

typedef struct gpunn_cross_entropy_attrs {
  uint32_t struct_size;
  int32_t ignore_index;  /* a label that counts nowhere */
  float label_smoothing; /* between 0 and 1 */
} gpunn_cross_entropy_attrs;

/* With s = low + u[0] * (high - low), the window has H / s rows from row u[1] * (H - H / s) on and W / s columns from
 * column u[2] * (W - W / s) on. y[h,w] is x at row u[1] * (H - H / s) + (h + 1/2) / s - 1/2 and likewise column, held
 * within the image: bilinear, of a label map the nearest pixel, row floor(row + 1/2). */
typedef struct gpunn_random_zoom_attrs {
  uint32_t struct_size;
  float low; /* factors, 1 or more */
  float high;
  uint64_t seed;
  uint64_t stream;
} gpunn_random_zoom_attrs;

#ifdef __cplusplus
}
#endif

#endif
