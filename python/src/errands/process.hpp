// What a computation in C++ and the life of the interpreter's process have to do with one another.
#pragma once

#include <atomic>

#include <nanobind/nanobind.h>

namespace gpunn::python {

// Throws Error in a child process that was forked after something was computed in its parent: the threads and the
// driver contexts of the parent are not there, and a kernel would wait for them for ever.
void require_usable_process();

// Whether this is such a child. What the library holds is not freed in it.
bool is_forked_child() noexcept;

// The lock of the interpreter is released while one lives. At the end of the interpreter a thread without the lock
// never comes back: it could not take it, and has to leave other threads' memory alone.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// The library is at work while one lives. The end of the interpreter waits for that, says so with `what` where it takes
// long, and sets `stop` so that it need not. Throws where require_usable_process() does.
class AtWork {
 public:
  explicit AtWork(const char* what = "a call", std::atomic<bool>* stop = nullptr);
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  const char* what_;
  std::atomic<bool>* stop_;
};

// The work waits for a callback in Python while one lives.
class InCallback {
 public:
  InCallback();
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
};

// Whether the interpreter ends.
bool is_exiting() noexcept;
// Whether it ends and has waited long enough for callbacks.
bool callbacks_are_late() noexcept;

[[noreturn]] void wait_for_ever();

}  // namespace gpunn::python
