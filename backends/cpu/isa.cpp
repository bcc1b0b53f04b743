#include "isa.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace gpunn::cpu {
namespace {

constexpr int kUndecided = -1;
std::atomic<int> active{kUndecided};

bool machine_runs(Isa isa) {
#if defined(GPUNN_X86_VARIANTS)
  __builtin_cpu_init();
  switch (isa) {
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::baseline:
      break;
  }
#endif
  return isa == Isa::baseline;
}

std::string usable_names() {
  std::string names;
  for (const Isa isa : usable_isas()) names += (names.empty() ? "" : ", ") + isa_name(isa);
  return names;
}

Isa from_environment() {
  // Read once, before any thread of the team is started.
  const char* wish = std::getenv("GPUNN_CPU_ISA");  // NOLINT(concurrency-mt-unsafe)
  const std::vector<Isa> usable = usable_isas();
  if (wish == nullptr || *wish == '\0') return usable.back();
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (isa_name(isa) != wish) continue;
    if (std::find(usable.begin(), usable.end(), isa) != usable.end()) return isa;
    throw plugin::Failure(GPUNN_NO_DEVICE, std::string("GPUNN_CPU_ISA=") + wish +
                                               ": this machine does not run it; it runs " + usable_names());
  }
  throw plugin::Failure(GPUNN_NO_DEVICE, std::string("GPUNN_CPU_ISA=") + wish +
                                             ": no such instruction set; this machine runs " + usable_names());
}

}  // namespace

std::string isa_name(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::baseline:
      break;
  }
  return "baseline";
}

std::vector<Isa> usable_isas() {
  std::vector<Isa> usable;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (machine_runs(isa)) usable.push_back(isa);
  }
  return usable;
}

Isa active_isa() {
  int current = active.load(std::memory_order_relaxed);
  if (current == kUndecided) {
    current = static_cast<int>(from_environment());
    active.store(current, std::memory_order_relaxed);
  }
  return static_cast<Isa>(current);
}

void set_active_isa(Isa isa) {
  if (!machine_runs(isa)) {
    throw plugin::Failure(GPUNN_NO_DEVICE, isa_name(isa) + ": this machine does not run it; it runs " + usable_names());
  }
  active.store(static_cast<int>(isa), std::memory_order_relaxed);
}

}  // namespace gpunn::cpu
