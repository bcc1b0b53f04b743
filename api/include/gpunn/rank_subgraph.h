/*
 * The extension for fused subgraphs that span collectives: a plugin exchanges data between ranks inside a subgraph.
 *
 * A plugin has the extension if `extension(GPUNN_EXTENSION_RANK_SUBGRAPH)` returns a gpunn_rank_subgraph_extension.
 * Without it, or before `join`, its subgraphs leave ALL_REDUCE, REDUCE_SCATTER and ALL_GATHER to the host.
 *
 * Each rank is a process with one device (collective.h). All ranks query and create the same subgraphs in the same
 * order, and run them equally often.
 *
 * Growth, lifetimes and errors are as abi.h says. Of the calls below, abort may come from any thread at any time.
 */
#ifndef GPUNN_RANK_SUBGRAPH_H
#define GPUNN_RANK_SUBGRAPH_H

#include <gpunn/collective.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The extension's name, as gpunn_plugin.extension takes it. */
#define GPUNN_EXTENSION_RANK_SUBGRAPH "gpunn.rank_subgraph.v1"

/* The functions that make ranks known to a device. */
typedef struct gpunn_rank_subgraph_extension {
  uint32_t struct_size;
  uint32_t reserved;

  /* Called by all ranks at the same time, before any subgraph is queried. From here on a subgraph may have an
   * ALL_REDUCE of as many parts as there are ranks among its ops. It gives every rank the same bits, added in the order
   * of the ranks where the step program requires GPUNN_OP_DETERMINISTIC.
   *
   * `exchange` stays valid until leave. The plugin calls it here and when it creates a subgraph, alike on all ranks.
   * exchange is NULL where a step is planned and not run: then subgraphs are queried and created, and not enqueued.
   *
   * A plugin that can't exchange data between these ranks fails with GPUNN_UNSUPPORTED. If one rank fails, the host
   * calls leave on the others. */
  gpunn_status (*join)(gpunn_device* device, const gpunn_communicator_options* options, gpunn_error* error);
  /* Another rank is lost: work that waits for it ends, with any result, and nothing more is enqueued. */
  void (*abort)(gpunn_device* device);
  /* There are no subgraphs left, and no other ranks from here on. */
  void (*leave)(gpunn_device* device);
} gpunn_rank_subgraph_extension;

#ifdef __cplusplus
}
#endif

#endif
