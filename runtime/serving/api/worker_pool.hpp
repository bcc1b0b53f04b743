#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gpunn::serving {

// Threads for what would hold up the network: decoding images, reading long requests, loading models.
class WorkerPool {
 public:
  WorkerPool(int threads, std::size_t most_waiting);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  // Throws ServiceError(503) where as many wait as may. A task throws nothing.
  void run(std::function<void()> task);
  // The same; false where run() throws.
  bool takes(std::function<void()> task);
  void stop();  // once all that waits is done

 private:
  void work();

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gpunn::serving
