#include "process.hpp"

#include <gpunn/error.hpp>
#include <gpunn/plugins.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include "bindings.hpp"

namespace gpunn::python {

namespace {

// A training ends with the step that it is at, and writes a checkpoint. Other work has no end to be asked for.
constexpr std::chrono::seconds kExitPatience{60};

struct Process {
  std::mutex mutex;
  std::condition_variable idle;
  std::vector<std::atomic<bool>*> stops;  // of the work that can be stopped
  std::size_t at_work = 0;
  std::atomic<bool> used{false}, forked{false}, exiting{false};

  std::size_t at_work_now() {
    const std::lock_guard lock(mutex);
    return at_work;
  }
};

// Never destroyed: threads that wait for ever use it.
Process& process() {
  static Process* const one = new Process;
  return *one;
}

void in_forked_child() {
  if (process().used) process().forked = true;
}

[[noreturn]] void wait_for_ever() {
  for (;;) ::pause();
}

void at_exit() {
  Process& here = process();
  if (here.forked) return;
  // A thread that is at work now never comes back, and what it uses is never freed.
  if (here.at_work_now() > 0) nb::set_leak_warnings(false);
  const nb::gil_scoped_release released;
  std::unique_lock lock(here.mutex);
  here.exiting = true;
  for (std::atomic<bool>* stop : here.stops) *stop = true;
  if (!here.idle.wait_for(lock, kExitPatience, [&] { return here.at_work == 0; })) {
    // What goes on uses objects that the end of the process would destroy.
    ::_exit(EXIT_FAILURE);
  }
}

}  // namespace

void require_usable_process() {
  if (!process().forked) return;
  throw Error(
      "this process was forked after gpunn had computed in its parent, whose threads and devices it has not. Start "
      "processes with multiprocessing's method 'spawn' or 'forkserver', or use gpunn in the child processes alone.");
}

bool is_forked_child() noexcept { return process().forked; }
bool is_exiting() noexcept { return process().exiting; }

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {}
Unlocked::~Unlocked() {
  if (is_exiting()) wait_for_ever();
  PyEval_RestoreThread(state_);
}

AtWork::AtWork(std::atomic<bool>* stop) : stop_(stop) {
  require_usable_process();
  Process& here = process();
  const std::lock_guard lock(here.mutex);
  here.used = true;
  ++here.at_work;
  if (stop == nullptr) return;
  here.stops.push_back(stop);
  if (here.exiting) *stop = true;
}

AtWork::~AtWork() {
  Process& here = process();
  {
    const std::lock_guard lock(here.mutex);
    --here.at_work;
    if (const auto found = std::find(here.stops.begin(), here.stops.end(), stop_); found != here.stops.end()) {
      here.stops.erase(found);
    }
  }
  here.idle.notify_all();
}

void bind_process(nb::module_& module) {
  // As the program does it: a plugin's OpenMP team waits between two kernels, and by default spins for milliseconds.
  ::setenv("GOMP_SPINCOUNT", "30000", 0);
  ::pthread_atfork(nullptr, nullptr, in_forked_child);
  module.def("_at_exit", at_exit);
  nb::module_::import_("atexit").attr("register")(module.attr("_at_exit"));
  // Behind the interpreter's end: objects that it frees may still need their plugin.
  Py_AtExit([] {
    if (!is_forked_child()) shutdown_plugins();
  });
}

}  // namespace gpunn::python
