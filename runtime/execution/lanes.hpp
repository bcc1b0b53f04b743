#pragma once

#include <gpunn/abi.h>

#include <cstddef>
#include <vector>

#include "execution/backend.hpp"

namespace gpunn::execution {

// Streams on which parts of a program run at the same time: lane 0 is the backend's own, the others are new. Used by
// one thread; nothing that was put on a lane may still run when it is destroyed.
class Lanes {
 public:
  Lanes(Backend& backend, std::size_t count);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  std::size_t count() const { return streams_.size(); }
  // A lane's stream as the plugin of that level of the chain knows it.
  gpunn_stream* stream(std::size_t lane, std::size_t level) const { return streams_[lane][level]; }

  // Names what is on the lane now.
  gpunn_event* mark(std::size_t lane);
  // What is put on the lane from now on waits for the mark.
  void wait(std::size_t lane, gpunn_event* mark);
  // Marks are good for one capture.
  void forget_marks() noexcept;

 private:
  void close() noexcept;
  Backend& backend_;
  std::vector<std::vector<gpunn_stream*>> streams_;  // by lane, by level
  std::vector<gpunn_event*> marks_;
};

}  // namespace gpunn::execution
