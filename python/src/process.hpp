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

// The library is at work while one lives. The end of the interpreter waits for that, and sets `stop` so that it need
// not wait long. Throws where require_usable_process() does.
class AtWork {
 public:
  explicit AtWork(std::atomic<bool>* stop = nullptr);
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  std::atomic<bool>* stop_;
};

// Whether the interpreter ends.
bool is_exiting() noexcept;

}  // namespace gpunn::python
