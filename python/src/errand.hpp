// Long work on a thread of its own, while the thread that asked for it heeds signals and runs Python's callbacks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <nanobind/nanobind.h>

#include "process.hpp"

namespace gpunn::python {

namespace nb = nanobind;

// Ctrl-C, or what else a signal handler or callback throws, sets stop(). Work that looks at it ends soon, and the
// exception is thrown then. A second one does not wait: the work goes on alone until it looks. Nor does the first where
// the work does not look (`stoppable` is false).
class Errand : public std::enable_shared_from_this<Errand> {
 public:
  explicit Errand(bool stoppable) : stoppable_(stoppable) {}

  // Runs `work` and waits for it. Throws what it threw or, before that, what was thrown by a callback or a signal's
  // handler. Called with the interpreter's lock.
  void run(std::function<void()> work);

  // From within the work: has the waiting thread call `callback`, with the interpreter's lock, and waits for that. Does
  // nothing once a callback has thrown, or no thread waits any more.
  void ask(const std::function<void()>& callback);

  const std::atomic<bool>* stop() const { return &stop_; }
  bool stopped() const { return stop_; }
  // Of a callback: the work is to end, without an exception.
  void request_stop() { stop_ = true; }

 private:
  void wait();
  void answer();
  // Whether there is nothing to wait for any more.
  bool heed_signals();

  const bool stoppable_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* question_ = nullptr;
  bool answering_ = false, done_ = false, deaf_ = false;
  std::exception_ptr failure_;    // of the work
  std::exception_ptr exception_;  // of a callback or a signal's handler; touched with the interpreter's lock alone
};

// The result of `work(errand)`.
template <typename Work>
auto on_errand(bool stoppable, Work work) {
  using Result = decltype(work(std::declval<Errand&>()));
  const auto errand = std::make_shared<Errand>(stoppable);
  const auto result = std::make_shared<std::optional<Result>>();
  errand->run([errand = errand.get(), result, work = std::move(work)]() mutable { result->emplace(work(*errand)); });
  return std::move(**result);
}

}  // namespace gpunn::python
