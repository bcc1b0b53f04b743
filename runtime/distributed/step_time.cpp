#include <gpunn/scaling.hpp>

#include <algorithm>
#include <array>
#include <cmath>

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
bool in_one_shot(const PlannedCollective& collective, const Cluster& cluster) {
  return collective.fused && cluster.devices <= cluster.per_machine;
}

}  // namespace

CollectiveTime time_of(const PlannedCollective& collective, const Cluster& cluster) {
  const int devices = cluster.devices;
  if (devices <= 1) return {};
  const int machines = (devices + cluster.per_machine - 1) / cluster.per_machine;
  const auto bytes = static_cast<double>(collective.bytes);
  if (in_one_shot(collective, cluster)) {
    const double sent = bytes * (devices - 1);
    return {cluster.fused_seconds + sent / cluster.inside.bytes_per_second, "one-shot"};
  }
  const bool sum_on_all = collective.op == "ALL_REDUCE";
  CollectiveTime best{.seconds = INFINITY, .algorithm = ""};
  const auto offer = [&](double seconds, const char* algorithm) {
    if (seconds < best.seconds) best = {seconds, algorithm};
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
  if (sum_on_all && machines == 1 && cluster.one_shot_seconds > 0) {
    offer(cluster.one_shot_seconds + (devices - 1) * bytes / cluster.inside.bytes_per_second, "one-shot");
  }
  return best;
}

StepTime estimate_step(const PlannedRanks& ranks, double alone_seconds, const Cluster& cluster) {
  StepTime step;
  double waited = 0;   // by the device so far
  double free_at = 0;  // the links
  double fused = 0;    // the longest of those that run at once
  for (const PlannedCollective& collective : ranks.collectives) {
    const double seconds = time_of(collective, cluster).seconds;
    step.collective_seconds += seconds;
    if (in_one_shot(collective, cluster)) {
      fused = std::max(fused, seconds);
      continue;
    }
    free_at = std::max(free_at, waited + collective.begins_at * alone_seconds) + seconds;
    waited = std::max(waited, free_at - collective.needed_at * alone_seconds);
  }
  step.waiting_seconds = waited + fused;
  step.seconds = alone_seconds + step.waiting_seconds;
  step.efficiency = step.seconds > 0 ? alone_seconds / step.seconds : 1;
  return step;
}

}  // namespace gpunn
