// The thread team: OpenMP's, which lives as long as the process, so that a parallel loop costs about a microsecond.
//
// A result must not depend on the number of threads: cut the work into tasks by the shape alone, give each output
// element to one task, and reduce across tasks in the tasks' order.
#pragma once

#include <algorithm>
#include <cstdint>

#include <omp.h>

namespace gpunn::cpu {

// The size of the team. A kernel that asks for workspace by thread must take the number once, when its factory is
// registered (after the device has set it), and pass it to parallel_for, since another device may change it later.
int thread_count();

// 0: as many as the process may run on.
void set_thread_count(int threads);

// Calls body(task, thread) for each task in [0, tasks), thread in [0, threads); by the caller alone where there is one
// task or one thread. Tasks go to whichever thread is free. body must not throw.
template <class Body>
void parallel_for(int threads, int64_t tasks, const Body& body) {
  threads = static_cast<int>(std::min<int64_t>(threads, tasks));
  if (threads <= 1) {
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t task = 0; task < tasks; ++task) body(task, thread);
  }
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
