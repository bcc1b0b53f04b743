// The cost of training on several devices: the bytes they exchange, and the time of a step at a given link speed.
#pragma once

#include <gpunn/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gpunn {

// A collective of a step program.
struct PlannedCollective {
  std::string op;            // "ALL_REDUCE", "REDUCE_SCATTER" or "ALL_GATHER"
  std::string name;          // "gradients", "loss.mean", or a batch norm's name
  int64_t index = 0;         // into PlanReport.ops
  int64_t starts_after = 0;  // index of the op after which it can begin; -1: at once
  uint64_t bytes = 0;        // of the whole tensor that is summed or gathered
  uint64_t sent_bytes = 0;   // by each device, over a ring; in one shot, to each of the others
  // Whether a fused subgraph exchanges it, in one shot.
  bool fused = false;
  // Shares of the step's estimated work, 0 to 1: done before the collective can begin, and before its result is needed.
  double begins_at = 0, needed_at = 1;
};

// One device of several that train together.
struct PlannedRanks {
  int devices = 1;
  int64_t rows = 0;  // rows of a batch on the first device
  std::vector<PlannedCollective> collectives;
  uint64_t sent_bytes = 0;  // by each device in a step
};

// The speed of a link between two devices.
struct LinkSpeed {
  double bytes_per_second = 0;  // in each direction
  double hop_seconds = 0;       // latency: until the first byte of a message arrives
};

// Devices in machines of `per_machine`. The defaults describe H200s with NVLink and a network of 400 Gbit/s for each
// device. NCCL's times in a captured graph were measured; latencies are those of NCCL's own model
// (src/graph/tuning.cc).
struct Cluster {
  int devices = 2;
  int per_machine = 8;
  LinkSpeed inside{.bytes_per_second = 290e9, .hop_seconds = 3.4e-6};
  LinkSpeed between{.bytes_per_second = 48e9, .hop_seconds = 14e-6};
  double start_seconds = 18e-6;  // of a collective that uses the links fully
  // Small messages carry a flag with each word: they begin sooner, and use less than half of a link.
  double small_start_seconds = 9.8e-6;
  double small_hop_share = 0.18;
  double small_bandwidth_share = 0.42;
  // NCCL's kernels take multiprocessors, and kernels beside them whose blocks fill the device once then run twice as
  // long: seconds that the work beside a collective loses by each second of it.
  double kernel_cost = 1;
  // All-reduces through the memory of a machine's GPUs. Up to `one_shot_bytes`, each device writes words of twice the
  // size to the others; 0: none. Larger ones are copied between two devices by copy engines and then added: what is
  // read and written for that the work beside them lacks.
  double one_shot_seconds = 0;
  uint64_t one_shot_bytes = uint64_t{1} << 20;
  double copy_seconds = 0;  // of launches and waits; 0: none
  double memory_bytes_per_second = 3e12;
  // What a fused subgraph waits for the first word of a peer.
  double fused_seconds = 2.5e-6;
};

// The estimated time of a collective.
struct CollectiveTime {
  double seconds = 0;
  std::string algorithm;    // "ring", "tree", "one-shot" or "copy"
  double cost_of_work = 0;  // seconds that the work beside it loses at most
};

// Estimates an all-reduce by the usual models (Thakur, Rabenseifner and Gropp, 2005; Sanders, Speck and Träff, 2009,
// for two trees at once). A reduce-scatter or an all-gather takes half of it, and no tree.
GPUNN_API CollectiveTime time_of(const PlannedCollective& collective, const Cluster& cluster);

// The estimated time of a step on several devices.
struct StepTime {
  double seconds = 0;
  double collective_seconds = 0;  // of all collectives, one after another
  double waiting_seconds = 0;     // that the device waits for them or loses by them
  double efficiency = 1;          // training rate over that of devices that never wait
};

// Estimates a step that takes `alone_seconds` on one device with that device's rows. Collectives run one after another,
// beside the work that does not need them, which they slow down; those of a fused subgraph run at once, at its end.
GPUNN_API StepTime estimate_step(const PlannedRanks& ranks, double alone_seconds, const Cluster& cluster);

}  // namespace gpunn
