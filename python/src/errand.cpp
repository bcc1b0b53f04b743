#include "errand.hpp"

#include <chrono>

namespace gpunn::python {

namespace {

// How long a signal may wait.
constexpr std::chrono::milliseconds kSignalInterval{50};

}  // namespace

void Errand::run(std::function<void()> work) {
  auto at_work = std::make_unique<AtWork>(&stop_);
  std::thread([self = shared_from_this(), at_work = std::move(at_work), work = std::move(work)]() mutable {
    try {
      work();
    } catch (...) {
      self->failure_ = std::current_exception();
    }
    work = nullptr;
    at_work.reset();
    const std::lock_guard lock(self->mutex_);
    self->done_ = true;
    self->changed_.notify_all();
  }).detach();
  wait();
  if (exception_ != nullptr) std::rethrow_exception(std::exchange(exception_, nullptr));
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void Errand::ask(const std::function<void()>& callback) {
  std::unique_lock lock(mutex_);
  if (deaf_ || is_exiting()) return;
  question_ = &callback;
  changed_.notify_all();
  // The end of the interpreter does not notify this thread, and lets a callback that runs come to its end.
  while (!changed_.wait_for(lock, kSignalInterval, [&] { return question_ == nullptr; })) {
    if (is_exiting() && !answering_) question_ = nullptr;
  }
}

void Errand::wait() {
  for (;;) {
    bool done = false, asked = false;
    {
      const Unlocked unlocked;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kSignalInterval, [&] { return done_ || question_ != nullptr; });
      done = done_;
      asked = question_ != nullptr;
    }
    if (done) return;
    if (asked) answer();
    if (heed_signals()) return;
  }
}

void Errand::answer() {
  const std::function<void()>* question = nullptr;
  {
    const std::lock_guard lock(mutex_);
    question = question_;
    answering_ = question != nullptr;
  }
  if (question == nullptr) return;
  if (exception_ == nullptr) {
    try {
      (*question)();
    } catch (...) {
      exception_ = std::current_exception();
      stop_ = true;
    }
  }
  const std::lock_guard lock(mutex_);
  question_ = nullptr;
  answering_ = false;
  changed_.notify_all();
}

bool Errand::heed_signals() {
  if (PyErr_CheckSignals() == 0) return false;
  const bool second = exception_ != nullptr;
  exception_ = std::make_exception_ptr(nb::python_error());
  stop_ = true;
  if (stoppable_ && !second) return false;
  const std::lock_guard lock(mutex_);
  deaf_ = true;
  question_ = nullptr;
  changed_.notify_all();
  return true;
}

}  // namespace gpunn::python
