// The threads that share the loops of a process. parallel.hpp is what kernels use.
//
// A loop lies in a slot. Its tasks are divided into shares, one for each place of the loop: the caller has
// place 0, the worker w has place w. A thread that has finished its own share takes tasks of others. So a
// thread works on the same part of a tensor from loop to loop, whose values its cache has, and a thread that
// the system stopped holds up one task. The caller can do all of the work: workers that come late find no
// task left.
//
// Idle threads spin for a while, since a thread that sleeps takes several microseconds to wake, and then sleep. They
// sleep at once if other programs want the processors.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

namespace gpunn::cpu {

class ThreadTeam {
 public:
  using Body = void (*)(const void* context, int64_t task, int thread);

  static constexpr int kMostThreads = 1024;

  // The team of this process, which lives as long as the process. A child of fork() has a team of its own.
  static ThreadTeam& of_process();

  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Calls body(context, task, thread) for each task in [0, tasks), thread in [0, threads); two calls at the same time
  // have different threads. Any number of threads may call run() at the same time, and a body may.
  void run(int threads, int64_t tasks, Body body, const void* context);

  // Worker threads that were started.
  int workers() const { return workers_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr std::size_t kLine = 64;
  static constexpr int kSlots = 16;  // loops at the same time; the callers of more run theirs alone

  struct Loop {
    uint64_t sequence = 0;
    Body body = nullptr;
    const void* context = nullptr;
    int64_t first = 0;  // the number of task 0
    int64_t tasks = 0;
    int places = 0;

    int64_t share_begin(int place) const { return tasks * place / places; }
  };

  // The next task of a share, with the loop's sequence number above it.
  struct alignas(kLine) Share {
    std::atomic<uint64_t> next{0};
  };

  struct Slot {
    // Odd while a loop is open. Workers read the loop's members between two looks at the number; if both are the same
    // and odd, the members belong together.
    alignas(kLine) std::atomic<uint64_t> sequence{0};
    std::atomic<Body> body{nullptr};
    std::atomic<const void*> context{nullptr};
    std::atomic<int64_t> first{0};
    std::atomic<int64_t> tasks{0};
    std::atomic<int> places{0};
    alignas(kLine) std::atomic<uint32_t> unfinished{0};  // tasks
    std::atomic<bool> caller_sleeps{false};
    alignas(kLine) std::atomic<bool> taken{false};
    std::array<Share, kMostThreads> shares;
  };

  struct alignas(kLine) Worker {
    std::atomic<uint32_t> sleeps{0};
  };

  ThreadTeam();

  Slot* take_slot();
  void start_workers(int count);
  void run_loop(Slot& slot, const Loop& loop);
  void wait_for(Slot& slot);

  // A worker's life. `place` is the number of the worker, from 1.
  void work(int place);
  bool join_any(int place, std::array<uint64_t, kSlots>& seen);
  bool any_open(int place, const std::array<uint64_t, kSlots>& seen) const;
  void sleep(int place, const std::array<uint64_t, kSlots>& seen);

  void wake_next(int place, int places);
  static bool open_loop(const Slot& slot, Loop& loop);
  static int64_t take_task(Slot& slot, const Loop& loop, int share);
  static uint32_t run_tasks(Slot& slot, const Loop& loop, int share, int place);
  static void finish(Slot& slot, uint32_t tasks);

  // Spins until the condition holds or it is better to sleep; whether it holds.
  template <class Condition>
  bool spin_until(const Condition& condition);
  Clock::duration patience(Clock::time_point now) const;
  int awake() const;

  const int processors_;
  const bool passive_;
  std::mutex starting_;
  std::atomic<int> workers_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<int> used_slots_{0};
  alignas(kLine) std::atomic<Clock::rep> crowded_until_{0};  // since the clock's epoch
  std::array<std::atomic<Slot*>, kSlots> slots_{};
  std::array<Worker, kMostThreads> worker_;
};

}  // namespace gpunn::cpu
