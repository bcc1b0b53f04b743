#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace gpunn::training {

// A thread that fills buffers in host memory ahead of their use: items count up, item i goes into buffer i mod buffers.
class BatchLoader {
 public:
  // Called on the loader's thread, for a single item at a time. If it throws, no more items are filled, and a request
  // for that item or a later one throws the same exception.
  using Fill = std::function<void(int64_t item, std::size_t buffer)>;

  BatchLoader(std::size_t buffers, Fill fill);
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;
  ~BatchLoader();  // waits for the item in hand

  // Forgets everything and fills the items [first, end), all buffers being free.
  void start(int64_t first, int64_t end);
  bool filled(int64_t item);
  void wait_for(int64_t item);  // until it is filled
  // The oldest item's buffer may be filled again.
  void release();

 private:
  void work();

  const int64_t buffers_;
  const Fill fill_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Items below next_ are filled, those below limit_ have a free buffer.
  int64_t next_ = 0, limit_ = 0, end_ = 0;
  bool busy_ = false, leaving_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace gpunn::training
