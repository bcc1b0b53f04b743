/*
 * The ids of the ops. op_list.inc says what each does: its inputs, outputs and attributes.
 */
#ifndef GPUNN_OPS_H
#define GPUNN_OPS_H

#include "op_attrs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The attributes of an op that has none. */
typedef struct gpunn_no_attrs {
  uint32_t struct_size;
} gpunn_no_attrs;

/* The ids of the ops, GPUNN_OP_ADD and so on. */
#define GPUNN_OP(name, id, attributes, signature, summary) GPUNN_OP_##name = (id),
typedef enum gpunn_op {
#include "op_list.inc"
} gpunn_op;
#undef GPUNN_OP

#ifdef __cplusplus
}
#endif

#endif
