#pragma once

#include <gpunn/export.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gpunn {

// The unit of the numbers in a progress report.
enum class WorkUnit { items, bytes };

// Progress of a long piece of work: a download, a folder of images being decoded, kernels being prepared.
struct WorkReport {
  uint64_t id = 0;     // tells two pieces of work apart
  std::string what;    // "preparing kernels"
  std::string detail;  // current item: "CONV2D 'conv1'"; empty: none
  WorkUnit unit = WorkUnit::items;
  uint64_t done = 0;
  uint64_t total = 0;  // 0: unknown
  double seconds = 0;  // since it began
};

// All long work of this process, oldest first. Work that is part of other work follows it. A display calls this again
// and again; the work itself never prints.
GPUNN_API std::vector<WorkReport> long_work();

// Calls `ended` with the id of each piece of work that has ended, on the thread that did it, after long_work() has
// dropped it. A display then removes its line. An empty function stops the calls: none is made after this returns.
// Child processes do not call it.
GPUNN_API void when_work_ends(std::function<void(uint64_t id)> ended);

// A piece of work that may take long; long_work() lists it while it lives. Any thread may advance it, for each image or
// op: this never waits for a display.
class GPUNN_API LongWork {
 public:
  explicit LongWork(std::string what, uint64_t total = 0, WorkUnit unit = WorkUnit::items);
  ~LongWork();
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

  void advance(uint64_t by = 1) { done_.fetch_add(by, std::memory_order_relaxed); }
  void reach(uint64_t done) { done_.store(done, std::memory_order_relaxed); }
  void expect(uint64_t total) { total_.store(total, std::memory_order_relaxed); }
  void tell(std::string detail);

 private:
  friend std::vector<WorkReport> long_work();

  const uint64_t id_;
  const std::string what_;
  const WorkUnit unit_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<uint64_t> done_{0}, total_;
  std::string detail_;  // guarded by the mutex of the list
};

}  // namespace gpunn
