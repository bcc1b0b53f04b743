/*
 * The subgraph extension: a plugin fuses several ops of a step program, a subgraph, and runs them as it likes.
 *
 * A plugin has the extension if `extension(GPUNN_EXTENSION_SUBGRAPH)` returns a gpunn_subgraph_extension. Such a plugin
 * still serves the ops one by one: the host also runs the same step program without fused subgraphs, to show what each
 * op computes and to compare the results.
 *
 * After composite ops are chosen, the host walks the ops in their order. At each op it asks `query` which ops, from
 * this one on, the plugin fuses. It offers ops up to the first that a plugin higher in the chain runs, and asks from
 * the top of the chain down. So a subgraph never replaces a kernel of a higher plugin.
 *
 * The ops of a subgraph need not be neighbours in the step program. The host changes the order of the program so that
 * they are: an op between them that depends on none of them goes before the subgraph, the others go behind it. If an op
 * that is left out depends on one of them, and another one depends on it, the host refuses the subgraph.
 *
 * After `enqueue`, each value that an op of the subgraph writes and that is needed after the subgraph has the content
 * that the ops would have given it one after another, up to rounding. A subgraph writes nothing but these values and
 * its workspace. Where an op accepts any content of device memory (labels, indices), the subgraph accepts it too.
 *
 * Growth, threads, lifetimes and errors are as abi.h says: each struct begins with its size, arrays hold pointers.
 */
#ifndef GPUNN_SUBGRAPH_H
#define GPUNN_SUBGRAPH_H

#include <gpunn/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The extension's name, as gpunn_plugin.extension takes it. */
#define GPUNN_EXTENSION_SUBGRAPH "gpunn.subgraph.v1"

/* The plugin's own object: ops that it runs as one kernel or a few. */
typedef struct gpunn_subgraph gpunn_subgraph;

/* Values of gpunn_program_value.storage. All but the arena outlive the step program. */
enum {
  GPUNN_STORAGE_ARENA = 0,      /* written and last read within one step */
  GPUNN_STORAGE_PARAMETERS = 1, /* one flat array, of which layers have views */
  GPUNN_STORAGE_GRADIENTS = 2,  /* the same layout; the host reads it only through ops */
  GPUNN_STORAGE_OPTIMIZER = 3,
  GPUNN_STORAGE_STATE = 4, /* counters, totals, tables, running statistics */
  GPUNN_STORAGE_DATA = 5   /* never written by a step program */
};

/* A value: a packed tensor that ops read and write under its id, an index into gpunn_program_desc.values.
 *
 * Two values overlap in memory exactly if they have the same root and their bytes in it overlap: a layer's weight is a
 * view into the flat array of parameters, which the optimizer updates as a whole under another id. An op that works in
 * place has the same id as input and as output. No layer writes the bytes of a flat array between its views (padding).
 * They hold zeros, and a subgraph may leave them alone.
 *
 * first_write and last_read tell what a subgraph of the ops [first, end) has to read and write. A value comes from
 * outside if first_write < first. It is needed after the subgraph if last_read >= end. A subgraph need not write a
 * value that is not needed after it, wherever the value is stored. */
typedef struct gpunn_program_value {
  uint32_t struct_size;
  int32_t storage;
  const gpunn_tensor* tensor; /* type, strides and NULL */
  int64_t offset;             /* in bytes in the root */
  int32_t root;               /* the value that owns the memory; the value's own id if it is not a view */
  /* The first op that writes any of its bytes; -1 if they have content before the step. */
  int32_t first_write;
  /* The last op that reads any of its bytes; -1: none; n_ops: they are needed after the step. Everything stored outside
   * the arena is needed after the step, except gradients that each step writes before it reads them. */
  int32_t last_read;
  uint32_t reserved;
} gpunn_program_value;

/* An op of the program, with the ids of the values that it reads and writes. */
typedef struct gpunn_program_op {
  uint32_t struct_size;
  uint32_t reserved;
  const gpunn_op_desc* desc; /* precision and flags are those of gpunn_program_desc */
  const int32_t* inputs;     /* ids of values, desc->n_inputs of them */
  const int32_t* outputs;    /* desc->n_outputs */
} gpunn_program_op;

/* A whole step program, its ops in an order in which they can run. The host has checked the inputs, outputs, types and
 * attributes of each op against op_list.inc. Valid during a call only. */
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

/* The answer of query. */
typedef struct gpunn_subgraph_support {
  uint32_t struct_size;
  uint32_t n_ops; /* how many ops are fused; 0: no subgraph begins here */
  uint64_t workspace_bytes;
  uint32_t flags; /* GPUNN_OP_DETERMINISTIC, GPUNN_OP_CAPTURABLE */
  uint32_t reserved;
  /* In: memory of the host for `limit` numbers, filled with first, first + 1, ... Out: the plugin writes the ops that
   * it fuses into the first n_ops of them, in rising order. ops[0] stays `first`. */
  uint32_t* ops;
  char name[64]; /* what the subgraph is, for the user: "fused training step" */
  /* Why there is no subgraph, for the user. Empty if no pattern of the plugin begins with this op. */
  char reason[256];
  /* About how many seconds the plugin's own kernels take longer one by one. The host takes no subgraph that saves less
   * than its ops gain by the kernels of alternatives (GPUNN_EXTENSION_ALTERNATIVES), as it has measured them. 0: the
   * plugin does not tell, and the host compares nothing. */
  double saved_seconds;
} gpunn_subgraph_support;

/* The tensors and the workspace of one enqueue of a subgraph. */
typedef struct gpunn_subgraph_args {
  uint32_t struct_size;
  uint32_t n_values;
  /* By value id. NULL if no op of the subgraph uses the value, or if it has no memory: a value of the arena has none
   * if no op outside the subgraph uses its root. Memory overlaps where the values do, and nowhere else: unlike an op, a
   * subgraph never has an output in the memory of an input that dies. Roots are aligned as gpunn_device_info says. */
  const gpunn_tensor* const* values;
  void* workspace; /* of the size that query asked for, aligned as device memory is; its content is undefined */
  uint64_t workspace_bytes;
} gpunn_subgraph_args;

/* The functions that fuse ops. */
typedef struct gpunn_subgraph_extension {
  uint32_t struct_size;
  uint32_t reserved;

  /* Tells which of the ops [first, first + limit) the plugin fuses, `first` being one of them. It is cheap, has no side
   * effects, and gives the same answer to the same question as long as the device is open. With
   * GPUNN_OP_REQUIRE_DETERMINISTIC the host takes no subgraph without GPUNN_OP_DETERMINISTIC. */
  gpunn_status (*query)(gpunn_device* device, const gpunn_program_desc* desc, uint32_t first, uint32_t limit,
                        gpunn_subgraph_support* subgraph, gpunn_error* error);
  /* Creates a subgraph that `query` has offered. Its ops are the n_ops from `first` on of the step program in its new
   * order. It may plan, allocate, and autotune on scratch memory of its own. */
  gpunn_status (*create)(gpunn_device* device, const gpunn_program_desc* desc, uint32_t first, uint32_t n_ops,
                         gpunn_subgraph** subgraph, gpunn_error* error);
  /* Puts the subgraph on the stream and returns. Never synchronises, allocates or reads device memory on the host. */
  gpunn_status (*enqueue)(gpunn_subgraph* subgraph, gpunn_stream* stream, const gpunn_subgraph_args* args,
                          gpunn_error* error);
  void (*destroy)(gpunn_subgraph* subgraph);
} gpunn_subgraph_extension;

#ifdef __cplusplus
}
#endif

#endif
