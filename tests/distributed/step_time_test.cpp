#include <gpunn/scaling.hpp>

#include <cmath>
#include <cstdint>
#include <utility>

#include "catch.hpp"

using namespace gpunn;

namespace {

PlannedCollective sum_of(uint64_t bytes, double begins_at = 1, double needed_at = 1) {
  PlannedCollective sum;
  sum.op = "ALL_REDUCE";
  sum.bytes = bytes;
  sum.begins_at = begins_at;
  sum.needed_at = needed_at;
  return sum;
}

bool near(double found, double expected, double share) {
  return std::abs(found - expected) <= share * std::abs(expected);
}

Cluster cluster_of(int devices) {
  Cluster cluster;
  cluster.devices = devices;
  return cluster;
}

Cluster through_memory(int devices) {
  Cluster cluster = cluster_of(devices);
  cluster.one_shot_seconds = 5e-6;
  cluster.copy_seconds = 10e-6;
  return cluster;
}

// All by NCCL, whose kernels cost the work beside them nothing.
Cluster by_nccl(int devices) {
  Cluster cluster = cluster_of(devices);
  cluster.kernel_cost = 0;
  return cluster;
}

}  // namespace

TEST_CASE("sums take what NCCL was measured to take between two H200s, within a tenth") {
  const std::pair<uint64_t, double> measured[] = {
      {8'192, 11e-6}, {247'000, 13e-6}, {4'000'000, 36e-6}, {45'000'000, 184e-6}, {102'000'000, 381e-6}};
  for (const auto& [bytes, seconds] : measured) {
    INFO(bytes);
    CHECK(near(time_of(sum_of(bytes), by_nccl(2)).seconds, seconds, 0.1));
  }
}

TEST_CASE("many devices add up small tensors in trees and large ones in rings, one machine's in one shot") {
  CHECK(time_of(sum_of(8'192), cluster_of(1024)).algorithm == "tree");
  CHECK(time_of(sum_of(uint64_t{1} << 30), cluster_of(8)).algorithm == "ring");
  CHECK(time_of(sum_of(8'192), cluster_of(1)).seconds == 0);
  Cluster machine = through_memory(8);
  CHECK(time_of(sum_of(8'192), machine).algorithm == "one-shot");
  CHECK(time_of(sum_of(8'192), machine).seconds < time_of(sum_of(8'192), by_nccl(8)).seconds);
  machine.devices = 16;
  CHECK(time_of(sum_of(8'192), machine).algorithm != "one-shot");
  // A gather moves half of what an all-reduce does.
  PlannedCollective gather = sum_of(1 << 30);
  gather.op = "ALL_GATHER";
  const double sum = time_of(sum_of(1 << 30), cluster_of(8)).seconds;
  CHECK(near(time_of(gather, cluster_of(8)).seconds, sum / 2, 0.01));
}

TEST_CASE("a step waits for the part of its sums that nothing runs beside") {
  const Cluster two = by_nccl(2);
  const double early = time_of(sum_of(45'000'000), two).seconds;
  // The first has half of a step of 10 ms to run in; the second begins at its end.
  PlannedRanks ranks;
  ranks.devices = 2;
  ranks.collectives = {sum_of(45'000'000, 0.5), sum_of(8'192, 1)};
  const double late = time_of(ranks.collectives[1], two).seconds;
  StepTime step = estimate_step(ranks, 10e-3, two);
  CHECK(near(step.seconds, 10e-3 + late, 1e-9));
  CHECK(near(step.collective_seconds, early + late, 1e-9));
  CHECK(near(step.efficiency, 10e-3 / step.seconds, 1e-9));
  // Of a step of 100 us, which leaves it 50.
  step = estimate_step(ranks, 100e-6, two);
  CHECK(near(step.waiting_seconds, early + late - 50e-6, 1e-9));
  // What is needed in the midst of the step delays all that comes behind.
  ranks.collectives = {sum_of(8'192, 0.2, 0.2), sum_of(8'192, 0.4, 0.4)};
  CHECK(near(estimate_step(ranks, 100e-6, two).waiting_seconds, 2 * late, 1e-9));
}

TEST_CASE("sums cost the work beside them multiprocessors or memory traffic") {
  const Cluster copies = through_memory(2);
  Cluster kernels = by_nccl(2);
  kernels.kernel_cost = 1;
  PlannedRanks ranks;
  ranks.devices = 2;
  ranks.collectives = {sum_of(45'000'000, 0.2)};
  // It ends long before the step does.
  const CollectiveTime copied = time_of(ranks.collectives[0], copies);
  CHECK(copied.algorithm == "copy");
  CHECK(near(copied.cost_of_work, 5 * 45e6 / copies.memory_bytes_per_second, 1e-9));
  CHECK(near(estimate_step(ranks, 10e-3, copies).waiting_seconds, copied.cost_of_work, 1e-9));
  const double summed = time_of(ranks.collectives[0], kernels).seconds;
  CHECK(near(estimate_step(ranks, 10e-3, kernels).waiting_seconds, summed, 1e-9));
  CHECK(copied.cost_of_work < summed);
  // With nothing beside it there is nothing to slow down.
  ranks.collectives = {sum_of(45'000'000, 1)};
  CHECK(near(estimate_step(ranks, 10e-3, kernels).waiting_seconds, summed, 1e-9));
  CHECK(time_of(ranks.collectives[0], through_memory(4)).algorithm == "ring");
}

TEST_CASE("sums within a fused step run at once, at its end, on GPUs of one machine") {
  PlannedRanks ranks;
  ranks.devices = 2;
  ranks.collectives = {sum_of(4), sum_of(247'000)};
  for (PlannedCollective& sum : ranks.collectives) sum.fused = true;
  const Cluster two = cluster_of(2);
  CHECK(time_of(ranks.collectives[1], two).algorithm == "one-shot");
  const StepTime step = estimate_step(ranks, 34e-6, two);
  CHECK(near(step.waiting_seconds, time_of(ranks.collectives[1], two).seconds, 1e-9));
  CHECK(step.waiting_seconds > two.fused_seconds);
  CHECK(step.efficiency > 0.8);
  // Eight devices send seven times as much.
  CHECK(estimate_step(ranks, 34e-6, cluster_of(8)).waiting_seconds > 2 * step.waiting_seconds);
  CHECK(time_of(ranks.collectives[1], cluster_of(16)).algorithm != "one-shot");
}
