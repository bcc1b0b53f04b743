// Loops on the thread team (thread_team.hpp).
//
// A result must not depend on the number of threads: cut the work into tasks by the shape alone, give each output
// element to one task, and reduce across tasks in the tasks' order.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpunn::cpu {

// The size of the team. A kernel that asks for workspace by thread must take the number once, when its factory is
// registered (after the device has set it), and pass it to parallel_for, since another device may change it later.
int thread_count();

// 0: as many as the process may run on, or as OMP_NUM_THREADS says.
void set_thread_count(int threads);

// What parallel_for calls, with the type of its body taken away.
void run_on_team(int threads, int64_t tasks, void (*body)(const void* context, int64_t task, int thread),
                 const void* context);

// Calls body(task, thread) for each task in [0, tasks), thread in [0, threads); by the caller alone where there is one
// task or one thread. Each thread begins with its own share of consecutive tasks, and then takes over those of others.
// body must not throw.
template <class Body>
void parallel_for(int threads, int64_t tasks, const Body& body) {
  if (threads <= 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  run_on_team(
      threads, tasks,
      [](const void* context, int64_t task, int thread) { (*static_cast<const Body*>(context))(task, thread); }, &body);
}

// Calls body(task) on the whole team.
template <class Body>
void parallel_for(int64_t tasks, const Body& body) {
  parallel_for(thread_count(), tasks, [&body](int64_t task, int /*thread*/) { body(task); });
}

// Calls body(begin, end) over pieces of [0, n) of `grain` elements, the last shorter. With a grain worth at least some
// ten microseconds, small work stays on the calling thread.
template <class Body>
void parallel_ranges(int64_t n, int64_t grain, const Body& body) {
  parallel_for((n + grain - 1) / grain, [&](int64_t task) { body(task * grain, std::min(n, (task + 1) * grain)); });
}

}  // namespace gpunn::cpu
