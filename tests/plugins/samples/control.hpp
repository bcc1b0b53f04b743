// How a test steers a sample plugin, and what the plugin tells back: extension("test.control") is a Control.
#pragma once

#include <cstdint>

struct Control {
  // What goes wrong. Names of table members, such as "device_open"; empty: nothing.
  char throw_in[32] = "";  // lets a C++ exception out
  char fail_in[32] = "";   // returns fail_status, with a message if fail_with_message
  int32_t fail_status = 6;
  bool fail_with_message = true;
  char null_in[32] = "";  // says OK and hands back NULL
  bool misaligned_memory = false;
  bool unterminated_texts = false;
  uint64_t alignment = 64;
  uint64_t workspace_bytes = 0;
  uint64_t capacity = 0;  // of device memory, in bytes; 0: no limit, and device_info does not tell what is free
  uint32_t op_flags = 3;
  int32_t delay = 0;  // of op_enqueue, in microseconds
  char memory_domain[96] = "host";
  // For "capturing": the most ops that it fuses (0: none), how many it fuses beyond the ops that it was offered, the
  // flags of its subgraphs, and scratch memory beyond what they need.
  int32_t subgraphs = 0, fuses_beyond = 0;
  // Of the ops that it runs as one, counted from the first one, it leaves these out; -1: none.
  int32_t leaves_out[2] = {-1, -1};
  uint32_t subgraph_flags = 3;
  uint64_t subgraph_workspace = 0;
  bool joins_ranks = false;  // whether its subgraphs may include collectives
  double saves = 0;  // for the plugins in C: seconds that all ops together save, which it then fuses; 0: it fuses none

  // What happened.
  int32_t probes = 0, enqueues = 0, recorded = 0, launches = 0, shutdowns = 0;
  int32_t open_devices = 0, open_streams = 0, open_events = 0, open_kernels = 0, open_graphs = 0, open_buffers = 0;
  int32_t open_subgraphs = 0, subgraph_enqueues = 0, subgraph_queries = 0;
  int32_t ranks = 1;  // that it has joined
  uint64_t used_bytes = 0;
  int32_t host_threads = -1;
  uint32_t last_desc_flags = 0;
  int32_t last_precision = -1;
  int32_t last_kernel = -1;                                  // of the sample "named"
  int32_t wanted_kernels = 0;                                // questions and orders that named a kernel
  const void *last_input = nullptr, *last_output = nullptr;  // of the last enqueue
  int64_t shutdown_time = 0;                                 // steady clock
  int32_t streams = 0;                                       // the most that one capture held
  int32_t epoch = 0;                                         // captures begun
};
