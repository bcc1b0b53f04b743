#pragma once

#include <gpunn/abi.h>

#include <cstddef>
#include <vector>

#include "execution/backend.hpp"

namespace gpunn::execution {

// Streams on which parts of a step program run at the same time. Stream 0 is the backend's own, the others are new.
// Used by a single thread. All work on the streams must be done when they are destroyed.
class Streams {
 public:
  Streams(Backend& backend, std::size_t count);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  std::size_t count() const { return streams_.size(); }
  // The handle that the plugin of that level of the chain has for the stream.
  gpunn_stream* handle(std::size_t stream, std::size_t level) const { return streams_[stream][level]; }

  // Marks the end of the work that is on the stream now.
  gpunn_event* mark(std::size_t stream);
  // Later work on the stream waits for the mark.
  void wait(std::size_t stream, gpunn_event* mark);
  // A mark is valid within a single capture.
  void forget_marks() noexcept;

 private:
  void close() noexcept;
  Backend& backend_;
  std::vector<std::vector<gpunn_stream*>> streams_;  // by stream, by level
  std::vector<gpunn_event*> marks_;
};

}  // namespace gpunn::execution
