#pragma once

#include <gpunn/abi.h>

#include <cstdint>

#include "execution/backend.hpp"
#include "execution/streams/event.hpp"

namespace gpunn::execution {

// A second stream of a backend's device, for copies beside the work on the backend's own stream. Only events order the
// two. Must not outlive the backend; the thread that uses the backend uses it.
class CopyStream {
 public:
  explicit CopyStream(Backend& backend);
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;
  ~CopyStream();  // waits for what is on it

  // Puts a copy on the stream and returns at once. `pinned`, of GPUNN_MEMORY_PINNED, has to stay as it is until the
  // copy is done.
  void upload(void* device, const void* pinned, uint64_t bytes);
  // Records the event behind the work on this stream; an earlier record is dropped.
  void record(Event& event);
  // Later work on this stream waits for the event.
  void wait_for(const Event& event);
  void synchronize();

 private:
  Backend& backend_;
  gpunn_stream* stream_ = nullptr;
};

}  // namespace gpunn::execution
