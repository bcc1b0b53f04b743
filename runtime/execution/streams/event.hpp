#pragma once

#include <gpunn/abi.h>

#include "execution/backend.hpp"

namespace gpunn::execution {

// An event on a stream of a backend: Backend::make_event(). Must not outlive the backend; destroy it only after it is
// reached.
class Event {
 public:
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // Records the event behind the work on the backend's stream. A second record replaces the first.
  void record();
  void synchronize();  // until it is reached
  bool recorded() const { return recorded_; }
  // Time on the device between two recorded events; both must be reached.
  double milliseconds_since(const Event& start) const;

 private:
  friend class Backend;
  friend class CopyStream;
  explicit Event(Backend& backend);
  Backend* backend_ = nullptr;
  gpunn_event* handle_ = nullptr;
  bool recorded_ = false;
};

}  // namespace gpunn::execution
