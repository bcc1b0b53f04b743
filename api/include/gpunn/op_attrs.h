/*
 * The attribute structs of the ops in ops.h, and the values of their members. op_attrs.inc lists the members. A struct
 * begins with its size.
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

#define GPUNN_ATTRS(name) \
  typedef struct name {   \
    uint32_t struct_size;
#define GPUNN_ATTR(type, member, extent, kind, range, fallback, help, ops) type member extent;
#define GPUNN_UNNAMED(type, member) type member;
#define GPUNN_ATTRS_END(name) \
  }                           \
  name;
#include "op_attrs.inc"
#undef GPUNN_ATTRS
#undef GPUNN_ATTR
#undef GPUNN_UNNAMED
#undef GPUNN_ATTRS_END

#ifdef __cplusplus
}
#endif

#endif
