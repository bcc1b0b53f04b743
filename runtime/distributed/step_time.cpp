#include <gpunn/scaling.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace gpunn {

namespace {

// What a message meets on its way, by one of two protocols.
struct Way {
  double start, inside_hop, between_hop, inside_bytes, between_bytes;
};

std::array<Way, 2> ways_of(const Cluster& c) {
  return {
      Way{c.start_seconds, c.inside.hop_seconds, c.between.hop_seconds, c.inside.bytes_per_second,
          c.between.bytes_per_second},
      Way{c.small_start_seconds, c.inside.hop_seconds * c.small_hop_share, c.between.hop_seconds * c.small_hop_share,
          c.inside.bytes_per_second * c.small_bandwidth_share, c.between.bytes_per_second * c.small_bandwidth_share}};
}

// GPUs of one machine reach each other's memory, others don't.
bool in_fused_subgraph(const PlannedCollective& collective, const Cluster& cluster) {
  return collective.fused && cluster.devices <= cluster.per_machine;
}

// Of an all-reduce through the memory of a machine's devices, if it goes that way.
std::optional<CollectiveTime> time_through_memory(const PlannedCollective& collective, const Cluster& cluster) {
  const int devices = cluster.devices;
  if (collective.op != "ALL_REDUCE" || devices > cluster.per_machine) return std::nullopt;
  const auto bytes = static_cast<double>(collective.bytes);
  if (collective.bytes <= cluster.one_shot_bytes && cluster.one_shot_seconds > 0) {
    const double sent = 2 * bytes * (devices - 1);
    return CollectiveTime{cluster.one_shot_seconds + sent / cluster.inside.bytes_per_second, "one-shot", 0};
  }
  if (devices != 2 || cluster.copy_seconds == 0) return std::nullopt;
  // Read for the other device and written by it; then both parts are read, and the sum is written.
  const double copied = 2 * bytes / cluster.memory_bytes_per_second;
  const double added = 3 * bytes / cluster.memory_bytes_per_second;
  const double seconds = cluster.copy_seconds + bytes / cluster.inside.bytes_per_second + added;
  return CollectiveTime{seconds, "copy", copied + added};
}

}  // namespace

CollectiveTime time_of(const PlannedCollective& collective, const Cluster& cluster) {
  const int devices = cluster.devices;
  if (devices <= 1) return {};
  const int machines = (devices + cluster.per_machine - 1) / cluster.per_machine;
  const auto bytes = static_cast<double>(collective.bytes);
  if (in_fused_subgraph(collective, cluster)) {
    const double sent = bytes * (devices - 1);
    return {cluster.fused_seconds + sent / cluster.inside.bytes_per_second, "one-shot", 0};
  }
  if (const auto found = time_through_memory(collective, cluster)) return *found;
  const bool sum_on_all = collective.op == "ALL_REDUCE";
  CollectiveTime best{.seconds = INFINITY, .algorithm = "", .cost_of_work = 0};
  const auto offer = [&](double seconds, const char* algorithm) {
    if (seconds < best.seconds) best = {seconds, algorithm, cluster.kernel_cost * seconds};
  };
  for (const Way& way : ways_of(cluster)) {
    const double slowest = machines > 1 ? std::min(way.inside_bytes, way.between_bytes) : way.inside_bytes;
    // Once around: to all devices but one, over one link out of each machine.
    const double around = (devices - 1 - (machines - 1)) * way.inside_hop + (machines - 1) * way.between_hop;
    const double moved = bytes * (devices - 1) / devices / slowest;
    offer(way.start + (sum_on_all ? 2 : 1) * (around + moved), "ring");
    if (!sum_on_all) continue;
    const double up = std::ceil(std::log2(std::min(devices, cluster.per_machine))) * way.inside_hop +
                      std::ceil(std::log2(machines)) * way.between_hop;
    offer(way.start + 2 * (up + bytes / slowest), "tree");
  }
  return best;
}

StepTime estimate_step(const PlannedRanks& ranks, double alone_seconds, const Cluster& cluster) {
  StepTime step;
  double lost = 0;     // by the device so far, in which it waited or its work was slowed down
  double free_at = 0;  // the links
  double fused = 0;    // the longest of those that run at once
  for (const PlannedCollective& collective : ranks.collectives) {
    const CollectiveTime time = time_of(collective, cluster);
    step.collective_seconds += time.seconds;
    if (in_fused_subgraph(collective, cluster)) {
      fused = std::max(fused, time.seconds);
      continue;
    }
    const double begin = std::max(free_at, lost + collective.begins_at * alone_seconds);
    const double beside = lost + collective.needed_at * alone_seconds - begin;  // work that does not need it
    if (beside > 0) lost += time.cost_of_work * std::min(1.0, beside / time.seconds);
    free_at = begin + time.seconds;
    lost = std::max(lost, free_at - collective.needed_at * alone_seconds);
  }
  step.waiting_seconds = lost + fused;
  step.seconds = alone_seconds + step.waiting_seconds;
  step.efficiency = step.seconds > 0 ? alone_seconds / step.seconds : 1;
  return step;
}

}  // namespace gpunn
