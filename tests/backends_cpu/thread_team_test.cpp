#include "threads/thread_team.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <catch.hpp>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "threads/parallel.hpp"

#if defined(__SANITIZE_THREAD__)
#define GPUNN_TEST_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GPUNN_TEST_UNDER_TSAN
#endif
#endif

using gpunn::cpu::parallel_for;
using gpunn::cpu::parallel_ranges;
using gpunn::cpu::ThreadTeam;

namespace {

// What a loop of so many tasks did: how often it ran each task, and whether two tasks had one thread at the same time.
struct Outcome {
  explicit Outcome(int threads, int64_t tasks)
      : runs(static_cast<std::size_t>(tasks)), busy(new std::atomic<bool>[threads]) {
    for (int i = 0; i < threads; ++i) busy[i] = false;
    parallel_for(threads, tasks, [&](int64_t task, int thread) {
      if (thread < 0 || thread >= threads || busy[thread].exchange(true)) wrong_thread = true;
      ++runs[static_cast<std::size_t>(task)];
      busy[thread] = false;
    });
  }

  bool right() const {
    return !wrong_thread && std::all_of(runs.begin(), runs.end(), [](int times) { return times == 1; });
  }

  std::vector<int> runs;  // plain numbers: a task that two threads take is a race, too
  std::unique_ptr<std::atomic<bool>[]> busy;
  std::atomic<bool> wrong_thread{false};
};

void let_workers_sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// The exit status of body() in a child of this process, or -1 if it hangs.
template <class Body>
int status_in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  for (int i = 0; i < 2000; ++i) {
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -1;
}

// Whether sums that many loops make one after the other are right.
bool sums_are_right(int threads, int loops, int64_t tasks) {
  std::vector<int64_t> values(static_cast<std::size_t>(tasks), 0);
  for (int loop = 0; loop < loops; ++loop) {
    parallel_for(threads, tasks, [&](int64_t task, int /*thread*/) { values[static_cast<std::size_t>(task)] += task; });
  }
  return std::accumulate(values.begin(), values.end(), int64_t{0}) == loops * tasks * (tasks - 1) / 2;
}

}  // namespace

TEST_CASE("A loop runs each task once, by one thread of its number") {
  for (const int threads : {1, 2, 3, 7, 40}) {
    for (const int64_t tasks : {0, 1, 2, 3, 6, 7, 8, 39, 1000}) {
      INFO(threads << " threads, " << tasks << " tasks");
      CHECK(Outcome(threads, tasks).right());
    }
  }
  CHECK(Outcome(3, 0x300001).right());
  CHECK(Outcome(2 * ThreadTeam::kMostThreads, 3).right());
}

TEST_CASE("Pieces of a range meet and end at its end") {
  std::vector<int> runs(1000);
  parallel_ranges(999, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++runs[static_cast<std::size_t>(i)];
  });
  CHECK(std::count(runs.begin(), runs.end() - 1, 1) == 999);
  CHECK(runs.back() == 0);
}

TEST_CASE("Loops follow each other at once, and after pauses in which the threads fall asleep") {
  CHECK(sums_are_right(3, 5000, 10));
  for (int i = 0; i < 20; ++i) {
    let_workers_sleep();
    CHECK(sums_are_right(2, 3, 4));
  }
}

TEST_CASE("Many threads call loops at the same time, more than can share the team") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 20; ++i) {
    callers.emplace_back([&wrong, i] {
      for (int k = 0; k < 20; ++k) wrong += sums_are_right(2 + i % 3, 10, 1 + (7 * i + k) % 20) ? 0 : 1;
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("A task may call a loop") {
  std::vector<std::vector<int>> runs(12, std::vector<int>(50));
  for (int repeat = 0; repeat < 50; ++repeat) {
    parallel_for(3, 12, [&](int64_t outer, int /*thread*/) {
      parallel_for(3, 50, [&](int64_t inner, int /*thread*/) {
        ++runs[static_cast<std::size_t>(outer)][static_cast<std::size_t>(inner)];
      });
    });
  }
  for (const std::vector<int>& row : runs) CHECK(std::count(row.begin(), row.end(), 50) == 50);
}

TEST_CASE("A thread that is stopped holds up no task but its own") {
  if (omp_get_num_procs() < 2) return;
  constexpr int64_t kTasks = 100;
  for (const int64_t held : {int64_t{0}, kTasks / 2, kTasks - 1}) {
    let_workers_sleep();
    std::atomic<int64_t> others{0};
    bool others_ran = false;
    parallel_for(2, kTasks, [&](int64_t task, int /*thread*/) {
      if (task != held) {
        ++others;
        return;
      }
      for (int i = 0; i < 10000 && others < kTasks - 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      others_ran = others == kTasks - 1;
    });
    INFO("task " << held << " waits for the others");
    CHECK(others_ran);
  }
}

#ifndef GPUNN_TEST_UNDER_TSAN  // which allows no threads after a fork
TEST_CASE("A child of a process with a team has a team of its own") {
  REQUIRE(sums_are_right(3, 10, 10));
  CHECK(ThreadTeam::of_process().workers() >= 2);
  CHECK(status_in_child([] {
          const int before = ThreadTeam::of_process().workers();
          return sums_are_right(3, 10, 10) && before == 0 && ThreadTeam::of_process().workers() == 2;
        }) == 0);

  std::atomic<bool> stop{false};
  std::thread other([&stop] {
    while (!stop) sums_are_right(3, 10, 10);
  });
  for (int i = 0; i < 10; ++i) CHECK(status_in_child([] { return sums_are_right(3, 10, 10); }) == 0);
  stop = true;
  other.join();
}
#endif
