#include "errands/process.hpp"

#include <gpunn/error.hpp>
#include <gpunn/plugins.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include "bindings.hpp"

namespace gpunn::python {

namespace {

using Clock = std::chrono::steady_clock;

// The end of the interpreter is silent for so long, waits so long for callbacks, and so long for a step to end and a
// checkpoint to be written.
constexpr std::chrono::seconds kSilence{1}, kCallbackPatience{3}, kExitPatience{60};
constexpr std::chrono::milliseconds kSignalInterval{50};

struct Work {
  const char* what;
  std::atomic<bool>* stop;  // nullptr: it can't be stopped
};

struct Process {
  std::mutex mutex;
  std::condition_variable idle;
  std::vector<Work> at_work;
  std::atomic<int> in_callbacks{0};
  std::atomic<bool> used{false}, forked{false}, exiting{false}, callbacks_are_late{false};
};

// Never destroyed: threads that wait for ever use it.
Process& process() {
  static Process* const one = new Process;
  return *one;
}

void in_forked_child() {
  if (process().used) process().forked = true;
}

void say_what_is_awaited(const Process& here) {
  const std::string which = here.at_work.size() == 1 ? std::string(here.at_work.front().what) + " in another thread"
                                                     : std::to_string(here.at_work.size()) + " calls in other threads";
  const std::string why = here.in_callbacks > 0 ? "a callback or a source of batches in Python that has not returned: "
                                                  "it is left alone after " +
                                                      std::to_string(kCallbackPatience.count()) + " s"
                                                : "its step to end, at most " + std::to_string(kExitPatience.count()) +
                                                      " s; Ctrl-C ends the process now";
  std::fprintf(stderr, "gpunn: the interpreter ends and waits for %s, for %s\n", which.c_str(), why.c_str());
  std::fflush(stderr);
}

// With the interpreter's lock, which is released while this waits.
bool signal_came() { return PyErr_CheckSignals() != 0; }

void at_exit() {
  Process& here = process();
  if (here.forked) return;
  const auto start = Clock::now();
  bool told = false;
  {
    const std::lock_guard lock(here.mutex);
    // A thread that is at work now never comes back, and what it uses is never freed.
    if (!here.at_work.empty()) nb::set_leak_warnings(false);
    here.exiting = true;
    for (const Work& work : here.at_work) {
      if (work.stop != nullptr) *work.stop = true;
    }
  }
  for (;;) {
    {
      const nb::gil_scoped_release released;
      std::unique_lock lock(here.mutex);
      if (here.idle.wait_for(lock, kSignalInterval, [&] { return here.at_work.empty(); })) return;
      const auto waited = Clock::now() - start;
      if (waited >= kSilence && !std::exchange(told, true)) say_what_is_awaited(here);
      if (waited >= kCallbackPatience) here.callbacks_are_late = true;
      // What goes on uses objects that the end of the process would destroy.
      if (waited >= kExitPatience) ::_exit(EXIT_FAILURE);
    }
    if (signal_came()) ::_exit(static_cast<int>(ExitCode::interrupted));
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
bool callbacks_are_late() noexcept { return process().callbacks_are_late; }

void wait_for_ever() {
  for (;;) ::pause();
}

InCallback::InCallback() { ++process().in_callbacks; }
InCallback::~InCallback() { --process().in_callbacks; }

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {}
Unlocked::~Unlocked() {
  if (is_exiting()) wait_for_ever();
  PyEval_RestoreThread(state_);
}

AtWork::AtWork(const char* what, std::atomic<bool>* stop) : what_(what), stop_(stop) {
  require_usable_process();
  Process& here = process();
  const std::lock_guard lock(here.mutex);
  here.used = true;
  here.at_work.push_back({what, stop});
  if (stop != nullptr && here.exiting) *stop = true;
}

AtWork::~AtWork() {
  Process& here = process();
  {
    const std::lock_guard lock(here.mutex);
    here.at_work.erase(std::find_if(here.at_work.begin(), here.at_work.end(),
                                    [this](const Work& work) { return work.what == what_ && work.stop == stop_; }));
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
