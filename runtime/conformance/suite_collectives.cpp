#include <gpunn/error.hpp>
#include <gpunn/ordered_sum.hpp>
#include <gpunn/tensor_type.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "conformance/collectives/ranks.hpp"
#include "conformance/suites.hpp"
#include "ops/values.hpp"

namespace gpunn::conformance {

namespace {

struct Kind {
  int32_t id;
  const char* name;
  bool sums;
};
constexpr Kind kKinds[] = {{GPUNN_ALL_REDUCE, "ALL_REDUCE", true},
                           {GPUNN_BROADCAST, "BROADCAST", false},
                           {GPUNN_ALL_GATHER, "ALL_GATHER", false},
                           {GPUNN_REDUCE_SCATTER, "REDUCE_SCATTER", true}};
constexpr DType kSummed[] = {DType::f32, DType::f64, DType::bf16, DType::f16};
// About a plugin's own pieces: one, less than a cache line, odd, more than a megabyte.
constexpr std::size_t kCounts[] = {0, 1, 7, 1031, 300'011};

// Element i of what a rank gives: of both signs, exact in every dtype.
double given(int rank, std::size_t i) {
  return (static_cast<double>((i * 37 + static_cast<std::size_t>(rank) * 101) % 251) - 125) / 64;
}

std::vector<std::byte> encoded(DType dtype, const std::vector<double>& values) {
  return ops::encode({{dtype, {std::ssize(values)}}, values});
}

// A sum of `world` numbers may be rounded as often.
double unit_of(DType dtype) {
  return dtype == DType::f64 ? 0x1p-53 : dtype == DType::f32 ? 0x1p-24 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
}

struct Collective {
  Kind kind = kKinds[0];
  int world = 0, root = 0;
  DType dtype = DType::f32;
  std::size_t count = 0;

  std::size_t in_count() const {
    return kind.id == GPUNN_REDUCE_SCATTER ? count * static_cast<std::size_t>(world) : count;
  }
  std::size_t out_count() const {
    return kind.id == GPUNN_ALL_GATHER ? count * static_cast<std::size_t>(world) : count;
  }
  std::vector<double> input(int rank) const {
    std::vector<double> values(in_count());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = given(rank, i);
    return values;
  }
  double expected(int rank, std::size_t i) const {
    if (kind.id == GPUNN_BROADCAST) return given(root, i);
    if (kind.id == GPUNN_ALL_GATHER) return given(static_cast<int>(i / count), i % count);
    const std::size_t at = kind.id == GPUNN_REDUCE_SCATTER ? static_cast<std::size_t>(rank) * count + i : i;
    double sum = 0;
    for (int r = 0; r < world; ++r) sum += given(r, at);
    return sum;
  }
  std::string text() const {
    return std::string(kind.name) + " of " + std::to_string(count) + " " + std::string(name_of(dtype)) + " on " +
           std::to_string(world) + " ranks";
  }
};

void require_right(const Collective& c, int rank, const std::vector<std::byte>& bytes) {
  const std::vector<double> found =
      ops::decode({c.dtype, {static_cast<int64_t>(bytes.size() / size_of(c.dtype))}}, bytes).values;
  const double bound = c.kind.sums ? 2.0 * c.world * c.world * unit_of(c.dtype) : 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = c.expected(rank, i);
    if (std::abs(found[i] - expected) <= bound) continue;
    throw Error(c.text() + ": element " + std::to_string(i) + ": expected " + std::to_string(expected) + ", found " +
                std::to_string(found[i]));
  }
}

// Everything of one kind on so many ranks. Empty: it is right; else why it could not be run.
std::string run_kind(const PluginPointer& plugin, const Kind& kind, int world) {
  const gpunn_collective_extension* const table = collectives_of(*plugin);
  if (table == nullptr) return "the plugin has no extension " GPUNN_EXTENSION_COLLECTIVE "; the host does its work";
  std::mutex mutex;
  std::map<std::string, std::set<std::string>> results;  // of an ALL_REDUCE: those of the ranks that differ
  std::string unserved;
  const bool enough = on_ranks(plugin, *table, world, [&](CollectiveRank& own) {
    for (const DType dtype : kSummed) {
      for (const std::size_t count : kCounts) {
        Collective c{.kind = kind, .world = world, .root = world - 1, .dtype = dtype, .count = count};
        const gpunn_collective_desc desc{.struct_size = sizeof(desc),
                                         .kind = kind.id,
                                         .dtype = static_cast<int32_t>(dtype),
                                         .root = c.root,
                                         .count = count,
                                         .flags = 0,
                                         .reserved = 0};
        const gpunn_collective_support support = own.query(desc);
        if (support.score <= 0) {
          const std::lock_guard lock(mutex);
          unserved = c.text() + ": " + support.reason;
          continue;
        }
        const std::vector<std::byte> in = encoded(dtype, c.input(own.rank()));
        const std::size_t out_bytes = c.out_count() * size_of(dtype);
        const std::vector<std::byte> out = own.run(desc, in, out_bytes, false);
        require_right(c, own.rank(), out);
        const std::vector<std::byte> again = own.run(desc, in, out_bytes, true);
        require_right(c, own.rank(), again);
        if ((support.flags & GPUNN_OP_DETERMINISTIC) != 0 && again != out) {
          throw Error(c.text() + ": says that it is deterministic, and gave other bits the second time, in place");
        }
        if (kind.id != GPUNN_ALL_REDUCE) continue;
        const std::lock_guard lock(mutex);
        results[c.text()].emplace(reinterpret_cast<const char*>(out.data()), out.size());
      }
    }
  });
  if (!enough) return "there are fewer devices than ranks";
  for (const auto& [name, different] : results) {
    if (different.size() > 1) throw Error(name + ": the ranks have different bits");
  }
  return unserved;
}

// A rank that never comes: the others end when they are told, and enqueue nothing more. Their devices can still be
// used, although the rank has destroyed its communicator while they wait for it.
std::string run_abort(const PluginPointer& plugin, int world) {
  const gpunn_collective_extension* const table = collectives_of(*plugin);
  if (table == nullptr) return "the plugin has no extension " GPUNN_EXTENSION_COLLECTIVE "; the host does its work";
  const bool enough = on_ranks(plugin, *table, world, [&](CollectiveRank& own) {
    if (own.rank() == 0) return;
    const Collective c{.kind = kKinds[0], .world = world, .dtype = DType::f32, .count = 1000};
    const gpunn_collective_desc desc{.struct_size = sizeof(desc),
                                     .kind = GPUNN_ALL_REDUCE,
                                     .dtype = GPUNN_F32,
                                     .root = 0,
                                     .count = c.count,
                                     .flags = 0,
                                     .reserved = 0};
    std::thread lost([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      own.abort();
    });
    const auto ends_well = [&] {
      try {
        own.run(desc, encoded(c.dtype, c.input(own.rank())), c.count * sizeof(float), false);
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    ends_well();
    lost.join();
    if (ends_well()) throw Error("a sum that a rank takes no part in ended without an error after abort");
    try {
      own.require_device();
    } catch (const Error& error) {
      throw Error(std::string("the device can't be used after abort: ") + error.what());
    }
  });
  return enough ? "" : "there are fewer devices than ranks";
}

void add(Checks& checks, const char* op, const std::string& name,
         const std::function<std::string(const PluginPointer&)>& run) {
  checks.push_back(make_check("collectives", op, name));
  checks.back().labels.optional = true;  // a plugin need not have them
  checks.back().run = [run](Workbench& bench, CheckCase& result, const Note&) {
    result.detail = run(bench.bottom());
    if (!result.detail.empty()) result.verdict = Verdict::unsupported;
  };
}

}  // namespace

Checks collectives_suite(const CheckOptions&) {
  Checks checks;
  for (const int world : {2, 3, 4}) {
    const std::string ranks = std::to_string(world) + " ranks";
    for (const Kind& kind : kKinds) {
      add(checks, kind.name, ranks,
          [kind, world](const PluginPointer& plugin) { return run_kind(plugin, kind, world); });
    }
    add(checks, "abort", ranks, [world](const PluginPointer& plugin) { return run_abort(plugin, world); });
  }
  return checks;
}

}  // namespace gpunn::conformance
