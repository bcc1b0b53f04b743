#include "conformance/state/footprint.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>

#include <malloc.h>
#include <unistd.h>

namespace gpunn::conformance {

namespace {

// What memory this process and the device hold.
struct Footprint {
  int64_t heap = 0;    // bytes that were allocated and not given back
  int64_t mapped = 0;  // bytes of address space
  int64_t device = 0;  // bytes in use, by whomever
  int64_t files = 0;   // descriptors that are open
};

int64_t mapped_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

int64_t open_files() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    ++count;
  }
  return count;
}

Footprint footprint_of(execution::Backend& backend) {
  Footprint footprint;
  const struct mallinfo2 heap = mallinfo2();
  footprint.heap = static_cast<int64_t>(heap.uordblks + heap.hblkhd);
  footprint.mapped = mapped_bytes();
  footprint.files = open_files();
  // What a host has in use is that of every program on it.
  if (std::string_view(backend.info().memory_domain) != "host") {
    const uint64_t free = backend.free_bytes();
    if (free > 0) footprint.device = static_cast<int64_t>(backend.info().total_bytes - free);
  }
  return footprint;
}

// What has grown by so much that `times` of something must have left it behind. Empty: nothing.
std::string growth(const Footprint& before, const Footprint& after, int64_t times) {
  struct Kind {
    const char* what;
    int64_t from, to;
    int64_t least;  // what the system may take by itself, however often something was done
  };
  constexpr int64_t kKilobyte = 1024;
  const Kind kinds[] = {{"heap memory", before.heap, after.heap, 4 * kKilobyte},
                        {"address space", before.mapped, after.mapped, 70 * kKilobyte * kKilobyte},
                        {"device memory", before.device, after.device, 8 * kKilobyte * kKilobyte}};
  for (const Kind& kind : kinds) {
    const int64_t grown = kind.to - kind.from;
    if (grown <= kind.least || grown < 8 * times) continue;
    return std::string(kind.what) + " by " + std::to_string(grown / times) + " bytes each time";
  }
  if (after.files - before.files > times / 2) return "files stay open";
  return "";
}

}  // namespace

std::string leak(execution::Backend& backend, int64_t times, const std::function<void()>& something) {
  // A device's memory is also taken by other programs, now and then; a leak takes some each time.
  constexpr int kRounds = 4;
  std::string grown;
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const Footprint before = footprint_of(backend);
    for (int64_t i = 0; i < times; ++i) something();
    backend.synchronize();
    grown = growth(before, footprint_of(backend), times);
    if (grown.empty()) break;
  }
  return grown;
}

}  // namespace gpunn::conformance
