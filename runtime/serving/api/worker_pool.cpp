#include "serving/api/worker_pool.hpp"

#include <string>
#include <utility>

#include "serving/protocol/service_error.hpp"

namespace gpunn::serving {

WorkerPool::WorkerPool(int threads, std::size_t most_waiting) : most_(most_waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw ServiceError(503, "the service is shutting down");
    if (tasks_.size() >= most_) {
      throw ServiceError(503, std::to_string(most_) + " requests wait to be read already; try again later");
    }
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

bool WorkerPool::takes(std::function<void()> task) {
  try {
    run(std::move(task));
    return true;
  } catch (const ServiceError&) {
    return false;
  }
}

void WorkerPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace gpunn::serving
