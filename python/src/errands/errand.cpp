#include "errands/errand.hpp"

#include <algorithm>
#include <chrono>

#include <cxxabi.h>

namespace gpunn::python {

namespace {

// How long a signal may wait.
constexpr std::chrono::milliseconds kErrandInterval{50};

}  // namespace

void Errand::run(std::function<void()> work) {
  auto at_work = std::make_unique<AtWork>(what_, &stop_);
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

bool Errand::ask(const std::function<void()>& callback) {
  std::unique_lock lock(mutex_);
  if (deaf_ || is_exiting()) return false;
  const auto question = std::make_shared<Question>(Question{&callback});
  questions_.push_back(question);
  changed_.notify_all();
  // The end of the interpreter does not notify this thread.
  while (!changed_.wait_for(lock, kErrandInterval, [&] { return question->callback == nullptr; })) {
    if (!is_exiting() || (question->answering && !callbacks_are_late())) continue;
    question->callback = nullptr;
  }
  std::erase(questions_, question);
  return question->answered;
}

void Errand::wait() {
  for (;;) {
    bool done = false, asked = false;
    {
      const Unlocked unlocked;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kErrandInterval, [&] { return done_ || !questions_.empty(); });
      done = done_;
      asked = !questions_.empty();
    }
    if (done) return;
    if (asked) answer();
    if (heed_signals()) return;
  }
}

void Errand::answer() {
  std::shared_ptr<Question> question;
  const std::function<void()>* callback = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (questions_.empty()) return;
    question = questions_.front();
    questions_.pop_front();
    callback = question->callback;
    question->answering = callback != nullptr;
  }
  if (callback == nullptr) return;
  bool answered = false;
  if (exception_ == nullptr) {
    try {
      const InCallback in_callback;
      (*callback)();
      answered = true;
    } catch (const abi::__forced_unwind&) {
      wait_for_ever();  // the interpreter has ended, and ends this thread within Python
    } catch (...) {
      exception_ = std::current_exception();
      stop_ = true;
    }
  }
  const std::lock_guard lock(mutex_);
  question->answered = answered;
  question->callback = nullptr;
  changed_.notify_all();
}

bool Errand::heed_signals() {
  if (PyErr_CheckSignals() == 0) return false;
  const bool second = exception_ != nullptr;
  exception_ = std::make_exception_ptr(nb::python_error());
  stop_ = true;
  if (stoppable_ && !second) return false;
  const std::lock_guard lock(mutex_);
  turn_away();
  return true;
}

void Errand::turn_away() {
  deaf_ = true;
  for (const auto& question : questions_) question->callback = nullptr;
  questions_.clear();
  changed_.notify_all();
}

}  // namespace gpunn::python
