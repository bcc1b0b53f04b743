#include "feed/batch_loader.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace gpunn::training {

BatchLoader::BatchLoader(std::size_t buffers, Fill fill)
    : buffers_(static_cast<int64_t>(buffers)), fill_(std::move(fill)), thread_([this] { work(); }) {}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchLoader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return leaving_ || next_ < std::min(limit_, end_); });
    if (leaving_) return;
    const int64_t item = next_;
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      fill_(item, static_cast<std::size_t>(item % buffers_));
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failure != nullptr) {
      failure_ = failure;
      end_ = next_;
    } else {
      ++next_;
    }
    changed_.notify_all();
  }
}

void BatchLoader::start(int64_t first, int64_t end) {
  std::unique_lock lock(mutex_);
  end_ = next_;
  changed_.wait(lock, [this] { return !busy_; });
  failure_ = nullptr;
  next_ = first;
  limit_ = first + buffers_;
  end_ = end;
  changed_.notify_all();
}

bool BatchLoader::filled(int64_t item) {
  const std::lock_guard lock(mutex_);
  if (item < next_) return true;
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return false;
}

void BatchLoader::wait_for(int64_t item) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return item < next_ || failure_ != nullptr || item >= std::min(limit_, end_); });
  if (item < next_) return;
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  throw Error("item " + std::to_string(item) + " was asked of a loader that may not fill it");
}

void BatchLoader::release() {
  {
    const std::lock_guard lock(mutex_);
    ++limit_;
  }
  changed_.notify_all();
}

}  // namespace gpunn::training
