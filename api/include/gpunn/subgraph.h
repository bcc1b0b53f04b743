/*
 * The subgraph extension: a plugin fuses several ops of a step program and runs them as one thing.
 *
 * A plugin offers it where `extension(GPUNN_EXTENSION_SUBGRAPH)` returns a gpunn_subgraph_extension. It stays a full
 * citizen op by op: the same program is also run without subgraphs, to look at what each op makes, and as the test.
 *
 * The host walks the ops in their order, after fusion. At each it asks `query` which ops from there on the plugin runs as
 * one. It offers ops up to the first that a plugin higher in the chain runs, and asks from the top of the chain down, so
 * that a subgraph hides no other plugin's kernel.
 *
 * The ops of a subgraph need not be neighbours in the program. The host changes the order of the program so that they
 * are: an op between them that depends on none of them goes before the subgraph, the others go behind it. An op that
 * depends on one of them, and on which another one depends, makes a subgraph impossible: the host refuses it.
 *
 * A subgraph has to do this: after `enqueue`, every value that one of its ops writes and that is needed after the
 * subgraph is as if the ops had run one after another, but for rounding. It writes nothing but the workspace and those
 * values. Where an op says that something in device memory may be anything (labels, indices), so it may here.
 *
 * Growth, threads, lifetimes and errors are as abi.h says: each struct begins with its size, arrays hold pointers.
 */
#ifndef GPUNN_SUBGRAPH_H
#define GPUNN_SUBGRAPH_H

#include <gpunn/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUNN_EXTENSION_SUBGRAPH "gpunn.subgraph.v1"

typedef struct gpunn_subgraph gpunn_subgraph;

/* Values of gpunn_program_value.storage: all but the arena outlive the program. */
enum {
  GPUNN_STORAGE_ARENA = 0,      /* made and used up within one run of the program */
  GPUNN_STORAGE_PARAMETERS = 1, /* one flat array, of which layers have views */
  GPUNN_STORAGE_GRADIENTS = 2,  /* the same layout; the host reads it only through ops */
  GPUNN_STORAGE_OPTIMIZER = 3,
  GPUNN_STORAGE_STATE = 4, /* counters, totals, tables, running statistics */
  GPUNN_STORAGE_DATA = 5   /* never written by a program */
};

/* A value: a packed tensor that ops read and write under its id, an index into gpunn_program_desc.values.
 *
 * Two values overlap in memory exactly if they have the same root and their bytes in it overlap: a layer's weight is a
 * view into the flat array of parameters, which the optimizer updates as a whole under another id. An op that works in
 * place has one id as input and as output. Bytes of a flat array between its views (padding) are written by no layer
 * and hold zeros, which a subgraph may leave alone.
 *
 * With first_write and last_read a run of the ops [first, end) is judged: what it reads comes from outside where
 * first_write < first, and what it writes is needed after it where last_read >= end. What is not needed need not be
 * written, wherever it is stored. */
typedef struct gpunn_program_value {
  uint32_t struct_size;
  int32_t storage;
  const gpunn_tensor* tensor; /* type, strides and NULL */
  int64_t offset;             /* in bytes in the root */
  int32_t root;               /* the value that owns the memory; the value's own id where it is no view */
  /* The first op that writes any of its bytes; -1 where they hold something when the program begins. */
  int32_t first_write;
  /* The last op that reads any of its bytes; -1: none; n_ops where they are needed after the program, as all that is
   * stored outside the arena is, but gradients that each run of the program writes before it reads them. */
  int32_t last_read;
  uint32_t reserved;
} gpunn_program_value;

typedef struct gpunn_program_op {
  uint32_t struct_size;
  uint32_t reserved;
  const gpunn_op_desc* desc; /* precision and flags as in the program's */
  const int32_t* inputs;     /* ids of values, desc->n_inputs of them */
  const int32_t* outputs;    /* desc->n_outputs */
} gpunn_program_op;

/* A whole step program, the ops in an order in which they can run, each with the inputs, outputs, types and attributes
 * that op_list.inc says: the host has checked them. Valid during a call only. */
typedef struct gpunn_program_desc {
  uint32_t struct_size;
  uint32_t n_ops;
  uint32_t n_values;
  int32_t precision; /* GPUNN_PRECISION_... */
  uint32_t flags;    /* GPUNN_OP_REQUIRE_DETERMINISTIC */
  uint32_t reserved;
  const gpunn_program_op* const* ops;
  const gpunn_program_value* const* values;
} gpunn_program_desc;

typedef struct gpunn_subgraph_support {
  uint32_t struct_size;
  uint32_t n_ops; /* run as one; 0: none from here on */
  uint64_t workspace_bytes;
  uint32_t flags; /* GPUNN_OP_DETERMINISTIC, GPUNN_OP_CAPTURABLE */
  uint32_t reserved;
  /* Room for `limit` numbers, of the host, which begins with first, first + 1, ...: the plugin leaves in the first n_ops
   * of them which ops it fuses, in rising order. ops[0] stays `first`. */
  uint32_t* ops;
  char name[64];    /* what it is, for the user: "fused training step" */
  char reason[256]; /* where there is no subgraph, why, for the user; empty where this op begins nothing of the kind */
} gpunn_subgraph_support;

typedef struct gpunn_subgraph_args {
  uint32_t struct_size;
  uint32_t n_values;
  /* By value id, of the program. NULL where no op of the run uses the value, and where it has no memory: it is of the
   * arena, and nobody outside the run uses it or a value of the same root. Memory overlaps where the values do, and
   * nowhere else: unlike an op, a subgraph has no output on top of a dying input. Alignment is that of
   * gpunn_device_info for roots. */
  const gpunn_tensor* const* values;
  void* workspace; /* of the size that query asked for, aligned as device memory is; its content is undefined */
  uint64_t workspace_bytes;
} gpunn_subgraph_args;

typedef struct gpunn_subgraph_extension {
  uint32_t struct_size;
  uint32_t reserved;

  /* Which of the ops [first, first + limit) the plugin runs as one, `first` being one of them. Cheap, free of side
   * effects, and the same answer to the same question as long as the device is open. With
   * GPUNN_OP_REQUIRE_DETERMINISTIC a subgraph without GPUNN_OP_DETERMINISTIC is not taken. */
  gpunn_status (*query)(gpunn_device* device, const gpunn_program_desc* desc, uint32_t first, uint32_t limit,
                        gpunn_subgraph_support* subgraph, gpunn_error* error);
  /* Of a subgraph that query chose, whose ops are the n_ops from `first` on of a program in its new order. May plan,
   * allocate and autotune on scratch memory of its own. */
  gpunn_status (*create)(gpunn_device* device, const gpunn_program_desc* desc, uint32_t first, uint32_t n_ops,
                         gpunn_subgraph** program, gpunn_error* error);
  /* Puts the subgraph on the stream and returns; never synchronises, allocates or reads device memory on the host. */
  gpunn_status (*enqueue)(gpunn_subgraph* program, gpunn_stream* stream, const gpunn_subgraph_args* args,
                          gpunn_error* error);
  void (*destroy)(gpunn_subgraph* program);
} gpunn_subgraph_extension;

#ifdef __cplusplus
}
#endif

#endif
