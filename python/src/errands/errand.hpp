// Long work on a thread of its own, while the thread that asked for it heeds signals and runs Python's callbacks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <nanobind/nanobind.h>

#include "errands/process.hpp"

namespace gpunn::python {

namespace nb = nanobind;

// Ctrl-C, or what else a signal handler or callback throws, sets stop(). Work that looks at it ends soon, and the
// exception is thrown then. A second one does not wait: the work goes on alone until it looks. Nor does the first where
// the work does not look (`stoppable` is false).
class Errand : public std::enable_shared_from_this<Errand> {
 public:
  // `what` says what the work is, in a message: "a training".
  Errand(bool stoppable, const char* what) : stoppable_(stoppable), what_(what) {}

  // Runs `work` and waits for it. Throws what it threw or, before that, what was thrown by a callback or a signal's
  // handler. Called with the interpreter's lock.
  void run(std::function<void()> work);

  // From within the work, from any of its threads: has the waiting thread call `callback`, with the interpreter's lock,
  // and waits for that. Does nothing once a callback has thrown, or no thread waits any more. At the end of the
  // interpreter a callback has a few seconds; one that takes longer is left alone and may return when `callback` is
  // gone, so what it does after its call of Python must need nothing of the asking thread. Returns whether it returned.
  bool ask(const std::function<void()>& callback);

  const std::atomic<bool>* stop() const { return &stop_; }
  bool stopped() const { return stop_; }
  // The work is to end, without an exception.
  void request_stop() { stop_ = true; }

 private:
  struct Question {
    const std::function<void()>* callback;
    bool answering = false, answered = false;
  };

  void wait();
  void answer();
  // With the mutex held: no question is answered any more.
  void turn_away();
  // Whether there is nothing to wait for any more.
  bool heed_signals();

  const bool stoppable_;
  const char* const what_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Question>> questions_;  // not yet answered, the oldest first
  bool done_ = false, deaf_ = false;
  std::exception_ptr failure_;    // of the work
  std::exception_ptr exception_;  // of a callback or a signal's handler; touched with the interpreter's lock alone
};

// The result of `work(errand)`.
template <typename Work>
auto on_errand(bool stoppable, Work work, const char* what = "a call") {
  using Result = decltype(work(std::declval<Errand&>()));
  const auto errand = std::make_shared<Errand>(stoppable, what);
  const auto result = std::make_shared<std::optional<Result>>();
  errand->run([errand = errand.get(), result, work = std::move(work)]() mutable { result->emplace(work(*errand)); });
  return std::move(**result);
}

}  // namespace gpunn::python
