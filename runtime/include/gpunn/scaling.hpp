// What a training on several devices costs: what passes between them, and how long a step takes by the speed of links.
#pragma once

#include <gpunn/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gpunn {

// A collective of a step program.
struct PlannedCollective {
  std::string op;            // "ALL_REDUCE", "REDUCE_SCATTER" or "ALL_GATHER"
  std::string name;          // "gradients", "loss.mean", a batch norm
  int64_t index = 0;         // into PlanReport.ops
  int64_t starts_after = 0;  // the op behind which it can begin, likewise; -1: at once
  uint64_t bytes = 0;        // of the whole that is added up or gathered
  uint64_t sent_bytes = 0;   // by each device, over a ring
  // Of the step's work, estimated by op, the share that is done where it begins and where it is needed: 0 to 1.
  double begins_at = 0, needed_at = 1;
};

// One device of several that train together.
struct PlannedRanks {
  int devices = 1;
  int64_t rows = 0;  // of a batch, that the first device takes
  std::vector<PlannedCollective> collectives;
  uint64_t sent_bytes = 0;  // by each device in a step
};

// The speed of a link between two devices.
struct LinkSpeed {
  double bytes_per_second = 0;  // each way
  double hop_seconds = 0;       // until the first byte of a message is there
};

// Devices in machines of `per_machine`. The numbers that are not changed are those of H200s with NVLink and a network
// of 400 Gbit/s a device: what NCCL takes in a captured graph was measured, hops are those of NCCL's own model
// (src/graph/tuning.cc).
struct Cluster {
  int devices = 2;
  int per_machine = 8;
  LinkSpeed inside{.bytes_per_second = 290e9, .hop_seconds = 3.4e-6};
  LinkSpeed between{.bytes_per_second = 48e9, .hop_seconds = 14e-6};
  double start_seconds = 18e-6;  // of a collective that makes full use of the links
  // Small messages carry a flag with each word: they begin sooner, and use less than half of a link.
  double small_start_seconds = 9.8e-6;
  double small_hop_share = 0.18;
  double small_bandwidth_share = 0.42;
  // A kernel that reads the memory of all peers at once, within a machine; 0: there is none.
  double one_shot_seconds = 0;
};

// The estimated time of a collective.
struct CollectiveTime {
  double seconds = 0;
  std::string algorithm;  // "ring", "tree" or "one-shot", the fastest
};

// Estimates an all-reduce by the usual models (Thakur, Rabenseifner and Gropp, 2005; Sanders, Speck and Träff, 2009,
// for two trees at once). Half of it, and no tree, for a reduce-scatter or an all-gather.
GPUNN_API CollectiveTime time_of(const PlannedCollective& collective, const Cluster& cluster);

// The estimated time of a step on several devices.
struct StepTime {
  double seconds = 0;
  double collective_seconds = 0;  // of all collectives, one behind the other
  double waiting_seconds = 0;     // that the device waits for them
  double efficiency = 1;          // the rate by that of as many devices that need not wait
};

// Estimates a step that takes `alone_seconds` on one device with the rows of one of them. Collectives run one behind
// the other, beside the work that does not need them.
GPUNN_API StepTime estimate_step(const PlannedRanks& ranks, double alone_seconds, const Cluster& cluster);

}  // namespace gpunn
