/*
 * The collective extension: a plugin moves data between the processes that train together, its ranks.
 *
 * A plugin has the extension if `extension(GPUNN_EXTENSION_COLLECTIVE)` returns a gpunn_collective_extension. Where a
 * plugin has none, or does not serve a call, the host takes the data through its own memory.
 *
 * Each rank is a process with one device. All ranks enqueue the same collectives in the same order. A rank's share of a
 * collective is ordered on its stream as any op is, and done when the rank has its result; other ranks may not be.
 *
 * Growth, lifetimes and errors are as abi.h says. Of the calls below, abort may come from any thread at any time.
 */
#ifndef GPUNN_COLLECTIVE_H
#define GPUNN_COLLECTIVE_H

#include <gpunn/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The extension's name, as gpunn_plugin.extension takes it. */
#define GPUNN_EXTENSION_COLLECTIVE "gpunn.collective.v1"

/* The plugin's own object: a group of ranks. */
typedef struct gpunn_communicator gpunn_communicator;

/* Collects `bytes` bytes from each rank into `all`, in the order of the ranks. Waits for all ranks. */
typedef gpunn_status (*gpunn_exchange_fn)(void* context, const void* mine, uint64_t bytes, void* all);

/* The group that a rank joins. */
typedef struct gpunn_communicator_options {
  uint32_t struct_size;
  int32_t rank;               /* 0 to world - 1 */
  int32_t world;              /* 2 or more */
  int32_t local_world;        /* ranks on this machine; equal to world: all of them */
  gpunn_exchange_fn exchange; /* of host memory; valid during create alone */
  void* context;
} gpunn_communicator_options;

/* Values of gpunn_collective_desc.kind. `count` elements are
 *   ALL_REDUCE      what each rank gives and gets: out[i] = the sum of in[i] of all ranks
 *   BROADCAST       the same: out[i] = in[i] of rank `root`
 *   ALL_GATHER      what each rank gives; out has world * count, those of rank 0 first
 *   REDUCE_SCATTER  what each rank gets: out[i] = the sum of in[rank * count + i] of all ranks
 * Every rank has the same bits of an ALL_REDUCE. in and out are equal, or do not overlap; of ALL_GATHER in may also be
 * the rank's place in out, and of REDUCE_SCATTER out the rank's place in in. */
enum { GPUNN_ALL_REDUCE = 1, GPUNN_BROADCAST = 2, GPUNN_ALL_GATHER = 3, GPUNN_REDUCE_SCATTER = 4 };

/* One exchange of `count` elements among all ranks. */
typedef struct gpunn_collective_desc {
  uint32_t struct_size;
  int32_t kind;
  int32_t dtype; /* GPUNN_F32, GPUNN_BF16, GPUNN_F16 or GPUNN_F64; sums of bf16 and f16 may be rounded at each rank */
  int32_t root;  /* of BROADCAST */
  uint64_t count;
  uint32_t flags; /* GPUNN_OP_REQUIRE_DETERMINISTIC */
  uint32_t reserved;
} gpunn_collective_desc;

/* The answer of query. */
typedef struct gpunn_collective_support {
  uint32_t struct_size;
  int32_t score; /* above 0: served */
  /* GPUNN_OP_DETERMINISTIC: equal inputs give equal bits each time, by a sum in the order of the ranks.
   * GPUNN_OP_CAPTURABLE: enqueue may be called between capture_begin and capture_end. */
  uint32_t flags;
  uint32_t reserved;
  char reason[256]; /* where not served: why, for the user */
} gpunn_collective_support;

/* The functions that exchange tensors among ranks. */
typedef struct gpunn_collective_extension {
  uint32_t struct_size;
  uint32_t reserved;

  /* Called by all ranks at the same time. */
  gpunn_status (*create)(gpunn_device* device, const gpunn_communicator_options* options, gpunn_communicator** out,
                         gpunn_error* error);
  /* Cheap, and gives the same answer on all ranks. */
  gpunn_status (*query)(gpunn_communicator* communicator, const gpunn_collective_desc* desc,
                        gpunn_collective_support* support, gpunn_error* error);
  /* Enqueues what query serves. The device memory of this rank stays valid until the work is done. */
  gpunn_status (*enqueue)(gpunn_communicator* communicator, gpunn_stream* stream, const gpunn_collective_desc* desc,
                          const void* in, void* out, gpunn_error* error);
  /* Another rank is lost: work that waits for it ends, with an error or with any result, and enqueue fails from here
   * on. */
  void (*abort)(gpunn_communicator* communicator);
  void (*destroy)(gpunn_communicator* communicator);
} gpunn_collective_extension;

#ifdef __cplusplus
}
#endif

#endif
