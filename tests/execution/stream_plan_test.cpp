#include "execution/streams/stream_plan.hpp"

#include <gpunn/random.h>

#include <set>

#include "catch.hpp"

using gpunn::execution::MemoryAccess;
using gpunn::execution::MemoryRange;
using gpunn::execution::plan_streams;
using gpunn::execution::StreamStep;

namespace {

MemoryAccess op(std::vector<MemoryRange> reads, std::vector<MemoryRange> writes) {
  return {std::move(reads), std::move(writes)};
}

// For each op the ops that are done when it begins: earlier ops of its stream, the ops it waits for, and their own.
std::vector<std::set<std::size_t>> finished_before(const std::vector<StreamStep>& steps) {
  std::vector<std::set<std::size_t>> before(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<std::size_t> direct = steps[i].after;
    for (std::size_t j = i; j-- > 0;) {
      if (steps[j].stream != steps[i].stream) continue;
      direct.push_back(j);
      break;
    }
    for (const std::size_t j : direct) {
      REQUIRE(j < i);
      before[i].insert(j);
      before[i].insert(before[j].begin(), before[j].end());
    }
  }
  return before;
}

bool touch(const std::vector<MemoryRange>& a, const std::vector<MemoryRange>& b) {
  for (const auto& x : a) {
    for (const auto& y : b) {
      for (uintptr_t byte = x.begin; byte < x.end; ++byte) {
        if (byte >= y.begin && byte < y.end) return true;
      }
    }
  }
  return false;
}

}  // namespace

TEST_CASE("ops that share no memory run beside each other", "[streams]") {
  // An op, two that read its output, and a last op that reads both of theirs.
  const std::vector<MemoryAccess> ops{op({}, {{0, 4}}), op({{0, 4}}, {{4, 8}}), op({{0, 4}}, {{8, 12}}),
                                      op({{4, 8}, {8, 12}}, {{12, 16}})};
  const std::vector<StreamStep> steps = plan_streams(ops, 2);
  CHECK(steps[0].stream == steps[1].stream);
  CHECK(steps[2].stream != steps[1].stream);
  CHECK(steps[2].after == std::vector<std::size_t>{0});
  CHECK(steps[3].after.size() == 1);
}

TEST_CASE("a single stream keeps the given order", "[streams]") {
  const std::vector<MemoryAccess> ops{op({}, {{0, 4}}), op({}, {{4, 8}}), op({{0, 8}}, {{8, 12}})};
  for (const StreamStep& step : plan_streams(ops, 1)) {
    CHECK(step.stream == 0);
    CHECK(step.after.empty());
  }
}

TEST_CASE("an op that must not move stays on the first stream", "[streams]") {
  std::vector<MemoryAccess> ops(6, op({}, {}));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].writes = {{i * 4, i * 4 + 4}};
    if (i % 2 == 1) ops[i].where = MemoryAccess::Where::first;
  }
  const std::vector<StreamStep> steps = plan_streams(ops, 4);
  for (std::size_t i = 1; i < ops.size(); i += 2) CHECK(steps[i].stream == 0);
}

TEST_CASE("a sum over the ranks runs beside what does not need it", "[streams]") {
  // Two gradients, one behind the other, and the sum of each as they are in a step: behind both. An update follows.
  std::vector<MemoryAccess> ops{op({{0, 4}}, {{4, 8}}), op({{4, 8}}, {{8, 12}}), op({{4, 8}}, {{4, 8}}),
                                op({{8, 12}}, {{8, 12}}), op({{4, 12}}, {{0, 4}})};
  ops[2].where = ops[3].where = MemoryAccess::Where::between_ranks;
  for (const std::size_t streams : {1, 4}) {
    const std::vector<StreamStep> steps = plan_streams(ops, streams);
    CHECK(steps[0].stream == 0);
    CHECK(steps[1].stream == 0);
    CHECK(steps[2].stream == streams);
    CHECK(steps[3].stream == streams);
    CHECK(steps[3].after == std::vector<std::size_t>{1});
    CHECK(steps[4].stream < streams);
    CHECK(steps[4].after == std::vector<std::size_t>{3, 2});
  }
  // The first gradient is read by the op that makes the second: only what comes behind may overwrite it.
  CHECK(plan_streams(ops, 4)[2].after == std::vector<std::size_t>{1});
  ops[1].reads.clear();
  CHECK(plan_streams(ops, 4)[2].after == std::vector<std::size_t>{0});
}

TEST_CASE("ops that write the same bytes keep their order", "[streams]") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    uint64_t drawn = 0;
    const auto below = [&](uint32_t n) { return gpunn_philox(seed, 0, drawn++).word[0] % n; };
    std::vector<MemoryAccess> ops;
    const auto ranges = [&](uint32_t most) {
      std::vector<MemoryRange> result;
      for (uint32_t i = below(most + 1); i > 0; --i) {
        const uintptr_t begin = below(60);
        result.push_back({begin, begin + below(6)});
      }
      return result;
    };
    for (int i = 0; i < 50; ++i) {
      ops.push_back({ranges(3), ranges(2)});
      const uint32_t drawn_where = below(8);
      if (drawn_where == 0) ops.back().where = MemoryAccess::Where::first;
      if (drawn_where == 1) ops.back().where = MemoryAccess::Where::between_ranks;
    }
    const std::size_t streams = 1 + below(5);
    const std::vector<StreamStep> steps = plan_streams(ops, streams);
    REQUIRE(steps.size() == ops.size());
    const auto before = finished_before(steps);
    for (std::size_t later = 0; later < ops.size(); ++later) {
      const bool between_ranks = ops[later].where == MemoryAccess::Where::between_ranks;
      CHECK(between_ranks == (steps[later].stream == streams));
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        const bool conflict = touch(ops[earlier].writes, ops[later].reads) ||
                              touch(ops[earlier].writes, ops[later].writes) ||
                              touch(ops[earlier].reads, ops[later].writes);
        if (conflict) CHECK(before[later].contains(earlier));
      }
    }
  }
}
